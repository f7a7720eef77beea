// The rows of a tree: which are drawn, on which side of a split they are, and in which leaf they end.
#pragma once

#include "grower.cuh"

class RowGrower : public Grower {
  public:
    using Grower::Grower;

  protected:
    // Draw rows and columns, and round gradients and Hessians; the root of the tree.
    void draw(Node *root, Sum *histogram, u64 *alive) {
        measure();
        if (group_.block() == 0)
            draw_columns();
        group_.meet([&] { settle_draw(); });
        quantise();
        for (i64 i = group_.thread(); i < 2 * columns().bins; i += group_.threads())
            reinterpret_cast<i64 *>(histogram)[i] = 0;
        group_.meet([&] {
            for (i64 w = thread(); w < round_.group_words; w += threads())
                alive[w] = ~u64(0);
            if (thread() > 0)
                return;
            state_->limits = limits(state_->total);
            root[0] = Node{0, state_->n, 0, 0, -1, 0, 0, state_->total, {}, Split(), Interval()};
            small_[0] = 0;
        });
    }

    // How many rows of each part go left, where all segments are split at the same place.
    GCE_PHASE void count_left(const Node *nodes, i64 segments) const {
        const i64 each = rows_per_task(state_->n), column = index_[state_->column], cut = state_->bin;
        const u8 *bytes = codes_.bytes + (column >> 2) * 4 * codes_.rows + (column & 3);
        for (i64 t = group_.warp(); t < task_[segments]; t += group_.warps()) {
            const i64 s = segment_of(task_, segments, t);
            const i64 first = nodes[s].first + (t - task_[s]) * each, last = smaller(nodes[s].last, first + each);
            const u32 *order = this->order(nodes[s].buffer);
            i64 count = 0;
            for (i64 i = first + lane(); i < last; i += AHEAD * LANES) {
                GCE_UNROLL
                for (int q = 0; q < AHEAD; q++)
                    count += i + q * LANES < last && bytes[4 * static_cast<i64>(order[i + q * LANES])] <= cut;
            }
            count = sum_of_warp(count);
            if (lane() == 0)
                count_[t] = count;
        }
    }

    // Where the right rows of a segment begin, once parts are counted.
    i64 middle(const Node &node, i64 s) const { return node.first + count_[task_[s + 1]] - count_[task_[s]]; }

    // Rows into the other buffer, those that go left first, each side in its order.
    GCE_PHASE void part(const Node *nodes, i64 segments) const {
        const i64 each = rows_per_task(state_->n), column = index_[state_->column];
        const u8 *bytes = codes_.bytes + (column >> 2) * 4 * codes_.rows + (column & 3);
        for (i64 t = group_.warp(); t < task_[segments]; t += group_.warps()) {
            const i64 s = segment_of(task_, segments, t), before = (t - task_[s]) * each;
            const i64 first = nodes[s].first + before, last = smaller(nodes[s].last, first + each);
            const i64 left = count_[t] - count_[task_[s]];
            part_rows(bytes, nodes[s].buffer, first, last, nodes[s].first + left, middle(nodes[s], s) + before - left);
        }
    }

    // The finer sums of leaves, and the leaf of each of their rows; leaves are numbered from `offset`.
    GCE_PHASE void sum_leaves(Node *nodes, i64 segments, i64 offset) const {
        const i64 each = rows_per_task(state_->n), more = finer(codes_.rows);
        const Rounded by_D(state_->exponent_D + more), by_H(state_->exponent_H + more);
        for (i64 t = group_.warp(); t < task_[segments]; t += group_.warps()) {
            const i64 s = segment_of(task_, segments, t);
            const i64 first = nodes[s].first + (t - task_[s]) * each, last = smaller(nodes[s].last, first + each);
            const u32 *order = this->order(nodes[s].buffer);
            i64 sum_D = 0, sum_H = 0;
            for (i64 i = first + lane(); i < last; i += LANES) {
                const i64 row = order[i], at = row * round_.outputs + output_;
                sum_D += by_D(D_[at]), sum_H += by_H(H_[at]);
                leaf_[row] = static_cast<i32>(offset + s);
            }
            sum_D = sum_of_warp(sum_D), sum_H = sum_of_warp(sum_H);
            if (lane() == 0)
                add_atomic(&nodes[s].fine.g, sum_D), add_atomic(&nodes[s].fine.h, sum_H);
        }
    }

    // Rows that were not drawn go to their leaves, by codes.
    GCE_PHASE void drop_others() const {
        if (state_->n == round_.n_rows)
            return;
        for (i64 i = group_.thread(); i < round_.n_rows; i += group_.threads()) {
            if (leaf_[i] >= 0)
                continue;
            i32 node = 0;
            while (left_[node])
                node = left_[node] + (codes_.at(feature_[node], i) > cut_[node]);
            leaf_[i] = node;
        }
    }

  private:
    bool has_hessian(i64 row) const {
        bool used = false;
        for (i64 j = 0; j < round_.outputs; j++)
            used |= H_[row * round_.outputs + j] != 0;
        return used;
    }

    bool in_sample(i64 row) const {
        return round_.subsample >= 1 || drawn(round_.names[row], round_.keys[member_], ldexp(round_.subsample, 64));
    }

