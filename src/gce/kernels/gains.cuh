// Gains of splits, by warps, and the choice among them: the same numbers, compared in the same order, as one thread would.
#pragma once

#include "fill.cuh"

// Call `see(base, visited, filled, gain)` with the bins from `base` on, one for each lane, in order: which of them each_split
// of split.hpp would call with, as bits, which hold anything, and the gain of the lane's own (0 where it is not visited).
template <class Load, class Gain, class See>
inline void each_gain(Load load, i64 width, const Sum &total, double least, Gain gain, See see) {
    Sum before = {};
    bool broken = false;
    for (i64 base = 0; base < width; base += LANES) {
        const i64 b = base + lane();
        const Sum own = b < width ? load(b) : Sum{};
        const Sum left = {before.g + running_sum(own.g), before.h + running_sum(own.h)}, right = total - left;
        before = {from_lane(left.g, LANES - 1), from_lane(left.h, LANES - 1)};
        const bool filled = b < width - 1 && !empty(own);
        const bool enough = filled && !(static_cast<double>(hessian(left)) < least);
        // the first split that leaves too little on its right ends the loop
        const u32 ends = ballot(enough && static_cast<double>(hessian(right)) < least);
        const bool visited = enough && !broken && (ends & (below() << 1 | 1u)) == 0;
        const double value = visited ? gain(left, right) : 0.0;
        see(base, ballot(visited), ballot(filled), value);
        broken = broken || ends != 0;
    }
}

// The first of those that are better by more than TIE than all chosen before it, over bins in order; by one warp.
inline void choose_bin(const double *gains, i64 width, Split &found, i64 column) {
    for (i64 base = 0; base < width - 1; base += LANES) {
        const i64 b = base + lane();
        const double own = b < width - 1 ? gains[b] : 0.0;
        u32 mask = ballot(own > found.gain * (1 + TIE));
        while (mask) {
            const int first = lowest(mask);
            found.gain = from_lane(own, first), found.column = column, found.bin = base + first;
            // those behind it only
            mask = ballot(lane() > first && own > found.gain * (1 + TIE));
        }
    }
}

class GainGrower : public HistogramGrower {
  public:
    using HistogramGrower::HistogramGrower;

  protected:
    // Calls each_gain for a column of a node; a histogram that has yet to lose its sibling's loses it.
    template <class See> void see_gains(const Node &node, i64 c, See see) const {
        const i64 width = start_[c + 1] - start_[c], column = index_[c], sign = constraints_.monotone(column);
        const bool bounded = constraints_.sign != nullptr;
        const Limits limits = state_->limits;
        const double whole = whole_reduction(node.sum, limits, node.bounds, bounded), l2 = limits.l2;
        Sum *bins = histogram(node.slot) + start_[c];
        const Sum *minus = node.minus < 0 ? nullptr : histogram(node.minus) + start_[c];
        const auto load = [&](i64 b) {
            if (minus)
                bins[b] -= minus[b];
            return bins[b];
        };
        const auto gain = [&](const Sum &left, const Sum &right) {
            return bounded ? bounded_gain(left, right, whole, l2, node.bounds, sign)
                           : reduction(left, l2) + reduction(right, l2) - whole;
        };
        each_gain(load, width, node.sum, limits.least, gain, see);
    }

    // The best split of columns whose gains, and the highest of each, are known: as if all were compared in order, because
    // a column without a gain that would be taken changes nothing. By one warp.
    Split choose(const double *gains, const double *highest) const {
        Split found;
        const Columns columns = this->columns();
        for (i64 base = 0; base < columns.count; base += LANES) {
            const i64 c = base + lane();
            const double own = c < columns.count ? highest[c] : 0.0;
            u32 mask = ballot(own > found.gain * (1 + TIE));
            while (mask) {
                const int first = lowest(mask);
                const i64 start = start_[base + first];
                choose_bin(gains + start, start_[base + first + 1] - start, found, base + first);
                mask = ballot(lane() > first && own > found.gain * (1 + TIE));
            }
        }
        return found;
    }

    // The sum of the bins that go left, by one warp.
    Sum sum_left(i64 slot, i64 column, i64 bin) const {
        const Sum *bins = histogram(slot) + start_[column];
        Sum left = {};
        for (i64 b = lane(); b <= bin; b += LANES)
            left += bins[b];
        return {sum_of_warp(left.g), sum_of_warp(left.h)};
    }
};
