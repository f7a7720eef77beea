// Trees of the linear oracle: leaves at one of two ends, by the sign of their gradients' sum.
//
// Gradients and masses are integers: sums do not depend on the order of rows, and a histogram less another is exact.
#include <algorithm>
#include <memory>
#include <queue>
#include <vector>

#include "code_set.hpp"
#include "part_rows.hpp"

namespace {

// Of cuts as good as each other the first is taken, where masses and gradients are rounded too.
constexpr double BETTER = 1e-9;
// A gain below this share of all gradients is rounding: sides of one sign gain nothing.
constexpr double NOTHING = 1e-9;
// Rows from which a node's histogram is kept: subtracting one then costs less than adding up rows, and those that are
// kept take a few bytes for each code.
constexpr i64 KEPT = 1024;

struct Sum {
    i64 gradient, mass;
};

using Histogram = std::vector<Sum>;

struct Node {
    i64 first = 0, size = 0;
    Sum sum{0, 0};
    i64 level = 0;
    // the best cut; without a gain there is none
    i64 gain = 0, column = 0, code = 0;
    bool missing_left = false;
    CodeSet codes; // that go left, where the column has missing values or categories
    Sum left{0, 0};
    std::unique_ptr<Histogram> histogram;
};

struct Tree {
    i32 *feature, *cut, *left;
    double *value;
    u8 *missing_left; // where columns have kinds
    u64 *sets;        // (inner nodes, 4): codes that go left; the cut of a node that splits categories is an index of these
};

// Columns whose last code is that of missing values, or whose codes have no order; null where there are none.
struct Kinds {
    const u8 *missing, *categorical;
    bool plain(i64 column) const { return missing == nullptr || (!missing[column] && !categorical[column]); }
};

class SignGrower {
  public:
    SignGrower(const u32 *codes, i64 N, i64 d, const i64 *widths, const u32 *rows, i64 n, const i32 *gradient,
               const i32 *mass, const Kinds &kinds)
        : codes(codes), N(N), n(n), d(d), kinds(kinds), blocks((d + 3) / 4), starts(4 * blocks + 1), buffer(new u32[3 * n]) {
        for (i64 c = 0; c < 4 * blocks; ++c)
            // all codes of columns that fill the last block are 0
            starts[c + 1] = starts[c] + (c < d ? widths[c] : 1);
        scratch.resize(starts.back());
        std::copy(rows, rows + n, buffer.get());
        for (i64 i = 0; i < n; ++i) {
            buffer[n + i] = static_cast<u32>(gradient[i]);
            buffer[2 * n + i] = static_cast<u32>(mass[i]);
        }
    }

    // Grow, the best leaf split next, and return the number of nodes.
    i64 grow(i64 leaves, i64 depth, double share, const Tree &out) {
        nodes.resize(2 * leaves - 1);
        begin(share);
        std::priority_queue<std::pair<i64, i64>> best; // gain and -node: of equal ones the first
        best.push({nodes[0].gain, 0});
        i64 count = 1;
        while (count < 2 * leaves - 1 && !best.empty() && best.top().first > 0) {
            const i64 at = -best.top().second;
            best.pop();
            Node &node = nodes[at];
            out.feature[at] = static_cast<i32>(node.column);
            out.cut[at] = static_cast<i32>(node.code);
            out.left[at] = static_cast<i32>(count);
            if (kinds.missing)
                keep(node, at, out);
            split(node, nodes[count], nodes[count + 1]);
            if (node.level + 1 < depth && count + 2 < 2 * leaves - 1) {
                plan(node, nodes[count], nodes[count + 1]);
                best.push({nodes[count].gain, -count});
                best.push({nodes[count + 1].gain, -count - 1});
            }
            node.histogram.reset();
            count += 2;
        }
        for (i64 at = 0; at < count; ++at) {
            const i64 sum = nodes[at].sum.gradient;
            out.value[at] = static_cast<double>(std::abs(sum)) > nothing ? (sum > 0 ? -1.0 : 1.0) : 0.0;
        }
        return count;
    }

  private:
    void begin(double share) {
        Node &root = nodes[0];
        root.size = n;
        i64 all = 0;
        for (i64 i = 0; i < n; ++i) {
            const i64 gradient = static_cast<i32>(buffer[n + i]);
            root.sum.gradient += gradient;
            root.sum.mass += static_cast<i32>(buffer[2 * n + i]);
            all += std::abs(gradient);
        }
        nothing = NOTHING * static_cast<double>(all);
        least = share * static_cast<double>(root.sum.mass);
        root.histogram.reset(new Histogram(starts.back()));
        fill(root, *root.histogram);
        best_cut(root, *root.histogram);
    }

