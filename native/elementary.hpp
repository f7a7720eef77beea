// exp, log and tanh, written out: libraries round them one way in a vector and another way at its end.
#pragma once

#include <cstring>

#include "common.hpp"

namespace elementary {

constexpr double LOG2E = 1.4426950408889634, LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
constexpr double SQRT_HALF = 0.70710678118654757;
// Beyond these exp is 0 and tanh is 1, to the last bit.
constexpr double NOTHING = -746.0, SURE = 22.0;

inline double from_bits(i64 bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// A whole number of small size as an integer, without a conversion that AVX2 lacks: it ends up in the last bits of a sum.
inline i64 whole(double n) {
    constexpr double shift = 6755399441055744.0;
    const double sum = n + shift;
    i64 bits, zero;
    std::memcpy(&bits, &sum, sizeof sum);
    std::memcpy(&zero, &shift, sizeof shift);
    return bits - zero;
}

// A power of two that is a normal number.
inline double power_of_two(double n) { return from_bits((whole(n) + 1023) << 52); }

// `n` of `exp(x) = 2^n (1 + p)`, for x from -746 to 50.
inline double exponent(double x) { return std::floor(x * LOG2E + 0.5); }

// `p` of the same.
inline double fraction(double x, double n) {
    const double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double tail = 1.0 / 6227020800.0;
    tail = tail * r + 1.0 / 479001600.0;
    tail = tail * r + 1.0 / 39916800.0;
    tail = tail * r + 1.0 / 3628800.0;
    tail = tail * r + 1.0 / 362880.0;
    tail = tail * r + 1.0 / 40320.0;
    tail = tail * r + 1.0 / 5040.0;
    tail = tail * r + 1.0 / 720.0;
    tail = tail * r + 1.0 / 120.0;
    tail = tail * r + 1.0 / 24.0;
    tail = tail * r + 1.0 / 6.0;
    tail = tail * r + 1.0 / 2.0;
    return r + r * r * tail;
}

// exp(x) for x <= 0; NaN stays NaN.
inline double exp(double x) {
    const double given = x > NOTHING ? x : NOTHING;
    const double n = exponent(given), p = fraction(given, n);
    // below 2^-1022 numbers are not normal, below 2^-1074 they are 0: both powers are exact, and so is their product
    const double normal = n > -1022.0 ? n : -1022.0;
    const double result = (1.0 + p) * (power_of_two(normal) * power_of_two(n - normal));
    return x == x ? result : x;
}

// exp(x) of any number, infinite beyond 710. One of the two factors is 1.
inline double exp_any(double x) {
    const double up = x > 0 ? (x < 710.0 ? x : 0.0) : 0.0;
    const double value = exp(x < 0 ? x : x == x ? 0.0 : x) / exp(-up);
    return x < 710.0 || x != x ? value : HUGE_VAL;
}

// tanh(x) from exp(2x) - 1; NaN stays NaN.
inline double tanh(double x) {
    const double size = std::fabs(x), given = 2.0 * (size < SURE ? size : SURE);
    const double n = exponent(given), p = fraction(given, n);
    const double power = power_of_two(n);
    const double less_one = power * p + (power - 1.0);
    const double unit = less_one / (less_one + 2.0);
    return x == x ? (x < 0 ? -unit : unit) : x;
}

// log(x) of a finite number.
inline double log(double x) {
    if (!(x > 0)) return x == 0 ? -HUGE_VAL : NAN;
    int e;
    double m = std::frexp(x, &e);
    if (m < SQRT_HALF) {
        m = 2.0 * m;
        e -= 1;
    }
    const double s = (m - 1.0) / (m + 1.0);
    double tail = 1.0 / 21;
    for (int i = 9; i >= 0; i--) tail = tail * (s * s) + 1.0 / (2 * i + 1);
    return e * LN2_HIGH + (2.0 * s * tail + e * LN2_LOW);
}

} // namespace elementary
