// Extremely randomised trees on binned rows.
//
// What a row has moves with it (its codes, four columns to a word, or its index where few of the columns are looked at;
// weight; targets): a node's rows are adjacent, and are read in sequence.
#include <memory>

#include "part_rows.hpp"
#include "path_limits.hpp"
#include "random_cuts.hpp"
#include "random_draws.hpp"
#include "random_targets.hpp"

namespace {

// A later cut must be better by more than the rounding of weights, which rows that are repeated do not have.
constexpr double BETTER = 1e-9;

struct Table {
    const u32 *codes; // (blocks, N): four columns to a word
    i64 N, d;
    const double *values; // of each code of each column
    const i64 *starts;    // (d + 1,)
    // (d,), or null where there are none: columns whose last code is that of missing values, or whose codes have no order
    const u8 *missing, *categorical;

    bool plain(i64 column) const { return missing == nullptr || (!missing[column] && !categorical[column]); }
    u32 last(i64 column) const { return static_cast<u32>(starts[column + 1] - starts[column] - 1); }
};

struct Limits {
    i64 tries;
    double least; // weight of a leaf
    double late;  // weight of a node up to which columns are cut that keep an order
    u64 seed;
};

struct Nodes {
    i32 *feature, *cut, *left;
    double *value;    // (nodes, k)
    u8 *missing_left; // (nodes,), where columns have kinds
    u64 *sets;        // (inner nodes, 4): codes that go left; the cut of a node that splits categories is an index of these
};

template <Kind KIND, bool WEIGHTED> class Grower {
  public:
    Grower(const Table &table, const u32 *rows, const Targets &given, const Limits &limits, const Constraints &constraints,
           bool moved)
        : table(table), n(given.n), blocks((table.d + 3) / 4), limits(limits), moved(moved), head(moved ? blocks : 1),
          arrays(head + NodeTargets<KIND, WEIGHTED>::arrays(given.k)), buffer(new u32[arrays * n + SPARE]()),
          gathered(new u32[moved ? 0 : n + SPARE]()), sides(new u32[table.missing ? n + SPARE : 0]()),
          targets(given, buffer.get() + head * n), path(constraints, table.d, given.k),
          range_of(blocks, -1), low(4 * blocks), high(4 * blocks),
          cuts(std::min(limits.tries, table.d)) {
        for (i64 b = 0; b < blocks && moved; ++b)
            for (i64 i = 0; i < n; ++i)
                buffer[b * n + i] = table.codes[b * table.N + rows[i]];
        if (!moved)
            std::copy(rows, rows + n, buffer.get());
    }

    // Grow, level by level, and return the number of nodes.
    i64 grow(const Nodes &out, i64 k) {
        std::vector<u32> begin(2 * n - 1), count(2 * n - 1);
        std::vector<u64> keys(2 * n - 1);
        count[0] = static_cast<u32>(n);
        keys[0] = limits.seed;
        i64 nodes = 1;
        for (node = 0; node < nodes; ++node) {
            first = begin[node];
            size = count[node];
            key = keys[node];
            gathered_block = -1;
            Cut cut;
            if (targets.uneven(first, size)) {
                mass = targets.add_up();
                if (static_cast<double>(mass) >= 2 * limits.least)
                    cut = next_cut();
            }
            out.feature[node] = out.cut[node] = out.left[node] = 0;
            if (table.missing)
                out.missing_left[node] = 0;
            if (cut.column < 0) {
                targets.means(out.value + node * k);
                path.clip(node, out.value + node * k);
                continue;
            }
            std::fill(out.value + node * k, out.value + (node + 1) * k, 0.0);
            out.feature[node] = static_cast<i32>(cut.column);
            out.cut[node] = static_cast<i32>(cut.code);
            out.left[node] = static_cast<i32>(nodes);
            if (table.missing)
                keep(cut, out);
            path.divide(node, cut.column, cut.sign);
            part(cut);
            begin[nodes] = static_cast<u32>(first);
            count[nodes] = static_cast<u32>(cut.rows);
            begin[nodes + 1] = static_cast<u32>(first + cut.rows);
            count[nodes + 1] = static_cast<u32>(size - cut.rows);
            keys[nodes] = key_of_left(key);
            keys[nodes + 1] = key_of_right(key);
            nodes += 2;
        }
        return nodes;
    }

  private:
    static constexpr i64 SPARE = NodeTargets<KIND, WEIGHTED>::SPARE;

    struct Cut {
        i64 column = -1;
        u32 code = 0;
        i64 rows = 0; // that go left
        // where a column has missing values or categories: where the former go, and the codes that go left
        i32 missing = Cuts::NO_MISSING;
        CodeSet codes = {};
        i64 mass = 0; // of the rows that go left
        i64 sign = 0; // the order that the means of both sides keep
    };

    void part(const Cut &cut) {
        u32 *const base = buffer.get() + first;
        if (table.plain(cut.column)) {
            const Column column = column_of(cut.column);
            part_rows(base, n, arrays, size, cut.rows, [&](i64 i) { return column.code(i) <= cut.code; });
        } else {
            const Column side = side_of(cut.column, cut.codes);
            part_rows(base, n, arrays, size, cut.rows, [&](i64 i) { return side.code(i) == 0; });
        }
    }

    // Where missing values go from here, and the set of a split of categories.
    void keep(const Cut &cut, const Nodes &out) {
        // where a node has none, they go where most rows go
        out.missing_left[node] = cut.missing == Cuts::NO_MISSING ? 2 * cut.mass >= mass : cut.missing == Cuts::TO_LEFT;
        if (cut.missing != Cuts::NO_ORDER)
            return;
        std::copy(cut.codes.word, cut.codes.word + 4, out.sets + 4 * n_sets);
        out.cut[node] = static_cast<i32>(n_sets++);
    }

    // The codes of a block of four columns, for the rows of the node.
    const u32 *words(i64 block) {
        if (moved)
            return buffer.get() + block * n + first;
        if (gathered_block != block) {
            const u32 *const from = table.codes + block * table.N, *const own = buffer.get() + first;
            for (i64 i = 0; i < size; ++i)
                gathered[i] = from[own[i]];
            gathered_block = block;
        }
        return gathered.get();
    }

    Column column_of(i64 column) { return {words(column >> 2), 8 * static_cast<int>(column & 3)}; }

    // The least and the largest code of each of four columns.
    void find_range(i64 block) {
        const u8 *const bytes = reinterpret_cast<const u8 *>(words(block));
        u8 *const least = low.data() + 4 * block, *const most = high.data() + 4 * block;
        if (size >= 8)
            range_in_lanes<32>(bytes, 4 * size, least, most);
        else if (size >= 4)
            range_in_lanes<16>(bytes, 4 * size, least, most);
        else
            range_in_lanes<4>(bytes, 4 * size, least, most);
        range_of[block] = node;
    }

    // The codes of the node's rows in a column.
    CodeSet codes_of(i64 own) {
        const Column column = column_of(own);
        CodeSet found;
        if (size < MOST_BINS / 2) {
            for (i64 i = 0; i < size; ++i)
                found.add(column.code(i));
            return found;
        }
        // bits would have to wait for each other
        bool there[MOST_BINS] = {};
        for (i64 i = 0; i < size; ++i)
            there[column.code(i)] = true;
        for (u32 code = 0; code < MOST_BINS; ++code)
            if (there[code])
                found.add(code);
        return found;
    }

    // Each row's side as a column: 0 for codes that go left, else 1.
    Column side_of(i64 own, const CodeSet &left) {
        const Column column = column_of(own);
        if (size < MOST_BINS / 2) {
            for (i64 i = 0; i < size; ++i)
                sides[i] = !left.has(column.code(i));
            return {sides.get(), 0};
        }
        u32 table_of[MOST_BINS];
        for (u32 code = 0; code < MOST_BINS; ++code)
            table_of[code] = !left.has(code);
        for (i64 i = 0; i < size; ++i)
            sides[i] = table_of[column.code(i)];
        return {sides.get(), 0};
    }

    // Draw some of the categories that are there, each with probability 1/2; one of them where these are none or all.
    CodeSet draw_codes(const CodeSet &there, u64 number) {
        CodeSet left, right;
        for (int w = 0; w < 4; ++w) {
            const u64 bits = drawn_number(number, w);
            left.word[w] = there.word[w] & bits;
            right.word[w] = there.word[w] & ~bits;
        }
        if (!left.none() && !right.none())
            return left;
        u64 pick = drawn_number(number, 4) % static_cast<u64>(there.count());
        CodeSet one;
        for (u32 code = 0; one.none(); ++code)
            if (there.has(code) && pick-- == 0)
                one.add(code);
        return one;
    }

    // Draw a cut in a column with missing values or categories, if it varies here.
    void draw_mixed(i64 column, u64 number) {
        CodeSet there = codes_of(column);
        if (there.count() < 2)
            return;
        if (table.categorical[column]) {
            cuts.add(column, draw_codes(there, number));
            return;
        }
        const u32 last = table.last(column);
        const bool some = there.has(last);
        there.remove(last);
        u32 low = 0, high = last - 1;
        while (!there.has(low))
            ++low;
        while (!there.has(high))
            --high;
        const u64 where = drawn_number(number, 0) % 3;
        const u32 share = static_cast<u32>(number);
        // missing values go to either side of the cut, or alone to the right
        if (low == high || (some && where == 2)) {
            cuts.add(column, table.starts[column], table.values, last - 1, last - 1, share);
            cuts.missing[cuts.count - 1] = Cuts::TO_RIGHT;
        } else {
            cuts.add(column, table.starts[column], table.values, low, high, share);
            cuts.missing[cuts.count - 1] = !some ? Cuts::NO_MISSING : where == 0 ? Cuts::TO_LEFT : Cuts::TO_RIGHT;
        }
    }

    // The codes that go left at a cut that was drawn.
    CodeSet left_codes(i64 i) const {
        if (cuts.missing[i] == Cuts::NO_ORDER)
            return cuts.codes[i];
        CodeSet left;
        for (i32 code = 0; code <= cuts.code[i]; ++code)
            left.add(static_cast<u32>(code));
        if (cuts.missing[i] == Cuts::TO_LEFT)
            left.add(table.last(cuts.column[i]));
        return left;
    }

    // Draw one cut in each of several columns that vary here.
    void draw() {
        std::vector<i32> &columns = path.columns(node);
        const i64 open = static_cast<i64>(columns.size());
        // two rows are parted in one way only, but not along a column whose order they would leave
        const i64 wanted = size > 2 || path.ordered() ? limits.tries : 1;
        i64 drawn = 0;
        cuts.count = cuts.widest = 0;
        for (; drawn < open && cuts.count < wanted; ++drawn) {
            const u64 number = drawn_number(key, drawn);
            const i64 left = open - drawn, pick = pick_of(number, left), column = columns[pick];
            std::swap(columns[pick], columns[left - 1]);
            if (free_only && path.sign(column) != 0)
                continue;
            if (!table.plain(column)) {
                draw_mixed(column, number);
                continue;
            }
            if (range_of[column >> 2] != node)
                find_range(column >> 2);
            if (low[column] < high[column])
                cuts.add(column, table.starts[column], table.values, low[column], high[column], static_cast<u32>(number));
        }
        // what a node draws must not depend on those before it
        while (drawn-- > 0)
            std::swap(columns[pick_of(drawn_number(key, drawn), open - drawn)], columns[open - drawn - 1]);
        cuts.find(table.values);
    }

    // A cut of a column that keeps an order bounds all leaves below it: while there are many rows, other columns come first.
    Cut next_cut() {
        free_only = path.ordered() && static_cast<double>(mass) > limits.late;
        const Cut cut = best_cut();
        if (!free_only || cut.column >= 0)
            return cut;
        free_only = false;
        return best_cut();
    }

    // The best of the cuts that are drawn.
    Cut best_cut() {
        draw();
        Cut best;
        double score = -1.0;
        for (i64 i = 0; i < cuts.count; ++i) {
            const u32 code = static_cast<u32>(cuts.code[i]);
            const i64 column = cuts.column[i];
            const CodeSet left = table.plain(column) ? CodeSet() : left_codes(i);
            const Column side = table.plain(column) ? column_of(column) : side_of(column, left);
            const u32 last = table.plain(column) ? code : 0;
            const Side own = targets.side(side, last);
            if (static_cast<double>(own.mass) < limits.least || static_cast<double>(mass - own.mass) < limits.least)
                continue;
            const i64 sign = sign_of(i);
            if (own.score > score + BETTER * std::abs(score) && keeps_order(sign, side, last)) {
                score = own.score;
                best = {column, code, own.rows, cuts.missing[i], left, own.mass, sign};
            }
        }
        return best;
    }

    // The order of values that a cut must keep: none where missing values are parted from all others.
    i64 sign_of(i64 i) const {
        const i64 column = cuts.column[i];
        const bool alone = cuts.missing[i] == Cuts::TO_RIGHT && cuts.code[i] == static_cast<i32>(table.last(column)) - 1;
        return alone ? 0 : path.sign(column);
    }

    // Whether the means of the sides of a cut are in order, and within the bounds of the node; they are kept then.
    bool keeps_order(i64 sign, const Column &side, u32 last) {
        if (sign == 0 && !path.bounded(node))
            return true;
        double *const means = path.means();
        targets.side_means(side, last, means, means + targets.outputs());
        return path.keep(node, sign);
    }

    const Table table;
    const i64 n, blocks;
    const Limits limits;
    const bool moved; // codes move with the rows
    const i64 head, arrays;
    const std::unique_ptr<u32[]> buffer;   // (arrays, n): codes or indices of rows, weights, targets
    const std::unique_ptr<u32[]> gathered; // (n,): codes of a block for the rows of the node, where they do not move
    const std::unique_ptr<u32[]> sides;    // (n,): whether rows go right, where columns have kinds
    NodeTargets<KIND, WEIGHTED> targets;
    u64 key = 0;
    bool free_only = false; // no column is cut that must keep an order
    PathLimits path;
    std::vector<i64> range_of; // (blocks,): the node whose range of codes is known
    std::vector<u8> low, high; // (4 blocks,)
    Cuts cuts;
    i64 node = 0, first = 0, size = 0, mass = 0, gathered_block = -1, n_sets = 0;
};

template <Kind KIND, bool WEIGHTED>
i64 grown(const Table &table, const u32 *rows, const Targets &targets, const Limits &limits, const Constraints &constraints,
          const Nodes &out) {
    // codes are better read in sequence than gathered, but a copy of all of them, in each thread, is not worth its memory
    // where few of many columns are looked at
    const bool moved = 16 * limits.tries >= table.d;
    return Grower<KIND, WEIGHTED>(table, rows, targets, limits, constraints, moved).grow(out, targets.k);
}

} // namespace