    i64 last(i64 column) const { return starts[column + 1] - starts[column] - 1; }

    // Where missing values go from a node, and the set of a split of categories.
    void keep(const Node &node, i64 at, const Tree &out) {
        out.missing_left[at] = node.missing_left;
        if (!kinds.categorical[node.column])
            return;
        std::copy(node.codes.word, node.codes.word + 4, out.sets + 4 * n_sets);
        out.cut[at] = static_cast<i32>(n_sets++);
    }

    // Part a node's rows into its children.
    void split(const Node &node, Node &one, Node &two) {
        const u32 *const word = codes + (node.column >> 2) * N, *const order = buffer.get() + node.first;
        const int shift = 8 * static_cast<int>(node.column & 3);
        const u32 cut = static_cast<u32>(node.code);
        const auto code = [&](i64 i) { return (word[order[i]] >> shift) & 255u; };
        const i64 rows = kinds.plain(node.column)
                             ? part(node, [&](i64 i) { return code(i) <= cut; })
                             : part(node, [&](i64 i) { return node.codes.has(code(i)); });
        one.first = node.first;
        one.size = rows;
        two.first = node.first + rows;
        two.size = node.size - rows;
        one.sum = node.left;
        two.sum = {node.sum.gradient - node.left.gradient, node.sum.mass - node.left.mass};
        one.level = two.level = node.level + 1;
    }

    // Move the rows that go left before the others; how many they are.
    template <class GoesLeft> i64 part(const Node &node, const GoesLeft &goes_left) {
        i64 rows = 0;
        for (i64 i = 0; i < node.size; ++i)
            rows += goes_left(i);
        part_rows(buffer.get() + node.first, n, 3, node.size, rows, goes_left);
        return rows;
    }

    // Find the best cuts of the children of a node.
    void plan(Node &node, Node &one, Node &two) {
        Node &small = one.size <= two.size ? one : two, &large = one.size <= two.size ? two : one;
        if (small.size >= KEPT)
            small.histogram.reset(new Histogram(starts.back()));
        Histogram &own = small.histogram ? *small.histogram : scratch;
        fill(small, own);
        best_cut(small, own);
        if (large.size < KEPT) {
            fill(large, scratch);
            best_cut(large, scratch);
            return;
        }
        large.histogram = std::move(node.histogram);
        Sum *const rest = large.histogram->data();
        for (i64 b = 0; b < starts.back(); ++b) {
            rest[b].gradient -= own[b].gradient;
            rest[b].mass -= own[b].mass;
        }
        best_cut(large, *large.histogram);
    }

    // Add up gradients and masses by column and code.
    void fill(const Node &node, Histogram &into) const {
        std::fill(into.begin(), into.end(), Sum{0, 0});
        const u32 *const order = buffer.get() + node.first;
        for (i64 b = 0; b < blocks; ++b) {
            const u32 *const word = codes + b * N;
            Sum *const column[4] = {&into[starts[4 * b]], &into[starts[4 * b + 1]], &into[starts[4 * b + 2]],
                                    &into[starts[4 * b + 3]]};
            for (i64 i = 0; i < node.size; ++i) {
                const u32 four = word[order[i]];
                const i64 gradient = static_cast<i32>(order[n + i]), mass = static_cast<i32>(order[2 * n + i]);
                for (int j = 0; j < 4; ++j) {
                    Sum &bin = column[j][(four >> 8 * j) & 255u];
                    bin.gradient += gradient;
                    bin.mass += mass;
                }
            }
        }
    }

    // The cut whose sides disagree most.
    void best_cut(Node &node, const Histogram &histogram) const {
        const i64 whole = node.sum.gradient, without = std::abs(whole);
        double beat = nothing;
        for (i64 c = 0; c < d; ++c) {
            if (!kinds.plain(c)) {
                best_mixed(node, c, histogram.data() + starts[c], beat);
                continue;
            }
            Sum left{0, 0};
            for (i64 b = 0; b < starts[c + 1] - starts[c] - 1; ++b) {
                left.gradient += histogram[starts[c] + b].gradient;
                left.mass += histogram[starts[c] + b].mass;
                if (static_cast<double>(left.mass) < least)
                    continue;
                if (static_cast<double>(node.sum.mass - left.mass) < least)
                    break;
                const i64 gain = std::abs(left.gradient) + std::abs(whole - left.gradient) - without;
                if (static_cast<double>(gain) > beat) {
                    beat = std::max(nothing, static_cast<double>(gain) * (1 + BETTER));
                    node.gain = gain;
                    node.column = c;
                    node.code = b;
                    node.left = left;
                    node.missing_left = 2 * left.mass >= node.sum.mass;
                }
            }
        }
    }

