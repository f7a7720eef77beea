// Threads of a GPU on a processor: each has a stack of its own, and they take turns wherever they wait for each other.
//
// What lanes of a warp tell each other passes through memory. A thread runs until it waits, from the first to the last or backwards:
// where it should have waited for another one's memory, and has not, one of the two orders finds the wrong numbers.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "portable.hpp"

#define GCE_KERNEL static void
#define GCE_SHARED(name) u64 *const name = emulated::block->shared.data()
#define GCE_BOUNDS(threads, blocks)

namespace emulated {

constexpr int LANES = 32;
constexpr std::size_t STACK = 1 << 16;

struct Barrier {
    int arrived = 0, passed = 0;
};

// Switching by a jump takes a tenth of the time of swapcontext, which asks the system for the signals that are blocked.
struct Fibre {
    ucontext_t context;
    jmp_buf place;
    bool begun = false;
    std::unique_ptr<char[]> stack;
    bool ended = false;
};

struct Block {
    i64 index, count;
    int threads, running = 0;
    std::vector<Fibre> fibres;
    std::vector<Barrier> warps;
    Barrier all;
    std::vector<u64> told, shared;
    std::function<void()> kernel;
    jmp_buf scheduler;
};

inline Block *block = nullptr;
inline bool backwards = false;

inline void wait_for_others() {
    if (_setjmp(block->fibres[block->running].place) == 0)
        _longjmp(block->scheduler, 1);
}

inline void resume(Fibre &fibre) {
    if (_setjmp(block->scheduler) != 0)
        return;
    if (fibre.begun)
        _longjmp(fibre.place, 1);
    fibre.begun = true;
    setcontext(&fibre.context);
}

inline void pass(Barrier &barrier, int count) {
    const int before = barrier.passed;
    if (++barrier.arrived == count) {
        barrier.arrived = 0;
        barrier.passed++;
    }
    while (barrier.passed == before)
        wait_for_others();
}

inline void pass_warp() { pass(block->warps[block->running / LANES], std::min(LANES, block->threads)); }

template <class T> T told_by(T value, int lane) {
    u64 *const told = &block->told[block->running / LANES * LANES];
    std::memcpy(told + block->running % LANES, &value, sizeof value);
    pass_warp();
    std::memcpy(&value, told + lane, sizeof value);
    pass_warp();
    return value;
}

inline void begin() {
    block->kernel();
    block->fibres[block->running].ended = true;
    wait_for_others();
}

inline void run_block(i64 index, i64 blocks, i64 threads, i64 shared, const std::function<void()> &kernel) {
    Block own;
    own.index = index, own.count = blocks, own.threads = static_cast<int>(threads), own.kernel = kernel;
    own.fibres.resize(threads), own.warps.resize((threads + LANES - 1) / LANES);
    // memory of a block is not zero when it begins
    own.told.resize(own.warps.size() * LANES), own.shared.assign(shared / 8 + 1, 0xA5A5A5A5A5A5A5A5ull);
    block = &own;
    for (Fibre &fibre : own.fibres) {
        fibre.stack.reset(new char[STACK]);
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.get();
        fibre.context.uc_stack.ss_size = STACK;
        makecontext(&fibre.context, begin, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (int turn = 0; turn < own.threads; turn++) {
            own.running = backwards ? own.threads - 1 - turn : turn;
            if (!own.fibres[own.running].ended) {
                any = true;
                resume(own.fibres[own.running]);
            }
        }
    }
}

// Run a kernel, block by block.
inline void launch(i64 blocks, i64 threads, i64 shared, const std::function<void()> &kernel) {
    for (i64 index = 0; index < blocks; index++)
        run_block(index, blocks, threads, shared, kernel);
}

} // namespace emulated

inline int thread_index() { return emulated::block->running; }
inline int thread_count() { return emulated::block->threads; }
inline i64 block_index() { return emulated::block->index; }
inline i64 block_count() { return emulated::block->count; }
inline void sync_block() { emulated::pass(emulated::block->all, emulated::block->threads); }
inline void sync_warp() { emulated::pass_warp(); }
template <class T> inline T from_lane(T value, int lane) { return emulated::told_by(value, lane); }
template <class T> inline T from_other(T value, int mask) {
    return emulated::told_by(value, emulated::block->running % emulated::LANES ^ mask);
}
inline u32 ballot(bool yes) {
    u32 found = 0;
    u64 *const told = &emulated::block->told[emulated::block->running / emulated::LANES * emulated::LANES];
    told[emulated::block->running % emulated::LANES] = yes;
    emulated::pass_warp();
    for (int lane = 0; lane < emulated::LANES; lane++)
        found |= static_cast<u32>(told[lane]) << lane;
    emulated::pass_warp();
    return found;
}
template <class T> inline T fetch_add(T *at, T by) {
    const T before = *at;
    *at += by;
    return before;
}
inline int bits_set(u32 mask) { return __builtin_popcount(mask); }
inline int first_bit(u32 mask) { return __builtin_ctz(mask); }
template <class T> inline T load(const T *at) { return *at; }
