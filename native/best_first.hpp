// A tree that lowers sum D u + u^2 H / 2 greedily, its best leaf split next.
#pragma once

#include <vector>

#include "tree.hpp"

// MIXED: columns have kinds.
template <bool MIXED> class BestFirst {
  public:
    BestFirst(Arena &arena, const Training &given, i64 leaves, i64 depth)
        : given_(given), leaves_(leaves), depth_(depth), rows_(given.take_rows(arena)), columns_(given.take_columns(arena)),
          stored_(given.take_stored(arena)),
          nodes_(arena.take<Node>(2 * slots() - 1)), place_(arena.take<i64>(2 * leaves - 1)),
          histograms_(arena.take<Sum>(slots() * columns_.bins + 1)),
          alive_(arena.take<u64>(slots() * given.constraints.words)), next_(arena.take<i64>(slots())),
          chosen_(arena.take<i64>(slots())) {}

    i64 grow(const Tree &tree) {
        const Sum own = given_.quantise(rows_);
        const Sum total = leaves_ > 1 ? given_.fill_root(histograms_, own, rows_, columns_, stored_) : given_.added_up(own);
        limits_ = given_.limits(total);
        kinds_ = given_.kinds_for(total);
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        nodes_[0] = Node{0, given_.n, 0, 0, total, Plan(), Interval(), alive_, 0};
        divided_ = 0, slots_ = 1;
        place_[0] = tree.left[0] = 0;
        if (leaves_ > 1)
            plan(nodes_[0]);
        i64 count = 1;
        for (i64 used = 1; used < leaves_; used++) {
            const i64 node = best(tree, count);
            if (node < 0)
                break;
            if (!nodes_[place_[node]].children)
                divide_next(tree, count, used);
            split(tree, node, count);
            count += 2;
        }
        finish(tree, count);
        return count;
    }

  private:
    using Plan = std::conditional_t<MIXED, MixedSplit, Split>;

    struct Node {
        i64 first, last, slot, level;
        Sum sum;
        Plan plan;
        Interval bounds;
        const u64 *alive; // the sets of columns that it may still interact in
        i64 children;     // where they are: side by side, and 0 where it was not divided
    };

    // Where sums are reduced, nodes are divided that may never be split: half as many as there are leaves.
    i64 slots() const { return given_.reduce_sums ? leaves_ + leaves_ / 2 : leaves_; }

    // How many of the next splits are taken to be known: nodes further on are often overtaken by children of these.
    static i64 ahead(i64 splits) { return std::min(splits, std::max<i64>(6, splits / 3)); }

    // The last leaves need no histogram.
    bool needs_sums(const Node &node) const { return node.level < depth_; }

    Sum *histogram(const Node &node) const { return histograms_ + node.slot * columns_.bins; }

    // The leaf whose split gains most; the first of equals.
    i64 best(const Tree &tree, i64 count) const {
        i64 found = -1;
        double gain = 0;
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i] && nodes_[place_[i]].plan.gain > gain)
                found = i, gain = nodes_[place_[i]].plan.gain;
        return found;
    }

    void plan(Node &node) const {
        const bool bounded = given_.constraints.sign != nullptr;
        const double whole = whole_reduction(node.sum, limits_, node.bounds, bounded), l2 = limits_.l2;
        Plan found;
        for (i64 c = 0; c < columns_.count; c++) {
            const i64 column = columns_.index[c];
            if (!given_.constraints.allowed(column, node.alive))
                continue;
            if constexpr (MIXED)
                if (!kinds_.plain(column)) {
                    plan_mixed(node, c, whole, found);
                    continue;
                }
            const i64 sign = given_.constraints.monotone(column);
            each_split(histogram(node) + columns_.start[c], columns_.start[c + 1] - columns_.start[c], node.sum,
                       limits_.least, [&](i64 bin, const Sum &left, const Sum &right) {
                           const double gain = split_gain(left, right, whole, l2, node.bounds, sign, bounded);
                           if (gain > found.gain * (1 + TIE))
                               found.gain = gain, found.column = c, found.bin = bin, found.left = left;
                       });
        }
        node.plan = found;
    }

    // The same for a column with missing values or categories.
    void plan_mixed(const Node &node, i64 c, double whole, MixedSplit &found) const {
        const i64 column = columns_.index[c], width = columns_.start[c + 1] - columns_.start[c];
        const Sum *bins = histogram(node) + columns_.start[c];
        const bool bounded = given_.constraints.sign != nullptr;
        BinTotals totals(width);
        totals.add(bins, width, best_value(node.sum, limits_.l2));
        each_sequence(kinds_, column, width, totals, [&](const Sequence &sequence) {
            each_beginning(bins, sequence, node.sum, limits_.least, [&](i64 at, const Sum &left, const Sum &right, bool alone) {
                // missing values may have any effect
                const i64 sign = alone ? 0 : given_.constraints.monotone(column);
                const double gain = split_gain(left, right, whole, limits_.l2 + sequence.l2, node.bounds, sign, bounded);
                if (at >= sequence.first && gain > found.gain * (1 + TIE)) {
                    found.gain = gain, found.column = c, found.left = left;
                    sequence.keep(alone ? sequence.alone : at, kinds_.categorical[column] != 0, found);
                }
            });
        });
    }

    // Part the rows of a node; where the right ones begin.
    i64 part(Node &node, i64 column) {
        Plan &plan = node.plan;
        if constexpr (MIXED) {
            const i64 width = given_.widths[column];
            const Sum *bins = histogram(node) + columns_.start[plan.column];
            // where a node has no missing values, they go where most rows go
            if (!kinds_.missing[column] || empty(bins[width - 1]))
                plan.missing_left = 2 * hessian(plan.left) >= hessian(node.sum);
            u8 table[MOST_BINS] = {};
            plan.tabulate(kinds_, column, width, table);
            return given_.part(rows_, column, [&](u8 code) { return table[code]; }, node.first, node.last);
        }
        const u8 cut = static_cast<u8>(plan.bin);
        return given_.part(rows_, column, [cut](u8 code) { return code <= cut; }, node.first, node.last);
    }

    // The order of values that a split keeps: none where missing values are parted from all others.
    i64 sign_of(const Plan &plan, i64 column) const {
        const bool alone = MIXED && kinds_.missing[column] && plan.bin == given_.widths[column] - 2;
        return alone ? 0 : given_.constraints.monotone(column);
    }

    // Nodes that were not divided, in the order that they would be split in if nothing that is not known yet gained more.
    i64 choose(const Tree &tree, i64 count, i64 splits, i64 most) {
        i64 open = 0, n = 0;
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                next_[open++] = place_[i];
        for (i64 s = 0; s < splits && n < most; s++) {
            i64 found = -1;
            double gain = 0;
            for (i64 i = 0; i < open; i++)
                if (nodes_[next_[i]].plan.gain > gain)
                    found = i, gain = nodes_[next_[i]].plan.gain;
            if (found < 0)
                break;
            const i64 at = next_[found], children = nodes_[at].children;
            next_[found] = children ? children : next_[--open];
            if (children)
                next_[open++] = children + 1;
            else if (n == 0 || nodes_[at].level + 1 < depth_)
                chosen_[n++] = at;
        }
        return n;
    }

    // Divide the best leaf and, where sums are reduced, those that are likely to be next: their histograms travel in one
    // message. Whether and when they are split is decided as if they had been divided one by one.
    void divide_next(const Tree &tree, i64 count, i64 used) {
        const i64 splits = leaves_ - used, first = slots_;
        // so that there is memory for all nodes that will be split
        const i64 spare = slots() - 1 - divided_ - splits;
        const i64 n = choose(tree, count, given_.reduce_sums ? ahead(splits) : 1, 1 + spare);
        for (i64 i = 0; i < n; i++)
            divide(nodes_[chosen_[i]]);
        if (splits == 1)
            return;
        for (i64 i = 0; i < n; i++)
            fill_smaller(nodes_[chosen_[i]]);
        given_.reduce(histograms_ + first * columns_.bins, (slots_ - first) * columns_.bins);
        for (i64 i = 0; i < n; i++)
            plan_children(nodes_[chosen_[i]]);
    }

    // Part the rows of a node.
    void divide(Node &node) {
        const i64 column = columns_.index[node.plan.column], middle = part(node, column);
        // both children may interact in the same sets
        u64 *alive = alive_ + slots_ * given_.constraints.words;
        given_.constraints.after(column, node.alive, alive);
        node.children = 2 * divided_++ + 1;
        const Sum left = node.plan.left;
        Node &one = nodes_[node.children], &two = nodes_[node.children + 1];
        one = Node{node.first, middle, node.slot, node.level + 1, left, Plan(), Interval(), alive, 0};
        two = Node{middle, node.last, node.slot, node.level + 1, node.sum - left, Plan(), Interval(), alive, 0};
        bound_children(one.sum, two.sum, limits_.l2, node.bounds, sign_of(node.plan, column), one.bounds, two.bounds);
        if (needs_sums(one))
            smaller(node).slot = slots_++;
    }

    // The child with the smaller sum of Hessians, which all shards know.
    Node &smaller(const Node &node) const {
        Node *own = nodes_ + node.children;
        return own[hessian(own[0].sum) <= hessian(own[1].sum) ? 0 : 1];
    }

    // Sums of this shard's rows.
    void fill_smaller(const Node &node) {
        const Node &small = smaller(node);
        if (needs_sums(small))
            given_.fill_own(histogram(small), rows_, small.first, small.last, columns_, stored_);
    }

    // The larger child's histogram is the parent's less the smaller one's.
    void plan_children(const Node &node) {
        Node *own = nodes_ + node.children;
        if (!needs_sums(*own))
            return;
        const Sum *of_small = histogram(smaller(node));
        Sum *of_large = histogram(node);
        for (i64 b = 0; b < columns_.bins; b++)
            of_large[b] -= of_small[b];
        plan(own[0]);
        plan(own[1]);
    }

    void split(const Tree &tree, i64 at, i64 count) {
        const Node &node = nodes_[place_[at]];
        const i64 column = columns_.index[node.plan.column];
        tree.feature[at] = static_cast<i32>(column), tree.cut[at] = static_cast<i32>(node.plan.bin);
        tree.left[at] = static_cast<i32>(count);
        tree.left[count] = tree.left[count + 1] = 0;
        if constexpr (MIXED)
            tree.keep(at, node.plan, kinds_.categorical[column] != 0);
        place_[count] = node.children, place_[count + 1] = node.children + 1;
    }

    void finish(const Tree &tree, i64 count) {
        std::fill(tree.leaf, tree.leaf + given_.codes.rows, -1);
        std::vector<Sum> sums(static_cast<size_t>(count), Sum{});
        for (i64 i = 0; i < count; i++) {
            const Node &node = nodes_[place_[i]];
            tree.value[i] = 0;
            if (tree.left[i])
                continue;
            tree.feature[i] = tree.cut[i] = 0;
            sums[static_cast<size_t>(i)] = given_.fine_sum(rows_.order + node.first, node.last - node.first);
            for (i64 r = node.first; r < node.last; r++)
                tree.leaf[rows_.order[r]] = static_cast<i32>(i);
        }
        given_.reduce(sums.data(), count);
        Sum total = {};
        for (const Sum &sum : sums)
            total += sum;
        const double l2 = given_.limits(total).l2;
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                tree.value[i] = given_.scaled(nodes_[place_[i]].bounds.clip(best_value(sums[static_cast<size_t>(i)], l2)));
        drop_others(given_.codes, given_.bundles, tree, kinds_, given_.widths);
    }

    Training given_;
    i64 leaves_, depth_;
    Rows rows_;
    Columns columns_;
    Stored stored_;
    Node *nodes_;  // in the order that they were made in
    i64 *place_;   // of the tree's nodes among these
    Sum *histograms_;
    u64 *alive_;           // by the slot that was taken when a node's parent was divided
    i64 *next_, *chosen_;  // nodes that may be split next, and those that are divided together
    i64 divided_ = 0, slots_ = 0;
    Limits limits_ = {};
    Kinds kinds_ = {};
};
