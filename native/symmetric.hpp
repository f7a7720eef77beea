// A symmetric tree, with one split for all nodes of a level.
#pragma once

#include "tree.hpp"

// MIXED: columns have kinds.
template <bool MIXED> class Symmetric {
  public:
    Symmetric(Arena &arena, const Training &given, i64 depth)
        : given_(given), most_(i64(1) << depth), rows_(given.take_rows(arena)), columns_(given.take_columns(arena)),
          stored_(given.take_stored(arena)),
          nodes_(arena.take<Node>(most_)), children_(arena.take<Node>(most_)),
          histograms_(arena.take<Sum>((most_ + 1) / 2 * columns_.bins + 1)),
          gain_(arena.take<double>(256)), alive_(arena.take<u64>(given.constraints.words)) {}

    i64 grow(const Tree &tree) {
        const Sum total = given_.fill_root(histograms_, given_.quantise(rows_), rows_, columns_, stored_);
        limits_ = given_.limits(total);
        kinds_ = given_.kinds_for(total);
        nodes_[0] = Node{0, given_.n, 0, total, Interval()};
        i64 count = 1, before = 0;
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        for (; count < most_; count *= 2) {
            Plan found = best(count);
            if (found.column < 0)
                break;
            split(tree, found, count, before);
            before += count;
            given_.constraints.after(columns_.index[found.column], alive_, alive_);
            std::swap(nodes_, children_);
            if (2 * count < most_)
                refill(count);
        }
        finish(tree, before, count);
        return before + count;
    }

  private:
    using Plan = std::conditional_t<MIXED, MixedSplit, Split>;

    struct Node {
        i64 first, last, slot;
        Sum sum;
        Interval bounds;
    };

    Sum *histogram(i64 node) const { return histograms_ + nodes_[node].slot * columns_.bins; }

    // The split with the largest sum of gains over the nodes of a level.
    Plan best(i64 count) const {
        Plan found;
        for (i64 c = 0; c < columns_.count; c++) {
            if (!given_.constraints.allowed(columns_.index[c], alive_))
                continue;
            const i64 width = columns_.start[c + 1] - columns_.start[c];
            if constexpr (MIXED)
                if (!kinds_.plain(columns_.index[c])) {
                    best_mixed(count, c, width, found);
                    continue;
                }
            std::fill(gain_, gain_ + width, 0.0);
            for (i64 node = 0; node < count; node++)
                add_gains(nodes_[node], histogram(node) + columns_.start[c], width, columns_.index[c]);
            for (i64 b = 0; b < width - 1; b++)
                if (gain_[b] > found.gain * (1 + TIE))
                    found.gain = gain_[b], found.column = c, found.bin = b;
        }
        return found;
    }

    // What each split of a column gains in a node. Behind an empty bin the split is the one before it.
    void add_gains(const Node &node, const Sum *bins, i64 width, i64 column) const {
        if (static_cast<double>(hessian(node.sum)) < 2 * limits_.least)
            return;
        const bool bounded = given_.constraints.sign != nullptr;
        const double whole = whole_reduction(node.sum, limits_, node.bounds, bounded), l2 = limits_.l2;
        const i64 sign = given_.constraints.monotone(column);
        i64 at = 0;
        double gain = 0;
        each_split(bins, width, node.sum, limits_.least, [&](i64 bin, const Sum &left, const Sum &right) {
            for (; at < bin; at++)
                gain_[at] += gain;
            gain = split_gain(left, right, whole, l2, node.bounds, sign, bounded);
        });
        for (bool behind = true; at < width - 1 && behind; at++) {
            gain_[at] += gain;
            behind = empty(bins[at + 1]);
        }
    }

    // The same for a column with missing values or categories, ordered by what they add up to in all nodes.
    void best_mixed(i64 count, i64 c, i64 width, MixedSplit &found) const {
        const i64 column = columns_.index[c];
        BinTotals totals(width);
        for (i64 node = 0; node < count; node++)
            totals.add(histogram(node) + columns_.start[c], width, best_value(nodes_[node].sum, limits_.l2));
        each_sequence(kinds_, column, width, totals, [&](const Sequence &sequence) {
            std::fill(gain_, gain_ + sequence.count, 0.0);
            for (i64 node = 0; node < count; node++)
                add_gains_of(nodes_[node], histogram(node) + columns_.start[c], sequence, column);
            for (i64 p = sequence.first; p <= sequence.longest; p++)
                if (!sequence.tied[p] && gain_[p] > found.gain * (1 + TIE)) {
                    found.gain = gain_[p], found.column = c;
                    sequence.keep(p, kinds_.categorical[column] != 0, found);
                }
        });
    }

    void add_gains_of(const Node &node, const Sum *bins, const Sequence &sequence, i64 column) const {
        if (static_cast<double>(hessian(node.sum)) < 2 * limits_.least)
            return;
        const bool bounded = given_.constraints.sign != nullptr;
        const double whole = whole_reduction(node.sum, limits_, node.bounds, bounded);
        i64 at = 0;
        double gain = 0;
        each_beginning(bins, sequence, node.sum, limits_.least, [&](i64 end, const Sum &left, const Sum &right, bool) {
            for (; at < end; at++)
                gain_[at] += gain;
            const i64 sign = end == sequence.alone ? 0 : given_.constraints.monotone(column);
            gain = split_gain(left, right, whole, limits_.l2 + sequence.l2, node.bounds, sign, bounded);
        });
        for (bool behind = true; at <= sequence.longest && behind; at++) {
            gain_[at] += gain;
            behind = at < sequence.longest && empty(bins[sequence.bin[at + 1]]);
        }
    }

    // Whether each bin of the column that is split goes left. Where no node has missing values, they go where most rows go.
    void tabulate(Plan &found, i64 count, u8 *table) const {
        const i64 column = columns_.index[found.column], width = given_.widths[column];
        if constexpr (MIXED) {
            found.tabulate(kinds_, column, width, table);
            i64 missing = 0, left = 0, all = 0;
            for (i64 node = 0; node < count; node++) {
                const Sum *bins = histogram(node) + columns_.start[found.column];
                all += hessian(nodes_[node].sum);
                missing += kinds_.missing[column] && !empty(bins[width - 1]);
                for (i64 b = 0; b < width; b++)
                    left += table[b] ? hessian(bins[b]) : 0;
            }
            if (missing == 0)
                found.missing_left = 2 * left >= all;
            found.tabulate(kinds_, column, width, table);
        } else {
            for (i64 b = 0; b < width; b++)
                table[b] = b <= found.bin;
        }
    }

    // The order of values that a split keeps: none where missing values are parted from all others.
    i64 sign_of(const Plan &plan, i64 column) const {
        const bool alone = MIXED && kinds_.missing[column] && plan.bin == given_.widths[column] - 2;
        return alone ? 0 : given_.constraints.monotone(column);
    }

    i64 part(const Node &node, const Plan &found, i64 column, const u8 *table) {
        if constexpr (MIXED)
            return given_.part(rows_, column, [table](u8 code) { return table[code]; }, node.first, node.last);
        const u8 cut = static_cast<u8>(found.bin);
        return given_.part(rows_, column, [cut](u8 code) { return code <= cut; }, node.first, node.last);
    }

    void split(const Tree &tree, Plan &found, i64 count, i64 before) {
        const i64 column = columns_.index[found.column], sign = sign_of(found, column), width = given_.widths[column];
        u8 table[MOST_BINS] = {};
        tabulate(found, count, table);
        for (i64 node = 0; node < count; node++) {
            const Node &own = nodes_[node];
            Node &one = children_[2 * node], &two = children_[2 * node + 1];
            Sum left = {};
            for (i64 b = 0; b < width; b++)
                if (table[b])
                    left += histogram(node)[columns_.start[found.column] + b];
            const i64 middle = part(own, found, column, table);
            one = Node{own.first, middle, own.slot, left, Interval()};
            two = Node{middle, own.last, own.slot, own.sum - left, Interval()};
            bound_children(one.sum, two.sum, limits_.l2, own.bounds, sign, one.bounds, two.bounds);
            tree.feature[before + node] = static_cast<i32>(column);
            tree.cut[before + node] = static_cast<i32>(found.bin);
            tree.left[before + node] = static_cast<i32>(before + count + 2 * node);
            tree.value[before + node] = 0;
            if constexpr (MIXED)
                tree.keep(before + node, found, kinds_.categorical[column] != 0);
        }
    }

    // Histograms of the children of `count` nodes: of the smaller one of each pair, in one message, and the larger one's is
    // the parent's less it.
    void refill(i64 count) {
        for (i64 node = 0; node < count; node++) {
            Node &small = nodes_[2 * node + !first_is_smaller(node)];
            small.slot = count + node;
            given_.fill_own(histograms_ + small.slot * columns_.bins, rows_, small.first, small.last, columns_, stored_);
        }
        given_.reduce(histograms_ + count * columns_.bins, count * columns_.bins);
        for (i64 node = 0; node < count; node++) {
            const bool first = first_is_smaller(node);
            const Sum *of_small = histogram(2 * node + !first);
            Sum *of_large = histogram(2 * node + first);
            for (i64 b = 0; b < columns_.bins; b++)
                of_large[b] -= of_small[b];
        }
    }

    // By Hessians, which all shards know.
    bool first_is_smaller(i64 parent) const {
        return hessian(nodes_[2 * parent].sum) <= hessian(nodes_[2 * parent + 1].sum);
    }

    void finish(const Tree &tree, i64 before, i64 count) {
        std::fill(tree.leaf, tree.leaf + given_.codes.rows, -1);
        std::vector<Sum> sums(static_cast<size_t>(count), Sum{});
        for (i64 end = 0; end < count; end++) {
            const Node &node = nodes_[end];
            tree.feature[before + end] = tree.cut[before + end] = tree.left[before + end] = 0;
            sums[static_cast<size_t>(end)] = given_.fine_sum(rows_.order + node.first, node.last - node.first);
            for (i64 i = node.first; i < node.last; i++)
                tree.leaf[rows_.order[i]] = static_cast<i32>(before + end);
        }
        given_.reduce(sums.data(), count);
        Sum total = {};
        for (const Sum &sum : sums)
            total += sum;
        const Limits limits = given_.limits(total);
        double farthest = 0;
        for (i64 end = 0; end < count; end++) {
            const Sum &sum = sums[static_cast<size_t>(end)];
            const double value = given_.scaled(nodes_[end].bounds.clip(best_value(sum, limits.l2)));
            tree.value[before + end] = value;
            if (static_cast<double>(hessian(sum)) >= limits.least)
                farthest = std::max(farthest, std::fabs(value));
        }
        // a split is made in all nodes: leaves with too few rows are clipped to the range of the others
        for (i64 end = 0; end < count; end++)
            tree.value[before + end] = std::min(std::max(tree.value[before + end], -farthest), farthest);
        drop_others(given_.codes, given_.bundles, tree, kinds_, given_.widths);
    }

    Training given_;
    i64 most_;
    Rows rows_;
    Columns columns_;
    Stored stored_;
    Node *nodes_, *children_;
    Sum *histograms_;
    double *gain_;
    u64 *alive_; // the sets of columns that the next level may interact in
    Limits limits_ = {};
    Kinds kinds_ = {};
};
