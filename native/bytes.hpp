// Vectors of bytes, as wide as the instruction set has them, and pairs of numbers.
#pragma once

#include <cstring>

#include "common.hpp"

#if defined(__GNUC__) && defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__)

#if defined(__AVX2__)
#define GCE_BYTES 32
#else
#define GCE_BYTES 16
#endif

using Bytes = u8 __attribute__((vector_size(GCE_BYTES)));
using SignedBytes = std::int8_t __attribute__((vector_size(GCE_BYTES)));

// 255 where ``bound`` is larger than a signed code, else 0.
inline Bytes below(std::int8_t bound, const std::int8_t *codes) {
    SignedBytes some;
    std::memcpy(&some, codes, sizeof some);
    return reinterpret_cast<Bytes>((SignedBytes{} + bound) > some);
}

inline Bytes each(u8 number) { return Bytes{} + number; }
inline Bytes equal(Bytes a, Bytes b) { return reinterpret_cast<Bytes>(a == b); }
inline void store(u8 *to, Bytes some) { std::memcpy(to, &some, sizeof some); }

// 255 where a set has a bit, else 0: `bit` of the byte at `index` of its 32 bytes. Lanes behind the last row may hold anything.
inline Bytes in_set(const u8 *set, const std::int8_t *index, const std::int8_t *bit) {
#if defined(__AVX2__)
    const auto load = [](const void *from) { return _mm256_loadu_si256(static_cast<const __m256i *>(from)); };
    const auto half = [](const void *from) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i *>(from))); };
    const __m256i at = load(index), wanted = load(bit);
    const __m256i low = _mm256_shuffle_epi8(half(set), at), high = _mm256_shuffle_epi8(half(set + 16), at);
    // the highest bit of each lane chooses: that of an index beyond 15 is its fourth
    const __m256i own = _mm256_blendv_epi8(low, high, _mm256_slli_epi16(at, 3));
    return reinterpret_cast<Bytes>(_mm256_cmpeq_epi8(_mm256_and_si256(own, wanted), wanted));
#else
    u8 out[GCE_BYTES];
    for (int i = 0; i < GCE_BYTES; i++) out[i] = (set[index[i] & 31] & static_cast<u8>(bit[i])) ? 255 : 0;
    Bytes some;
    std::memcpy(&some, out, sizeof some);
    return some;
#endif
}

using Pair = double __attribute__((vector_size(16)));

inline Pair pair(double a, double b) { return Pair{a, b}; }

#else

#define GCE_BYTES 16

struct Bytes {
    u8 lane[GCE_BYTES] = {};
};

template <class Function> inline Bytes lanes(Function function) {
    Bytes out;
    for (int i = 0; i < GCE_BYTES; i++) out.lane[i] = static_cast<u8>(function(i));
    return out;
}

inline Bytes below(std::int8_t bound, const std::int8_t *codes) {
    return lanes([=](int i) { return bound > codes[i] ? 255 : 0; });
}
inline Bytes in_set(const u8 *set, const std::int8_t *index, const std::int8_t *bit) {
    return lanes([=](int i) { return (set[index[i] & 31] & static_cast<u8>(bit[i])) ? 255 : 0; });
}
inline Bytes each(u8 number) {
    return lanes([=](int) { return number; });
}
inline Bytes equal(const Bytes &a, const Bytes &b) {
    return lanes([&](int i) { return a.lane[i] == b.lane[i] ? 255 : 0; });
}
inline Bytes operator&(const Bytes &a, const Bytes &b) {
    return lanes([&](int i) { return a.lane[i] & b.lane[i]; });
}
inline Bytes operator~(const Bytes &a) {
    return lanes([&](int i) { return ~a.lane[i]; });
}
inline Bytes operator+(const Bytes &a, const Bytes &b) {
    return lanes([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Bytes operator-(const Bytes &a, const Bytes &b) {
    return lanes([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline void store(u8 *to, const Bytes &some) { std::memcpy(to, some.lane, sizeof some.lane); }

struct Pair {
    double part[2];
    double operator[](int i) const { return part[i]; }
};

inline Pair pair(double a, double b) { return {{a, b}}; }
inline Pair operator+(const Pair &a, const Pair &b) { return {{a[0] + b[0], a[1] + b[1]}}; }

#endif

inline void store(double *to, Pair some) {
    to[0] = some[0];
    to[1] = some[1];
}

