// Sums of several outputs at once, for trees with a value for each output in every leaf.
//
// What a row or a bin holds is side by side: k gradients, then k Hessians, as the integers of sums.hpp. All outputs share the
// powers of two that they are multiplied by, because gains are added up over them. A row's integers stay where they are when
// rows are parted: they are several, so that to find them takes no longer than to move them.
#pragma once

#include "tree.hpp"

// A split of a node or of a level; what goes left is added up again when it is made.
struct VectorSplit {
    double gain = 0;
    i64 column = -1; // position among the tree's columns
    i64 bin = 0;     // the last bin that goes left
};

// Columns of a block of four, with the places of their bins.
struct Block {
    const u32 *words;
    i64 *bins[4];
    int shift[4], columns;
};

// K: the number of outputs where the compiler knows it, else 0.
template <int K>
void add_vectors(const Block &block, const u32 *GCE_RESTRICT order, const i32 *GCE_RESTRICT rows, i64 n, i64 outputs) {
    const i64 width = 2 * (K ? K : outputs);
    for (i64 i = 0; i < n; i++) {
        const u32 row = order[i], word = block.words[row];
        const i32 *GCE_RESTRICT own = rows + row * width;
        for (int q = 0; q < block.columns; q++) {
            i64 *GCE_RESTRICT into = block.bins[q] + ((word >> block.shift[q]) & 255u) * width;
            for (i64 t = 0; t < width; t++)
                into[t] += own[t];
        }
    }
}

inline void add_vectors(const Block &block, const u32 *order, const i32 *rows, i64 n, i64 outputs) {
    switch (outputs) {
    case 2: return add_vectors<2>(block, order, rows, n, outputs);
    case 3: return add_vectors<3>(block, order, rows, n, outputs);
    case 4: return add_vectors<4>(block, order, rows, n, outputs);
    case 5: return add_vectors<5>(block, order, rows, n, outputs);
    case 6: return add_vectors<6>(block, order, rows, n, outputs);
    case 7: return add_vectors<7>(block, order, rows, n, outputs);
    case 8: return add_vectors<8>(block, order, rows, n, outputs);
    default: return add_vectors<0>(block, order, rows, n, outputs);
    }
}

// What a split gains in each output: with pointers that are known to be apart it becomes vector instructions.
inline void split_gains(const i64 *GCE_RESTRICT left_D, const i64 *GCE_RESTRICT left_H, const i64 *GCE_RESTRICT all_D,
                        const i64 *GCE_RESTRICT all_H, const double *GCE_RESTRICT l2, const double *GCE_RESTRICT whole,
                        i64 outputs, double *GCE_RESTRICT gain) {
    for (i64 j = 0; j < outputs; j++) {
        const double left = static_cast<double>(left_D[j]), right = static_cast<double>(all_D[j] - left_D[j]);
        const double h_left = static_cast<double>(left_H[j]) + l2[j];
        const double h_right = static_cast<double>(all_H[j] - left_H[j]) + l2[j];
        const double one = left * left / h_left, two = right * right / h_right;
        gain[j] = (h_left > 0 ? one : 0.0) + (h_right > 0 ? two : 0.0) - whole[j];
    }
}

// What growers of such trees share: the rows, their sums, and what a split gains.
class VectorGrower {
  public:
    // `trained`: how many rows there are, of which `given.rows` are learned from.
    VectorGrower(Arena &arena, const Training &given, i64 trained)
        : given_(given), k_(given.outputs), width_(2 * k_), order_(arena.take<u32>(given.n)), spare_(arena.take<u32>(given.n)),
          integers_(arena.take<i32>(trained * width_)), columns_(given.take_columns(arena)), left_(arena.take<i64>(width_)),
          term_(arena.take<double>(k_)), whole_(arena.take<double>(k_)), l2_(arena.take<double>(k_)) {}

  protected:
    i64 size() const { return columns_.bins * width_; } // of a histogram

    static i64 part_of(const i64 *sums, i64 first, i64 count) {
        i64 found = 0;
        for (i64 j = first; j < first + count; j++)
            found += sums[j];
        return found;
    }
    // Hessians of all outputs decide whether a leaf has enough rows.
    i64 hessians(const i64 *sums) const { return part_of(sums, k_, k_); }

    void reduce(i64 *sums, i64 count) const {
        if (given_.reduce_sums)
            given_.reduce_sums(sums, count, ADDED);
    }

    // Rows in their order and their integers; the sums of all.
    void quantise(i64 *total) {
        const Rounded by_D(given_.exponent_D), by_H(given_.exponent_H);
        std::fill(total, total + width_, 0);
        for (i64 i = 0; i < given_.n; i++) {
            const i64 row = order_[i] = given_.rows[i];
            i32 *own = integers_ + row * width_;
            for (i64 j = 0; j < k_; j++) {
                own[j] = static_cast<i32>(by_D(given_.D[row * k_ + j]));
                own[k_ + j] = static_cast<i32>(by_H(given_.H[row * k_ + j]));
            }
            for (i64 t = 0; t < width_; t++)
                total[t] += own[t];
        }
        reduce(total, width_);
    }

