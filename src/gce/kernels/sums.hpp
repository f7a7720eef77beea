// Gradients and Hessians as integers, their sums, and the binned rows that they belong to.
//
// A gradient becomes the nearest integer to D * 2^e, with e such that the largest becomes at most 2^30: the error of a sum
// over n rows is at most n * 2^-30 of the largest gradient, half of that on average, and sums of integers depend neither on
// their order nor on threads, devices or shards. The same holds for Hessians. Leaf values are computed from finer integers.
#pragma once

#include "portable.hpp"

// read and written at once
struct alignas(8) Quantised {
    i32 gradient, hessian;
};

#if defined(__GNUC__) && !defined(GCE_CUDA)
typedef i64 Sum __attribute__((vector_size(16)));
inline Sum widened(Quantised row) { return Sum{row.gradient, row.hessian}; }
inline i64 gradient(const Sum &sum) { return sum[0]; }
inline i64 hessian(const Sum &sum) { return sum[1]; }
inline bool empty(const Sum &sum) { return (sum[0] | sum[1]) == 0; }
#else
struct alignas(16) Sum {
    i64 g, h;
    Sum &operator+=(const Sum &other) { return g += other.g, h += other.h, *this; }
    Sum &operator-=(const Sum &other) { return g -= other.g, h -= other.h, *this; }
    Sum operator+(const Sum &other) const { return {g + other.g, h + other.h}; }
    Sum operator-(const Sum &other) const { return {g - other.g, h - other.h}; }
};
inline Sum widened(Quantised row) { return {row.gradient, row.hessian}; }
inline i64 gradient(const Sum &sum) { return sum.g; }
inline i64 hessian(const Sum &sum) { return sum.h; }
inline bool empty(const Sum &sum) { return (sum.g | sum.h) == 0; }
#endif

// Binned rows: blocks of four columns, one byte per value.
struct Codes {
    const u8 *bytes;
    i64 rows;

    const u32 *block(i64 column) const {
        return reinterpret_cast<const u32 *>(bytes + (column >> 2) * 4 * rows);
    }
    u8 at(i64 column, i64 row) const { return bytes[(column >> 2) * 4 * rows + 4 * row + (column & 3)]; }
    static int shift(i64 column) { return static_cast<int>(column & 3) * 8; }
};

// Which columns a tree may split, and where their bins begin in a histogram.
struct Columns {
    const i64 *index; // ascending
    const i64 *start; // one more than there are columns
    i64 count, bins;
};

// Numbers times a power of two, as integers; in two steps, because 2^1024 is infinite.
class Rounded {
  public:
    explicit Rounded(i64 exponent)
        : one_(ldexp(1.0, static_cast<int>(exponent / 2))), two_(ldexp(1.0, static_cast<int>(exponent - exponent / 2))) {}
    i64 operator()(double number) const { return llrint(number * one_ * two_); }

  private:
    double one_, two_;
};

// The exponent e for which 2^e times the largest number is at most 2^30.
inline i64 exponent_for(double largest) {
    int e = 0;
    frexp(largest, &e);
    return largest > 0 ? 30 - e : 0;
}

// How many powers of two finer than for histograms gradients can be rounded before sums over all rows overflow.
inline int finer(i64 rows) {
    int bits = 0;
    while ((rows >> bits) > 0)
        bits++;
    return 32 - bits;
}

// The columns that a tree may split, ascending: `chosen` of `columns`, drawn by a hash of the member and the output.
inline void sample_columns(u64 key, i64 output, i64 columns, i64 chosen, i64 *into) {
    u64 state = splitmix64(key) + static_cast<u64>(output);
    i64 count = 0;
    // each column is taken with the probability that leaves the right number of columns to be taken from the rest
    for (i64 c = 0; c < columns && count < chosen; c++) {
        state = splitmix64(state);
        if (state % static_cast<u64>(columns - c) < static_cast<u64>(chosen - count))
            into[count++] = c;
    }
}

// Whether a row is in the share `limit` * 2^-64 of all, by a hash of what it holds: equal rows are drawn together.
inline bool drawn(u64 name, u64 key, double limit) { return static_cast<double>(splitmix64(name ^ key)) < limit; }
