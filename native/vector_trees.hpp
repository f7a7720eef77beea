// The trees of best_first.hpp and symmetric.hpp with one structure for all outputs, and a value for each in every leaf.
#pragma once

#include "vector_sums.hpp"

class VectorBestFirst : VectorGrower {
  public:
    VectorBestFirst(Arena &arena, const Training &given, i64 trained, i64 leaves, i64 depth)
        : VectorGrower(arena, given, trained), leaves_(leaves), depth_(depth), nodes_(arena.take<Node>(2 * leaves - 1)),
          sums_(arena.take<i64>((2 * leaves - 1) * width_)), histograms_(arena.take<i64>(leaves * size())),
          alive_(arena.take<u64>(leaves * given.constraints.words)) {}

    i64 grow(const Tree &tree) {
        quantise(sums(0));
        set_limits(sums(0));
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        nodes_[0] = Node{0, given_.n, 0, 0, VectorSplit(), alive_};
        tree.left[0] = 0;
        if (leaves_ > 1) {
            fill_rows(0, given_.n, histogram(nodes_[0]));
            plan(0);
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
        VectorSplit plan;
        const u64 *alive; // the sets of columns that it may still interact in
    };

    i64 *sums(i64 node) const { return sums_ + node * width_; }
    i64 *histogram(const Node &node) const { return histograms_ + node.slot * size(); }

    // The leaf whose split gains most; the first of equals.
    i64 best(i64 count) const {
        i64 found = -1;
        double gain = 0;
        for (i64 i = 0; i < count; i++)
            if (nodes_[i].plan.gain > gain)
                found = i, gain = nodes_[i].plan.gain;
        return found;
    }

    void plan(i64 at) const {
        Node &node = nodes_[at];
        VectorSplit found;
        begin_node(sums(at));
        for (i64 c = 0; c < columns_.count; c++) {
            if (!given_.constraints.allowed(columns_.index[c], node.alive))
                continue;
            each_gain(histogram(node) + columns_.start[c] * width_, columns_.start[c + 1] - columns_.start[c], sums(at),
                      [&](i64 bin, double gain) {
                          if (gain > found.gain * (1 + TIE))
                              found = VectorSplit{gain, c, bin};
                      });
        }
        node.plan = found;
    }

    void split(const Tree &tree, i64 at, i64 count, i64 used) {
        Node &node = nodes_[at], &one = nodes_[count], &two = nodes_[count + 1];
        const VectorSplit plan = node.plan;
        const i64 column = columns_.index[plan.column];
        tree.feature[at] = static_cast<i32>(column), tree.cut[at] = static_cast<i32>(plan.bin);
        tree.left[at] = static_cast<i32>(count);
        tree.left[count] = tree.left[count + 1] = 0;
        node.plan.gain = 0;
        child_sums(histogram(node), plan, sums(at), sums(count), sums(count + 1));
        const i64 middle = part(column, plan.bin, node.first, node.last);
        // both children may interact in the same sets
        u64 *alive = alive_ + used * given_.constraints.words;
        given_.constraints.after(column, node.alive, alive);
        one = Node{node.first, middle, node.slot, node.level + 1, VectorSplit(), alive};
        two = Node{middle, node.last, node.slot, node.level + 1, VectorSplit(), alive};
        if (used + 1 == leaves_ || one.level >= depth_)
            return;
        // the larger child's histogram is the parent's less the smaller one's; by Hessians, which all shards know
        Node &small = hessians(sums(count)) <= hessians(sums(count + 1)) ? one : two;
        Node &large = &small == &one ? two : one;
        small.slot = used;
        fill_rows(small.first, small.last, histogram(small));
        i64 *of_large = histogram(large);
        const i64 *of_small = histogram(small);
        for (i64 b = 0; b < size(); b++)
            of_large[b] -= of_small[b];
        this->plan(count);
        this->plan(count + 1);
    }

    void finish(const Tree &tree, i64 count) {
        std::fill(tree.leaf, tree.leaf + given_.codes.rows, -1);
        std::fill(tree.value, tree.value + count * k_, 0.0);
        std::fill(left_, left_ + width_, 0);
        for (i64 i = 0; i < count; i++) {
            if (tree.left[i])
                continue;
            tree.feature[i] = tree.cut[i] = 0;
            finish_leaf(tree, i, nodes_[i].first, nodes_[i].last, sums(i));
            for (i64 t = 0; t < width_; t++)
                left_[t] += sums(i)[t];
        }
        set_limits(left_);
        for (i64 i = 0; i < count; i++)
            if (!tree.left[i])
                leaf_values(sums(i), tree.value + i * k_);
        drop_others(given_.codes, tree);
    }

    i64 leaves_, depth_;
    Node *nodes_;
    i64 *sums_, *histograms_; // (nodes, 2 k), (leaves, bins, 2 k)
    u64 *alive_;              // by the split that a node is a child of
};

class VectorSymmetric : VectorGrower {
  public:
    VectorSymmetric(Arena &arena, const Training &given, i64 trained, i64 depth)
        : VectorGrower(arena, given, trained), most_(i64(1) << depth), nodes_(arena.take<Node>(most_)),
          children_(arena.take<Node>(most_)), sums_(arena.take<i64>(most_ * width_)),
          child_sums_(arena.take<i64>(most_ * width_)), histograms_(arena.take<i64>((most_ + 1) / 2 * size())),
          kept_(arena.take<i64>(size())), gain_(arena.take<double>(MOST_BINS)), farthest_(arena.take<double>(k_)),
          alive_(arena.take<u64>(given.constraints.words)) {}

