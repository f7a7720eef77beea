// Finding columns that are never both away from their most frequent bins, and the codes that they share.
#include <algorithm>
#include <numeric>
#include <vector>

#include "bundles.hpp"

namespace {

constexpr i64 MOST_CODES = 256;

// Columns of one bundle: the rows in which one of them is away from its most frequent bin.
struct Bundle {
    std::vector<u64> used;
    i64 rows = 0, codes = 1, number;

    Bundle(i64 n, i64 number) : used((n + 63) / 64), number(number) {}

    bool takes(const u32 *first, const u32 *last, i64 size, i64 n) const {
        if (codes + size > MOST_CODES || rows + (last - first) > n)
            return false;
        return std::none_of(first, last, [&](u32 row) { return used[row >> 6] >> (row & 63) & 1; });
    }

    void add(const u32 *first, const u32 *last, i64 size) {
        for (const u32 *row = first; row < last; row++)
            used[*row >> 6] |= u64(1) << (*row & 63);
        rows += last - first, codes += size;
    }
};

// Columns by their rows, rows[start[c]:start[c + 1]], and numbers of codes.
struct Candidates {
    const i64 *start;
    const u32 *rows;
    const i64 *sizes;
    i64 n, tries;

    // Put each column, in an order, into the newest of at most `tries` bundles that has none of its rows, or into a new one;
    // the number of bundles.
    i64 place(const std::vector<i64> &order, i64 *into) const {
        std::vector<Bundle> open;
        i64 numbers = 0;
        for (const i64 c : order) {
            const u32 *first = rows + start[c], *last = rows + start[c + 1];
            const i64 oldest = std::max<i64>(0, static_cast<i64>(open.size()) - tries);
            i64 found = static_cast<i64>(open.size()) - 1;
            while (found >= oldest && !open[found].takes(first, last, sizes[c], n))
                found--;
            if (found < oldest) {
                open.emplace_back(n, numbers++);
                found = static_cast<i64>(open.size()) - 1;
            }
            open[found].add(first, last, sizes[c]);
            into[c] = open[found].number;
            if (open[found].codes >= MOST_CODES)
                open.erase(open.begin() + found);
        }
        return numbers;
    }
};

} // namespace

// The most frequent bin of some columns of codes (blocks, n, 4), the first of equals, and the number of rows in other bins.
GCE_EXPORT int gce_most_common(const u8 *codes, i64 n, const i64 *columns, i64 count, i64 *common, i64 *away) {
    return guarded([&] {
        for (i64 c = 0; c < count; c++) {
            const u8 *own = codes + (columns[c] >> 2) * 4 * n + (columns[c] & 3);
            // neighbours are often equal, and a counter that was just written is not soon read
            i64 counts[4][MOST_CODES] = {};
            for (i64 i = 0; i < n; i++)
                counts[i & 3][own[4 * i]]++;
            for (i64 b = 0; b < MOST_CODES; b++)
                counts[0][b] += counts[1][b] + counts[2][b] + counts[3][b];
            common[c] = std::max_element(counts[0], counts[0] + MOST_CODES) - counts[0];
            away[c] = n - counts[0][common[c]];
        }
        return GCE_OK;
    });
}

// The rows of some columns that are not in the most frequent bin, and their bins, from start[c] on for column c.
GCE_EXPORT int gce_away(const u8 *codes, i64 n, const i64 *columns, i64 count, const i64 *common, const i64 *start,
                        u32 *rows, u8 *bins) {
    for (i64 c = 0; c < count; c++) {
        const u8 *own = codes + (columns[c] >> 2) * 4 * n + (columns[c] & 3);
        i64 at = start[c];
        for (i64 i = 0; i < n && at < start[c + 1]; i++) {
            // written always, kept if it counts: a branch would be guessed wrong often
            rows[at] = static_cast<u32>(i), bins[at] = own[4 * i];
            at += own[4 * i] != common[c];
        }
    }
    return GCE_OK;
}

// Which bundle each column is put into. Columns are taken as they stand, which keeps the flags of a category together, and
// those with most rows first, which fills bundles well where there are no categories; whichever needs fewer bundles.
GCE_EXPORT int gce_bundle(const i64 *start, const u32 *rows, const i64 *sizes, i64 count, i64 n, i64 tries, i64 *into) {
    return guarded([&] {
        const Candidates given{start, rows, sizes, n, tries};
        std::vector<i64> order(count), other(count);
        std::iota(order.begin(), order.end(), i64(0));
        const i64 bundles = given.place(order, into);
        std::stable_sort(order.begin(), order.end(),
                         [&](i64 a, i64 b) { return start[a + 1] - start[a] > start[b + 1] - start[b]; });
        if (given.place(order, other.data()) < bundles)
            std::copy(other.begin(), other.end(), into);
        return GCE_OK;
    });
}

// Write the codes of some columns, given by rows and bins, to stored ones, out (blocks, n, 4).
GCE_EXPORT int gce_fold(const i64 *columns, i64 count, const i64 *start, const u32 *rows, const u8 *bins, const i64 *store,
                        const i64 *offset, const i64 *common, i64 n, u8 *out) {
    for (i64 c = 0; c < count; c++) {
        const i64 column = columns[c], stored = store[column], usual = common[column];
        u8 *own = out + (stored >> 2) * 4 * n + (stored & 3);
        for (i64 i = start[c]; i < start[c + 1]; i++)
            own[4 * static_cast<i64>(rows[i])] =
                static_cast<u8>(usual < 0 ? bins[i] : offset[column] + bins[i] - (bins[i] > usual));
    }
    return GCE_OK;
}

// The bins of all columns, out (blocks, n, 4), from stored codes.
GCE_EXPORT int gce_unfold(const u8 *codes, i64 n, i64 columns, const i64 *widths, const i64 *store, const i64 *offset,
                          const i64 *common, u8 *out) {
    const Bundles bundles{store, offset, common, nullptr, 0};
    for (i64 c = 0; c < columns; c++) {
        u8 table[MOST_CODES];
        for (i64 code = 0; code < MOST_CODES; code++)
            table[code] = bundles.bin(c, widths[c], code);
        const u8 *from = codes + (store[c] >> 2) * 4 * n + (store[c] & 3);
        u8 *into = out + (c >> 2) * 4 * n + (c & 3);
        for (i64 i = 0; i < n; i++)
            into[4 * i] = table[from[4 * i]];
    }
    return GCE_OK;
}
