// Blocks, warps and threads of a GPU on one processor: kernels of gce/kernels run here as they are, for tests.
//
// Every thread is a context of its own, and which of those that can go on does so is drawn at random: what depends on the
// order of threads differs from one seed to the next. Threads that wait for each other at different lines end the program.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "portable.hpp"

#define GCE_KERNEL static
// one section holds what threads of a block share: it is put aside when another block goes on
#define GCE_SHARED __attribute__((section("gce_shared"))) static
#define GCE_PARAMETER const
#define GCE_UNROLL
#define GCE_UNROLL_FOUR
#define GCE_PHASE
#define GCE_BOUNDS
#define GCE_BOUNDS_OF(threads, blocks)

#ifndef GCE_LANES
#define GCE_LANES 4
#endif
#ifndef GCE_THREADS
#define GCE_THREADS 8
#endif

constexpr int LANES = GCE_LANES;
constexpr int THREADS = GCE_THREADS;

extern "C" char __start_gce_shared[], __stop_gce_shared[];

namespace emulated {

constexpr std::size_t STACK = 256 << 10;

struct Barrier {
    int arrived = 0;
    int line = 0;
    u64 generation = 0;
};

struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    int number = 0;
    bool done = false, spinning = false;
    const Barrier *waits = nullptr;
    u64 generation = 0, exchanges = 0;

    bool ready() const { return !done && !spinning && (waits == nullptr || waits->generation != generation); }
};

struct Warp {
    Barrier barrier;
    u64 slots[2][LANES];
};

struct Block {
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    Barrier barrier;
    std::vector<char> shared;
    int running = 0;
};

struct Launch {
    ucontext_t home;
    std::vector<Block> blocks;
    int block = 0;
    Thread *thread = nullptr;
    std::function<void()> kernel;
    u64 dice = 0;

    Block &own() { return blocks[block]; }
    u64 draw(u64 below) { return (dice = splitmix64(dice)) % below; }
};

inline Launch launch;

[[noreturn]] inline void fail(const char *what) { std::fprintf(stderr, "%s\n", what), std::abort(); }

inline void leave() { swapcontext(&launch.thread->context, &launch.home); }

inline void wait(Barrier &barrier, int everyone, int line) {
    if (barrier.arrived > 0 && barrier.line != line)
        fail("threads wait for each other in different places");
    barrier.line = line;
    if (++barrier.arrived == everyone) {
        barrier.arrived = 0, barrier.generation++;
        return;
    }
    launch.thread->waits = &barrier, launch.thread->generation = barrier.generation;
    leave();
}

// A value of each lane, known to all lanes of the warp.
template <class T> inline const u64 *exchange(T value, int line) {
    static_assert(sizeof(T) <= 8, "a register");
    Warp &warp = launch.own().warps[launch.thread->number / LANES];
    // two sets of slots: one is read while the next exchange writes the other
    u64 *slots = warp.slots[launch.thread->exchanges++ % 2];
    slots[launch.thread->number % LANES] = 0;
    std::memcpy(slots + launch.thread->number % LANES, &value, sizeof value);
    wait(warp.barrier, LANES, line);
    return slots;
}

template <class T> inline T read(u64 slot) {
    T out;
    return std::memcpy(&out, &slot, sizeof out), out;
}

inline void begin() {
    launch.kernel();
    launch.thread->done = true, launch.own().running--;
    leave();
}

inline void make_block(Block &block, int threads) {
    block.threads = std::vector<Thread>(threads);
    block.warps = std::vector<Warp>((threads + LANES - 1) / LANES);
    block.shared.assign(__stop_gce_shared - __start_gce_shared, 'x');
    block.running = threads;
    for (int t = 0; t < threads; t++) {
        Thread &thread = block.threads[t];
        thread.number = t, thread.stack.reset(new char[STACK]);
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get(), thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, begin, 0);
    }
}

