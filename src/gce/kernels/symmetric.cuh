// A symmetric tree, with one split for all nodes of a level: native/symmetric.hpp by a group of blocks.
#pragma once

#include "gains.cuh"

class Symmetric : public GainGrower {
  public:
    Symmetric(const Round &round, Group &group, Arena &arena) : GainGrower(round, group, arena), most_(i64(1) << round.depth) {
        nodes_ = arena.take<Node>(most_), children_ = arena.take<Node>(most_);
        alive_ = arena.take<u64>(round.group_words);
        histograms_ = arena.take<Sum>((most_ + 1) / 2 * round.bins);
    }

    void grow() {
        Node *nodes = nodes_, *children = children_;
        i64 count = 1, before = 0;
        draw(nodes, histograms_, alive_);
        fill(nodes, 1);
        group_.meet();
        for (; count < most_; count *= 2) {
            for (i64 c = group_.block(); c < columns().count; c += group_.blocks())
                add_gains(nodes, count, c);
            group_.meet([&] { settle(nodes, count); });
            if (state_->column < 0)
                break;
            split(nodes, children, count, before);
            before += count;
            Node *const other = nodes;
            nodes = children, children = other;
        }
        finish(nodes, count, before);
    }

  private:
    // What the splits of a column gain in all nodes, added up in the order of the nodes; by one block.
    GCE_PHASE void add_gains(Node *nodes, i64 count, i64 c) const {
        double (&gains)[WARPS + 1][CODES] = shared_memory<double[WARPS + 1][CODES]>(), *total = gains[WARPS];
        const i64 width = start_[c + 1] - start_[c];
        for (i64 b = thread(); b < width - 1; b += threads())
            total[b] = 0;
        for (i64 first = 0; first < count; first += WARPS) {
            const i64 own = first + warp();
            if (own < count)
                node_gains(nodes[own], c, gains[warp()]);
            synchronise();
            const i64 some = smaller<i64>(WARPS, count - first);
            for (i64 b = thread(); b < width - 1; b += threads())
                for (i64 w = 0; w < some; w++)
                    total[b] += gains[w][b];
            synchronise();
        }
        double highest = 0;
        for (i64 b = thread(); b < width - 1; b += threads()) {
            gain_[start_[c] + b] = total[b];
            highest = larger(highest, total[b]);
        }
        highest = largest_of_block(highest);
        if (thread() == 0)
            highest_[c] = constraints_.allowed(index_[c], alive_) ? highest : 0.0;
    }

    // What each split of a column gains in a node, by one warp. Behind an empty bin the split is the one before it.
    void node_gains(const Node &node, i64 c, double *gains) const {
        const i64 width = start_[c + 1] - start_[c];
        const bool small = static_cast<double>(hessian(node.sum)) < 2 * state_->limits.least;
        double latest = 0;
        i64 any = 0, end = width;
        see_gains(node, c, [&](i64 base, u32 visited, u32 filled, double gain) {
            const u32 up_to = visited & (below() << 1 | 1u);
            const double here = from_lane(gain, up_to ? highest(up_to) : 0), own = up_to ? here : latest;
            if (base + lane() < width - 1)
                gains[base + lane()] = small ? 0.0 : own;
            if (visited) {
                const int last = highest(visited);
                latest = from_lane(gain, last), any = 1;
                filled &= ~((2u << last) - 1);
                end = width;
            }
            // a bin that holds something but is no split ends what is behind the last split
            if (any && end == width && filled)
                end = base + lowest(filled);
        });
        synchronise_warp();
        for (i64 b = end + lane(); b < width - 1; b += LANES)
            gains[b] = 0;
    }

    // By the last block: the split with the largest sum of gains.
    GCE_PHASE void settle(Node *nodes, i64 count) {
        if (warp() == 0) {
            const Split found = choose(gain_, highest_);
            if (lane() == 0) {
                state_->column = found.column, state_->bin = found.bin;
                if (found.column >= 0)
                    constraints_.after(index_[found.column], alive_, alive_);
            }
        }
        synchronise();
        if (state_->column >= 0)
            count_tasks(task_, count, rows_per_task(state_->n), [&](i64 i) { return nodes[i].last - nodes[i].first; });
    }

