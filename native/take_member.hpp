// Which member a thread works on next.
#pragma once

#include "portable.hpp"

// The member with the fewest rounds among those that no thread is at; -1 where there is none left. The caller has it until
// it sets `taken` to 0 again. A counter is a `std::atomic<i64>`.
template <class Counter> i64 take_member(Counter *taken, const Counter *done, i64 members, i64 count) {
    for (;;) {
        i64 found = -1, least = count;
        for (i64 m = 0; m < members; m++)
            if (!taken[m].load() && done[m].load() < least) found = m, least = done[m].load();
        i64 free = 0;
        if (found < 0) return found;
        if (!taken[found].compare_exchange_strong(free, 1)) continue;
        // another thread may have run its last round since the look at it: one more would be written beyond the arrays
        if (done[found].load() < count) return found;
        taken[found].store(0);
    }
}
