// Kernels in which a row gets the same bits whatever rows are beside it: every row goes through the same operations in the
// same order, each rounded as IEEE 754 says.
#include <algorithm>

#include "tiles.hpp"
#include "transpose.hpp"

namespace {

// Hidden units whose values for a tile of rows stay in the first-level cache: networks are evaluated in such groups.
constexpr i64 UNITS_AT_ONCE = 48;

// Rows of scores at a time: one long loop over their exponentials, while they are in the first-level cache.
constexpr i64 ROWS_AT_ONCE = 128;

// Nonlinearities of a layer.
enum : i64 { IDENTITY, RELU, HARDTANH, TANH };

// All networks of some atoms: layers one after another, `models` networks in an atom, `count` in all.
template <class T> struct Networks {
    const T *W1, *b1, *W2, *b2, *bound;
    i64 d, h, k, hidden_curve, output_curve, models, count;

    // shape: d (-1: the rows are sums in hidden units), h, k, the nonlinearities, networks of an atom, and in all
    Networks(const T *W1, const T *b1, const T *W2, const T *b2, const T *bound, const i64 *shape)
        : W1(W1), b1(b1), W2(W2), b2(b2), bound(bound), d(shape[0]), h(shape[1]), k(shape[2]), hidden_curve(shape[3]),
          output_curve(shape[4]), models(shape[5]), count(shape[6]) {}
    i64 group() const { return std::max(i64(1), UNITS_AT_ONCE / h); }
    i64 width() const { return d >= 0 ? d : count * h; }
};

// A layer: `curve(W X + b)` on a tile.
template <class T>
void layer(const T *W, const T *X, const T *b, T *z, i64 units, i64 columns, i64 rows, i64 curve) {
    if (curve == RELU) {
        product(W, X, b, z, units, columns, rows, Relu{});
    } else if (curve == HARDTANH) {
        product(W, X, b, z, units, columns, rows, Clip{});
    } else {
        product(W, X, b, z, units, columns, rows, Identity{});
        if (curve == TANH) tanh_in_place(z, units, rows);
    }
}

// A layer's nonlinearity in place; NaN stays NaN.
template <class T> void bend(T *z, i64 units, i64 rows, i64 curve) {
    using V = Vector<T>;
    if (curve == TANH) tanh_in_place(z, units, rows);
    if (curve != RELU && curve != HARDTANH) return;
    for (i64 j = 0; j < units; j++)
        for (i64 r = j * TILE; r < j * TILE + rows; r += V::width) {
            const V given = V::load(z + r);
            (curve == RELU ? given.relu() : given.clip()).store(z + r);
        }
}

// Copy rows of some columns of X, of `width` columns, to a tile; the rest of the last step is 0.
template <class T, class From> void pack(const From *X, i64 width, i64 count, i64 columns, T *GCE_RESTRICT tile) {
    if constexpr (std::is_same_v<T, From>) {
        turn([&](i64 r) { return X + r * width; }, count, columns, tile, TILE);
    } else {
        for (i64 r = 0; r < count; r++)
            for (i64 i = 0; i < columns; i++) tile[i * TILE + r] = T(X[r * width + i]);
    }
    for (i64 i = 0; i < columns; i++) std::fill(tile + i * TILE + count, tile + i * TILE + whole_steps(count), T(0));
}

// Outputs of a group of networks on a tile of rows.
template <class T, class From> class Evaluator {
  public:
    explicit Evaluator(const Networks<T> &nets)
        : nets(nets), tile(std::max(nets.d, i64(0)) * TILE), hidden(nets.group() * nets.h * TILE),
          out(nets.group() * nets.k * TILE) {}

    // Call `use(network, output, results)` for every network and output on each tile of rows, and `end(row, count)` after
    // each tile.
    template <class Use, class End> void over(const From *X, i64 start, i64 stop, Use use, End end) {
        for (i64 row = start; row < stop; row += TILE) {
            const i64 count = std::min(TILE, stop - row);
            const From *here = X + row * nets.width();
            if (nets.d >= 0) pack(here, nets.width(), count, nets.d, tile.data());
            for (i64 first = 0; first < nets.count; first += nets.group()) {
                const i64 last = std::min(first + nets.group(), nets.count);
                const T *results = evaluate(here, count, first, last);
                for (i64 net = first; net < last; net++)
                    for (i64 j = 0; j < nets.k; j++) use(net, j, results + ((net - first) * nets.k + j) * TILE, row, count);
            }
            end(row, count);
        }
    }

  private:
    // Networks `first` to `last`: their first layers are one product.
    const T *evaluate(const From *X, i64 count, i64 first, i64 last) {
        const i64 h = nets.h, k = nets.k, units = (last - first) * h, rows = whole_steps(count);
        if (nets.d >= 0) {
            layer(nets.W1 + first * h * nets.d, tile.data(), nets.b1 + first * h, hidden.data(), units, nets.d, rows,
                  nets.hidden_curve);
        } else {
            pack(X + first * h, nets.width(), count, units, hidden.data());
            bend(hidden.data(), units, rows, nets.hidden_curve);
        }
        if (!nets.W2) return hidden.data();
        for (i64 net = first; net < last; net++) {
            const T *own = hidden.data() + (net - first) * h * TILE;
            layer(nets.W2 + net * k * h, own, nets.b2 + net * k, out.data() + (net - first) * k * TILE, k, h, rows,
                  nets.output_curve);
        }
        return out.data();
    }

    const Networks<T> &nets;
    Buffer<T> tile, hidden, out;
};

template <class T, class From>
int outputs(const From *X, const Networks<T> &nets, i64 n, i64 start, i64 stop, T *GCE_RESTRICT result) {
    const i64 columns = nets.models * nets.k;
    const auto write = [&](i64 net, i64 j, const T *out, i64 row, i64 count) {
        const i64 column = net % nets.models * nets.k + j;
        T *into = result + (net / nets.models * n + row) * columns + column;
        for (i64 r = 0; r < count; r++) into[r * columns] = nets.bound[column] * out[r];
    };
    Evaluator<T, From>(nets).over(X, start, stop, write, [](i64, i64) {});
    return GCE_OK;
}

template <class T, class From>
int mixture(const From *X, const Networks<T> &nets, const double *weights, i64 start, i64 stop, double *GCE_RESTRICT result) {
    const i64 columns = nets.models * nets.k;
    Buffer<double> sums(columns * TILE);
    double *total = sums.data();
    std::fill(total, total + columns * TILE, 0.0);
    const auto add = [&](i64 net, i64 j, const T *GCE_RESTRICT out, i64, i64 count) {
        const i64 column = net % nets.models * nets.k + j;
        const double weight = weights[net / nets.models * columns + column];
        const T scale = nets.bound[column];
        double *GCE_RESTRICT into = total + column * TILE;
        for (i64 r = 0; r < whole_steps(count); r++) into[r] += weight * double(T(scale * out[r]));
    };
    const auto write = [&](i64 row, i64 count) {
        for (i64 r = 0; r < count; r++)
            for (i64 j = 0; j < columns; j++) result[(row + r) * columns + j] += total[j * TILE + r];
        std::fill(total, total + columns * TILE, 0.0);
    };
    Evaluator<T, From>(nets).over(X, start, stop, add, write);
    return GCE_OK;
}

// The lesser and the greater of two as Python has them: the first one where they are equal or one is NaN.
inline double lesser(double a, double b) { return b < a ? b : a; }
inline double greater(double a, double b) { return b > a ? b : a; }

} // namespace