    i64 grow(const Tree &tree) {
        quantise(sums_);
        set_limits(sums_);
        nodes_[0] = Node{0, given_.n};
        i64 count = 1, before = 0;
        fill_rows(0, given_.n, histogram(0));
        std::fill(alive_, alive_ + given_.constraints.words, ~u64(0));
        for (; count < most_; count *= 2) {
            const VectorSplit found = best(count);
            if (found.column < 0)
                break;
            split(tree, found, count, before);
            before += count;
            given_.constraints.after(columns_.index[found.column], alive_, alive_);
            std::swap(nodes_, children_);
            std::swap(sums_, child_sums_);
            if (2 * count < most_)
                refill(count);
        }
        finish(tree, before, count);
        return before + count;
    }

  private:
    struct Node {
        i64 first, last;
    };

    i64 *histogram(i64 node) const { return histograms_ + node * size(); }

    // The split with the largest sum of gains over the nodes of a level.
    VectorSplit best(i64 count) const {
        VectorSplit found;
        for (i64 c = 0; c < columns_.count; c++) {
            if (!given_.constraints.allowed(columns_.index[c], alive_))
                continue;
            const i64 bins = columns_.start[c + 1] - columns_.start[c];
            std::fill(gain_, gain_ + bins, 0.0);
            for (i64 node = 0; node < count; node++)
                add_gains(sums_ + node * width_, histogram(node) + columns_.start[c] * width_, bins);
            for (i64 b = 0; b < bins - 1; b++)
                if (gain_[b] > found.gain * (1 + TIE))
                    found = VectorSplit{gain_[b], c, b};
        }
        return found;
    }

    // What each split of a column gains in a node. Behind an empty bin the split is the one before it.
    void add_gains(const i64 *total, const i64 *bins, i64 count) const {
        if (static_cast<double>(hessians(total)) < 2 * least_)
            return;
        begin_node(total);
        i64 at = 0;
        double last = 0;
        each_gain(bins, count, total, [&](i64 bin, double gain) {
            for (; at < bin; at++)
                gain_[at] += last;
            last = gain;
        });
        for (bool behind = true; at < count - 1 && behind; at++) {
            gain_[at] += last;
            behind = empty_bin(bins + (at + 1) * width_);
        }
    }

    void split(const Tree &tree, const VectorSplit &found, i64 count, i64 before) {
        const i64 column = columns_.index[found.column];
        for (i64 node = 0; node < count; node++) {
            const Node own = nodes_[node];
            i64 *left = child_sums_ + 2 * node * width_;
            child_sums(histogram(node), found, sums_ + node * width_, left, left + width_);
            const i64 middle = part(column, found.bin, own.first, own.last);
            children_[2 * node] = Node{own.first, middle}, children_[2 * node + 1] = Node{middle, own.last};
            tree.feature[before + node] = static_cast<i32>(column);
            tree.cut[before + node] = static_cast<i32>(found.bin);
            tree.left[before + node] = static_cast<i32>(before + count + 2 * node);
            std::fill(tree.value + (before + node) * k_, tree.value + (before + node + 1) * k_, 0.0);
        }
    }

    // Histograms of the children of `count` nodes, from the last on, so that none is overwritten before it is used.
    void refill(i64 count) {
        for (i64 node = count - 1; node >= 0; node--) {
            const i64 one = 2 * node, two = one + 1;
            const i64 small = hessians(sums_ + one * width_) <= hessians(sums_ + two * width_) ? one : two;
            const i64 large = one + two - small;
            std::copy(histogram(node), histogram(node) + size(), kept_);
            fill_rows(nodes_[small].first, nodes_[small].last, histogram(small));
            for (i64 b = 0; b < size(); b++)
                histogram(large)[b] = kept_[b] - histogram(small)[b];
        }
    }

    void finish(const Tree &tree, i64 before, i64 count) {
        std::fill(tree.leaf, tree.leaf + given_.codes.rows, -1);
        std::fill(left_, left_ + width_, 0);
        for (i64 end = 0; end < count; end++) {
            tree.feature[before + end] = tree.cut[before + end] = tree.left[before + end] = 0;
            finish_leaf(tree, before + end, nodes_[end].first, nodes_[end].last, sums_ + end * width_);
            for (i64 t = 0; t < width_; t++)
                left_[t] += sums_[end * width_ + t];
        }
        set_limits(left_);
        std::fill(farthest_, farthest_ + k_, 0.0);
        for (i64 end = 0; end < count; end++) {
            const i64 *sums = sums_ + end * width_;
            double *value = tree.value + (before + end) * k_, weight = 0;
            leaf_values(sums, value);
            // not as integers, whose sum over outputs could overflow
            for (i64 j = 0; j < k_; j++)
                weight += static_cast<double>(sums[k_ + j]);
            for (i64 j = 0; j < k_ && weight >= least_; j++)
                farthest_[j] = std::max(farthest_[j], std::fabs(value[j]));
        }
        // a split is made in all nodes: leaves with too few rows are clipped to the range of the others
        for (i64 end = 0; end < count; end++)
            for (i64 j = 0; j < k_; j++) {
                double &value = tree.value[(before + end) * k_ + j];
                value = std::min(std::max(value, -farthest_[j]), farthest_[j]);
            }
        drop_others(given_.codes, tree);
    }

    i64 most_;
    Node *nodes_, *children_;
    i64 *sums_, *child_sums_, *histograms_, *kept_;
    double *gain_, *farthest_;
    u64 *alive_; // the sets of columns that the next level may interact in
};
