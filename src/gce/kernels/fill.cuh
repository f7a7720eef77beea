// Histograms: sums of rows by column and bin, in the shared memory of a block and then in global memory.
#pragma once

#include "rows.cuh"

constexpr int CODES = 256;

// 64-bit sums as two words: additions of words are what shared memory does, and sums of integers have no order.
inline void add_shared(u32 *low, u32 *high, i64 value) {
    const u32 own = static_cast<u32>(value), before = add_atomic(low, own);
    const u32 above = static_cast<u32>(value >> 32) + (before + own < own);
    // a negative number that does not borrow adds nothing to the upper word
    if (above)
        add_atomic(high, above);
}

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
        // of each column: words of gradients, lower and upper, and of Hessians
        u32 (&words)[4][4][CODES] = shared_memory<u32[4][4][CODES]>();
        for (int i = thread(); i < 4 * 4 * CODES; i += threads())
            words[i / (4 * CODES)][i / CODES % 4][i % CODES] = 0;
        synchronise();
        const int own = static_cast<int>(last - c);
        int shift[4], place[4];
        GCE_UNROLL
        for (int q = 0; q < 4; q++) {
            const Narrow narrow = of_column(smaller(c + q, last - 1));
            shift[q] = narrow.shift, place[q] = narrow.first();
        }
        const u32 *codes = codes_.block(index_[c]);
        for (i64 i = thread(); i < n; i += AHEAD * threads()) {
            u32 word[AHEAD];
            Quantised row[AHEAD];
            GCE_UNROLL
            for (int a = 0; a < AHEAD; a++) {
                const i64 at = smaller(i + a * threads(), n - 1);
                word[a] = codes[order[at]], row[a] = rows[at];
            }
            GCE_UNROLL
            for (int a = 0; a < AHEAD; a++) {
                if (i + a * threads() >= n)
                    break;
                GCE_UNROLL
                for (int q = 0; q < 4; q++) {
                    if (q >= own)
                        break;
                    const int to = place[q] + ((word[a] >> shift[q]) & 255u);
                    add_shared(&words[q][0][to], &words[q][1][to], row[a].gradient);
                    add_shared(&words[q][2][to], &words[q][3][to], row[a].hessian);
                }
            }
        }
        synchronise();
        for (int i = thread(); i < own * CODES; i += threads())
            write_bin(into, words[i / CODES], c + i / CODES, i % CODES);
        synchronise();
    }

    Narrow of_column(i64 c) const { return Narrow(index_[c], start_[c + 1] - start_[c]); }

    void write_bin(Sum *into, const u32 (*words)[CODES], i64 c, int bin) const {
        if (bin >= start_[c + 1] - start_[c])
            return;
        const Narrow narrow = of_column(c);
        u64 gradient = 0, hessian = 0;
        for (int copy = 0; copy < narrow.copies; copy++) {
            const int at = copy << narrow.log_width | bin;
            gradient += static_cast<u64>(words[1][at]) << 32 | words[0][at];
            hessian += static_cast<u64>(words[3][at]) << 32 | words[2][at];
        }
        Sum &sum = into[start_[c] + bin];
        if (gradient)
            add_atomic(&sum.g, static_cast<i64>(gradient));
        if (hessian)
            add_atomic(&sum.h, static_cast<i64>(hessian));
    }
};
