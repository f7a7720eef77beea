// Columns with missing values or categories: which of their bins go left.
//
// The splits of such a column are the beginnings of a few sequences of its bins: what is in the beginning goes left, all other
// bins right, also those that a node has no rows of. An ordered column whose last bin is that of missing values has two: its
// bins without the last, and with the last before all others. Categories are ordered by the mean gradient that the values of
// their nodes leave, (sum D + v sum H) / (sum H + smoothing), from either end: for one node and without smoothing the best of
// all subsets is among them (Fisher, 1958). Means of few rows are smoothed toward the value of the node, not toward 0, which
// is why they are measured from it. Rare categories are in no sequence. Nothing here allocates: a device can run it.
#pragma once

#include "code_set.hpp"
#include "split.hpp"

// What counts for categories, in sums of Hessians but for the last two.
struct CategoryRule {
    double smoothing; // added to the sum of a category's Hessians when its mean gradient is compared with others
    double least;     // of a category that a split may single out
    double l2;        // added to leaves when splits of categories are compared
    i64 few;          // up to so many categories neither smoothing, least nor l2 count
    i64 most;         // categories on the side that is singled out
};

// Kinds of the columns of a table; without the arrays all are ordered and have no missing values.
struct Kinds {
    const u8 *missing;     // (columns,): whether the last bin is that of missing values
    const u8 *categorical; // (columns,): whether bins have no order
    CategoryRule rule;
    bool plain(i64 column) const { return !missing[column] && !categorical[column]; }
};

struct MixedSplit : Split {
    bool missing_left = false;
    CodeSet bins = {}; // of categories: those that go left

    bool goes_left(u32 code, bool categorical, bool missing) const {
        return categorical ? bins.has(code) : missing ? missing_left : static_cast<i64>(code) <= bin;
    }

    // Whether each bin of a column goes left.
    void tabulate(const Kinds &kinds, i64 own, i64 width, u8 *table) const {
        for (i64 b = 0; b < width; b++)
            table[b] = goes_left(static_cast<u32>(b), kinds.categorical[own] != 0, kinds.missing[own] && b == width - 1);
    }
};

// What bins add up to in the nodes that are split together: what is left of their gradients, and Hessians.
struct BinTotals {
    double left[MOST_BINS], hessian[MOST_BINS];

    explicit BinTotals(i64 width) {
        for (i64 b = 0; b < width; b++)
            left[b] = hessian[b] = 0;
    }

    void add(const Sum *bins, i64 width, double value) {
        for (i64 b = 0; b < width; b++) {
            const double h = static_cast<double>(::hessian(bins[b]));
            left[b] += static_cast<double>(gradient(bins[b])) + value * h;
            hessian[b] += h;
        }
    }
};

struct Sequence {
    u8 bin[MOST_BINS];
    bool tied[MOST_BINS]; // whether it is too much like the next one to be parted from it
    i64 count = 0;
    i64 first = 0, longest = 0; // shortest and longest beginning that may be chosen, as positions of its last bin
    double l2 = 0;              // added to the leaves
    i64 alone = -1;             // the position behind which there are missing values alone
    bool missing_left = false;

    void keep(i64 position, bool categorical, MixedSplit &into) const {
        into.bin = bin[position];
        into.missing_left = missing_left;
        into.bins = CodeSet();
        for (i64 p = 0; p <= position && categorical; p++)
            into.bins.add(bin[p]);
    }
};

// The bins of an ordered column with missing values on either side.
inline Sequence ordered_sequence(i64 width, bool missing_left) {
    Sequence out;
    out.missing_left = missing_left;
    if (missing_left)
        out.bin[out.count++] = static_cast<u8>(width - 1);
    for (i64 b = 0; b < width - 1; b++)
        out.bin[out.count++] = static_cast<u8>(b);
    for (i64 p = 0; p < out.count; p++)
        out.tied[p] = false;
    // missing values alone are a split of the other sequence
    out.first = missing_left;
    out.longest = missing_left ? out.count - 2 : out.count - 1;
    out.alone = missing_left ? -1 : out.count - 1;
    return out;
}

// Sort bins by their keys, those with equal keys in their order, by merging.
inline void sort_bins(u8 *bins, i64 count, const double *key) {
    u8 other[MOST_BINS];
    for (i64 run = 1; run < count; run *= 2) {
        for (i64 start = 0; start < count; start += 2 * run) {
            i64 a = start, b = start + run < count ? start + run : count, to = start;
            const i64 middle = b, end = start + 2 * run < count ? start + 2 * run : count;
            while (to < end)
                other[to++] = b >= end || (a < middle && !(key[bins[b]] < key[bins[a]])) ? bins[a++] : bins[b++];
        }
        for (i64 i = 0; i < count; i++)
            bins[i] = other[i];
    }
}

// Categories from the least mean gradient to the greatest.
inline Sequence category_sequence(i64 width, const BinTotals &totals, const CategoryRule &rule) {
    Sequence out;
    i64 present = 0;
    for (i64 b = 0; b < width; b++)
        present += totals.hessian[b] > 0;
    const bool few = present <= rule.few;
    double key[MOST_BINS], largest = 0;
    for (i64 b = 0; b < width; b++) {
        if (!(totals.hessian[b] > 0) || (!few && totals.hessian[b] < rule.least))
            continue;
        key[b] = totals.left[b] / (totals.hessian[b] + (few ? 0.0 : rule.smoothing));
        largest = std::max(largest, std::fabs(key[b]));
        out.bin[out.count++] = static_cast<u8>(b);
    }
    sort_bins(out.bin, out.count, key);
    // quantisation must not order categories that are alike
    for (i64 p = 0; p < out.count; p++)
        out.tied[p] = p + 1 < out.count && key[out.bin[p + 1]] - key[out.bin[p]] <= TIE * largest;
    out.longest = std::min(out.count, rule.most) - 1;
    out.l2 = few ? 0.0 : rule.l2;
    return out;
}

inline Sequence reversed(const Sequence &of) {
    Sequence out = of;
    for (i64 p = 0; p < of.count; p++) {
        out.bin[p] = of.bin[of.count - 1 - p];
        out.tied[p] = p + 1 < of.count && of.tied[of.count - 2 - p];
    }
    return out;
}

// Call `use(sequence)` for each sequence of a column that is not plain.
template <class Use>
void each_sequence(const Kinds &kinds, i64 column, i64 width, const BinTotals &totals, Use use) {
    if (kinds.categorical[column]) {
        const Sequence up = category_sequence(width, totals, kinds.rule);
        use(up);
        use(reversed(up));
        return;
    }
    use(ordered_sequence(width, false));
    if (totals.hessian[width - 1] > 0)
        use(ordered_sequence(width, true));
}

// Call `see(position, left, right, alone)` for every beginning that leaves enough in both leaves; alone: of missing values only
// in the right one.
template <class See>
void each_beginning(const Sum *bins, const Sequence &sequence, const Sum &total, double least, See see) {
    Sum left = {};
    for (i64 p = 0; p <= sequence.longest; p++) {
        // the split behind an empty bin is the one before it
        if (empty(bins[sequence.bin[p]]))
            continue;
        left += bins[sequence.bin[p]];
        if (sequence.tied[p] || static_cast<double>(hessian(left)) < least)
            continue;
        const Sum right = total - left;
        if (empty(right) || static_cast<double>(hessian(right)) < least)
            break;
        // behind the last value that is there, missing values are alone
        const bool alone = sequence.alone >= 0 && empty(right - bins[sequence.bin[sequence.alone] + 1]);
        see(p, left, right, alone);
        if (alone)
            break;
    }
}