    // What leaves must have and what is added to them, from the sums of all rows.
    void set_limits(const i64 *total) {
        double all = 0;
        for (i64 j = 0; j < k_; j++) {
            const double own = static_cast<double>(total[k_ + j]);
            all += own, l2_[j] = given_.l2 * own;
        }
        least_ = SHORT * given_.least * all;
    }

    void fill_rows(i64 first, i64 last, i64 *histogram) const {
        std::memset(histogram, 0, sizeof(i64) * static_cast<size_t>(size()));
        const i64 n = last - first;
        share_columns(columns_, n * columns_.count * k_, given_.threads, [&](i64 c, i64 end) {
            while (c < end) {
                const i64 at = columns_.index[c] >> 2;
                Block block{given_.codes.block(4 * at), {}, {}, 0};
                for (; c < end && columns_.index[c] >> 2 == at; c++, block.columns++) {
                    block.bins[block.columns] = histogram + columns_.start[c] * width_;
                    block.shift[block.columns] = Codes::shift(columns_.index[c]);
                }
                add_vectors(block, order_ + first, integers_, n, k_);
            }
        });
        reduce(histogram, size());
    }

    // Rows [first, last) with those that go left first, each side in its order; where the right ones begin.
    i64 part(i64 column, i64 bin, i64 first, i64 last) {
        i64 low = first, high = 0;
        for (i64 i = first; i < last; i++) {
            const u32 row = order_[i];
            const i64 left = given_.codes.at(column, row) <= bin;
            order_[low] = row, spare_[high] = row;
            low += left, high += 1 - left;
        }
        std::copy(spare_, spare_ + high, order_ + low);
        return low;
    }

    // What the children of a node add up to.
    void child_sums(const i64 *histogram, const VectorSplit &split, const i64 *total, i64 *left, i64 *right) const {
        std::fill(left, left + width_, 0);
        const i64 *bins = histogram + columns_.start[split.column] * width_;
        for (i64 b = 0; b <= split.bin; b++)
            for (i64 t = 0; t < width_; t++)
                left[t] += bins[b * width_ + t];
        for (i64 t = 0; t < width_; t++)
            right[t] = total[t] - left[t];
    }

    double reduction_of(const i64 *sums, i64 j) const { return reduction(Sum{sums[j], sums[k_ + j]}, l2_[j]); }

    void begin_node(const i64 *total) const {
        for (i64 j = 0; j < k_; j++)
            whole_[j] = reduction_of(total, j);
    }

    // The sum over outputs, in their order, of what a split gains, behind `begin_node`.
    double gain(const i64 *left, const i64 *total) const {
        split_gains(left, left + k_, total, total + k_, l2_, whole_, k_, term_);
        double sum = 0;
        for (i64 j = 0; j < k_; j++)
            sum += term_[j];
        return sum;
    }

    bool empty_bin(const i64 *bin) const {
        i64 any = 0;
        for (i64 t = 0; t < width_; t++)
            any |= bin[t];
        return any == 0;
    }

    // Call `see(bin, gain)` for every split of a column that leaves enough in both of its leaves.
    template <class See> void each_gain(const i64 *bins, i64 count, const i64 *total, See see) const {
        const i64 all = hessians(total);
        i64 weight = 0;
        std::fill(left_, left_ + width_, 0);
        for (i64 b = 0; b < count - 1; b++) {
            const i64 *own = bins + b * width_;
            // the split behind an empty bin is the one before it
            if (empty_bin(own))
                continue;
            for (i64 t = 0; t < width_; t++)
                left_[t] += own[t];
            weight += hessians(own);
            if (static_cast<double>(weight) < least_)
                continue;
            if (static_cast<double>(all - weight) < least_)
                break;
            see(b, gain(left_, total));
        }
    }

    // Sums of a leaf's rows, rounded more finely, and their leaf.
    void finish_leaf(const Tree &tree, i64 leaf, i64 first, i64 last, i64 *sums) const {
        const i64 more = finer(given_.all_rows);
        const Rounded by_D(given_.exponent_D + more), by_H(given_.exponent_H + more);
        std::fill(sums, sums + width_, 0);
        for (i64 i = first; i < last; i++) {
            const i64 at = order_[i] * k_;
            for (i64 j = 0; j < k_; j++)
                sums[j] += by_D(given_.D[at + j]), sums[k_ + j] += by_H(given_.H[at + j]);
            tree.leaf[order_[i]] = static_cast<i32>(leaf);
        }
        reduce(sums, width_);
    }

    void leaf_values(const i64 *sums, double *value) const {
        for (i64 j = 0; j < k_; j++)
            value[j] = given_.scaled(best_value(Sum{sums[j], sums[k_ + j]}, l2_[j]));
    }

    Training given_;
    i64 k_, width_;
    u32 *order_, *spare_;
    i32 *integers_; // (trained, 2 k)
    Columns columns_;
    i64 *left_;
    double *term_, *whole_, *l2_;
    double least_ = 0;
};