// Run threads of a block until none can go on; whether any could.
inline bool run_block(Block &block) {
    bool any = false;
    std::memcpy(__start_gce_shared, block.shared.data(), block.shared.size());
    for (Thread &thread : block.threads)
        thread.spinning = false;
    for (;;) {
        std::vector<Thread *> ready;
        for (Thread &thread : block.threads)
            if (thread.ready())
                ready.push_back(&thread);
        if (ready.empty())
            break;
        any = true;
        launch.thread = ready[launch.draw(ready.size())], launch.thread->waits = nullptr;
        swapcontext(&launch.home, &launch.thread->context);
    }
    std::memcpy(block.shared.data(), __start_gce_shared, block.shared.size());
    return any;
}

inline void run(i64 blocks, int threads, u64 seed, std::function<void()> kernel) {
    launch.blocks.clear();
    launch.blocks.resize(blocks);
    launch.kernel = std::move(kernel), launch.dice = seed;
    for (Block &block : launch.blocks)
        make_block(block, threads);
    for (i64 idle = 0, left = blocks; left > 0;) {
        launch.block = static_cast<int>(launch.draw(blocks));
        if (launch.own().running == 0)
            continue;
        run_block(launch.own());
        left -= launch.own().running == 0;
        idle = launch.own().running == 0 ? 0 : idle + 1;
        if (idle > 1000000)
            fail("blocks wait for each other for ever");
    }
}

} // namespace emulated

inline int thread() { return emulated::launch.thread->number; }
inline int threads() { return static_cast<int>(emulated::launch.own().threads.size()); }
inline i64 block() { return emulated::launch.block; }
inline i64 blocks() { return static_cast<i64>(emulated::launch.blocks.size()); }
inline void fence() {}
inline void spin() { emulated::launch.thread->spinning = true, emulated::leave(); }
inline void synchronise(int line = __builtin_LINE()) { emulated::wait(emulated::launch.own().barrier, threads(), line); }
inline void synchronise_warp(int line = __builtin_LINE()) { emulated::exchange(0, line); }

inline u32 ballot(bool vote, int line = __builtin_LINE()) {
    const u64 *votes = emulated::exchange(vote, line);
    u32 mask = 0;
    for (int l = 0; l < LANES; l++)
        mask |= static_cast<u32>(votes[l] & 1) << l;
    return mask;
}
template <class T> inline T from_lane(T value, int lane, int line = __builtin_LINE()) {
    return emulated::read<T>(emulated::exchange(value, line)[lane]);
}
template <class T> inline T from_below(T value, int by, int line = __builtin_LINE()) {
    const int own = thread() % LANES;
    return emulated::read<T>(emulated::exchange(value, line)[own < by ? own : own - by]);
}
template <class T> inline T from_across(T value, int mask, int line = __builtin_LINE()) {
    return emulated::read<T>(emulated::exchange(value, line)[thread() % LANES ^ mask]);
}
inline int bits(u32 mask) { return __builtin_popcount(mask); }
inline int lowest(u32 mask) { return __builtin_ctz(mask); }
inline int highest(u32 mask) { return 31 - __builtin_clz(mask); }

inline u32 add_atomic(u32 *to, u32 value) { return *to += value, *to - value; }
inline void add_atomic(i64 *to, i64 value) { *to += value; }
inline u64 add_atomic(u64 *to, u64 value) { return *to += value, *to - value; }
template <class T> inline T read_only(const T *from) { return *from; }
inline void raise_atomic(u64 *to, u64 value) { *to = larger(*to, value); }

using Place = u32 *;
inline Place place_of(u32 *word) { return word; }
inline Place behind(Place place, int words) { return place + words; }
template <int WORDS> inline u32 add_at(Place place, u32 value) { return add_atomic(place + WORDS, value); }
template <int WORDS> inline void add_unless_0(Place place, u32 value) { add_atomic(place + WORDS, value); }

inline u32 read_fresh(const u32 *from) { return *from; }
inline void write_fresh(u32 *to, u32 value) { *to = value; }
inline u64 bits_of(double x) { return emulated::read<u64>(*reinterpret_cast<u64 *>(&x)); }
inline double number_of(u64 bits) { return emulated::read<double>(bits); }
