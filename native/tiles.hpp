// Tiles of rows, columns first: every loop runs over the rows of a tile, and a tile's hidden layer stays in the first-level
// cache between its product, its nonlinearity and its gradients.
#pragma once

#include <type_traits>

#include "elementary.hpp"
#include "vectors.hpp"

// Rows of a tile: not a power of two, whose columns would share cache sets.
constexpr i64 TILE = 192;
// Rows are worked on in steps: whole lanes of float and double, and whole turns of a product's inner loop.
constexpr i64 STEP = 48;
static_assert(TILE % STEP == 0 && STEP % LANES<float> == 0 && STEP % (PRODUCT_VECTORS * Vector<float>::width) == 0 &&
                  STEP % (PRODUCT_VECTORS * Vector<double>::width) == 0,
              "loops over a tile leave no rows over");

inline i64 whole_steps(i64 rows) { return (rows + STEP - 1) / STEP * STEP; }

// Memory that begins with a cache line: a load across two lines takes twice as long.
template <class T> class Buffer {
  public:
    explicit Buffer(i64 size) : memory(static_cast<T *>(::operator new(size_t(size) * sizeof(T) + 1, align))) {}
    ~Buffer() { ::operator delete(memory, align); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    T *data() { return memory; }

  private:
    static constexpr std::align_val_t align{64};
    T *memory;
};

// Call `body` with a size that the compiler knows.
template <int most, class Body> void with_size(i64 size, Body body) {
    if (size == most)
        body(std::integral_constant<int, most>{});
    else if constexpr (most > 1)
        with_size<most - 1>(size, body);
}

// Call `body` with the first and the size of each of the fewest equal parts that are no larger than `most`.
template <int most, class Body> void in_parts(i64 size, Body body) {
    const i64 parts = (size + most - 1) / most;
    for (i64 p = 0; p < parts; p++) {
        const i64 first = size * p / parts, last = size * (p + 1) / parts;
        with_size<most>(last - first, [&](auto units) { body(first, units); });
    }
}

// What a product does to its results; `at` is their place in the tile.
struct Identity {
    template <class V> V operator()(V z, i64) const { return z; }
};
struct Relu {
    template <class V> V operator()(V z, i64) const { return z.relu(); }
};
struct Clip {
    template <class V> V operator()(V z, i64) const { return z.clip(); }
};

// `product` for a few units, which stay in registers.
template <int units, class T, class Curve>
void product_of_units(const T *W, const T *X, const T *b, T *z, i64 columns, i64 rows, i64 first, Curve curve) {
    using V = Vector<T>;
    constexpr int many = PRODUCT_VECTORS;
    for (i64 r = 0; r < rows; r += many * V::width) {
        V sum[units][many];
        for (int j = 0; j < units; j++)
            for (int m = 0; m < many; m++) sum[j][m] = V::all(b[first + j]);
        const T *GCE_RESTRICT w = W + first * columns, *GCE_RESTRICT x = X + r;
        for (i64 i = 0; i < columns; i++, x += TILE, w++) {
            V here[many];
            for (int m = 0; m < many; m++) here[m] = V::load(x + m * V::width);
            for (int j = 0; j < units; j++) {
                const V weight = V::all(w[j * columns]);
                for (int m = 0; m < many; m++) sum[j][m] = fma(weight, here[m], sum[j][m]);
            }
        }
        for (int j = 0; j < units; j++)
            for (int m = 0; m < many; m++) {
                const i64 at = (first + j) * TILE + r + m * V::width;
                curve(sum[j][m], at).store(z + at);
            }
    }
}

// `z_jr = curve(b_j + sum_i W_ji X_ir)` for a tile: W of shape (units, columns), X and z tiles. Sums are in the order of i,
// from the bias on, each product fused with its sum.
template <class T, class Curve>
void product(const T *W, const T *X, const T *b, T *z, i64 units, i64 columns, i64 rows, Curve curve) {
    in_parts<PRODUCT_UNITS>(units, [&](i64 first, auto size) {
        product_of_units<size.value>(W, X, b, z, columns, rows, first, curve);
    });
}

template <class T> void tanh_in_place(T *GCE_RESTRICT z, i64 columns, i64 rows) {
    for (i64 j = 0; j < columns; j++)
        for (i64 r = 0; r < rows; r++) z[j * TILE + r] = T(elementary::tanh(double(z[j * TILE + r])));
}
