// Threads of a GPU, and what those of a warp tell each other.
//
// All lanes of a warp take part in what passes between them. Without NVRTC the test suite runs the same code on a processor.
#pragma once

#include "portable.hpp"

#if defined(__CUDACC_RTC__)
#define GCE_KERNEL extern "C" __global__ void
// Most threads of a block, and blocks of a multiprocessor that registers must suffice for.
#define GCE_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define GCE_SHARED(name) extern __shared__ u64 name[]

inline int thread_index() { return static_cast<int>(threadIdx.x); }
inline int thread_count() { return static_cast<int>(blockDim.x); }
inline i64 block_index() { return blockIdx.x; }
inline i64 block_count() { return gridDim.x; }
inline void sync_block() { __syncthreads(); }
inline void sync_warp() { __syncwarp(); }
inline u32 ballot(bool yes) { return __ballot_sync(0xFFFFFFFFu, yes); }
template <class T> inline T from_lane(T value, int lane) { return __shfl_sync(0xFFFFFFFFu, value, lane); }
template <class T> inline T from_other(T value, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, value, mask); }
inline u32 fetch_add(u32 *at, u32 by) { return atomicAdd(at, by); }
inline u64 fetch_add(u64 *at, u64 by) { return atomicAdd(at, by); }
inline int bits_set(u32 mask) { return __popc(mask); }
inline int first_bit(u32 mask) { return __ffs(static_cast<int>(mask)) - 1; }
// Of memory that no thread of the kernel writes.
template <class T> inline T load(const T *at) { return __ldg(at); }
#else
// not in the package: see tests/emulated.hpp
#include "emulated.hpp"
#endif

constexpr int WARP = 32;

inline int lane_index() { return thread_index() % WARP; }
