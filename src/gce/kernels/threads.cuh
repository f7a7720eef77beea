// Threads, warps and atomic additions of a GPU, by names that tests give another meaning: tests/emulated_threads.hpp.
#pragma once

#include "portable.hpp"

#if defined(__CUDACC_RTC__)

#define GCE_KERNEL extern "C" __global__
#define GCE_SHARED __shared__
#define GCE_PARAMETER const __grid_constant__
#define GCE_UNROLL _Pragma("unroll")
// Four rounds of a loop whose loads should overlap.
#define GCE_UNROLL_FOUR _Pragma("unroll 4")
// A phase of a kernel, with registers of its own: a kernel of one piece would spill them inside of its loops.
#define GCE_PHASE __noinline__

constexpr int LANES = 32;
// Threads of a block that grows trees; two such blocks share a multiprocessor.
constexpr int THREADS = 512;
#define GCE_BOUNDS __launch_bounds__(THREADS, 2)
// The same for kernels of other blocks: their threads, and how many of them share a multiprocessor.
#define GCE_BOUNDS_OF(threads, blocks) __launch_bounds__(threads, blocks)

inline int thread() { return threadIdx.x; }
inline int threads() { return blockDim.x; }
inline i64 block() { return blockIdx.x; }
inline i64 blocks() { return gridDim.x; }
inline void synchronise() { __syncthreads(); }
inline void fence() { __threadfence(); }
// While a thread waits for another block.
inline void spin() {}

inline u32 ballot(bool vote) { return __ballot_sync(~0u, vote); }
inline void synchronise_warp() { __syncwarp(); }
template <class T> inline T from_lane(T value, int lane) { return __shfl_sync(~0u, value, lane); }
template <class T> inline T from_below(T value, int by) { return __shfl_up_sync(~0u, value, by); }
template <class T> inline T from_across(T value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
inline int bits(u32 mask) { return __popc(mask); }
inline int lowest(u32 mask) { return __ffs(mask) - 1; }
inline int highest(u32 mask) { return 31 - __clz(mask); }

inline u32 add_atomic(u32 *to, u32 value) { return atomicAdd(to, value); }
inline void add_atomic(i64 *to, i64 value) { atomicAdd(reinterpret_cast<u64 *>(to), static_cast<u64>(value)); }
inline u64 add_atomic(u64 *to, u64 value) { return atomicAdd(to, value); }
// Of memory that no thread of the kernel writes.
template <class T> inline T read_only(const T *from) { return __ldg(from); }
inline void raise_atomic(u64 *to, u64 value) { atomicMax(to, value); }

// A word of shared memory. Written in PTX: from pointers the compiler computes addresses anew for each addition.
using Place = u32;
inline Place place_of(u32 *word) { return static_cast<u32>(__cvta_generic_to_shared(word)); }
inline Place behind(Place place, int words) { return place + 4 * words; }
// Add to the word a constant number of words behind a place; what was there.
template <int WORDS> inline u32 add_at(Place place, u32 value) {
    u32 before;
    asm volatile("atom.shared.add.u32 %0, [%1 + %3], %2;" : "=r"(before) : "r"(place), "r"(value), "n"(4 * WORDS) : "memory");
    return before;
}
// The same where something is to be added, without a branch.
template <int WORDS> inline void add_unless_0(Place place, u32 value) {
    asm volatile("{ .reg .pred any; setp.ne.u32 any, %1, 0; @any red.shared.add.u32 [%0 + %2], %1; }"
                 :
                 : "r"(place), "r"(value), "n"(4 * WORDS)
                 : "memory");
}

inline u32 read_fresh(const u32 *from) { return *static_cast<const volatile u32 *>(from); }
inline void write_fresh(u32 *to, u32 value) { *static_cast<volatile u32 *>(to) = value; }
inline u64 bits_of(double x) { return static_cast<u64>(__double_as_longlong(x)); }
inline double number_of(u64 bits) { return __longlong_as_double(static_cast<i64>(bits)); }

#else

// a test's stand-in for a GPU, which has the same names
#include "emulated_threads.hpp"

#endif

constexpr int WARPS = THREADS / LANES;

// Shared memory that phases of a kernel use one after another.
constexpr int SHARED_BYTES = 36 << 10;

inline u64 *shared_words() {
    GCE_SHARED u64 words[SHARED_BYTES / 8];
    return words;
}

template <class T> inline T &shared_memory() {
    static_assert(sizeof(T) <= SHARED_BYTES, "a block has no more");
    return *reinterpret_cast<T *>(shared_words());
}

inline int lane() { return thread() % LANES; }
inline int warp() { return thread() / LANES; }
// The lanes below one's own, as bits.
inline u32 below() { return (1u << lane()) - 1; }

inline i64 divided_up(i64 number, i64 by) { return (number + by - 1) / by; }

inline i64 sum_of_warp(i64 value) {
    for (int by = LANES / 2; by > 0; by /= 2)
        value += from_across(value, by);
    return value;
}

inline double largest_of_warp(double value) {
    for (int by = LANES / 2; by > 0; by /= 2)
        value = larger(value, from_across(value, by));
    return value;
}

// The sum of the values of a lane and of those below it.
inline i64 running_sum(i64 value) {
    for (int by = 1; by < LANES; by *= 2) {
        const i64 other = from_below(value, by);
        value += lane() >= by ? other : 0;
    }
    return value;
}

// What is before each number is what it becomes, by all threads of a block; the number behind the last is the sum.
inline void running_sums(i64 *numbers, i64 count) {
    GCE_SHARED i64 sums[WARPS + 1];
    const i64 each = divided_up(count, threads()), first = smaller(count, thread() * each), last = smaller(count, first + each);
    i64 own = 0;
    for (i64 i = first; i < last; i++)
        own += numbers[i];
    const i64 up_to = running_sum(own);
    if (lane() == LANES - 1)
        sums[warp()] = up_to;
    synchronise();
    i64 before = up_to - own;
    for (int w = 0; w < warp(); w++)
        before += sums[w];
    for (i64 i = first; i < last; i++) {
        const i64 number = numbers[i];
        numbers[i] = before;
        before += number;
    }
    if (thread() == threads() - 1)
        numbers[count] = before;
    synchronise();
}

// A reduction over the threads of a block, by values of their warps; every thread learns the result.
template <class T, class Combine> inline T over_block(T of_warp, Combine combine) {
    GCE_SHARED T values[WARPS];
    if (lane() == 0)
        values[warp()] = of_warp;
    synchronise();
    T all = values[0];
    for (int w = 1; w < WARPS; w++)
        all = combine(all, values[w]);
    synchronise();
    return all;
}

inline i64 sum_of_block(i64 value) {
    return over_block(sum_of_warp(value), [](i64 one, i64 two) { return one + two; });
}

inline double largest_of_block(double value) {
    return over_block(largest_of_warp(value), [](double one, double two) { return larger(one, two); });
}

inline i64 smallest_of_block(i64 value) {
    for (int by = LANES / 2; by > 0; by /= 2)
        value = smaller(value, from_across(value, by));
    return over_block(value, [](i64 one, i64 two) { return smaller(one, two); });
}
