// A tree that lowers sum D u + u^2 H / 2 greedily, its best leaf split next.
#pragma once

#include "tree.hpp"

class BestFirst {
  public:
    BestFirst(Arena &arena, const Training &given, i64 leaves, i64 depth)
        : given_(given), leaves_(leaves), depth_(depth), rows_(given.take_rows(arena)), columns_(given.take_columns(arena)),
          nodes_(arena.take<Node>(2 * leaves - 1)), histograms_(arena.take<Sum>(leaves * columns_.bins)),
          alive_(arena.take<u64>(leaves * given.constraints.words)) {}

    i64 grow(const Tree &tree) {
        const Sum total = given_.quantise(rows_);
        limits_ = given_.limits(total);
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        nodes_[0] = Node{0, given_.n, 0, 0, total, Split(), Interval(), alive_};
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
            split(tree, node, count, used);
            count += 2;
        }
        finish(tree, count);
        return count;
    }

  private:
    struct Node {
        i64 first, last, slot, level;
        Sum sum;
        Split plan;
        Interval bounds;
        const u64 *alive; // the sets of columns that it may still interact in
    };

    Sum *histogram(const Node &node) const { return histograms_ + node.slot * columns_.bins; }

    void fill_rows(const Node &node) {
        fill(histogram(node), given_.codes, rows_.order + node.first, rows_.rows + node.first, node.last - node.first,
             columns_, given_.threads);
        given_.reduce(histogram(node), columns_.bins);
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
        Split found;
        for (i64 c = 0; c < columns_.count; c++) {
            const i64 column = columns_.index[c];
            if (!given_.constraints.allowed(column, node.alive))
                continue;
            const i64 sign = given_.constraints.monotone(column);
            each_split(histogram(node) + columns_.start[c], columns_.start[c + 1] - columns_.start[c], node.sum,
                       limits_.least, [&](i64 bin, const Sum &left, const Sum &right) {
                           const double gain = bounded ? bounded_gain(left, right, whole, l2, node.bounds, sign)
                                                       : reduction(left, l2) + reduction(right, l2) - whole;
                           if (gain > found.gain * (1 + TIE))
                               found.gain = gain, found.column = c, found.bin = bin, found.left = left;
                       });
        }
        node.plan = found;
    }

    void split(const Tree &tree, i64 at, i64 count, i64 used) {
        Node &node = nodes_[at], &one = nodes_[count], &two = nodes_[count + 1];
        const Split plan = node.plan;
        const i64 column = columns_.index[plan.column];
        tree.feature[at] = static_cast<i32>(column), tree.cut[at] = static_cast<i32>(plan.bin);
        tree.left[at] = static_cast<i32>(count);
        tree.left[count] = tree.left[count + 1] = 0;
        node.plan.gain = 0;
        const i64 middle = rows_.part(given_.codes, column, static_cast<u8>(plan.bin), node.first, node.last);
        // both children may interact in the same sets
        u64 *alive = alive_ + used * given_.constraints.words;
        given_.constraints.after(column, node.alive, alive);
        one = Node{node.first, middle, node.slot, node.level + 1, plan.left, Split(), Interval(), alive};
        two = Node{middle, node.last, node.slot, node.level + 1, node.sum - plan.left, Split(), Interval(), alive};
        bound_children(one.sum, two.sum, limits_.l2, node.bounds, given_.constraints.monotone(column), one.bounds,
                       two.bounds);
        if (used + 1 == leaves_ || one.level >= depth_)
            return;
        // the larger child's histogram is the parent's less the smaller one's; by Hessians, which all shards know
        Node &small = hessian(one.sum) <= hessian(two.sum) ? one : two;
        Node &large = &small == &one ? two : one;
        small.slot = used;
        fill_rows(small);
        Sum *of_large = histogram(large);
        const Sum *of_small = histogram(small);
        for (i64 b = 0; b < columns_.bins; b++)
            of_large[b] -= of_small[b];
        this->plan(one);
        this->plan(two);
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
            node.sum = given_.fine_sum(rows_.order + node.first, node.last - node.first);
            given_.reduce(&node.sum, 1);
            total += node.sum;
            for (i64 r = node.first; r < node.last; r++)
                tree.leaf[rows_.order[r]] = static_cast<i32>(i);
        }
        const double l2 = given_.limits(total).l2;
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                tree.value[i] = given_.scaled(nodes_[i].bounds.clip(best_value(nodes_[i].sum, l2)));
        drop_others(given_.codes, tree);
    }

    Training given_;
    i64 leaves_, depth_;
    Rows rows_;
    Columns columns_;
    Node *nodes_;
    Sum *histograms_;
    u64 *alive_; // by the split that a node is a child of
    Limits limits_ = {};
};
