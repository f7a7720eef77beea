// Parting the rows of a node, by exchanging those that are on the wrong side.
#pragma once

#include <algorithm>

#include "common.hpp"

// Move the rows that go left before the others.
//
// arrays: arrays of words, each stride after the one before; base: the first row's word in the first of them.
// rows: how many go left; goes_left(i) is asked once for each row, before it moves.
template <class GoesLeft>
void part_rows(u32 *base, i64 stride, i64 arrays, i64 size, i64 rows, const GoesLeft &goes_left) {
    constexpr int MOST = 256;
    u32 strays[2][MOST];
    int count[2] = {0, 0}, used[2] = {0, 0};
    i64 at[2] = {0, rows};
    const i64 end[2] = {rows, size};
    while (true) {
        for (int side = 0; side < 2; ++side)
            while (used[side] == count[side] && at[side] < end[side]) {
                used[side] = count[side] = 0;
                const i64 last = std::min(end[side], at[side] + MOST);
                for (i64 i = at[side]; i < last; ++i) {
                    // written always, kept if it counts: a branch would be guessed wrong half of the time
                    strays[side][count[side]] = static_cast<u32>(i);
                    count[side] += goes_left(i) == (side == 1);
                }
                at[side] = last;
            }
        const int pairs = std::min(count[0] - used[0], count[1] - used[1]);
        if (pairs == 0)
            return;
        for (i64 a = 0; a < arrays; ++a) {
            u32 *const own = base + a * stride;
            for (int p = 0; p < pairs; ++p)
                std::swap(own[strays[0][used[0] + p]], own[strays[1][used[1] + p]]);
        }
        used[0] += pairs;
        used[1] += pairs;
    }
}
