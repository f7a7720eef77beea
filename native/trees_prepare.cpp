// From the nodes of trees to what predictions need.
#include <algorithm>
#include <cstring>
#include <memory>

#include "trees.hpp"

namespace {

constexpr int GCE_NOT_A_TREE = -2;

// The distinct thresholds of each column of consecutive trees.
class Distinct {
  public:
    // a threshold with the position of its column
    struct Entry {
        i32 column;
        double threshold;
    };
    std::vector<Entry> entries;
    std::vector<Column> columns;

    explicit Distinct(i64 width) : width_(width), position_(3 * width, -1), table_(1 << 12, -1) {}

    // The index of a threshold among the entries.
    i32 find(i32 feature, double threshold, Coding coding) {
        i32 &position = position_[key(feature, coding)];
        if (position < 0) {
            position = static_cast<i32>(columns.size());
            columns.push_back({feature, 0, 0, coding});
        }
        const i32 column = position;
        // the two zeros are one number
        threshold += 0.0;
        size_t at = place(column, threshold);
        for (; table_[at] >= 0; at = (at + 1) & (table_.size() - 1)) {
            const Entry &known = entries[table_[at]];
            if (known.column == column && known.threshold == threshold) return table_[at];
        }
        table_[at] = static_cast<i32>(entries.size());
        entries.push_back({column, threshold});
        if (++columns[column].number > MOST_CUTS) crowded = true;
        if (2 * entries.size() > table_.size()) grow();
        return static_cast<i32>(entries.size()) - 1;
    }

    // Forget all but the first entries and columns.
    void keep(size_t count, size_t known) {
        for (size_t i = count; i < entries.size(); i++) columns[entries[i].column].number--;
        for (size_t c = known; c < columns.size(); c++) position_[key(columns[c].index, columns[c].coding)] = -1;
        entries.resize(count);
        columns.resize(known);
        crowded = false;
    }

    void clear() {
        keep(0, 0);
        std::fill(table_.begin(), table_.end(), -1);
    }

    // whether a column has more thresholds than a byte can tell apart
    bool crowded = false;

  private:
    i64 key(i64 feature, Coding coding) const { return feature + width_ * static_cast<i64>(coding); }

    size_t place(i32 column, double threshold) const {
        u64 bits;
        std::memcpy(&bits, &threshold, sizeof bits);
        return splitmix64(bits ^ (static_cast<u64>(column) << 40)) & (table_.size() - 1);
    }

    void grow() {
        table_.assign(2 * table_.size(), -1);
        for (size_t i = 0; i < entries.size(); i++) {
            size_t at = place(entries[i].column, entries[i].threshold);
            while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
            table_[at] = static_cast<i32>(i);
        }
    }

