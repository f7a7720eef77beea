// Trees of one round, one per member and output, in one launch: native/grow_trees.cpp on a GPU, to the bit.
#include "best_first.cuh"
#include "symmetric.cuh"

template <class Kind> inline void grow_all(const Round &round) {
    const i64 each = round.blocks / round.groups, group = block() / each;
    if (group >= round.groups)
        return;
    Group own(round.counters + group, block() % each, each);
    Arena arena(round.scratch + group * round.scratch_size);
    Kind grower(round, own, arena);
    for (i64 tree = group; tree < round.members * round.outputs; tree += round.groups) {
        grower.take(tree);
        grower.grow();
    }
}

// Launch `blocks` blocks that are all resident; scratch memory and counters are 0.
GCE_KERNEL void GCE_BOUNDS gce_grow_best_first(GCE_PARAMETER Round round) { grow_all<BestFirst>(round); }

GCE_KERNEL void GCE_BOUNDS gce_grow_symmetric(GCE_PARAMETER Round round) { grow_all<Symmetric>(round); }

// Bytes of memory that a group needs; launch one thread.
GCE_KERNEL void gce_grow_scratch(GCE_PARAMETER Round round, i64 *bytes) {
    Group nobody(nullptr, 0, 1);
    Arena arena(nullptr);
    if (round.symmetric)
        Symmetric(round, nobody, arena);
    else
        BestFirst(round, nobody, arena);
    *bytes = arena.used();
}

// Trees as atoms in units of the bound, a block for each member. Where only its direction counts (`free`), an atom is
// scaled until its farthest leaf reaches the bound: one step serves all of its outputs. `length` (M,) receives the scale.
GCE_KERNEL void GCE_BOUNDS gce_scale_trees(GCE_PARAMETER Round round, const double *bound, i64 free, double *length) {
    const i64 k = round.outputs, member = block();
    double farthest = 0;
    for (i64 j = 0; j < k; j++) {
        double *value = round.value + (member * k + j) * round.most_nodes;
        for (i64 i = thread(); i < round.size[member * k + j]; i += threads()) {
            value[i] /= bound[j];
            farthest = larger(farthest, fabs(value[i]));
        }
    }
    farthest = largest_of_block(farthest);
    const double by = free && farthest > 0 ? farthest : 1.0;
    for (i64 j = 0; j < k; j++) {
        double *value = round.value + (member * k + j) * round.most_nodes;
        for (i64 i = thread(); i < round.size[member * k + j]; i += threads())
            value[i] = smaller(larger(value[i] / by, -1.0), 1.0);
    }
    if (thread() == 0)
        length[member] = by;
}

// The outputs (M, N, k) of scaled trees.
GCE_KERNEL void GCE_BOUNDS gce_tree_outputs(GCE_PARAMETER Round round, const double *bound, double *outputs) {
    const i64 k = round.outputs, rows = round.n_rows;
    for (i64 tree = 0; tree < round.members * k; tree++) {
        const double *value = round.value + tree * round.most_nodes, most = bound[tree % k];
        const i32 *leaf = round.leaf + tree * rows;
        double *out = outputs + tree / k * rows * k + tree % k;
        for (i64 i = block() * threads() + thread(); i < rows; i += blocks() * threads())
            out[i * k] = most * value[leaf[i]];
    }
}
