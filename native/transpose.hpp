// Rows turned into the columns of a tile: what takes most time in a mini-batch, done in registers.
#pragma once

#include "vectors.hpp"

// Rows and columns of a block that is turned at once.
template <class T> constexpr int SIDE = 32 / sizeof(T);

// Numbers `at` to `at + SIDE` of SIDE rows, written to columns that lie `stride` apart.
#if defined(__AVX2__)

inline void turn_block(const double *const *rows, i64 at, double *to, i64 stride) {
    const __m256d a = _mm256_loadu_pd(rows[0] + at), b = _mm256_loadu_pd(rows[1] + at);
    const __m256d c = _mm256_loadu_pd(rows[2] + at), d = _mm256_loadu_pd(rows[3] + at);
    const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
    const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab0, cd0, 0x20));
    _mm256_storeu_pd(to + stride, _mm256_permute2f128_pd(ab1, cd1, 0x20));
    _mm256_storeu_pd(to + 2 * stride, _mm256_permute2f128_pd(ab0, cd0, 0x31));
    _mm256_storeu_pd(to + 3 * stride, _mm256_permute2f128_pd(ab1, cd1, 0x31));
}

inline void turn_block(const float *const *rows, i64 at, float *to, i64 stride) {
    __m256 half[8];
    // rows i and i + 4 are the halves of a register: what is left are two blocks of 4 x 4, side by side
    for (int i = 0; i < 4; i++)
        for (int part = 0; part < 2; part++) {
            const __m256 upper = _mm256_castps128_ps256(_mm_loadu_ps(rows[i] + at + 4 * part));
            half[4 * part + i] = _mm256_insertf128_ps(upper, _mm_loadu_ps(rows[i + 4] + at + 4 * part), 1);
        }
    for (int part = 0; part < 2; part++, to += 4 * stride) {
        const __m256 *q = half + 4 * part;
        const __m256 ab0 = _mm256_unpacklo_ps(q[0], q[1]), ab1 = _mm256_unpackhi_ps(q[0], q[1]);
        const __m256 cd0 = _mm256_unpacklo_ps(q[2], q[3]), cd1 = _mm256_unpackhi_ps(q[2], q[3]);
        _mm256_storeu_ps(to, _mm256_shuffle_ps(ab0, cd0, 0x44));
        _mm256_storeu_ps(to + stride, _mm256_shuffle_ps(ab0, cd0, 0xEE));
        _mm256_storeu_ps(to + 2 * stride, _mm256_shuffle_ps(ab1, cd1, 0x44));
        _mm256_storeu_ps(to + 3 * stride, _mm256_shuffle_ps(ab1, cd1, 0xEE));
    }
}

#else

template <class T> void turn_block(const T *const *rows, i64 at, T *to, i64 stride) {
    for (int i = 0; i < SIDE<T>; i++)
        for (int q = 0; q < SIDE<T>; q++) to[i * stride + q] = rows[q][at + i];
}

#endif

// `to_ir = row(r)_i` for `count` rows of `columns` numbers; columns of the result lie `stride` apart.
template <class T, class Row> void turn(Row row, i64 count, i64 columns, T *to, i64 stride) {
    constexpr i64 side = SIDE<T>;
    const i64 whole = columns / side * side;
    i64 r = 0;
    for (; r + side <= count; r += side) {
        const T *rows[side];
        for (i64 q = 0; q < side; q++) rows[q] = row(r + q);
        for (i64 i = 0; i < whole; i += side) turn_block(rows, i, to + i * stride + r, stride);
        for (i64 i = whole; i < columns; i++)
            for (i64 q = 0; q < side; q++) to[i * stride + r + q] = rows[q][i];
    }
    for (; r < count; r++)
        for (i64 i = 0; i < columns; i++) to[i * stride + r] = row(r)[i];
}