    void split(const Node *nodes, Node *children, i64 count, i64 before) {
        const bool further = 2 * count < most_;
        count_left(nodes, count);
        for (i64 i = group_.warp(); i < count; i += group_.warps())
            make_children(nodes[i], children + 2 * i);
        if (further)
            for (i64 i = group_.thread(); i < 2 * count * columns().bins; i += group_.threads())
                reinterpret_cast<i64 *>(histogram(count))[i] = 0;
        group_.meet([&] { settle_children(nodes, children, count, before, further); });
        part(nodes, count);
        group_.meet();
        if (further) {
            fill(children, count);
            group_.meet();
        }
    }

    // Sums and bounds of the two children of a node, by one warp.
    GCE_PHASE void make_children(const Node &node, Node *two) const {
        const Sum left = sum_left(node.slot, state_->column, state_->bin);
        if (lane() > 0)
            return;
        two[0] = two[1] = Node{node.first, node.last, 0, node.slot, -1, 0, 1 - node.buffer, left, {}, Split(), Interval()};
        two[1].sum = node.sum - left;
        bound_children(two[0].sum, two[1].sum, state_->limits.l2, node.bounds,
                       constraints_.monotone(index_[state_->column]), two[0].bounds, two[1].bounds);
    }

    // By the last block: where the rows of children are, and which of their histograms are to be filled.
    GCE_PHASE void settle_children(const Node *nodes, Node *children, i64 count, i64 before, bool further) {
        running_sums(count_, task_[count]);
        i64 rows = 0;
        for (i64 i = thread(); i < count; i += threads()) {
            Node &one = children[2 * i], &two = children[2 * i + 1];
            one.last = two.first = middle(nodes[i], i);
            // the larger child's histogram is the parent's less the smaller one's; by Hessians, as on the processor
            const bool first = hessian(one.sum) <= hessian(two.sum);
            Node &small = first ? one : two, &large = first ? two : one;
            if (further)
                small.slot = count + i, large.minus = count + i;
            small_[i] = first ? 2 * i : 2 * i + 1;
            rows += small.last - small.first;
            feature_[before + i] = static_cast<i32>(index_[state_->column]);
            cut_[before + i] = static_cast<i32>(state_->bin);
            left_[before + i] = static_cast<i32>(before + count + 2 * i);
            value_[before + i] = 0;
        }
        rows = sum_of_block(rows);
        if (thread() == 0)
            state_->rows_per_fill = rows_per_fill(rows);
        synchronise();
        count_tasks(fill_task_, count, state_->rows_per_fill,
                    [&](i64 i) { return children[small_[i]].last - children[small_[i]].first; });
    }

    void finish(Node *nodes, i64 count, i64 before) {
        group_.meet([&] {
            for (i64 i = thread(); i < count; i += threads())
                nodes[i].fine = {};
            count_tasks(task_, count, rows_per_task(state_->n), [&](i64 i) { return nodes[i].last - nodes[i].first; });
        });
        sum_leaves(nodes, count, before);
        group_.meet([&] { settle_values(nodes, count, before); });
        drop_others();
    }

    GCE_PHASE void settle_values(const Node *nodes, i64 count, i64 before) {
        Sum total = {};
        for (i64 i = thread(); i < count; i += threads())
            total += nodes[i].fine;
        total = {sum_of_block(total.g), sum_of_block(total.h)};
        const Limits limits = this->limits(total);
        double farthest = 0;
        for (i64 i = thread(); i < count; i += threads()) {
            const double value = scaled(nodes[i].bounds.clip(best_value(nodes[i].fine, limits.l2)));
            feature_[before + i] = cut_[before + i] = left_[before + i] = 0;
            value_[before + i] = value;
            if (static_cast<double>(hessian(nodes[i].fine)) >= limits.least)
                farthest = larger(farthest, fabs(value));
        }
        farthest = largest_of_block(farthest);
        // a split is made in all nodes: leaves with too few rows are clipped to the range of the others
        for (i64 i = thread(); i < count; i += threads())
            value_[before + i] = smaller(larger(value_[before + i], -farthest), farthest);
        if (thread() == 0)
            round_.size[tree_] = before + count, state_->largest_D = state_->largest_H = 0;
    }

    i64 most_;
    Node *nodes_, *children_;
    u64 *alive_; // the sets of columns that the next level may interact in
};
