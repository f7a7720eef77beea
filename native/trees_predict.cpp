// Rows dropped through trees.
#include <algorithm>

#include "bytes.hpp"
#include "trees_code.hpp"

namespace {

// Rows that meet a tree at once, where it is not walked and where it is; and bytes of codes that a cache should hold.
constexpr i64 ROWS = 512, WALKING_ROWS = 1 << 14, CACHED = 1 << 17, CACHED_WALKING = 1 << 22;
// Rows, or trees, that are walked side by side, so that their memory accesses overlap.
constexpr int LANES = 8;
// Trees whose leaves are added at once, and how far apart their places and values are: not a power of two, whose multiples share
// cache sets.
constexpr int AT_ONCE = 8;
constexpr i64 PLACES = ROWS + 64, TABLE = (1 << MOST_LEVELS) + 8;

struct Job {
    const Trees &trees;
    const double *X;
    i64 width;
    const double *weight;
    const i64 *into;
    double *result;
    i64 n, start, end;

    double *row(i64 tree, i64 i) const { return result + (into[tree] * n + i) * trees.outputs; }
};

// Scratch memory of a block of rows: its codes column by column (``stride`` apart) and row by row, a
// column's values, leaves of several trees (``PLACES`` apart) with their weighted values (``TABLE`` apart), and the order of trees.
struct Work {
    i64 stride;
    std::vector<std::int8_t> codes, by_row;
    std::vector<double> value, table;
    std::vector<u8> place;
    std::vector<i64> order;
};

i64 rounded_up(i64 count, i64 to) { return (count + to - 1) / to * to; }

void code_rows(const Job &job, const Group &group, i64 first, i64 count, Work &work) {
    for (size_t c = 0; c < group.columns.size(); c++) {
        const Column &column = group.columns[c];
        const double *from = job.X + first * job.width + column.index;
        std::int8_t *codes = &work.codes[c * work.stride];
        for (i64 r = 0; r < count; r++) work.value[r] = from[r * job.width];
        if (column.coding == Coding::CATEGORY) {
            code_categories(work.value.data(), count, work.stride, codes);
            c += CATEGORY_COLUMNS - 1;
            continue;
        }
        code_column(&job.trees.edges[column.begin], column.number, work.value.data(), count, codes);
        if (column.coding == Coding::MISSING_LAST)
            for (i64 r = 0; r < count; r++) codes[r] = work.value[r] != work.value[r] ? 127 : codes[r];
    }
}

void turn_codes(const Group &group, i64 count, Work &work) {
    const i64 columns = static_cast<i64>(group.columns.size());
    work.by_row.resize(std::max<i64>(1, columns * count));
    for (i64 c = 0; c < columns; c++)
        for (i64 r = 0; r < count; r++) work.by_row[r * columns + c] = work.codes[c * work.stride + r];
}

// The leaf of each row of some vectors: of a symmetric tree the bits of its levels, of others where its cuts have led to.
// SETS: some cuts have one.
template <int VECTORS, bool SYMMETRIC, bool SETS>
void find_some(const Trees &of, i64 first, i64 last, const std::int8_t *codes, i64 stride, u8 *place) {
    Bytes leaf[VECTORS] = {};
    for (i64 q = first; q < last; q++) {
        const Cut &cut = of.cuts[q];
        const std::int8_t *own = codes + cut.column * stride;
        const Bytes start = each(cut.start), step = each(cut.step);
        const i32 set = SETS ? of.set_of_cut[q] : -1;
        for (int i = 0; i < VECTORS; i++) {
            const i64 at = i * GCE_BYTES;
            const Bytes left = set < 0 ? below(cut.edge, own + at)
                                       : in_set(&of.set_bytes[32 * set], own + stride + at, own + 2 * stride + at);
            leaf[i] = SYMMETRIC ? leaf[i] + leaf[i] - left : leaf[i] + (~left & equal(leaf[i], start) & step);
        }
    }
    for (int i = 0; i < VECTORS; i++) store(place + i * GCE_BYTES, leaf[i]);
}

// The leaf of each row of a block.
template <bool SYMMETRIC, bool SETS> void find_leaves(const Trees &of, const Tree &tree, const Work &work, i64 count, u8 *place) {
    const i64 first = tree.first_cut, last = tree.last_cut, stride = work.stride;
    const std::int8_t *codes = work.codes.data();
    i64 r = 0;
    for (; r + 7 * GCE_BYTES < count; r += 8 * GCE_BYTES) find_some<8, SYMMETRIC, SETS>(of, first, last, codes + r, stride, place + r);
    for (; r + 3 * GCE_BYTES < count; r += 4 * GCE_BYTES) find_some<4, SYMMETRIC, SETS>(of, first, last, codes + r, stride, place + r);
    for (; r < count; r += GCE_BYTES) find_some<1, SYMMETRIC, SETS>(of, first, last, codes + r, stride, place + r);
}

auto finder(const Trees &of, const Tree &tree) {
    const bool sets = !of.set_of_cut.empty();
    if (tree.shape == Shape::SYMMETRIC) return sets ? find_leaves<true, true> : find_leaves<true, false>;
    return sets ? find_leaves<false, true> : find_leaves<false, false>;
}

// Add the leaves of several trees, one after another.
template <int COUNT> void add_leaves(const double *table, const u8 *place, i64 count, double *GCE_RESTRICT total) {
    i64 r = 0;
    for (; r + 8 <= count; r += 8) {
        Pair sum[4];
        for (int k = 0; k < 4; k++) sum[k] = pair(total[r + 2 * k], total[r + 2 * k + 1]);
        for (int i = 0; i < COUNT; i++) {
            const double *own = table + i * TABLE;
            const u8 *leaf = place + i * PLACES + r;
            for (int k = 0; k < 4; k++) sum[k] = sum[k] + pair(own[leaf[2 * k]], own[leaf[2 * k + 1]]);
        }
        for (int k = 0; k < 4; k++) store(total + r + 2 * k, sum[k]);
    }
    for (; r < count; r++)
        for (int i = 0; i < COUNT; i++) total[r] += table[i * TABLE + place[i * PLACES + r]];
}

// Add the leaves of one tree, of several values each.
void add_vectors(const double *table, const u8 *place, i64 count, i64 outputs, double *GCE_RESTRICT total) {
    for (i64 r = 0; r < count; r++, total += outputs) {
        const double *leaf = table + place[r] * outputs;
        i64 j = 0;
        for (; j + 2 <= outputs; j += 2) store(total + j, pair(total[j], total[j + 1]) + pair(leaf[j], leaf[j + 1]));
        if (j < outputs) total[j] += leaf[j];
    }
}

// Leaves times the weights of their tree.
void weigh_leaves(const Job &job, i64 t, double *GCE_RESTRICT table) {
    const Tree &tree = job.trees.trees[t];
    const i64 outputs = job.trees.outputs;
    const double *leaf = &job.trees.leaves[tree.leaf], *weight = job.weight + t * outputs;
    if (outputs == 1)
        for (i64 l = 0; l < tree.leaves; l++) table[l] = weight[0] * leaf[l];
    else
        for (i64 l = 0; l < tree.leaves; l++)
            for (i64 j = 0; j < outputs; j++) table[l * outputs + j] = weight[j] * leaf[l * outputs + j];
}

// Consecutive trees that are not walked, those of one sum together.
void sift(const Job &job, i64 first_tree, i64 last_tree, i64 first, i64 count, Work &work) {
    const i64 outputs = job.trees.outputs;
    for (i64 t = first_tree; t < last_tree;) {
        i64 some = 0;
        const i64 *tree = &work.order[t];
        for (; some < AT_ONCE && t + some < last_tree && job.into[tree[some]] == job.into[tree[0]]; some++) {
            const Tree &own = job.trees.trees[tree[some]];
            u8 *place = &work.place[some * PLACES];
            finder(job.trees, own)(job.trees, own, work, count, place);
            weigh_leaves(job, tree[some], &work.table[some * TABLE * outputs]);
        }
        double *total = job.row(tree[0], first);
        const double *table = work.table.data();
        const u8 *place = work.place.data();
        if (outputs == 1 && some == AT_ONCE)
            add_leaves<AT_ONCE>(table, place, count, total);
        else if (outputs == 1)
            for (i64 i = 0; i < some; i++) add_leaves<1>(table + i * TABLE, place + i * PLACES, count, total);
        else
            for (i64 i = 0; i < some; i++) add_vectors(table + i * TABLE * outputs, place + i * PLACES, count, outputs, total);
        t += some;
    }
}

// One step of a path; SETS: nodes may have one.
template <bool SETS> inline u32 step(const Trees &of, const Node *nodes, const std::int8_t *codes, u32 at) {
    const Node &node = nodes[at];
    const std::int8_t code = codes[node.column];
    if (!SETS) return node.left + (code > node.code);
    // both are found out, without a branch, which would be guessed wrong half of the time; nodes without a set look at the first
    const u32 byte = static_cast<u32>(code + 128);
    const u32 outside = ~(of.set_bytes[32 * of.set_of[at] + (byte >> 3)] >> (byte & 7)) & 1u, beyond = code > node.code;
    const u32 by_set = 0u - static_cast<u32>(node.categorical);
    return node.left + ((outside & by_set) | (beyond & ~by_set));
}

// Walk some paths side by side to their leaves, in place.
template <bool SETS> void walk_paths(const Trees &of, const std::int8_t *const *codes, u32 *at) {
    const Node *nodes = of.nodes.data();
    u32 moving;
    do {
        for (int again = 0; again < 3; again++)
            for (int i = 0; i < LANES; i++) at[i] = step<SETS>(of, nodes, codes[i], at[i]);
        moving = 0;
        for (int i = 0; i < LANES; i++) {
            const u32 next = step<SETS>(of, nodes, codes[i], at[i]);
            moving |= next ^ at[i];
            at[i] = next;
        }
    } while (moving);
}

void walk(const Trees &of, const std::int8_t *const *codes, u32 *at) {
    (of.set_of.empty() ? walk_paths<false> : walk_paths<true>)(of, codes, at);
}

template <class Value> void add_leaf(const Value *value, const double *weight, i64 outputs, double *GCE_RESTRICT total) {
    // a loop over one number takes longer than the number
    if (outputs == 1)
        total[0] += weight[0] * static_cast<double>(value[0]);
    else
        for (i64 j = 0; j < outputs; j++) total[j] += weight[j] * static_cast<double>(value[j]);
}

template <class Value> void add_node(const Job &job, i64 t, i64 i, i64 node) {
    const i64 outputs = job.trees.outputs;
    add_leaf(static_cast<const Value *>(job.trees.value) + node * outputs, job.weight + t * outputs, outputs, job.row(t, i));
}

// Ask for memory in its order, which is far faster than waiting for one line after another.
void fetch(const void *first, i64 bytes) {
#if defined(__GNUC__)
    for (i64 i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char *>(first) + i, 0, 2);
#endif
}

// Rows through one tree.
template <class Value> void walk_rows(const Job &job, i64 t, i64 first, i64 count, i64 columns, const Work &work) {
    const u32 root = static_cast<u32>(job.trees.trees[t].root), *origin = job.trees.origin.data();
    const i64 outputs = job.trees.outputs;
    const Value *value = static_cast<const Value *>(job.trees.value);
    const double *weight = job.weight + t * outputs;
    double *GCE_RESTRICT total = job.row(t, first);
    // most of a tree is met by so many rows
    if (32 * count > job.trees.trees[t].size) {
        const i64 size = job.trees.trees[t].size;
        fetch(&job.trees.nodes[root], size * sizeof(Node));
        fetch(origin + root, size * sizeof(u32));
        fetch(value + root * outputs, size * outputs * sizeof(Value));
    }
    const std::int8_t *codes[LANES];
    u32 at[LANES];
    for (i64 r = 0; r < count; r += LANES) {
        for (int i = 0; i < LANES; i++) {
            // a last row stands in for those that are not there
            codes[i] = &work.by_row[std::min(r + i, count - 1) * columns];
            at[i] = root;
        }
        walk(job.trees, codes, at);
        const i64 some = std::min<i64>(LANES, count - r);
        for (i64 i = 0; i < some; i++) add_leaf(value + origin[at[i]] * outputs, weight, outputs, total + (r + i) * outputs);
    }
}

// One row through several trees.
template <class Value> void walk_trees(const Job &job, i64 first_tree, i64 last_tree, i64 i, const std::int8_t *row) {
    const std::int8_t *codes[LANES];
    u32 at[LANES];
    std::fill(codes, codes + LANES, row);
    for (i64 t = first_tree; t < last_tree; t += LANES) {
        for (i64 lane = 0; lane < LANES; lane++)
            at[lane] = static_cast<u32>(job.trees.trees[std::min(t + lane, last_tree - 1)].root);
        walk(job.trees, codes, at);
        for (i64 lane = 0; lane < LANES && t + lane < last_tree; lane++) add_node<Value>(job, t + lane, i, job.trees.origin[at[lane]]);
    }
}

// Whether a row goes left at a cut.
inline bool goes_left(const Trees &of, i64 q, const std::int8_t *row) {
    const Cut &cut = of.cuts[q];
    const i32 set = of.set_of_cut.empty() ? -1 : of.set_of_cut[q];
    return set < 0 ? row[cut.column] < cut.edge : of.sets[set].has(static_cast<u32>(row[cut.column] + 128));
}

// One row through several symmetric trees.
void match_levels(const Job &job, i64 first_tree, i64 last_tree, i64 i, const std::int8_t *row) {
    const Trees &of = job.trees;
    for (i64 t = first_tree; t < last_tree; t++) {
        const Tree &tree = of.trees[t];
        i64 leaf = 0;
        for (i64 q = tree.first_cut; q < tree.last_cut; q++) leaf = 2 * leaf + goes_left(of, q, row);
        const double *value = &of.leaves[tree.leaf + leaf * of.outputs];
        add_leaf(value, job.weight + t * of.outputs, of.outputs, job.row(t, i));
    }
}

// Whether a number passes a node to the right.
inline bool beyond(const Trees &of, i64 node, double value) {
    switch (of.rule_of(node)) {
    case Rule::SET: return !of.sets[static_cast<i64>(of.threshold[node])].has(byte_of(value));
    case Rule::MISSING_RIGHT: return !(value <= of.threshold[node]);
    default: return value > of.threshold[node];
    }
}

// Rows through one tree, by their numbers.
template <class Value> void walk_numbers(const Job &job, i64 t, i64 first, i64 count) {
    const Trees &of = job.trees;
    const i64 root = of.trees[t].root;
    for (i64 i = first; i < first + count; i++) {
        i64 node = root;
        while (of.left[node]) node = root + of.left[node] + beyond(of, node, job.X[i * job.width + of.feature[node]]);
        add_node<Value>(job, t, i, node);
    }
}

// How a tree is passed by so many rows.
Shape way(const Tree &tree, bool few) {
    if (few) return tree.shape == Shape::SMALL ? Shape::WALKED : tree.shape;
    return tree.shape == Shape::SYMMETRIC ? Shape::SMALL : tree.shape;
}

// Consecutive trees that are passed alike.
template <class Value>
void pass_run(const Job &job, const Group &group, i64 first_tree, i64 last_tree, Shape how, i64 first, i64 count, Work &work) {
    const i64 columns = static_cast<i64>(group.columns.size());
    if (how == Shape::SMALL)
        sift(job, first_tree, last_tree, first, count, work);
    else if (how == Shape::RAW)
        for (i64 t = first_tree; t < last_tree; t++) walk_numbers<Value>(job, t, first, count);
    else if (how == Shape::SYMMETRIC)
        for (i64 r = 0; r < count; r++)
            match_levels(job, first_tree, last_tree, first + r, work.by_row.data() + r * columns);
    else if (count < FEW)
        for (i64 r = 0; r < count; r++)
            walk_trees<Value>(job, first_tree, last_tree, first + r, work.by_row.data() + r * columns);
    else
        for (i64 t = first_tree; t < last_tree; t++) walk_rows<Value>(job, t, first, count, columns, work);
}

template <class Value> void pass_group(const Job &job, const Group &group, i64 first, i64 count, Work &work) {
    const auto &trees = job.trees.trees;
    const bool few = count < FEW;
    code_rows(job, group, first, count, work);
    bool turned = false;
    for (i64 t = group.first, last; t < group.last; t = last) {
        const Shape how = way(trees[t], few);
        for (last = t + 1; last < group.last && way(trees[last], few) == how;) last++;
        if ((how == Shape::WALKED || how == Shape::SYMMETRIC) && !turned) {
            turn_codes(group, count, work);
            turned = true;
        }
        pass_run<Value>(job, group, t, last, how, first, count, work);
    }
}

// Rows of a block: as many as have their codes in a cache.
i64 block_rows(const Trees &of, i64 columns, i64 rows) {
    const bool walking = std::all_of(of.trees.begin(), of.trees.end(), [](const Tree &tree) { return tree.shape == Shape::WALKED; });
    const i64 fitting = (walking ? CACHED_WALKING : CACHED) / std::max<i64>(columns, 1) / 256 * 256;
    const i64 most = std::min(walking ? WALKING_ROWS : ROWS, std::max<i64>(fitting, 256));
    return std::min(most, rows);
}

// Trees in their order, those that are not walked by the sums that they belong to: each sum keeps its order.
std::vector<i64> ordered(const Job &job) {
    std::vector<i64> order(job.trees.trees.size());
    for (size_t t = 0; t < order.size(); t++) order[t] = static_cast<i64>(t);
    for (const Group &group : job.trees.groups)
        for (i64 t = group.first, last; t < group.last; t = last) {
            const Shape how = way(job.trees.trees[t], false);
            for (last = t + 1; last < group.last && way(job.trees.trees[last], false) == how;) last++;
            if (how == Shape::SMALL)
                std::stable_sort(order.begin() + t, order.begin() + last,
                                 [&](i64 a, i64 b) { return job.into[a] < job.into[b]; });
        }
    return order;
}

template <class Value> int pass_rows(const Job &job) {
    i64 columns = 1;
    for (const Group &group : job.trees.groups) columns = std::max<i64>(columns, static_cast<i64>(group.columns.size()));
    const i64 rows = block_rows(job.trees, columns, job.end - job.start);
    Work work;
    work.stride = rounded_up(rows, GCE_BYTES);
    work.codes.resize(columns * work.stride);
    work.value.resize(rounded_up(rows, 8));
    if (rows >= FEW) {
        work.place.resize(AT_ONCE * PLACES);
        work.table.resize(AT_ONCE * TABLE * job.trees.outputs);
        work.order = ordered(job);
    }
    for (i64 first = job.start; first < job.end; first += rows)
        for (const Group &group : job.trees.groups)
            pass_group<Value>(job, group, first, std::min(rows, job.end - first), work);
    return GCE_OK;
}

} // namespace

// result[into[t], i] += weight[t] * leaf for rows i from start to end, tree by tree; see gce/bases/trees/predictor.py.
GCE_EXPORT int gce_trees_sum(const Trees *trees, const double *X, i64 n, i64 width, const double *weight, const i64 *into,
                             double *result, i64 start, i64 end) {
    return guarded([&] {
        const Job job{*trees, X, width, weight, into, result, n, start, end};
        return trees->single ? pass_rows<float>(job) : pass_rows<double>(job);
    });
}
