// What blocks that grow a tree know of it, and the memory that they share.
#pragma once

#include "arena.hpp"
#include "group.cuh"
#include "split.hpp"

// What gce/bases/trees/grower_cuda.py fills in; arrays are in C order, on the device.
struct Round {
    const u8 *codes; // (blocks, N, 4)
    i64 n_rows, n_columns, bins;
    const i64 *widths;   // (d,), of sum `bins`
    const double *D, *H; // (M, n, k), of the first n rows
    i64 members, n_train, outputs;
    const double *least, *l2; // (M,)
    const u64 *names, *keys;  // (N,) hashes of rows, (M,) random numbers
    double subsample;
    i64 columns_per_tree;
    const i64 *sign;
    const u64 *group; // (d, group_words)
    i64 group_words;
    i64 symmetric, leaves, depth, most_nodes;
    i32 *feature, *cut, *left; // (M, k, most_nodes)
    double *value;             // (M, k, most_nodes)
    i64 *size;                 // (M, k)
    i32 *leaf;                 // (M, k, N)
    i64 blocks, groups;        // of the launch: each group of blocks takes trees in turn
    u8 *scratch;
    i64 scratch_size; // of a group
    Counters *counters;
};

struct Node {
    i64 first, last, level;
    i64 slot, minus; // its histogram, and the one to be subtracted from it first; -1: none
    i64 alive;       // which sets of columns it may still interact in
    i64 buffer;      // where its rows are
    Sum sum, fine;
    Split plan;
    Interval bounds;
};

// What the last block to arrive tells the others.
struct State {
    u64 largest_D, largest_H; // as bits, which are ordered as numbers at least 0 are
    Sum total;
    i64 n, all; // how many rows are learned from; whether these are all that have a Hessian
    i64 exponent_D, exponent_H;
    Limits limits;
    i64 column_blocks;
    i64 at, count; // the node to be split, and how many there are
    i64 column, bin;
    i64 rows_per_fill;
};

// Rows that a thread asks for before it needs the first.
constexpr int AHEAD = 4;
// Rows below which a block takes longer to write a histogram than to add them up.
constexpr i64 LEAST_FILL = 2048;

class Grower {
  public:
    Grower(const Round &round, Group &group, Arena &arena) : round_(round), group_(group) {
        const i64 tasks = 2 * round.blocks * WARPS + round.most_nodes + 1;
        state_ = arena.take<State>(1);
        order_ = arena.take<u32>(2 * round.n_train), rows_ = arena.take<Quantised>(2 * round.n_train);
        index_ = arena.take<i64>(round.n_columns), start_ = arena.take<i64>(round.n_columns + 1);
        column_block_ = arena.take<i64>(round.n_columns + 1);
        highest_ = arena.take<double>(2 * round.n_columns), gain_ = arena.take<double>(2 * round.bins);
        count_ = arena.take<i64>(tasks), count_all_ = arena.take<i64>(tasks);
        task_ = arena.take<i64>(round.most_nodes + 1), fill_task_ = arena.take<i64>(round.most_nodes + 1);
        small_ = arena.take<i64>(round.most_nodes);
    }

    // Which tree is grown next.
    void take(i64 tree) {
        tree_ = tree, member_ = tree / round_.outputs, output_ = tree % round_.outputs;
        const i64 first = tree * round_.most_nodes;
        feature_ = round_.feature + first, cut_ = round_.cut + first, left_ = round_.left + first;
        value_ = round_.value + first, leaf_ = round_.leaf + tree * round_.n_rows;
        D_ = round_.D + member_ * round_.n_train * round_.outputs, H_ = round_.H + member_ * round_.n_train * round_.outputs;
        codes_ = {round_.codes, round_.n_rows}, constraints_ = {round_.sign, round_.group, round_.group_words};
    }

  protected:
    Columns columns() const { return {index_, start_, round_.columns_per_tree, start_[round_.columns_per_tree]}; }

    Limits limits(const Sum &total) const {
        const double all = static_cast<double>(hessian(total));
        return {SHORT * round_.least[member_] * all, round_.l2[member_] * all};
    }

    double scaled(double value) const {
        return ldexp(value, static_cast<int>(state_->exponent_H - state_->exponent_D));
    }

    // Parts of rows that a warp takes: two for each, or more where there are few rows.
    i64 rows_per_task(i64 rows) const { return larger<i64>(AHEAD * LANES, divided_up(rows, 2 * group_.warps())); }

    // How many parts there are of the rows of each of some segments, before each of them; by the last block.
    template <class Length> void count_tasks(i64 *task, i64 segments, i64 rows, Length length) {
        for (i64 s = thread(); s < segments; s += threads())
            task[s] = divided_up(length(s), rows);
        synchronise();
        running_sums(task, segments);
    }

    // The segment of a part.
    static i64 segment_of(const i64 *task, i64 segments, i64 part) {
        i64 low = 0, high = segments;
        while (high - low > 1) {
            const i64 middle = (low + high) / 2;
            (task[middle] <= part ? low : high) = middle;
        }
        return low;
    }

    // Rows, those of a node side by side, and their integers: two places, of which a split reads one and writes the other.
    u32 *order(i64 buffer) const { return order_ + buffer * round_.n_train; }
    Quantised *rows(i64 buffer) const { return rows_ + buffer * round_.n_train; }

    const Round &round_;
    Group &group_;
    State *state_;
    u32 *order_;
    Quantised *rows_;
    i64 *index_, *start_, *column_block_;
    double *highest_, *gain_; // of columns, and of bins
    i64 *count_, *count_all_, *task_, *fill_task_, *small_;
    i64 tree_ = 0, member_ = 0, output_ = 0;
    i32 *feature_ = nullptr, *cut_ = nullptr, *left_ = nullptr, *leaf_ = nullptr;
    double *value_ = nullptr;
    const double *D_ = nullptr, *H_ = nullptr;
    Codes codes_ = {};
    Constraints constraints_ = {};
};
