// What trees may not do: leave the order of a column's values, or let columns interact that share no set.
#pragma once

#include "portable.hpp"

struct Interval {
    double low = -infinity(), high = infinity();
    double clip(double value) const { return smaller(larger(value, low), high); }
};

// Constraints of the columns of a table; either may be missing.
struct Constraints {
    const i64 *sign;  // -1, 0 or 1: monotonically decreasing, any, increasing
    const u64 *group; // (columns, words): the sets of columns, one bit each, that a column may interact in
    i64 words;        // 0 where there are no sets
    i64 monotone(i64 column) const { return sign ? sign[column] : 0; }

    // Whether a column is in one of the sets that are alive.
    bool allowed(i64 column, const u64 *alive) const {
        for (i64 w = 0; w < words; w++)
            if (group[column * words + w] & alive[w])
                return true;
        return words == 0;
    }

    // The sets that stay alive below a split of a column.
    void after(i64 column, const u64 *alive, u64 *into) const {
        for (i64 w = 0; w < words; w++)
            into[w] = group[column * words + w] & alive[w];
    }
};
