// Threads that work on one node: a warp, or all warps of a block.
//
// Lanes are divided into groups of a width, a power of two: what is found for a lane is found from the same lane of all groups of all
// warps, and all of these know it afterwards.
#pragma once

#include "threads.cuh"

template <class Combine> i64 across_groups(i64 value, int width, const Combine &combine) {
    for (int apart = LANES / 2; apart >= width; apart /= 2)
        value = combine(value, from_across(value, apart));
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
    static constexpr i64 WORDS = (LANES + 1) / 2;

    int thread() const { return lane(); }
    int threads() const { return LANES; }
    int group(int width) const { return lane() / width; }
    int groups(int width) const { return LANES / width; }
    void sync() const { synchronise_warp(); }
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
        const u32 lefts = ballot(left), rights = ballot(here && !left), before = below();
        const u32 found = left ? next[0] + bits(lefts & before) : next[1] + bits(rights & before);
        next[0] += bits(lefts);
        next[1] += bits(rights);
        return found;
    }

  private:
    u64 *const memory;
    u32 next[2] = {0, 0};
};

class BlockTeam {
  public:
    explicit BlockTeam(u64 *memory) : memory(memory) {}

    static constexpr i64 WORDS = THREADS + 1;

    int thread() const { return ::thread(); }
    int threads() const { return ::threads(); }
    int group(int width) const { return ::thread() / width; }
    int groups(int width) const { return ::threads() / width; }
    void sync() const { synchronise(); }
    u32 *shared() const { return reinterpret_cast<u32 *>(memory); }
    bool any(bool yes) const { return most(yes, 1) != 0; }
    i64 sum(i64 value, int width = 1) const { return across(value, width, Add{}); }
    i64 most(i64 value, int width) const { return across(value, width, Most{}); }

    void begin_places(u32 right) {
        if (::thread() == 0) {
            next()[0] = 0;
            next()[1] = right;
        }
        synchronise();
    }

    u32 place(bool left, bool here) {
        const u32 lefts = ballot(left), rights = ballot(here && !left), before = below();
        u32 first[2] = {0, 0};
        if (lane() == 0) {
            first[0] = add_atomic(next(), static_cast<u32>(bits(lefts)));
            first[1] = add_atomic(next() + 1, static_cast<u32>(bits(rights)));
        }
        first[0] = from_lane(first[0], 0);
        first[1] = from_lane(first[1], 0);
        return left ? first[0] + bits(lefts & before) : first[1] + bits(rights & before);
    }

  private:
    u32 *next() const { return reinterpret_cast<u32 *>(memory + THREADS); }

    template <class Combine> i64 across(i64 value, int width, const Combine &combine) const {
        const int place = lane() % width, warps = ::threads() / LANES;
        i64 *const found = reinterpret_cast<i64 *>(memory);
        value = across_groups(value, width, combine);
        if (lane() < width)
            found[warp() * LANES + place] = value;
        synchronise();
        value = found[place];
        for (int w = 1; w < warps; w++)
            value = combine(value, found[w * LANES + place]);
        synchronise();
        return value;
    }

    u64 *const memory;
};