    i64 width_;
    std::vector<i32> position_, table_;
};

Coding coding_of(Rule rule) {
    if (rule == Rule::SET) return Coding::CATEGORY;
    return rule == Rule::MISSING_LEFT ? Coding::MISSING_FIRST : Coding::MISSING_LAST;
}

// Number the thresholds of a tree; false where there are too many, or one is no number.
bool number_cuts(Trees &of, const Tree &tree, Distinct &distinct) {
    for (i64 p = tree.root; p < tree.root + tree.size && !distinct.crowded; p++) {
        if (of.left[p] == 0) continue;
        if (of.threshold[p] != of.threshold[p]) return false;
        const Coding coding = coding_of(of.rule_of(p));
        of.number[p] = distinct.find(of.feature[p], coding == Coding::CATEGORY ? 0.0 : of.threshold[p], coding);
    }
    return !distinct.crowded && CATEGORY_COLUMNS * distinct.columns.size() <= MOST_COLUMNS;
}

// The set of a given node, at its place among those for walking.
void keep_set(Trees &of, i64 from, u32 to) {
    of.set_of.resize(of.nodes.size());
    of.set_of[to] = static_cast<u32>(of.threshold[from]);
}

// The nodes of a tree for walking, from the numbers of their cuts, and the columns and codes of these.
void lay_out(Trees &of, const Tree &tree, const std::vector<Node> &cuts) {
    const i32 *left = of.left + tree.root;
    std::vector<i32> under(tree.size, 1);
    for (i64 p = tree.size - 1; p >= 0; p--)
        if (left[p]) under[p] = under[left[p]] + under[left[p] + 1];
    struct Move {
        i32 from;
        u32 to;
    };
    std::vector<Move> waiting{{0, static_cast<u32>(tree.root)}};
    u32 next = static_cast<u32>(tree.root) + 1;
    while (!waiting.empty()) {
        const Move move = waiting.back();
        waiting.pop_back();
        of.origin[move.to] = static_cast<u32>(tree.root + move.from);
        const i32 child = left[move.from];
        if (child == 0) {
            of.nodes[move.to] = {move.to, 0, 127, false};
            continue;
        }
        of.nodes[move.to] = cuts[of.number[tree.root + move.from]];
        of.nodes[move.to].left = next;
        if (of.nodes[move.to].categorical) keep_set(of, tree.root + move.from, move.to);
        const Move first{child, next}, second{child + 1, next + 1};
        const bool heavier = under[child] >= under[child + 1];
        waiting.insert(waiting.end(), {heavier ? second : first, heavier ? first : second});
        next += 2;
    }
}

// End a group: edges in order, and codes in the nodes of its trees.
void close_group(Trees &of, Group group, Distinct &distinct) {
    std::vector<i32> order(distinct.entries.size());
    std::vector<Node> coded(distinct.entries.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<i32>(i);
    const auto &entries = distinct.entries;
    std::sort(order.begin(), order.end(), [&](i32 a, i32 b) {
        const i64 x = distinct.columns[entries[a].column].index, y = distinct.columns[entries[b].column].index;
        if (x != y) return x < y;
        if (entries[a].column != entries[b].column) return entries[a].column < entries[b].column;
        return entries[a].threshold < entries[b].threshold;
    });
    for (size_t first = 0; first < order.size();) {
        Column column = distinct.columns[entries[order[first]].column];
        const bool numbers = column.coding != Coding::CATEGORY;
        if (numbers) column.begin = static_cast<i64>(of.edges.size());
        for (i32 rank = 0; rank < column.number; rank++) {
            const i32 own = order[first + rank];
            if (numbers) of.edges.push_back(entries[own].threshold);
            coded[own] = {0, static_cast<u16>(group.columns.size()), static_cast<std::int8_t>(rank - 128), !numbers};
        }
        // a search by halves looks at so many
        if (numbers && column.number > 0) of.edges.resize(column.begin + MOST_CUTS + 1, HUGE_VAL);
        first += column.number;
        group.columns.insert(group.columns.end(), numbers ? 1 : CATEGORY_COLUMNS, column);
    }
    for (i64 t = group.first; t < group.last; t++)
        if (of.trees[t].shape != Shape::RAW) lay_out(of, of.trees[t], coded);
    of.groups.push_back(std::move(group));
}

// Groups of trees, each as many as bytes suffice for.
void make_groups(Trees &of) {
    Distinct distinct(of.widest + 1);
    Group group{0, 0, {}};
    const i64 count = static_cast<i64>(of.trees.size());
    for (i64 t = 0; t < count; t++) {
        const size_t entries = distinct.entries.size(), columns = distinct.columns.size();
        if (!number_cuts(of, of.trees[t], distinct)) {
            distinct.keep(entries, columns);
            if (t > group.first) close_group(of, std::move(group), distinct);
            distinct.clear();
            group = {t, t, {}};
            if (!number_cuts(of, of.trees[t], distinct)) {
                distinct.clear();
                of.trees[t].shape = Shape::RAW;
            }
        }
        group.last = t + 1;
    }
    if (group.last > group.first) close_group(of, std::move(group), distinct);
}

bool same_set(const Trees &of, u32 one, u32 two) {
    const u64 *words = of.sets[of.set_of[one]].word;
    return std::equal(words, words + 4, of.sets[of.set_of[two]].word);
}

// Levels of a tree that is symmetric, or -1.
int levels_of(const Trees &of, const Tree &tree) {
    int levels = 0;
    for (u32 at = static_cast<u32>(tree.root); of.nodes[at].left != at; at = of.nodes[at].left)
        if (++levels > MOST_LEVELS) return -1;
    if (tree.size != (2 << levels) - 1) return -1;
    std::vector<u32> level{static_cast<u32>(tree.root)}, next;
    for (int depth = 0; depth < levels; depth++, level.swap(next)) {
        next.clear();
        for (u32 at : level) {
            const Node &node = of.nodes[at], &first = of.nodes[level[0]];
            if (node.left == at || node.column != first.column || node.code != first.code) return -1;
            if (node.categorical && !same_set(of, at, level[0])) return -1;
            next.insert(next.end(), {of.nodes[at].left, of.nodes[at].left + 1});
        }
    }
    return levels;
}

void push_leaf(Trees &of, i64 node) {
    for (i64 j = 0; j < of.outputs; j++) {
        const i64 at = node * of.outputs + j;
        of.leaves.push_back(of.single ? static_cast<double>(static_cast<const float *>(of.value)[at])
                                      : static_cast<const double *>(of.value)[at]);
    }
}

void push_cut(Trees &of, u32 at, i32 start) {
    const Node &node = of.nodes[at];
    // one more than the largest code that goes left: vectors compare by "larger than"
    of.cuts.push_back({node.column, static_cast<std::int8_t>(node.code + 1), static_cast<u8>(start), 0});
    if (!of.set_of.empty()) of.set_of_cut.push_back(node.categorical ? static_cast<i32>(of.set_of[at]) : -1);
}

// Leaves by the bits of levels, 1 for left, the first level's the highest.
void make_symmetric(Trees &of, Tree &tree, int levels) {
    tree.shape = Shape::SYMMETRIC;
    tree.leaves = 1 << levels;
    tree.first_cut = static_cast<i64>(of.cuts.size());
    for (u32 at = static_cast<u32>(tree.root); of.nodes[at].left != at; at = of.nodes[at].left)
        push_cut(of, at, 0);
    tree.last_cut = static_cast<i64>(of.cuts.size());
    for (i32 leaf = 0; leaf < tree.leaves; leaf++) {
        u32 at = static_cast<u32>(tree.root);
        for (int level = levels - 1; level >= 0; level--) at = of.nodes[at].left + !(leaf >> level & 1);
        push_leaf(of, of.origin[at]);
    }
}

void make_small(Trees &of, Tree &tree) {
    tree.shape = Shape::SMALL;
    tree.leaves = static_cast<i32>((tree.size + 1) / 2);
    tree.first_cut = static_cast<i64>(of.cuts.size());
    struct Part {
        u32 node;
        i64 cut;
    };
    // parts of the tree, each with the cut whose right side it is: by then the leaves on the left have been counted
    std::vector<Part> waiting{{static_cast<u32>(tree.root), -1}};
    i32 found = 0;
    while (!waiting.empty()) {
        const Part part = waiting.back();
        waiting.pop_back();
        if (part.cut >= 0) of.cuts[part.cut].step = static_cast<u8>(found - of.cuts[part.cut].start);
        const Node &node = of.nodes[part.node];
        if (node.left == part.node) {
            push_leaf(of, of.origin[part.node]);
            found++;
            continue;
        }
        const i64 cut = static_cast<i64>(of.cuts.size());
        push_cut(of, part.node, found);
        waiting.insert(waiting.end(), {{node.left + 1, cut}, {node.left, -1}});
    }
    tree.last_cut = static_cast<i64>(of.cuts.size());
}

// The bytes of sets, in an order that does not depend on the processor's.
void list_set_bytes(Trees &of) {
    for (i64 s = 0; s < of.n_sets; s++)
        for (int byte = 0; byte < 32; byte++) of.set_bytes.push_back(static_cast<u8>(of.sets[s].word[byte / 8] >> 8 * (byte % 8)));
}

// The trees as given, and the largest column that they look at; false where a column or a set is none.
bool list_trees(Trees &of, const i64 *size, i64 count) {
    for (i64 t = 0, root = 0; t < count; root += size[t++]) {
        Tree tree{};
        tree.shape = Shape::WALKED;
        tree.root = root;
        tree.size = size[t];
        of.trees.push_back(tree);
        for (i64 p = root; p < root + size[t]; p++) {
            if (of.left[p] == 0) continue;
            if (of.feature[p] < 0) return false;
            of.widest = std::max<i64>(of.widest, of.feature[p]);
            if (of.rule_of(p) == Rule::SET && !(of.threshold[p] >= 0 && of.threshold[p] < static_cast<double>(of.n_sets))) return false;
        }
    }
    return true;
}

int prepare(const i64 *size, i64 count, i64 nodes, std::unique_ptr<Trees> of, Trees **made) {
    // nodes are numbered by 32 bits
    if (nodes >= (1ll << 32) || check_trees(size, count, nodes, of->left) || !list_trees(*of, size, count)) return GCE_NOT_A_TREE;
    of->nodes.resize(nodes);
    of->origin.resize(nodes);
    of->number.resize(nodes);
    make_groups(*of);
    if (!of->set_of.empty()) list_set_bytes(*of);
    std::vector<i32>().swap(of->number);
    for (Tree &tree : of->trees) {
        if (tree.shape == Shape::RAW || tree.size > 2 * MOST_LEAVES - 1) continue;
        tree.leaf = static_cast<i64>(of->leaves.size());
        const int levels = levels_of(*of, tree);
        if (levels >= 0)
            make_symmetric(*of, tree, levels);
        else
            make_small(*of, tree);
    }
    *made = of.release();
    return GCE_OK;
}

} // namespace

// Prepare trees, see gce/bases/trees/predictor.py; the arrays of nodes must outlive what is made. rule and sets are null where all
// nodes part numbers and none are missing.
GCE_EXPORT int gce_trees_prepare(const i64 *size, i64 count, i64 nodes, const i32 *feature, const double *threshold,
                                 const i32 *left, const void *value, i64 single, i64 outputs, const u8 *rule, const u64 *sets,
                                 i64 n_sets, Trees **made) {
    return guarded([&] {
        auto of = std::make_unique<Trees>();
        of->feature = feature;
        of->threshold = threshold;
        of->left = left;
        of->value = value;
        of->single = single != 0;
        of->outputs = outputs;
        of->rule = rule;
        of->sets = reinterpret_cast<const CodeSet *>(sets);
        of->n_sets = n_sets;
        return prepare(size, count, nodes, std::move(of), made);
    });
}

GCE_EXPORT i64 gce_trees_widest(const Trees *of) { return of->widest; }

GCE_EXPORT void gce_trees_free(const Trees *of) { delete of; }
