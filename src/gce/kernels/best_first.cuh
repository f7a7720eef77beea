// A tree that lowers sum D u + u^2 H / 2 greedily, its best leaf split next: native/best_first.hpp by a group of blocks.
#pragma once

#include "gains.cuh"

class BestFirst : public GainGrower {
  public:
    BestFirst(const Round &round, Group &group, Arena &arena) : GainGrower(round, group, arena) {
        nodes_ = arena.take<Node>(round.most_nodes);
        alive_ = arena.take<u64>(round.leaves * round.group_words);
        histograms_ = arena.take<Sum>(round.leaves * round.bins);
    }

    void grow() {
        draw(nodes_, histograms_, alive_);
        if (round_.leaves > 1) {
            fill(nodes_, 1);
            group_.meet();
            plan(0, 1);
        }
        group_.meet([&] { start(); });
        for (i64 used = 1; used < round_.leaves && state_->at >= 0; used++)
            split(used);
        finish();
    }

  private:
    // Gains of all splits of up to two nodes, a warp for each column of each.
    GCE_PHASE void plan(i64 first, i64 count) const {
        for (i64 item = group_.warp(); item < count * columns().count; item += group_.warps()) {
            const i64 c = item / count, which = item % count;
            const Node &node = nodes_[first + which];
            double *gains = gain_ + which * round_.bins + start_[c], highest = 0;
            const i64 width = start_[c + 1] - start_[c];
            see_gains(node, c, [&](i64 base, u32, u32, double gain) {
                if (base + lane() < width)
                    gains[base + lane()] = gain;
                highest = larger(highest, gain);
            });
            highest = largest_of_warp(highest);
            const bool allowed = constraints_.allowed(index_[c], alive_ + node.alive * round_.group_words);
            if (lane() == 0)
                highest_[which * round_.n_columns + c] = allowed ? highest : 0.0;
        }
    }

    // By the last block: the best split of each of up to two nodes, once their gains are known.
    GCE_PHASE void settle(i64 first, i64 count) {
        for (i64 which = warp(); which < count; which += WARPS) {
            Split found = choose(gain_ + which * round_.bins, highest_ + which * round_.n_columns);
            Node &node = nodes_[first + which];
            if (found.column >= 0)
                found.left = sum_left(node.slot, found.column, found.bin);
            if (lane() == 0)
                node.plan = found, node.minus = -1;
        }
        synchronise();
    }

    // By the last block: the leaf whose split gains most, the first of equals, is split next.
    GCE_PHASE void next(i64 count) {
        double gain = 0;
        for (i64 i = thread(); i < count; i += threads())
            gain = larger(gain, nodes_[i].plan.gain);
        gain = largest_of_block(gain);
        i64 found = count;
        for (i64 i = thread(); i < count && gain > 0; i += threads())
            found = nodes_[i].plan.gain == gain ? smaller(found, i) : found;
        found = smallest_of_block(found);
        const i64 at = found < count ? found : -1;
        if (thread() == 0) {
            state_->at = at, state_->count = count;
            if (at >= 0)
                state_->column = nodes_[at].plan.column, state_->bin = nodes_[at].plan.bin;
        }
        synchronise();
        if (at >= 0)
            count_tasks(task_, 1, rows_per_task(state_->n), [&](i64) { return nodes_[at].last - nodes_[at].first; });
    }

    void start() {
        if (round_.leaves > 1)
            settle(0, 1);
        if (thread() == 0)
            left_[0] = 0;
        next(1);
    }

    bool goes_on(i64 used, i64 level) const { return used + 1 < round_.leaves && level < round_.depth; }

    void split(i64 used) {
        const i64 at = state_->at, count = state_->count;
        const bool further = goes_on(used, nodes_[at].level + 1);
        count_left(nodes_ + at, 1);
        if (further)
            for (i64 i = group_.thread(); i < 2 * columns().bins; i += group_.threads())
                reinterpret_cast<i64 *>(histogram(used))[i] = 0;
        group_.meet([&] {
            running_sums(count_, task_[1]);
            if (thread() == 0)
                make_children(at, count, used, further);
        });
        part(nodes_ + at, 1);
        if (!further) {
            group_.meet([&] { next(count + 2); });
            return;
        }
        group_.meet();
        fill(nodes_, 1);
        group_.meet();
        plan(count, 2);
        group_.meet([&] {
            settle(count, 2);
            next(count + 2);
        });
    }

    GCE_PHASE void make_children(i64 at, i64 count, i64 used, bool further) {
        Node &node = nodes_[at], &one = nodes_[count], &two = nodes_[count + 1];
        const i64 column = index_[node.plan.column], middle = this->middle(node, 0);
        feature_[at] = static_cast<i32>(column), cut_[at] = static_cast<i32>(node.plan.bin);
        left_[at] = static_cast<i32>(count);
        left_[count] = left_[count + 1] = 0;
        node.plan.gain = 0;
        // both children may interact in the same sets
        constraints_.after(column, alive_ + node.alive * round_.group_words, alive_ + used * round_.group_words);
        one = two = Node{node.first, middle, node.level + 1, node.slot, -1, used, 1 - node.buffer, node.plan.left, {},
                         Split(), Interval()};
        two.first = middle, two.last = node.last, two.sum = node.sum - node.plan.left;
        bound_children(one.sum, two.sum, state_->limits.l2, node.bounds, constraints_.monotone(column), one.bounds,
                       two.bounds);
        if (!further)
            return;
        // the larger child's histogram is the parent's less the smaller one's; by Hessians, as on the processor
        const bool first = hessian(one.sum) <= hessian(two.sum);
        Node &small = first ? one : two, &large = first ? two : one;
        small.slot = used, large.minus = used, small_[0] = first ? count : count + 1;
        state_->rows_per_fill = rows_per_fill(small.last - small.first);
        fill_task_[1] = divided_up(small.last - small.first, state_->rows_per_fill);
    }

    void finish() {
        const i64 count = state_->count;
        group_.meet([&] {
            for (i64 i = thread(); i < count; i += threads())
                nodes_[i].fine = {};
            count_tasks(task_, count, rows_per_task(state_->n),
                        [&](i64 i) { return left_[i] ? 0 : nodes_[i].last - nodes_[i].first; });
        });
        sum_leaves(nodes_, count, 0);
        group_.meet([&] { settle_values(count); });
        drop_others();
    }

    GCE_PHASE void settle_values(i64 count) {
        Sum total = {};
        for (i64 i = thread(); i < count; i += threads())
            total += nodes_[i].fine;
        total = {sum_of_block(total.g), sum_of_block(total.h)};
        const double l2 = limits(total).l2;
        for (i64 i = thread(); i < count; i += threads()) {
            const bool inner = left_[i] != 0;
            value_[i] = inner ? 0.0 : scaled(nodes_[i].bounds.clip(best_value(nodes_[i].fine, l2)));
            if (!inner)
                feature_[i] = cut_[i] = 0;
        }
        if (thread() == 0)
            round_.size[tree_] = count, state_->largest_D = state_->largest_H = 0;
    }

    Node *nodes_;
    u64 *alive_; // by the split that a node is a child of
};