GCE_EXPORT int gce_sigmoid(const double *GCE_RESTRICT score, i64 n, double *GCE_RESTRICT result) {
    for (i64 r = 0; r < n; r++) {
        const double less = elementary::exp(-std::fabs(score[r]));
        const double other = less / (1.0 + less), likely = 1.0 / (1.0 + less);
        const bool first = score[r] < 0;
        result[2 * r] = first ? likely : other;
        result[2 * r + 1] = first ? other : likely;
    }
    return GCE_OK;
}

GCE_EXPORT int gce_softmax(const double *scores, i64 n, i64 k, double *result) {
    for (i64 row = 0; row < n; row += ROWS_AT_ONCE) {
        const i64 rows = std::min(ROWS_AT_ONCE, n - row);
        const double *given = scores + row * k;
        double *GCE_RESTRICT out = result + row * k;
        for (i64 r = 0; r < rows; r++) {
            double top = given[r * k];
            for (i64 j = 1; j < k; j++) top = greater(top, given[r * k + j]);
            for (i64 j = 0; j < k; j++) out[r * k + j] = given[r * k + j] - top;
        }
        for (i64 i = 0; i < rows * k; i++) out[i] = elementary::exp(out[i]);
        for (i64 r = 0; r < rows; r++) {
            double total = 0.0;
            for (i64 j = 0; j < k; j++) total += out[r * k + j];
            for (i64 j = 0; j < k; j++) out[r * k + j] /= total;
        }
    }
    return GCE_OK;
}

