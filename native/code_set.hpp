// A set of bins of a column, or of codes of categories.
#pragma once

#include "common.hpp"

constexpr i64 MOST_BINS = 256;

struct CodeSet {
    u64 word[4] = {};
    bool has(u32 code) const { return word[code >> 6] >> (code & 63) & 1; }
    void add(u32 code) { word[code >> 6] |= u64(1) << (code & 63); }
    void remove(u32 code) { word[code >> 6] &= ~(u64(1) << (code & 63)); }
    bool none() const { return (word[0] | word[1] | word[2] | word[3]) == 0; }

    i64 count() const {
        i64 found = 0;
        for (u64 left : word)
            for (; left; left &= left - 1)
                found++;
        return found;
    }
};
