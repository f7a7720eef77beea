// What a tree is grown from, and the arrays that it is returned in.
#pragma once

#include <type_traits>
#include <vector>

#include "arena.hpp"
#include "bundles.hpp"
#include "categories.hpp"
#include "histogram.hpp"

// Adds up numbers over the shards of the rows, or takes the largest of each, in place; missing where there is one shard.
enum : i64 { ADDED, LARGEST };
using Reduce = void (*)(i64 *numbers, i64 count, i64 how);

struct Tree {
    i32 *feature, *cut, *left; // of each node; children are adjacent, left is 0 for a leaf
    double *value;
    i32 *leaf; // of each row
    u8 *missing_left = nullptr; // of each node, where columns have kinds
    u64 *sets = nullptr;        // (nodes, 4): bins that go left, where a node splits categories

    void keep(i64 node, const MixedSplit &split, bool categorical) const {
        missing_left[node] = split.missing_left;
        for (int w = 0; w < 4; w++)
            sets[4 * node + w] = categorical ? split.bins.word[w] : 0;
    }
};

struct Training {
    Codes codes;
    const u32 *rows; // which rows are learned from
    i64 n;
    const double *D, *H; // (N, outputs)
    i64 outputs, output;
    const i64 *columns; // which columns may be split, ascending
    i64 n_columns;
    const i64 *widths;    // numbers of bins of all columns
    double least = 0, l2 = 0; // as shares of the sum of all Hessians
    Constraints constraints = {};
    Reduce reduce_sums = nullptr;
    i64 exponent_D = 0, exponent_H = 0; // of the powers of two that gradients and Hessians are multiplied by
    i64 threads = 1;                    // that may fill one histogram
    Kinds kinds = {};                   // of columns, where some have missing values or categories
    i64 all_rows = 0;                   // of all shards
    Bundles bundles = {};               // of columns, where codes are shared by some

    Rows take_rows(Arena &arena) const {
        return {arena.take<u32>(n), arena.take<u32>(n), arena.take<Quantised>(n), arena.take<Quantised>(n)};
    }

    Columns take_columns(Arena &arena) const {
        i64 *start = arena.take<i64>(n_columns + 1), bins = 0;
        for (i64 c = 0; c < n_columns; c++) {
            // memory is reckoned without knowing which columns will be drawn
            bins += widths[columns ? columns[c] : c];
            if (start)
                start[c + 1] = bins;
        }
        if (start)
            start[0] = 0;
        return {columns, start, n_columns, bins};
    }

    Stored take_stored(Arena &arena) const { return ::take_stored(arena, bundles, columns, n_columns); }

    // Sums of all rows by column and bin, of all shards, in a message with the sum of all; there is memory for it behind.
    Sum fill_root(Sum *histogram, const Sum &total, const Rows &of, const Columns &own, const Stored &stored) const {
        fill_own(histogram, of, 0, n, own, stored);
        histogram[own.bins] = total;
        reduce(histogram, own.bins + 1);
        return histogram[own.bins];
    }

    // Sums of rows [first, last) by column and bin, of this shard alone.
    void fill_own(Sum *histogram, const Rows &of, i64 first, i64 last, const Columns &own, const Stored &stored) const {
        const u32 *order = of.order + first;
        if (bundles.any())
            fill_bundled(histogram, codes, order, of.rows + first, last - first, own, threads, bundles, stored);
        else
            fill(histogram, codes, order, of.rows + first, last - first, own, threads);
    }

    // Part rows [first, last) by whether a column's bin goes left.
    template <class GoesLeft> i64 part(Rows &of, i64 column, GoesLeft goes_left, i64 first, i64 last) const {
        if (!bundles.any())
            return of.part(codes, column, goes_left, first, last);
        u8 table[MOST_BINS];
        for (i64 code = 0; code < MOST_BINS; code++)
            table[code] = goes_left(bundles.bin(column, widths[column], code));
        return of.part(codes, bundles.store[column], [&table](u8 code) { return table[code]; }, first, last);
    }

