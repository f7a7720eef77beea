// Columns that share one column of codes, because no row has two of them away from their most frequent bins.
//
// A stored column has the code 0 where all of its columns are at their most frequent bins, and behind it the other bins of
// each column, one column after another. The sums of a column's bins are those of its codes; that of its most frequent bin
// is the sum of all rows less the others, exactly, because sums are integers: trees are the same to the bit.
#pragma once

#include "arena.hpp"
#include "histogram.hpp"

struct Bundles {
    const i64 *store;  // (columns,): the stored column of each column; null where codes are stored by column
    const i64 *offset; // (columns,): the code of its first bin that is not the most frequent one
    const i64 *common; // (columns,): its most frequent bin; -1 where the stored column is its own, and codes are bins
    const i64 *widths; // (stored,): numbers of codes
    i64 count;         // stored columns

    bool any() const { return store != nullptr; }

    // The bin of a column, of so many bins, in a row with a stored code.
    u8 bin(i64 column, i64 width, i64 code) const {
        if (common[column] < 0)
            return static_cast<u8>(code);
        const i64 at = code - offset[column];
        return static_cast<u8>(at < 0 || at >= width - 1 ? common[column] : at + (at >= common[column]));
    }
};

// Binned rows whose columns share stored ones.
struct BundledCodes {
    Codes codes;
    const Bundles &bundles;
    const i64 *widths; // numbers of bins of all columns
    i64 rows = codes.rows;
    u8 at(i64 column, i64 row) const { return bundles.bin(column, widths[column], codes.at(bundles.store[column], row)); }
};

// The stored columns that hold a tree's columns, and their sums in one node.
struct Stored {
    Columns columns;
    const i64 *start; // (stored,): where the sums of each begin
    Sum *sums;
};

// Memory is reckoned without columns: it suffices for any that will be drawn.
inline Stored take_stored(Arena &arena, const Bundles &bundles, const i64 *columns, i64 n_columns) {
    i64 *index = arena.take<i64>(bundles.count), *begin = arena.take<i64>(bundles.count + 1), codes = 0;
    i64 *start = arena.take<i64>(bundles.count), count = 0, bins = 0;
    for (i64 s = 0; s < bundles.count; s++)
        codes += bundles.widths[s];
    Sum *sums = arena.take<Sum>(codes);
    if (!sums || !columns || bundles.count == 0)
        return {};
    std::fill(index, index + bundles.count, 0);
    for (i64 c = 0; c < n_columns; c++)
        index[bundles.store[columns[c]]] = 1;
    begin[0] = 0;
    for (i64 s = 0; s < bundles.count; s++) {
        if (!index[s])
            continue;
        // marks up to s have been read
        start[s] = bins, index[count] = s;
        begin[++count] = bins += bundles.widths[s];
    }
    return {{index, begin, count, bins}, start, sums};
}

// Sums of some rows by column and bin, as `fill` has them, of columns that share stored ones.
inline void fill_bundled(Sum *histogram, const Codes &codes, const u32 *order, const Quantised *rows, i64 n,
                         const Columns &columns, i64 threads, const Bundles &bundles, const Stored &stored) {
    if (columns.count == 0)
        return;
    fill(stored.sums, codes, order, rows, n, stored.columns, threads);
    Sum total = {};
    // each row has one code in any stored column
    for (i64 b = 0; b < stored.columns.start[1]; b++)
        total += stored.sums[b];
    for (i64 c = 0; c < columns.count; c++) {
        const i64 column = columns.index[c], width = columns.start[c + 1] - columns.start[c], common = bundles.common[column];
        const Sum *from = stored.sums + stored.start[bundles.store[column]] + bundles.offset[column];
        Sum *into = histogram + columns.start[c];
        if (common < 0) {
            std::copy(from, from + width, into);
            continue;
        }
        Sum rest = total;
        for (i64 b = 0; b < width; b++) {
            if (b == common)
                continue;
            into[b] = *from;
            rest -= *from++;
        }
        into[common] = rest;
    }
}