    // The largest gradient and Hessian, and how many rows there are in each part.
    GCE_PHASE void measure() {
        const i64 each = rows_per_task(round_.n_train), tasks = divided_up(round_.n_train, each);
        double largest_D = 0, largest_H = 0;
        for (i64 t = group_.warp(); t < tasks; t += group_.warps()) {
            const i64 last = smaller(round_.n_train, (t + 1) * each);
            i64 count = 0, count_all = 0;
            for (i64 i = t * each + lane(); i < last; i += LANES) {
                largest_D = larger(largest_D, fabs(D_[i * round_.outputs + output_]));
                largest_H = larger(largest_H, H_[i * round_.outputs + output_]);
                const bool used = has_hessian(i);
                count_all += used, count += used && in_sample(i);
            }
            count = sum_of_warp(count), count_all = sum_of_warp(count_all);
            if (lane() == 0)
                count_[t] = count, count_all_[t] = count_all;
        }
        largest_D = largest_of_warp(largest_D), largest_H = largest_of_warp(largest_H);
        if (lane() == 0)
            raise_atomic(&state_->largest_D, bits_of(largest_D)), raise_atomic(&state_->largest_H, bits_of(largest_H));
    }

    GCE_PHASE void draw_columns() {
        if (thread() > 0)
            return;
        const i64 chosen = round_.columns_per_tree;
        sample_columns(round_.keys[member_], output_, round_.n_columns, chosen, index_);
        i64 bins = 0, blocks = 0;
        for (i64 c = 0; c < chosen; c++) {
            if (c == 0 || index_[c] >> 2 != index_[c - 1] >> 2)
                column_block_[blocks++] = c;
            start_[c] = bins;
            bins += round_.widths[index_[c]];
        }
        start_[chosen] = bins, column_block_[blocks] = chosen;
        state_->column_blocks = blocks;
    }

    // By the last block: where the rows of each part go, and the scale of integers.
    GCE_PHASE void settle_draw() {
        const i64 tasks = divided_up(round_.n_train, rows_per_task(round_.n_train));
        running_sums(count_, tasks);
        running_sums(count_all_, tasks);
        // a sample without rows is none: all rows are used
        const bool all = count_[tasks] == 0 || round_.subsample >= 1;
        if (thread() > 0)
            return;
        state_->n = (all ? count_all_ : count_)[tasks], state_->all = all;
        state_->exponent_D = exponent_for(number_of(state_->largest_D));
        state_->exponent_H = exponent_for(number_of(state_->largest_H));
        state_->total = {};
        state_->rows_per_fill = rows_per_fill(state_->n);
        fill_task_[0] = 0, fill_task_[1] = divided_up(state_->n, state_->rows_per_fill);
    }

    // Rows in their order with their integers, and the sum of all.
    GCE_PHASE void quantise() {
        const i64 each = rows_per_task(round_.n_train), tasks = divided_up(round_.n_train, each);
        const Rounded by_D(state_->exponent_D), by_H(state_->exponent_H);
        i64 sum_D = 0, sum_H = 0;
        for (i64 t = group_.warp(); t < tasks; t += group_.warps()) {
            i64 place = (state_->all ? count_all_ : count_)[t];
            const i64 last = smaller(round_.n_train, (t + 1) * each);
            for (i64 base = t * each; base < last; base += LANES) {
                const i64 i = base + lane();
                const bool used = i < last && has_hessian(i) && (state_->all || in_sample(i));
                const u32 mask = ballot(used);
                if (used) {
                    const i64 at = i * round_.outputs + output_, to = place + bits(mask & below());
                    const Quantised own{static_cast<i32>(by_D(D_[at])), static_cast<i32>(by_H(H_[at]))};
                    order(0)[to] = static_cast<u32>(i), rows(0)[to] = own;
                    sum_D += own.gradient, sum_H += own.hessian;
                } else if (i < last) {
                    leaf_[i] = -1;
                }
                place += bits(mask);
            }
        }
        for (i64 i = round_.n_train + group_.thread(); i < round_.n_rows; i += group_.threads())
            leaf_[i] = -1;
        sum_D = sum_of_warp(sum_D), sum_H = sum_of_warp(sum_H);
        if (lane() == 0)
            add_atomic(&state_->total.g, sum_D), add_atomic(&state_->total.h, sum_H);
    }

    void part_rows(const u8 *bytes, i64 buffer, i64 first, i64 last, i64 low, i64 high) const {
        const u32 *order = this->order(buffer);
        const Quantised *rows = this->rows(buffer);
        u32 *into = this->order(1 - buffer);
        Quantised *rows_into = this->rows(1 - buffer);
        const i64 cut = state_->bin;
        for (i64 base = first; base < last; base += AHEAD * LANES) {
            u32 row[AHEAD];
            Quantised own[AHEAD];
            bool left[AHEAD];
            GCE_UNROLL
            for (int q = 0; q < AHEAD; q++) {
                const i64 i = smaller(base + q * LANES + lane(), last - 1);
                row[q] = order[i], own[q] = rows[i];
            }
            GCE_UNROLL
            for (int q = 0; q < AHEAD; q++)
                left[q] = bytes[4 * static_cast<i64>(row[q])] <= cut;
            GCE_UNROLL
            for (int q = 0; q < AHEAD; q++) {
                const bool here = base + q * LANES + lane() < last;
                const u32 lefts = ballot(here && left[q]), rights = ballot(here && !left[q]);
                const i64 to = left[q] ? low + bits(lefts & below()) : high + bits(rights & below());
                if (here)
                    into[to] = row[q], rows_into[to] = own[q];
                low += bits(lefts), high += bits(rights);
            }
        }
    }

  protected:
    // Parts of rows that a block takes: two for each, or fewer where there are few rows.
    i64 rows_per_fill(i64 rows) const {
        return larger(LEAST_FILL, divided_up(rows * larger<i64>(state_->column_blocks, 1), 2 * group_.blocks()));
    }
};
