// The kernels of grow_trees.cu, on threads of a GPU that one processor stands in for.
#include "emulated_threads.hpp"

#include "grow_trees.cu"

extern "C" void grow_scratch(Round round, i64 *bytes, i64, i64 threads, u64 seed) {
    emulated::run(1, static_cast<int>(threads), seed, [&] { gce_grow_scratch(round, bytes); });
}

extern "C" void grow_best_first(Round round, i64 blocks, i64 threads, u64 seed) {
    emulated::run(blocks, static_cast<int>(threads), seed, [&] { gce_grow_best_first(round); });
}

extern "C" void grow_symmetric(Round round, i64 blocks, i64 threads, u64 seed) {
    emulated::run(blocks, static_cast<int>(threads), seed, [&] { gce_grow_symmetric(round); });
}

extern "C" void scale_trees(Round round, const double *bound, i64 free, double *length, i64 blocks, i64 threads, u64 seed) {
    emulated::run(blocks, static_cast<int>(threads), seed, [&] { gce_scale_trees(round, bound, free, length); });
}

extern "C" void tree_outputs(Round round, const double *bound, double *outputs, i64 blocks, i64 threads, u64 seed) {
    emulated::run(blocks, static_cast<int>(threads), seed, [&] { gce_tree_outputs(round, bound, outputs); });
}
