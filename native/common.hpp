// What all kernels share.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>

#if defined(_WIN32)
#define GCE_EXPORT extern "C" __declspec(dllexport)
#else
#define GCE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#if defined(_MSC_VER)
#define GCE_RESTRICT __restrict
#else
#define GCE_RESTRICT __restrict__
#endif

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// What a kernel that can fail returns.
constexpr int GCE_OK = 0;
constexpr int GCE_OUT_OF_MEMORY = -1;

// Run a kernel that allocates: no exception may leave the library.
template <class Kernel> int guarded(Kernel kernel) {
    try {
        return kernel();
    } catch (const std::bad_alloc &) {
        return GCE_OUT_OF_MEMORY;
    }
}

// The splitmix64 hash, as in gce/_utils/splitmix.py.
inline u64 splitmix64(u64 z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
