// Random cuts of the columns of a node, and the ranges of codes that they are drawn from.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "code_set.hpp"

// Random cuts of several columns, found together: no search waits for another.
struct Cuts {
    explicit Cuts(i64 most) : column(most), code(most), size(most), missing(most), start(most), point(most), codes(most) {}

    // A code from low to below high, by a value drawn between theirs: codes alone would know ranks only.
    void add(i64 own, i64 from, const double *values, u32 low, u32 high, u32 drawn) {
        const double share = static_cast<double>(drawn) / 4294967296.0;
        column[count] = static_cast<i32>(own);
        start[count] = from;
        point[count] = values[from + low] + share * (values[from + high] - values[from + low]);
        code[count] = static_cast<i32>(low);
        size[count] = static_cast<i32>(high - low);
        missing[count] = NO_MISSING;
        widest = std::max(widest, size[count++]);
    }

    // Codes that go left.
    void add(i64 own, const CodeSet &left) {
        column[count] = static_cast<i32>(own);
        codes[count] = left;
        missing[count] = NO_ORDER;
        code[count] = size[count] = 0;
        start[count] = 0;
        point[count++] = 0;
    }

    // The largest codes whose values are at most the points, by bisection.
    void find(const double *values) {
        i32 *const GCE_RESTRICT codes = code.data(), *const GCE_RESTRICT sizes = size.data();
        for (; widest > 1; widest -= widest / 2)
            for (i64 i = 0; i < count; ++i) {
                const i32 half = sizes[i] >> 1;
                // no branch, which would be guessed wrong half of the time
                codes[i] += half & -static_cast<i32>(values[start[i] + codes[i] + half] <= point[i]);
                sizes[i] -= half;
            }
    }

    // What missing[i] says: there are none, they go left or right, or codes have no order.
    enum { NO_MISSING, TO_LEFT, TO_RIGHT, NO_ORDER };

    i64 count = 0;
    i32 widest = 0;
    std::vector<i32> column, code, size, missing;
    std::vector<i64> start;
    std::vector<double> point;
    std::vector<CodeSet> codes;
};

// LANES bytes that are compared at once, written so that the compiler cannot miss it.
template <int LANES> struct Bytes {
#if defined(__GNUC__)
    typedef u8 Lanes __attribute__((vector_size(LANES)));
    Lanes lane;
    void least(const Bytes &other) { lane = other.lane < lane ? other.lane : lane; }
    void most(const Bytes &other) { lane = other.lane > lane ? other.lane : lane; }
#else
    u8 lane[LANES];
    void least(const Bytes &other) {
        for (int l = 0; l < LANES; ++l)
            lane[l] = other.lane[l] < lane[l] ? other.lane[l] : lane[l];
    }
    void most(const Bytes &other) {
        for (int l = 0; l < LANES; ++l)
            lane[l] = other.lane[l] > lane[l] ? other.lane[l] : lane[l];
    }
#endif
    explicit Bytes(const u8 *from) { std::memcpy(&lane, from, LANES); }
    void keep(u8 *into) const { std::memcpy(into, &lane, LANES); }
};

// The least and the largest of every fourth byte, of at least LANES bytes.
template <int LANES> void range_in_lanes(const u8 *bytes, i64 count, u8 *least, u8 *most) {
    Bytes<LANES> low(bytes), high(bytes);
    for (i64 at = LANES; at < count; at += LANES) {
        // bytes at the end are looked at twice where lanes are left over
        const Bytes<LANES> here(bytes + std::min(at, count - LANES));
        low.least(here);
        high.most(here);
    }
    u8 ends[2][LANES];
    low.keep(ends[0]);
    high.keep(ends[1]);
    if constexpr (LANES > 4) {
        u8 other[LANES];
        range_in_lanes<LANES / 2>(ends[0], LANES, least, other);
        range_in_lanes<LANES / 2>(ends[1], LANES, other, most);
    } else {
        std::memcpy(least, ends[0], 4);
        std::memcpy(most, ends[1], 4);
    }
}
