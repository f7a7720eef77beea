// Sums of gradients and Hessians by column and bin, and the rows of a tree in training.
#pragma once

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "common.hpp"
#include "sums.hpp"

template <int M>
void add_block(const u32 *GCE_RESTRICT words, const u32 *GCE_RESTRICT order, const Quantised *GCE_RESTRICT rows, i64 n,
               Sum *const *bins, const int *shift) {
    Sum *own[M];
    int by[M];
    for (int q = 0; q < M; q++)
        own[q] = bins[q], by[q] = shift[q];
    for (i64 i = 0; i < n; i++) {
        const u32 word = words[order[i]];
        const Sum row = widened(rows[i]);
        for (int q = 0; q < M; q++)
            own[q][(word >> by[q]) & 255u] += row;
    }
}

// Sums of some rows by column and bin, for columns [c, last) of a tree; `c` begins a block of four columns or is the first.
inline void fill_columns(Sum *histogram, const Codes &codes, const u32 *order, const Quantised *rows, i64 n,
                         const Columns &columns, i64 c, i64 last) {
    while (c < last) {
        const i64 block = columns.index[c] >> 2;
        Sum *bins[4] = {};
        int shift[4] = {}, own = 0;
        for (; c < last && columns.index[c] >> 2 == block; c++, own++)
            bins[own] = histogram + columns.start[c], shift[own] = Codes::shift(columns.index[c]);
        const u32 *words = codes.block(4 * block);
        switch (own) {
        case 1: add_block<1>(words, order, rows, n, bins, shift); break;
        case 2: add_block<2>(words, order, rows, n, bins, shift); break;
        case 3: add_block<3>(words, order, rows, n, bins, shift); break;
        default: add_block<4>(words, order, rows, n, bins, shift);
        }
    }
}

// Additions below which a second thread takes longer to start than it saves.
constexpr i64 WORTH_A_THREAD = i64(1) << 20;

// Call `run(first, last)` for parts of all columns, on several threads where so many additions are worth it.
template <class Run> void share_columns(const Columns &columns, i64 additions, i64 threads, Run run) {
    threads = std::max<i64>(1, std::min(threads, additions / WORTH_A_THREAD));
    std::vector<std::thread> others;
    i64 first = 0;
    for (i64 t = 1; t < threads && first < columns.count; t++) {
        i64 last = columns.count * t / threads;
        // a block of four columns is read by one thread
        while (last > first && last < columns.count && columns.index[last] >> 2 == columns.index[last - 1] >> 2)
            last++;
        if (last > first) {
            try {
                others.emplace_back(run, first, last);
            } catch (const std::system_error &) {
                // the system has no thread left: no exception may leave the library
                run(first, last);
            }
        }
        first = std::max(first, last);
    }
    run(first, columns.count);
    for (std::thread &other : others)
        other.join();
}

// Sums of some rows by column and bin; threads share the columns.
inline void fill(Sum *histogram, const Codes &codes, const u32 *order, const Quantised *rows, i64 n,
                 const Columns &columns, i64 threads) {
    std::memset(static_cast<void *>(histogram), 0, sizeof(Sum) * columns.bins);
    share_columns(columns, n * columns.count, threads, [&](i64 first, i64 last) {
        fill_columns(histogram, codes, order, rows, n, columns, first, last);
    });
}

// Rows of a tree in training, those of a node side by side.
struct Rows {
    u32 *order, *spare_order;
    Quantised *rows, *spare_rows;

    // Rows [first, last) with those that go left first, each side in its order; where the right ones begin.
    template <class GoesLeft> i64 part(const Codes &codes, i64 column, GoesLeft goes_left, i64 first, i64 last) {
        const u8 *bytes = codes.bytes + (column >> 2) * 4 * codes.rows + (column & 3);
        i64 low = first, high = 0;
        // both sides are written and one position moves on: a branch would be mispredicted half of the time
        for (i64 i = first; i < last; i++) {
            const u32 row = order[i];
            const Quantised own = rows[i];
            const i64 left = goes_left(bytes[4 * static_cast<i64>(row)]);
            order[low] = row, rows[low] = own;
            spare_order[high] = row, spare_rows[high] = own;
            low += left, high += 1 - left;
        }
        std::copy(spare_order, spare_order + high, order + low);
        std::copy(spare_rows, spare_rows + high, rows + low);
        return low;
    }
};
