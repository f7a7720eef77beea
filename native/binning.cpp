// Binning a column: its distinct values in order, and the bin of each value.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "common.hpp"

namespace {

constexpr int BYTES = 8;
// Below that many numbers counting the bytes of keys costs more than comparing them.
constexpr i64 FEW = 512;

// Keys that are ordered like the numbers; adding 0 makes one number of both zeros.
u64 key_of(double x) {
    x += 0.0;
    u64 bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (u64{1} << 63);
}

double number_of(u64 key) {
    const u64 bits = key >> 63 ? key ^ (u64{1} << 63) : ~key;
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Sort keys byte by byte, from the lowest; bytes that all keys share are passed over, such as the lower ones of float32.
void sort_by_bytes(std::unique_ptr<u64[]> &keys, i64 n) {
    std::unique_ptr<i64[]> counts(new i64[BYTES * 256]());
    for (i64 i = 0; i < n; ++i)
        for (int byte = 0; byte < BYTES; ++byte)
            ++counts[256 * byte + ((keys[i] >> 8 * byte) & 255)];
    std::unique_ptr<u64[]> other(new u64[n]);
    for (int byte = 0; byte < BYTES; ++byte) {
        i64 *const place = counts.get() + 256 * byte;
        if (place[(keys[0] >> 8 * byte) & 255] == n)
            continue;
        i64 sum = 0;
        for (int b = 0; b < 256; ++b) {
            const i64 own = place[b];
            place[b] = sum;
            sum += own;
        }
        for (i64 i = 0; i < n; ++i)
            other[place[(keys[i] >> 8 * byte) & 255]++] = keys[i];
        keys.swap(other);
    }
}

} // namespace

// The distinct numbers of a column, ascending; out has place for all of them.
GCE_EXPORT int gce_distinct(const double *column, i64 n, double *out, i64 *count) {
    return guarded([&] {
        std::unique_ptr<u64[]> keys(new u64[n]);
        for (i64 i = 0; i < n; ++i)
            keys[i] = key_of(column[i]);
        if (n < FEW)
            std::sort(keys.get(), keys.get() + n);
        else
            sort_by_bytes(keys, n);
        *count = std::unique(keys.get(), keys.get() + n) - keys.get();
        for (i64 i = 0; i < *count; ++i)
            out[i] = number_of(keys[i]);
        return GCE_OK;
    });
}

// Write the number of edges (ascending, at most 255) below each number to the given one of four columns of out (n, 4).
GCE_EXPORT int gce_code(const double *column, i64 n, const double *edges, i64 count, u8 *out, i64 place) {
    constexpr i64 LANES = 16;
    double table[256];
    std::fill(table, table + 256, std::numeric_limits<double>::infinity());
    std::copy(edges, edges + count, table);
    u32 top = 1;
    while (top <= count / 2)
        top *= 2;
    for (i64 first = 0; first < n; first += LANES) {
        // the last lanes overlap with those before: codes are written twice
        const i64 start = n < LANES ? 0 : std::min(first, n - LANES), lanes = std::min(n, LANES);
        u32 code[LANES] = {};
        // several searches at once, none of which has a branch
        for (u32 half = top; half > 0; half /= 2)
            for (i64 l = 0; l < lanes; ++l)
                code[l] += half & (0u - static_cast<u32>(table[code[l] + half - 1] < column[start + l]));
        for (i64 l = 0; l < lanes; ++l)
            out[4 * (start + l) + place] = static_cast<u8>(code[l]);
    }
    return GCE_OK;
}