    // The same in a column with missing values, which go to either side or alone to the right, or with categories, which
    // are ordered by their mean gradients: the best of all their subsets is the beginning of that order.
    void best_mixed(Node &node, i64 column, const Sum *bins, double &beat) const {
        const i64 end = last(column);
        std::vector<u32> order;
        for (i64 b = 0; b < end + kinds.categorical[column]; ++b)
            if (bins[b].mass > 0)
                order.push_back(static_cast<u32>(b));
        if (kinds.categorical[column]) {
            const auto mean = [&](u32 b) { return static_cast<double>(bins[b].gradient) / static_cast<double>(bins[b].mass); };
            std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return mean(a) < mean(b); });
            try_order(node, column, bins, order, beat);
            return;
        }
        try_order(node, column, bins, order, beat);
        if (bins[end].mass == 0)
            return;
        order.insert(order.begin(), static_cast<u32>(end));
        try_order(node, column, bins, order, beat);
    }

    // The best beginning of an order of codes: those in it go left.
    void try_order(Node &node, i64 column, const Sum *bins, const std::vector<u32> &order, double &beat) const {
        const i64 whole = node.sum.gradient, without = std::abs(whole), end = last(column);
        const bool ordered = !kinds.categorical[column], missing_first = ordered && !order.empty() && order[0] == end;
        Sum left{0, 0};
        for (size_t p = 0; p < order.size(); ++p) {
            left.gradient += bins[order[p]].gradient;
            left.mass += bins[order[p]].mass;
            // missing values alone go to the right
            if (static_cast<double>(left.mass) < least || (missing_first && p == 0))
                continue;
            if (static_cast<double>(node.sum.mass - left.mass) < least || left.mass == node.sum.mass)
                break;
            const i64 gain = std::abs(left.gradient) + std::abs(whole - left.gradient) - without;
            if (static_cast<double>(gain) <= beat)
                continue;
            beat = std::max(nothing, static_cast<double>(gain) * (1 + BETTER));
            node.gain = gain;
            node.column = column;
            node.left = left;
            const bool alone = ordered && !missing_first && p + 1 == order.size();
            node.code = alone ? end - 1 : order[p];
            node.missing_left = ordered && bins[end].mass == 0 ? 2 * left.mass >= node.sum.mass : missing_first;
            node.codes = CodeSet();
            for (size_t q = 0; q <= p && !ordered; ++q)
                node.codes.add(order[q]);
            for (i64 b = 0; b <= node.code && ordered; ++b)
                node.codes.add(static_cast<u32>(b));
            if (missing_first)
                node.codes.add(static_cast<u32>(end));
        }
    }

    const u32 *const codes; // (blocks, N): four columns to a word
    const i64 N, n, d;
    const Kinds kinds;
    const i64 blocks;
    std::vector<i64> starts;             // (4 blocks + 1,): bins of each column
    const std::unique_ptr<u32[]> buffer; // (3, n): rows, gradients, masses
    Histogram scratch;
    std::vector<Node> nodes;
    double nothing = 0.0, least = 0.0;
    i64 n_sets = 0;
};

} // namespace

// gradient, mass: of the rows (n,); share: least mass of a leaf as a share of all; value is -1, 0 or 1. missing, categorical,
// missing_left and sets are null where all columns are ordered and have no missing values.
GCE_EXPORT int gce_grow_sign(const u8 *codes, i64 N, i64 d, const i64 *widths, const u8 *missing, const u8 *categorical,
                             const u32 *rows, i64 n, const i32 *gradient,
                             const i32 *mass, i64 leaves, i64 depth, double share, i32 *feature, i32 *cut, i32 *left,
                             double *value, u8 *missing_left, u64 *sets, i64 *nodes) {
    return guarded([&] {
        SignGrower grower(reinterpret_cast<const u32 *>(codes), N, d, widths, rows, n, gradient, mass,
                          {missing, categorical});
        *nodes = grower.grow(leaves, depth, share, Tree{feature, cut, left, value, missing_left, sets});
        return GCE_OK;
    });
}
