// Histograms: sums of rows by column and bin, in the shared memory of a block and then in global memory.
#pragma once

#include "rows.cuh"

constexpr int CODES = 256;

// Words of a column's sums: of gradients, lower and upper, and of Hessians, 256 places each.
constexpr int COLUMN_WORDS = 4 * CODES;

// What is to be added to the upper word of a sum, by what the lower one was before: mostly 0, for negative numbers as well.
inline u32 carried(i32 value, u32 before) {
    const u32 own = static_cast<u32>(value);
    return static_cast<u32>(value >> 31) + (before + own < own);
}

// Add a row to M columns in shared memory: sums of 64 bits as two words, because words are what it adds. All lower words
// first: none of these additions waits for another.
template <int M, int Q = 0> struct AddRow {
    static void add(const Place (&place)[M], const int (&shift)[M], u32 word, Quantised row) {
        const Place at = behind(place[Q], (word >> shift[Q]) & 255u);
        const u32 gradient = add_at<Q * COLUMN_WORDS>(at, static_cast<u32>(row.gradient));
        const u32 hessian = add_at<Q * COLUMN_WORDS + 2 * CODES>(at, static_cast<u32>(row.hessian));
        AddRow<M, Q + 1>::add(place, shift, word, row);
        add_unless_0<Q * COLUMN_WORDS + CODES>(at, carried(row.gradient, gradient));
        add_unless_0<Q * COLUMN_WORDS + 3 * CODES>(at, carried(row.hessian, hessian));
    }
};

template <int M> struct AddRow<M, M> {
    static void add(const Place (&)[M], const int (&)[M], u32, Quantised) {}
};

// Columns of one block of four, each with 256 places: a column of few bins has its bins several times, for lanes that
// would wait for each other.
struct Narrow {
    int shift, log_width, copies;

    Narrow() = default;
    Narrow(i64 column, i64 width) : shift(Codes::shift(column)), log_width(0) {
        while ((1 << log_width) < width)
            log_width++;
        copies = smaller(CODES >> log_width, LANES);
    }

    int first() const { return (thread() & (copies - 1)) << log_width; }
};

class HistogramGrower : public RowGrower {
  public:
    using RowGrower::RowGrower;

  protected:
    Sum *histogram(i64 slot) const { return histograms_ + slot * columns().bins; }

    // Histograms of nodes `small_`, which are 0 so far.
    void fill(const Node *nodes, i64 segments) const {
        const i64 each = state_->rows_per_fill, column_blocks = state_->column_blocks;
        for (i64 item = group_.block(); item < fill_task_[segments] * column_blocks; item += group_.blocks()) {
            // blocks side by side read the same rows
            const i64 part = item / column_blocks, of = item % column_blocks;
            const i64 s = segment_of(fill_task_, segments, part);
            const Node &node = nodes[small_[s]];
            const i64 first = node.first + (part - fill_task_[s]) * each, last = smaller(node.last, first + each);
            fill_part(histogram(node.slot), order(node.buffer) + first, rows(node.buffer) + first, last - first,
                      column_block_[of], column_block_[of + 1]);
        }
    }

    Sum *histograms_ = nullptr;

  private:
    GCE_PHASE void fill_part(Sum *into, const u32 *order, const Quantised *rows, i64 n, i64 c, i64 last) const {
        u32 (&words)[4 * COLUMN_WORDS] = shared_memory<u32[4 * COLUMN_WORDS]>();
        for (int i = thread(); i < 4 * COLUMN_WORDS; i += threads())
            words[i] = 0;
        synchronise();
        switch (last - c) {
        case 1: add_rows<1>(words, order, rows, n, c); break;
        case 2: add_rows<2>(words, order, rows, n, c); break;
        case 3: add_rows<3>(words, order, rows, n, c); break;
        default: add_rows<4>(words, order, rows, n, c);
        }
        synchronise();
        for (int i = thread(); i < (last - c) * CODES; i += threads())
            write_bin(into, words + i / CODES * COLUMN_WORDS, c + i / CODES, i % CODES);
        synchronise();
    }

    template <int M> void add_rows(u32 *words, const u32 *order, const Quantised *rows, i64 n, i64 c) const {
        Place place[M];
        int shift[M];
        GCE_UNROLL
        for (int q = 0; q < M; q++) {
            const Narrow narrow = of_column(c + q);
            shift[q] = narrow.shift, place[q] = behind(place_of(words), narrow.first());
        }
        const u32 *codes = codes_.block(index_[c]);
        i64 i = thread();
        for (; i + (AHEAD - 1) * threads() < n; i += AHEAD * threads()) {
            u32 word[AHEAD];
            Quantised row[AHEAD];
            GCE_UNROLL
            for (int a = 0; a < AHEAD; a++)
                word[a] = order[i + a * threads()], row[a] = rows[i + a * threads()];
            GCE_UNROLL
            for (int a = 0; a < AHEAD; a++)
                word[a] = codes[word[a]];
            GCE_UNROLL
            for (int a = 0; a < AHEAD; a++)
                AddRow<M>::add(place, shift, word[a], row[a]);
        }
        for (; i < n; i += threads())
            AddRow<M>::add(place, shift, codes[order[i]], rows[i]);
    }

    Narrow of_column(i64 c) const { return Narrow(index_[c], start_[c + 1] - start_[c]); }

    void write_bin(Sum *into, const u32 *words, i64 c, int bin) const {
        if (bin >= start_[c + 1] - start_[c])
            return;
        const Narrow narrow = of_column(c);
        u64 gradient = 0, hessian = 0;
        for (int copy = 0; copy < narrow.copies; copy++) {
            const int at = copy << narrow.log_width | bin;
            gradient += static_cast<u64>(words[CODES + at]) << 32 | words[at];
            hessian += static_cast<u64>(words[3 * CODES + at]) << 32 | words[2 * CODES + at];
        }
        Sum &sum = into[start_[c] + bin];
        if (gradient)
            add_atomic(&sum.g, static_cast<i64>(gradient));
        if (hessian)
            add_atomic(&sum.h, static_cast<i64>(hessian));
    }
};
