// The kernels of forests and of prediction, on threads of a GPU that one processor stands in for.
#include "random_draws.hpp"
#include "teams.cuh"

namespace predicting {
#include "predict_trees.cu"
}
namespace growing {
#include "grow_classes.cu"
#include "grow_several.cu"
#include "grow_single.cu"
}

extern "C" void predict_trees(predicting::Trees trees, predicting::Sums sums, const void *X, i64 rows, i64 width, i64 numbers,
                              i64 values, i64 tiled, i64 blocks, i64 threads, u64 seed) {
    emulated::run(blocks, static_cast<int>(threads), seed,
                  [&] { predicting::predict_trees(trees, sums, X, rows, width, numbers, values, tiled); });
}

#define GROW(name) \
    extern "C" void name(growing::Forest forest, i64 blocks, i64 threads, u64 seed) { \
        emulated::run(blocks, static_cast<int>(threads), seed, [&] { growing::name(forest); }); \
    }

GROW(grow_large_single)
GROW(grow_large_several)
GROW(grow_large_classes)
GROW(grow_small_single)
GROW(grow_small_several)
GROW(grow_small_classes)