    void reduce(Sum *sums, i64 count) const {
        if (reduce_sums && count > 0)
            reduce_sums(reinterpret_cast<i64 *>(sums), 2 * count, ADDED);
    }

    Sum added_up(Sum sum) const {
        reduce(&sum, 1);
        return sum;
    }

    // Rows in their order with their integers; the sum of all of this shard.
    Sum quantise(Rows &into) const {
        const Rounded by_D(exponent_D), by_H(exponent_H);
        Sum total = {};
        for (i64 i = 0; i < n; i++) {
            const i64 at = rows[i] * outputs + output;
            const Quantised own{static_cast<i32>(by_D(D[at])), static_cast<i32>(by_H(H[at]))};
            into.order[i] = rows[i], into.rows[i] = own;
            total += widened(own);
        }
        return total;
    }

    Limits limits(const Sum &total) const {
        const double all = static_cast<double>(hessian(total));
        return {SHORT * least * all, l2 * all};
    }

    // The kinds of columns with their rule in sums of Hessians.
    Kinds kinds_for(const Sum &total) const {
        const double all = static_cast<double>(hessian(total));
        const CategoryRule &rule = kinds.rule;
        return {kinds.missing, kinds.categorical, {rule.smoothing * all, SHORT * rule.least * all, rule.l2 * all, rule.few, rule.most}};
    }

    // The sum of some rows, rounded more finely: leaf values are exact to about n * 2^-62 of the largest gradient.
    Sum fine_sum(const u32 *order, i64 count) const {
        const Rounded by_D(exponent_D + finer(all_rows)), by_H(exponent_H + finer(all_rows));
        i64 sum_D = 0, sum_H = 0;
        for (i64 i = 0; i < count; i++) {
            const i64 at = order[i] * outputs + output;
            sum_D += by_D(D[at]), sum_H += by_H(H[at]);
        }
        return Sum{sum_D, sum_H};
    }

    // A value in the units of the integers in those of gradients and Hessians.
    double scaled(double value) const { return std::ldexp(value, static_cast<int>(exponent_H - exponent_D)); }
};

// Rows without a leaf (-1) go to theirs, by codes.
template <class Binned> void drop_others(const Binned &codes, const Tree &tree) {
    for (i64 i = 0; i < codes.rows; i++) {
        if (tree.leaf[i] >= 0)
            continue;
        i32 node = 0;
        while (tree.left[node])
            node = tree.left[node] + (codes.at(tree.feature[node], i) > tree.cut[node]);
        tree.leaf[i] = node;
    }
}

// The same where columns have kinds.
template <class Binned>
void drop_others(const Binned &codes, const Tree &tree, const Kinds &kinds, const i64 *widths) {
    for (i64 i = 0; i < codes.rows; i++) {
        if (tree.leaf[i] >= 0)
            continue;
        i32 node = 0;
        while (tree.left[node]) {
            const i64 column = tree.feature[node];
            const u32 code = codes.at(column, i);
            const u64 *set = tree.sets + 4 * static_cast<i64>(node);
            const bool left = kinds.categorical[column] ? (set[code >> 6] >> (code & 63) & 1) != 0
                              : kinds.missing[column] && code == widths[column] - 1
                                  ? tree.missing_left[node] != 0
                                  : static_cast<i32>(code) <= tree.cut[node];
            node = tree.left[node] + !left;
        }
        tree.leaf[i] = node;
    }
}

// The same, whichever columns there are.
inline void drop_others(const Codes &codes, const Bundles &bundles, const Tree &tree, const Kinds &kinds, const i64 *widths) {
    const auto drop = [&](const auto &binned) {
        if (kinds.missing)
            drop_others(binned, tree, kinds, widths);
        else
            drop_others(binned, tree);
    };
    if (bundles.any())
        drop(BundledCodes{codes, bundles, widths});
    else
        drop(codes);
}