GCE_EXPORT int gce_exponential(const double *GCE_RESTRICT score, i64 n, double *GCE_RESTRICT result) {
    for (i64 r = 0; r < n; r++) result[r] = elementary::exp_any(score[r]);
    return GCE_OK;
}

GCE_EXPORT int gce_logarithm(const double *GCE_RESTRICT mean, i64 n, double *GCE_RESTRICT result) {
    for (i64 r = 0; r < n; r++) result[r] = elementary::log(mean[r]);
    return GCE_OK;
}

GCE_EXPORT int gce_log_odds(const double *p, i64 n, double *result) {
    for (i64 r = 0; r < n; r++) result[r] = elementary::log(p[r]) - elementary::log(1.0 - p[r]);
    return GCE_OK;
}

GCE_EXPORT int gce_centred_log(const double *p, i64 n, i64 k, double *result) {
    for (i64 r = 0; r < n; r++, p += k, result += k) {
        double total = 0.0;
        for (i64 j = 0; j < k; j++) {
            result[j] = elementary::log(p[j]);
            total += result[j];
        }
        for (i64 j = 0; j < k; j++) result[j] -= total / double(k);
    }
    return GCE_OK;
}

// Rows `first` to `last` of X, whose numbers lie `down` and `across` apart.
GCE_EXPORT int gce_scaled(const double *X, i64 down, i64 across, i64 d, const double *mean, const double *factor,
                          double clip, double *GCE_RESTRICT result, i64 first, i64 last) {
    // beyond 1e9 clips the answer is the clip to the last bit, and fourth powers would overflow at last
    const double most = 1e9 * clip;
    for (i64 row = first; row < last; row++)
        for (i64 i = 0; i < d; i++) {
            const double z = greater(lesser((X[row * down + i * across] - mean[i]) * factor[i], most), -most);
            double r = z / clip;
            r = r * r;
            result[row * d + i] = greater(lesser(z / std::sqrt(std::sqrt(1.0 + r * r)), clip), -clip);
        }
    return GCE_OK;
}

#define GCE_NETWORKS(T, FROM, NAME)                                                                                      \
    GCE_EXPORT int gce_outputs_##NAME(const FROM *X, const T *W1, const T *b1, const T *W2, const T *b2, i64 two,        \
                                      const T *bound, const i64 *shape, i64 n, i64 start, i64 stop, T *result) {         \
        const Networks<T> nets(W1, b1, two ? W2 : nullptr, b2, bound, shape);                                            \
        return guarded([&] { return outputs(X, nets, n, start, stop, result); });                                        \
    }                                                                                                                    \
    GCE_EXPORT int gce_mixture_##NAME(const FROM *X, const T *W1, const T *b1, const T *W2, const T *b2, i64 two,        \
                                      const T *bound, const i64 *shape, const double *weights, i64 start, i64 stop,      \
                                      double *result) {                                                                  \
        const Networks<T> nets(W1, b1, two ? W2 : nullptr, b2, bound, shape);                                            \
        return guarded([&] { return mixture(X, nets, weights, start, stop, result); });                                  \
    }
GCE_NETWORKS(double, double, f64_f64)
GCE_NETWORKS(double, float, f64_f32)
GCE_NETWORKS(float, double, f32_f64)
GCE_NETWORKS(float, float, f32_f32)
