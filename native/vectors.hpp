// Vectors as wide as the processor's registers, with the few operations that the kernels need, each the same to the bit on
// every instruction set. Explicit, because what a compiler vectorises by itself keeps no sums in registers.
#pragma once

#include "common.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Sums over rows have as many partial sums as this, one per lane, whatever the width of a register.
template <class T> constexpr int LANES = 64 / sizeof(T);

// Where comparisons meet NaN or two zeros: `relu` and `clip` leave what they are given.
template <class T> struct Vector;

#if defined(__AVX512F__)

// Under a mask of all lanes: without one, gcc 12's own header reads a register that it has not initialised, and warns.
#define GCE_VECTOR(T, REGISTER, WIDTH, KIND, MASKED)                                                                     \
    template <> struct Vector<T> {                                                                                       \
        static constexpr int width = WIDTH;                                                                              \
        REGISTER v;                                                                                                      \
        static Vector all(T x) { return {_mm512_set1_##KIND(x)}; }                                                       \
        static Vector load(const T *p) { return {_mm512_loadu_##KIND(p)}; }                                              \
        void store(T *p) const { _mm512_storeu_##KIND(p, v); }                                                           \
        Vector operator+(Vector b) const { return {_mm512_add_##KIND(v, b.v)}; }                                         \
        Vector operator-(Vector b) const { return {_mm512_sub_##KIND(v, b.v)}; }                                         \
        Vector operator*(Vector b) const { return {_mm512_mul_##KIND(v, b.v)}; }                                         \
        Vector relu() const { return {_mm512_maskz_max_##KIND(-1, _mm512_setzero_##KIND(), v)}; }                        \
        Vector clip() const {                                                                                            \
            return {_mm512_maskz_max_##KIND(-1, all(-1).v, _mm512_maskz_min_##KIND(-1, all(1).v, v))};                   \
        }                                                                                                                \
        Vector where_positive(Vector t) const {                                                                          \
            return {_mm512_maskz_mov_##KIND(MASKED(t.v, _mm512_setzero_##KIND(), _CMP_GT_OQ), v)};                       \
        }                                                                                                                \
        Vector where_equal(Vector a, Vector b) const {                                                                   \
            return {_mm512_maskz_mov_##KIND(MASKED(a.v, b.v, _CMP_EQ_OQ), v)};                                           \
        }                                                                                                                \
    };                                                                                                                   \
    inline Vector<T> fma(Vector<T> a, Vector<T> b, Vector<T> c) { return {_mm512_fmadd_##KIND(a.v, b.v, c.v)}; }
GCE_VECTOR(double, __m512d, 8, pd, _mm512_cmp_pd_mask)
GCE_VECTOR(float, __m512, 16, ps, _mm512_cmp_ps_mask)
#undef GCE_VECTOR

// Units and vectors of rows that a product keeps in registers, and units and columns that an outer product does.
constexpr int PRODUCT_UNITS = 6, PRODUCT_VECTORS = 3, OUTER_UNITS = 4, OUTER_COLUMNS = 5;

#elif defined(__AVX2__)

#define GCE_VECTOR(T, REGISTER, WIDTH, KIND)                                                                             \
    template <> struct Vector<T> {                                                                                       \
        static constexpr int width = WIDTH;                                                                              \
        REGISTER v;                                                                                                      \
        static Vector all(T x) { return {_mm256_set1_##KIND(x)}; }                                                       \
        static Vector load(const T *p) { return {_mm256_loadu_##KIND(p)}; }                                              \
        void store(T *p) const { _mm256_storeu_##KIND(p, v); }                                                           \
        Vector operator+(Vector b) const { return {_mm256_add_##KIND(v, b.v)}; }                                         \
        Vector operator-(Vector b) const { return {_mm256_sub_##KIND(v, b.v)}; }                                         \
        Vector operator*(Vector b) const { return {_mm256_mul_##KIND(v, b.v)}; }                                         \
        Vector relu() const { return {_mm256_max_##KIND(_mm256_setzero_##KIND(), v)}; }                                  \
        Vector clip() const { return {_mm256_max_##KIND(all(-1).v, _mm256_min_##KIND(all(1).v, v))}; }                   \
        Vector where_positive(Vector t) const {                                                                          \
            return {_mm256_and_##KIND(_mm256_cmp_##KIND(t.v, _mm256_setzero_##KIND(), _CMP_GT_OQ), v)};                  \
        }                                                                                                                \
        Vector where_equal(Vector a, Vector b) const {                                                                   \
            return {_mm256_and_##KIND(_mm256_cmp_##KIND(a.v, b.v, _CMP_EQ_OQ), v)};                                      \
        }                                                                                                                \
    };                                                                                                                   \
    inline Vector<T> fma(Vector<T> a, Vector<T> b, Vector<T> c) { return {_mm256_fmadd_##KIND(a.v, b.v, c.v)}; }
GCE_VECTOR(double, __m256d, 4, pd)
GCE_VECTOR(float, __m256, 8, ps)
#undef GCE_VECTOR

constexpr int PRODUCT_UNITS = 4, PRODUCT_VECTORS = 3, OUTER_UNITS = 3, OUTER_COLUMNS = 4;

#else

template <class T> struct Vector {
    static constexpr int width = 16 / sizeof(T);
    T v[width];

    template <class Rule> static Vector each(Rule rule) {
        Vector out;
        for (int i = 0; i < width; i++) out.v[i] = rule(i);
        return out;
    }
    static Vector all(T x) {
        return each([=](int) { return x; });
    }
    static Vector load(const T *p) {
        return each([=](int i) { return p[i]; });
    }
    void store(T *p) const {
        for (int i = 0; i < width; i++) p[i] = v[i];
    }
    Vector operator+(Vector b) const {
        return each([&](int i) { return v[i] + b.v[i]; });
    }
    Vector operator-(Vector b) const {
        return each([&](int i) { return v[i] - b.v[i]; });
    }
    Vector operator*(Vector b) const {
        return each([&](int i) { return v[i] * b.v[i]; });
    }
    Vector relu() const {
        return each([&](int i) { return v[i] < 0 ? T(0) : v[i]; });
    }
    Vector clip() const {
        return each([&](int i) { return v[i] < -1 ? T(-1) : v[i] > 1 ? T(1) : v[i]; });
    }
    Vector where_positive(Vector t) const {
        return each([&](int i) { return t.v[i] > 0 ? v[i] : T(0); });
    }
    Vector where_equal(Vector a, Vector b) const {
        return each([&](int i) { return a.v[i] == b.v[i] ? v[i] : T(0); });
    }
};

template <class T> Vector<T> fma(Vector<T> a, Vector<T> b, Vector<T> c) {
    return Vector<T>::each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}

constexpr int PRODUCT_UNITS = 4, PRODUCT_VECTORS = 3, OUTER_UNITS = 3, OUTER_COLUMNS = 4;

#endif

// The sum of partial sums, halves first.
template <class T> T sum_of_lanes(const T *lanes) {
    T v[LANES<T> / 2];
    for (int i = 0; i < LANES<T> / 2; i++) v[i] = lanes[i] + lanes[i + LANES<T> / 2];
    for (int half = LANES<T> / 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++) v[i] += v[i + half];
    return v[0];
}
