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

// Codes of a column of categories, from the bytes of a block of rows.
inline void code_categories(const Trees &of, const Column &column, const u8 *byte, i64 count, std::int8_t *codes) {
    const auto code = [&](u32 b) {
        const i32 own = column.coding == Coding::CATEGORY ? static_cast<i32>(b) : !of.sets[column.begin].has(b);
        return static_cast<std::int8_t>(own - 128);
    };
    if (count < MOST_BINS / 2) {
        for (i64 r = 0; r < count; r++) codes[r] = code(byte[r]);
        return;
    }
    std::int8_t table[MOST_BINS];
    for (u32 b = 0; b < MOST_BINS; b++) table[b] = code(b);
    for (i64 r = 0; r < count; r++) codes[r] = table[byte[r]];
}
