// Codes of the values of a column.
#pragma once

#include <algorithm>

#include "trees.hpp"

// Fewer rows than that are walked through trees one by one.
constexpr i64 FEW = 4;
// Edges of a column that a value is compared with one by one; more are searched.
constexpr i32 FEW_EDGES = 48;

// Codes of a column's values.
inline void code_column(const double *edges, i32 number, const double *GCE_RESTRICT value, i64 count,
                        std::int8_t *GCE_RESTRICT codes) {
    if (number <= FEW_EDGES && count >= FEW) {
        for (i64 r = 0; r < count; r++) codes[r] = -128;
        for (i32 q = 0; q < number; q++) {
            const double edge = edges[q];
            for (i64 r = 0; r < count; r++) codes[r] = static_cast<std::int8_t>(codes[r] + (edge < value[r]));
        }
        return;
    }
    // by halves, eight values side by side: whether an edge is below a value can only be guessed, and is not branched on
    for (i64 r = 0; r < count; r += 8) {
        u32 p[8] = {};
        const i64 some = std::min<i64>(8, count - r);
        for (u32 half = 128; half > 0; half /= 2)
            for (i64 i = 0; i < 8; i++) p[i] += half * (edges[p[i] + half - 1] < value[r + i]);
        for (i64 i = 0; i < some; i++) codes[r + i] = static_cast<std::int8_t>(static_cast<i32>(p[i]) - 128);
    }
}

// The three columns of codes of categories, `stride` apart.
inline void code_categories(const double *value, i64 count, i64 stride, std::int8_t *codes) {
    for (i64 r = 0; r < count; r++) {
        const u32 byte = byte_of(value[r]);
        codes[r] = static_cast<std::int8_t>(static_cast<i32>(byte) - 128);
        codes[stride + r] = static_cast<std::int8_t>(byte >> 3);
        codes[2 * stride + r] = static_cast<std::int8_t>(1u << (byte & 7));
    }
}
