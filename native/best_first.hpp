// A tree that lowers sum D u + u^2 H / 2 greedily, its best leaf split next.
#pragma once

#include "tree.hpp"

// MIXED: columns have kinds.
template <bool MIXED> class BestFirst {
  public:
    BestFirst(Arena &arena, const Training &given, i64 leaves, i64 depth)
        : given_(given), leaves_(leaves), depth_(depth), rows_(given.take_rows(arena)), columns_(given.take_columns(arena)),
          stored_(given.take_stored(arena)),
          nodes_(arena.take<Node>(2 * leaves - 1)), ready_(arena.take<Children>(2 * leaves - 1)),
          histograms_(arena.take<Sum>((leaves + ahead()) * columns_.bins)),
          alive_(arena.take<u64>((leaves + ahead()) * given.constraints.words)) {}

    i64 grow(const Tree &tree) {
        const Sum total = given_.quantise(rows_);
        limits_ = given_.limits(total);
        kinds_ = given_.kinds_for(total);
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        nodes_[0] = Node{0, given_.n, 0, 0, total, Plan(), Interval(), alive_};
        ready_[0].known = false;
        slots_ = 1;
        tree.left[0] = 0;
        if (leaves_ > 1) {
            fill_rows(nodes_[0]);
            plan(nodes_[0]);
        }
        i64 count = 1;
        for (i64 used = 1; used < leaves_; used++) {
            const i64 node = best(count);
            if (node < 0)
                break;
            if (!ready_[node].known)
                divide_best(tree, count, used);
            split(tree, node, count);
            count += 2;
        }
        finish(tree, count);
        return count;
    }

  private:
    static constexpr i64 AHEAD = 5;

    using Plan = std::conditional_t<MIXED, MixedSplit, Split>;

    struct Node {
        i64 first, last, slot, level;
        Sum sum;
        Plan plan;
        Interval bounds;
        const u64 *alive; // the sets of columns that it may still interact in
    };

    // A leaf's children, made before it is known whether it will be split.
    struct Children {
        bool known;
        Plan plan;
        Node one, two;
    };

    // How many leaves are divided at a time, beside the best one: their histograms travel in one message. Whether and when
    // they are split is decided as if they had been divided one by one.
    i64 ahead() const { return given_.reduce_sums ? AHEAD : 0; }

    Sum *histogram(const Node &node) const { return histograms_ + node.slot * columns_.bins; }

    void fill_rows(const Node &node) {
        given_.fill_node(histogram(node), rows_, node.first, node.last, columns_, stored_);
    }

    // The leaf whose split gains most; the first of equals.
    i64 best(i64 count) const {
        i64 found = -1;
        double gain = 0;
        for (i64 i = 0; i < count; i++)
            if (nodes_[i].plan.gain > gain)
                found = i, gain = nodes_[i].plan.gain;
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

    // Part the rows of a node that is split; where the right ones begin.
    i64 part(const Tree &tree, i64 at, const Node &node, Plan &plan, i64 column) {
        if constexpr (MIXED) {
            const i64 width = given_.widths[column];
            const Sum *bins = histogram(node) + columns_.start[plan.column];
            // where a node has no missing values, they go where most rows go
            if (!kinds_.missing[column] || empty(bins[width - 1]))
                plan.missing_left = 2 * hessian(plan.left) >= hessian(node.sum);
            u8 table[MOST_BINS] = {};
            plan.tabulate(kinds_, column, width, table);
            tree.keep(at, plan, kinds_.categorical[column] != 0);
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

    // Divide the best leaf, and some of the next best where sums are reduced.
    void divide_best(const Tree &tree, i64 count, i64 used) {
        // leaves that were divided and not split yet have slots, too
        const i64 left = leaves_ - 1 - used, first = slots_, waiting = slots_ - used;
        i64 chosen[1 + AHEAD], n = 0;
        while (n < std::max<i64>(1, std::min(1 + ahead(), left) - waiting)) {
            i64 found = -1;
            double gain = 0;
            for (i64 i = 0; i < count; i++)
                if (!ready_[i].known && nodes_[i].plan.gain > gain)
                    found = i, gain = nodes_[i].plan.gain;
            if (found < 0)
                break;
            divide(tree, found);
            chosen[n++] = found;
        }
        if (left == 0)
            return;
        const i64 filled = fill_smaller(chosen, n);
        given_.reduce(histograms_ + first * columns_.bins, filled * columns_.bins);
        for (i64 i = 0; i < n; i++)
            if (nodes_[chosen[i]].level + 1 < depth_)
                plan_children(ready_[chosen[i]]);
    }

    // Part the rows of a leaf.
    void divide(const Tree &tree, i64 at) {
        const Node &node = nodes_[at];
        Plan plan = node.plan;
        const i64 column = columns_.index[plan.column];
        const i64 middle = part(tree, at, node, plan, column);
        // both children may interact in the same sets
        u64 *alive = alive_ + slots_ * given_.constraints.words;
        given_.constraints.after(column, node.alive, alive);
        Children &own = ready_[at];
        own.known = true, own.plan = plan;
        own.one = Node{node.first, middle, node.slot, node.level + 1, plan.left, Plan(), Interval(), alive};
        own.two = Node{middle, node.last, node.slot, node.level + 1, node.sum - plan.left, Plan(), Interval(), alive};
        bound_children(own.one.sum, own.two.sum, limits_.l2, node.bounds, sign_of(plan, column), own.one.bounds, own.two.bounds);
        smaller(own).slot = slots_++;
    }

    // The child with the smaller sum of Hessians, which all shards know.
    static Node &smaller(Children &own) { return hessian(own.one.sum) <= hessian(own.two.sum) ? own.one : own.two; }

    // Sums of this shard's rows; how many histograms, which lie side by side.
    i64 fill_smaller(const i64 *chosen, i64 n) {
        i64 filled = 0;
        for (i64 i = 0; i < n; i++) {
            const Node &small = smaller(ready_[chosen[i]]);
            if (small.level < depth_)
                given_.fill_own(histogram(small), rows_, small.first, small.last, columns_, stored_);
            filled++;
        }
        return filled;
    }

    // The larger child's histogram is the parent's less the smaller one's.
    void plan_children(Children &own) {
        Node &small = smaller(own), &large = &small == &own.one ? own.two : own.one;
        Sum *of_large = histogram(large);
        const Sum *of_small = histogram(small);
        for (i64 b = 0; b < columns_.bins; b++)
            of_large[b] -= of_small[b];
        plan(own.one);
        plan(own.two);
    }

    void split(const Tree &tree, i64 at, i64 count) {
        const Children &own = ready_[at];
        tree.feature[at] = static_cast<i32>(columns_.index[own.plan.column]), tree.cut[at] = static_cast<i32>(own.plan.bin);
        tree.left[at] = static_cast<i32>(count);
        tree.left[count] = tree.left[count + 1] = 0;
        nodes_[at].plan.gain = 0;
        nodes_[count] = own.one, nodes_[count + 1] = own.two;
        ready_[count].known = ready_[count + 1].known = false;
    }

    void finish(const Tree &tree, i64 count) {
        std::fill(tree.leaf, tree.leaf + given_.codes.rows, -1);
        Sum total = {};
        for (i64 i = 0; i < count; i++) {
            Node &node = nodes_[i];
            tree.value[i] = 0;
            if (tree.left[i])
                continue;
            tree.feature[i] = tree.cut[i] = 0;
            if constexpr (MIXED)
                tree.forget(i);
            node.sum = given_.fine_sum(rows_.order + node.first, node.last - node.first);
            for (i64 r = node.first; r < node.last; r++)
                tree.leaf[rows_.order[r]] = static_cast<i32>(i);
        }
        given_.reduce_leaves(nodes_, count, [&tree](i64 i) { return tree.left[i] == 0; });
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                total += nodes_[i].sum;
        const double l2 = given_.limits(total).l2;
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                tree.value[i] = given_.scaled(nodes_[i].bounds.clip(best_value(nodes_[i].sum, l2)));
        drop_others(given_.codes, given_.bundles, tree, kinds_, given_.widths);
    }

    Training given_;
    i64 leaves_, depth_;
    Rows rows_;
    Columns columns_;
    Stored stored_;
    Node *nodes_;
    Children *ready_;
    Sum *histograms_;
    u64 *alive_; // by the slot that was taken when a node's parent was divided
    i64 slots_ = 0;
    Limits limits_ = {};
    Kinds kinds_ = {};
};
