// Threads that work on one node: a warp, or all warps of a block.
//
// Lanes are divided into groups of a width, a power of two: what is found for a lane is found from the same lane of all groups of all
// warps, and all of these know it afterwards.
#pragma once

#include "lanes.cuh"

template <class Combine> i64 across_groups(i64 value, int width, const Combine &combine) {
    for (int apart = WARP / 2; apart >= width; apart /= 2)
        value = combine(value, from_other(value, apart));
    return value;
}

struct Add {
    i64 operator()(i64 one, i64 two) const { return one + two; }
};

struct Most {
    i64 operator()(i64 one, i64 two) const { return larger(one, two); }
};

class WarpTeam {
  public:
    explicit WarpTeam(u64 *memory) : memory(memory) {}

    // Words of shared memory.
    static constexpr i64 WORDS = WARP / 2;

    int thread() const { return lane_index(); }
    int threads() const { return WARP; }
    int group(int width) const { return lane_index() / width; }
    int groups(int width) const { return WARP / width; }
    void sync() const { sync_warp(); }
    u32 *shared() const { return reinterpret_cast<u32 *>(memory); }
    bool any(bool yes) const { return ballot(yes) != 0; }
    i64 sum(i64 value, int width = 1) const { return across_groups(value, width, Add{}); }
    i64 most(i64 value, int width) const { return across_groups(value, width, Most{}); }

    // Places of rows: those of the left side from 0 on, those of the right side from a number on.
    void begin_places(u32 right) {
        next[0] = 0;
        next[1] = right;
    }

    u32 place(bool left, bool here) {
        const u32 lefts = ballot(left), rights = ballot(here && !left), before = (1u << lane_index()) - 1;
        const u32 found = left ? next[0] + bits_set(lefts & before) : next[1] + bits_set(rights & before);
        next[0] += bits_set(lefts);
        next[1] += bits_set(rights);
        return found;
    }

  private:
    u64 *const memory;
    u32 next[2] = {0, 0};
};

class BlockTeam {
  public:
    explicit BlockTeam(u64 *memory) : memory(memory) {}

    static constexpr i64 MOST_WARPS = 32, WORDS = MOST_WARPS * WARP + 1;

    int thread() const { return thread_index(); }
    int threads() const { return thread_count(); }
    int group(int width) const { return thread_index() / width; }
    int groups(int width) const { return thread_count() / width; }
    void sync() const { sync_block(); }
    u32 *shared() const { return reinterpret_cast<u32 *>(memory); }
    bool any(bool yes) const { return most(yes, 1) != 0; }
    i64 sum(i64 value, int width = 1) const { return across(value, width, Add{}); }
    i64 most(i64 value, int width) const { return across(value, width, Most{}); }

    void begin_places(u32 right) {
        if (thread_index() == 0) {
            next()[0] = 0;
            next()[1] = right;
        }
        sync_block();
    }

    u32 place(bool left, bool here) {
        const u32 lefts = ballot(left), rights = ballot(here && !left), before = (1u << lane_index()) - 1;
        u32 first[2] = {0, 0};
        if (lane_index() == 0) {
            first[0] = fetch_add(next(), static_cast<u32>(bits_set(lefts)));
            first[1] = fetch_add(next() + 1, static_cast<u32>(bits_set(rights)));
        }
        first[0] = from_lane(first[0], 0);
        first[1] = from_lane(first[1], 0);
        return left ? first[0] + bits_set(lefts & before) : first[1] + bits_set(rights & before);
    }

  private:
    u32 *next() const { return reinterpret_cast<u32 *>(memory + MOST_WARPS * WARP); }

    template <class Combine> i64 across(i64 value, int width, const Combine &combine) const {
        const int lane = lane_index(), warps = thread_count() / WARP;
        i64 *const found = reinterpret_cast<i64 *>(memory);
        value = across_groups(value, width, combine);
        if (lane < width)
            found[thread_index() / WARP * WARP + lane] = value;
        sync_block();
        value = found[lane % width];
        for (int warp = 1; warp < warps; warp++)
            value = combine(value, found[warp * WARP + lane % width]);
        sync_block();
        return value;
    }

    u64 *const memory;
};
