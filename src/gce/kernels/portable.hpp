// What kernels of processors and of GPUs share: integers, hashes, and minima that treat NaN alike.
//
// NVRTC has no standard library, and compiles every function for the device (see gce/_utils/cuda.py).
#pragma once

#if defined(__CUDACC_RTC__)
using i32 = int;
using i64 = long long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
#define GCE_RESTRICT __restrict__
inline double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
#else
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

#if defined(_MSC_VER)
#define GCE_RESTRICT __restrict
#else
#define GCE_RESTRICT __restrict__
#endif

inline double infinity() { return std::numeric_limits<double>::infinity(); }

using std::fabs;
using std::frexp;
using std::ldexp;
using std::llrint;
#endif

// As std::min and std::max: the first of equals, and the first where one is NaN.
template <class T> inline T smaller(T one, T two) { return two < one ? two : one; }
template <class T> inline T larger(T one, T two) { return one < two ? two : one; }

// The splitmix64 hash, as in gce/_utils/splitmix.py.
inline u64 splitmix64(u64 z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