// weight and plain may be null: all weights are 1 then. classes says that the target is a class. missing, categorical,
// missing_left and sets are null where all columns are ordered and have no missing values; sign and group where columns are
// not constrained.
GCE_EXPORT int gce_grow_random(const u8 *codes, i64 N, i64 d, const double *values, const i64 *starts, const u8 *missing,
                               const u8 *categorical, const u32 *rows, i64 n, i64 k, i64 weighted, i64 classes, const i32 *weight, const i32 *target,
                               const i32 *plain, const double *scale, i64 tries, double least, double late, u64 seed,
                               const i64 *sign, const u64 *group, i64 words, i32 *feature, i32 *cut,
                               i32 *left, double *value, u8 *missing_left, u64 *sets, i64 *nodes) {
    return guarded([&] {
        const Table table{reinterpret_cast<const u32 *>(codes), N, d, values, starts, missing, categorical};
        const Targets targets{n, k, weight, target, plain, scale};
        const Limits limits{tries, least, late, seed};
        const Constraints constraints{sign, group, words};
        const Nodes out{feature, cut, left, value, missing_left, sets};
        const Kind kind = classes ? CLASSES : k == 1 ? SINGLE : SEVERAL;
        const auto run = [&](auto weights) {
            constexpr bool W = decltype(weights)::value;
            return kind == CLASSES  ? grown<CLASSES, W>(table, rows, targets, limits, constraints, out)
                   : kind == SINGLE ? grown<SINGLE, W>(table, rows, targets, limits, constraints, out)
                                    : grown<SEVERAL, W>(table, rows, targets, limits, constraints, out);
        };
        *nodes = weighted ? run(std::true_type{}) : run(std::false_type{});
        return GCE_OK;
    });
}
