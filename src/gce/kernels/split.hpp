// Which split of a node lowers the quadratic model most, from the integer sums of its bins.
//
// Sums are in units of the quantised gradients and Hessians throughout: gains are compared with each other only, and a
// leaf's value is scaled at the end. Additions of equal sums are equal, and of splits within TIE of each other the first
// is taken: quantisation must not choose between splits that are equally good.
#pragma once

#include "constraints.hpp"
#include "sums.hpp"

constexpr double TIE = 1.0 / (1 << 20);
// Quantised Hessians of a leaf with exactly as many rows as it must have may add up to a little less.
constexpr double SHORT = 1 - 1e-6;

struct Limits {
    double least; // least sum of Hessians in a leaf
    double l2;    // added to a leaf's sum of Hessians
};

struct Split {
    double gain = 0;
    i64 column = -1; // position among the tree's columns
    i64 bin = 0;     // the last bin that goes left
    Sum left = {};
};

inline double best_value(const Sum &sum, double l2) {
    const double h = static_cast<double>(hessian(sum)) + l2;
    return h > 0 ? -static_cast<double>(gradient(sum)) / h : 0.0;
}

// Twice what a leaf lowers the model by, without bounds on its value.
inline double reduction(const Sum &sum, double l2) {
    const double g = static_cast<double>(gradient(sum)), h = static_cast<double>(hessian(sum)) + l2;
    return h > 0 ? g * g / h : 0.0;
}

// The same at a given value.
inline double reduction_at(const Sum &sum, double l2, double value) {
    const double g = static_cast<double>(gradient(sum)), h = static_cast<double>(hessian(sum)) + l2;
    return -(2 * g * value + h * value * value);
}

struct Values {
    double left, right;
};

// The best values of two leaves within bounds, ordered by `sign`: one value for both where theirs are the wrong way round.
inline Values bounded_values(const Sum &left, const Sum &right, double l2, const Interval &bounds, i64 sign) {
    const Values best = {bounds.clip(best_value(left, l2)), bounds.clip(best_value(right, l2))};
    if (sign * (best.right - best.left) >= 0)
        return best;
    const double both = bounds.clip(best_value(left + right, l2));
    return {both, both};
}

// Gain of a split whose leaves' values are bounded and ordered; not positive where they are equal.
inline double bounded_gain(const Sum &left, const Sum &right, double whole, double l2, const Interval &bounds, i64 sign) {
    const Values values = bounded_values(left, right, l2, bounds, sign);
    return reduction_at(left, l2, values.left) + reduction_at(right, l2, values.right) - whole;
}

// Gain of a split; bounds count where a column is constrained.
inline double split_gain(const Sum &left, const Sum &right, double whole, double l2, const Interval &bounds, i64 sign,
                         bool bounded) {
    return bounded ? bounded_gain(left, right, whole, l2, bounds, sign)
                   : reduction(left, l2) + reduction(right, l2) - whole;
}

// The bounds of the two children of a node: along a monotone column neither may pass the middle of their values.
inline void bound_children(const Sum &left, const Sum &right, double l2, const Interval &own, i64 sign, Interval &one,
                           Interval &two) {
    one = two = own;
    if (sign == 0)
        return;
    const Values values = bounded_values(left, right, l2, own, sign);
    const double middle = values.left + (values.right - values.left) / 2;
    (sign > 0 ? one.high : one.low) = middle;
    (sign > 0 ? two.low : two.high) = middle;
}

inline double whole_reduction(const Sum &total, const Limits &limits, const Interval &bounds, bool bounded) {
    return bounded ? reduction_at(total, limits.l2, bounds.clip(best_value(total, limits.l2)))
                   : reduction(total, limits.l2);
}

// Call `see(bin, left, right)` for every split of a column that leaves enough in both of its leaves.
template <class See> void each_split(const Sum *bins, i64 width, const Sum &total, double least, See see) {
    Sum left = {};
    for (i64 b = 0; b < width - 1; b++) {
        // the split behind an empty bin is the one before it
        if (empty(bins[b]))
            continue;
        left += bins[b];
        if (static_cast<double>(hessian(left)) < least)
            continue;
        const Sum right = total - left;
        if (static_cast<double>(hessian(right)) < least)
            break;
        see(b, left, right);
    }
}
