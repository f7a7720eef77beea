// What the trees of one round are grown from, and the functions that grow them.
#pragma once

#include "tree.hpp"

// What gce/bases/trees/grower.py fills in; arrays are in C order.
struct Round {
    const u8 *codes; // (blocks, N, 4)
    i64 n_rows, n_columns;
    const i64 *widths;   // (d,)
    const double *D, *H; // (M, n, k), of the first n rows
    i64 members, n_train, outputs, trees; // k outputs of a member's T trees: k with one output each, or 1 with all
    const double *least, *l2; // (M,)
    const u64 *names, *keys;  // (N,) hashes of rows, (M,) random numbers
    double subsample;
    i64 columns_per_tree;
    const i64 *sign;
    const u64 *group; // (d, group_words)
    i64 group_words;
    Reduce reduce;
    i64 symmetric, leaves, depth, most_nodes, threads;
    i32 *feature, *cut, *left; // (M, T, most_nodes)
    double *value;             // (M, T, most_nodes, k / T)
    i64 *size;                 // (M, T)
    i32 *leaf;                 // (M, T, N)
    i64 *next;                 // the next tree that no thread has taken
    const u8 *missing, *categorical;          // (d,), or null where all columns are plain: see Kinds
    const double *smoothing, *rarest, *extra; // (M,): shares of all Hessians, see CategoryRule
    i64 few, most;
    u8 *missing_left; // (M, T, most_nodes)
    u64 *sets;        // (M, T, most_nodes, 4)
    Bundles bundles;  // of columns, where codes are shared by some
    i64 all_train;    // rows that are trained on, of all shards
    const double *largest; // (2, k) of one member: the largest gradients and Hessians of all shards, or null where not known

    i64 leaf_values() const { return outputs / trees; }

    // A tree's nodes, and where its rows' leaves are kept.
    Tree tree(i64 at, i32 *leaves) const {
        const i64 first = at * most_nodes;
        return {feature + first,          cut + first, left + first, value + first * leaf_values(), leaves,
                mixed() ? missing_left + first : nullptr, mixed() ? sets + 4 * first : nullptr};
    }

    bool mixed() const { return missing != nullptr; }
};

GCE_EXPORT void gce_grow_trees(const Round *round, void *scratch);
GCE_EXPORT void gce_scale_trees(const Round *round, const double *bound, i64 free, double *length, double *outputs,
                                i64 member);
