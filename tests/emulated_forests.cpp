// Kernels of GPUs, to be called on a processor: see emulated.py.
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

extern "C" void take_turns_backwards(i64 yes) { emulated::backwards = yes != 0; }

extern "C" void predict_trees(i64 blocks, i64 threads, i64 shared, predicting::Trees trees, predicting::Sums sums, const void *X,
                              i64 rows, i64 width, i64 numbers, i64 values, i64 tiled) {
    emulated::launch(blocks, threads, shared,
                     [&] { predicting::predict_trees(trees, sums, X, rows, width, numbers, values, tiled); });
}

#define GROW(name) \
    extern "C" void name(i64 blocks, i64 threads, i64 shared, growing::Forest forest) { \
        emulated::launch(blocks, threads, shared, [&] { growing::name(forest); }); \
    }

GROW(grow_large_single)
GROW(grow_large_several)
GROW(grow_large_classes)
GROW(grow_small_single)
GROW(grow_small_several)
GROW(grow_small_classes)
