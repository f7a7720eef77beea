// The random numbers of extremely randomised trees.
//
// A node draws from a stream of its own, known by the path to it: nodes may be grown in any order and side by side, on a processor
// or a GPU, and repeated rows draw what a row of their weight draws.
#pragma once

#include "portable.hpp"

inline u64 key_of_left(u64 key) { return splitmix64(key ^ 0x5851F42D4C957F2Dull); }
inline u64 key_of_right(u64 key) { return splitmix64(key ^ 0x14057B7EF767814Full); }

// The number of a node's i-th draw: its upper half picks a column, its lower half a cut.
inline u64 drawn_number(u64 key, i64 i) { return splitmix64(key + 0x9E3779B97F4A7C15ull * static_cast<u64>(i)); }

// One of `left`, at most 2^32.
inline i64 pick_of(u64 number, i64 left) { return static_cast<i64>((number >> 32) * static_cast<u64>(left) >> 32); }
