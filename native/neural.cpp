// Training of two-layer networks.
#include <algorithm>
#include <cstring>

#include "tiles.hpp"
#include "transpose.hpp"

namespace {

// Gradients are summed over this many rows first, then over such chunks: threads may share a batch without changing a bit.
constexpr i64 CHUNK = 5 * TILE;

constexpr double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;

struct Shape {
    i64 d, h, k;
    bool tanh_hidden, tanh_output;

    Shape(const i64 *given) : d(given[0]), h(given[1]), k(given[2]), tanh_hidden(given[3]), tanh_output(given[4]) {}
    // where b1, W2 and b2 begin in a network, and its size
    i64 b1() const { return h * d; }
    i64 W2() const { return h * d + h; }
    i64 b2() const { return W2() + k * h; }
    i64 size() const { return b2() + k; }
};

// Rows (n, d), and gradients (n, k) of the linear objective.
template <class T> struct Rows {
    const T *X, *S;
    i64 n;
};

// Copy up to TILE rows to a tile of d + k columns; the rest of the last step is 0.
template <class T> void pack(const Rows<T> &data, const Shape &shape, const i64 *rows, i64 count, T *tile) {
    const i64 d = shape.d, k = shape.k;
    turn([&](i64 r) { return data.X + rows[r] * d; }, count, d, tile, TILE);
    turn([&](i64 r) { return data.S + rows[r] * k; }, count, k, tile + d * TILE, TILE);
    for (i64 i = 0; i < d + k; i++) std::fill(tile + i * TILE + count, tile + i * TILE + whole_steps(count), T(0));
}

// `outer` for a few units and columns, whose sums stay in registers.
template <int units, int columns, class T>
void outer_of_units(const T *GCE_RESTRICT A, const T *GCE_RESTRICT X, T *GCE_RESTRICT lanes, i64 stride, i64 rows) {
    using V = Vector<T>;
    for (int part = 0; part < LANES<T>; part += V::width) {
        V sum[units][columns];
        for (int j = 0; j < units; j++)
            for (int i = 0; i < columns; i++) sum[j][i] = V::load(lanes + (j * stride + i) * LANES<T> + part);
        for (i64 r = part; r < rows; r += LANES<T>) {
            V a[units];
            for (int j = 0; j < units; j++) a[j] = V::load(A + j * TILE + r);
            for (int i = 0; i < columns; i++) {
                const V x = V::load(X + i * TILE + r);
                for (int j = 0; j < units; j++) sum[j][i] = fma(a[j], x, sum[j][i]);
            }
        }
        for (int j = 0; j < units; j++)
            for (int i = 0; i < columns; i++) sum[j][i].store(lanes + (j * stride + i) * LANES<T> + part);
    }
}

// `G_ji += sum_r A_jr X_ir` in lanes: A and X tiles, G of shape (units, columns, LANES).
template <class T> void outer(const T *A, const T *X, T *lanes, i64 units, i64 columns, i64 rows) {
    in_parts<OUTER_UNITS>(units, [&](i64 j, auto some_units) {
        in_parts<OUTER_COLUMNS>(columns, [&](i64 i, auto some_columns) {
            T *here = lanes + (j * columns + i) * LANES<T>;
            outer_of_units<some_units.value, some_columns.value>(A + j * TILE, X + i * TILE, here, columns, rows);
        });
    });
}

// `sums_j += sum_r A_jr` in lanes.
template <class T> void add_rows(const T *A, T *sums, i64 units, i64 rows) {
    using V = Vector<T>;
    for (i64 j = 0; j < units; j++)
        for (int part = 0; part < LANES<T>; part += V::width) {
            T *here = sums + j * LANES<T> + part;
            V sum = V::load(here);
            for (i64 r = part; r < rows; r += LANES<T>) sum = sum + V::load(A + j * TILE + r);
            sum.store(here);
        }
}

// The outputs' nonlinearity, and the gradient carried back through it.
struct ClipBack {
    template <class V> static V unit(V z) { return z.clip(); }
    template <class V> static V pull(V gradient, V z, V unit) { return gradient.where_equal(unit, z); }
};
struct TanhBack {
    template <class V> static V unit(V z) { return z; }
    template <class V> static V pull(V gradient, V, V unit) { return gradient * (V::all(1) - unit * unit); }
};

// The value `sum gradient * unit(z)`; its gradients in `z` go to `pull`, their sums over rows in lanes to `sums`.
template <class Back, class T>
double squash(const T *gradient, const T *z, T *pull, T *sums, i64 outputs, i64 rows) {
    using V = Vector<T>;
    T value[LANES<T>] = {};
    for (i64 j = 0; j < outputs; j++)
        for (int part = 0; part < LANES<T>; part += V::width) {
            T *here = sums + j * LANES<T> + part;
            V sum = V::load(here), total = V::load(value + part);
            for (i64 r = j * TILE + part; r < j * TILE + rows; r += LANES<T>) {
                const V given = V::load(gradient + r), t = V::load(z + r), unit = Back::unit(t);
                const V pulled = Back::pull(given, t, unit);
                pulled.store(pull + r);
                sum = sum + pulled;
                total = fma(unit, given, total);
            }
            sum.store(here);
            total.store(value + part);
        }
    return double(sum_of_lanes(value));
}

// Gradients carried back through the hidden layer, whose values are a tile.
template <class T> struct ReluBack {
    const T *hidden;
    template <class V> V operator()(V z, i64 at) const { return z.where_positive(V::load(hidden + at)); }
};
template <class T> struct HiddenTanhBack {
    const T *hidden;
    template <class V> V operator()(V z, i64 at) const {
        const V t = V::load(hidden + at);
        return z * (V::all(1) - t * t);
    }
};

// A network's gradients on tiles of rows, with the memory for it.
template <class T> class Gradients {
  public:
    Gradients(const Shape &shape)
        : shape(shape), tile((shape.d + shape.k) * TILE), hidden(shape.h * TILE), back(shape.h * TILE),
          out(shape.k * TILE), pull(shape.k * TILE), lanes(shape.size() * LANES<T>), turned(shape.h * shape.k),
          nothing(shape.h) {
        std::fill(nothing.data(), nothing.data() + shape.h, T(0));
    }

    void set(const T *network) {
        net = network;
        for (i64 j = 0; j < shape.h; j++)
            for (i64 o = 0; o < shape.k; o++) turned.data()[j * shape.k + o] = net[shape.W2() + o * shape.h + j];
    }

    // Gradients `into` of at most CHUNK rows from `first` on, packed here unless they all are; their value.
    double of_chunk(const Rows<T> &data, const i64 *rows, i64 count, const T *packed, i64 first, T *into) {
        std::fill(lanes.data(), lanes.data() + shape.size() * LANES<T>, T(0));
        double value = 0;
        for (i64 row = first; row < std::min(first + CHUNK, count); row += TILE) {
            const i64 here = std::min(TILE, count - row);
            if (packed) {
                value += of_tile(packed + row * (shape.d + shape.k), whole_steps(here));
            } else {
                pack(data, shape, rows + row, here, tile.data());
                value += of_tile(tile.data(), whole_steps(here));
            }
        }
        for (i64 i = 0; i < shape.size(); i++) into[i] = sum_of_lanes(lanes.data() + i * LANES<T>);
        return value;
    }

  private:
    // Add one tile's gradients to `lanes`; return its value.
    double of_tile(const T *given, i64 rows) {
        const i64 d = shape.d, h = shape.h, k = shape.k;
        T *sums = lanes.data();
        if (shape.tanh_hidden) {
            product(net, given, net + shape.b1(), hidden.data(), h, d, rows, Identity{});
            tanh_in_place(hidden.data(), h, rows);
        } else {
            product(net, given, net + shape.b1(), hidden.data(), h, d, rows, Relu{});
        }
        product(net + shape.W2(), hidden.data(), net + shape.b2(), out.data(), k, h, rows, Identity{});
        const double value = squashed(given + d * TILE, sums + shape.b2() * LANES<T>, rows);
        outer(pull.data(), hidden.data(), sums + shape.W2() * LANES<T>, k, h, rows);
        if (shape.tanh_hidden)
            product(turned.data(), pull.data(), nothing.data(), back.data(), h, k, rows, HiddenTanhBack<T>{hidden.data()});
        else
            product(turned.data(), pull.data(), nothing.data(), back.data(), h, k, rows, ReluBack<T>{hidden.data()});
        add_rows(back.data(), sums + shape.b1() * LANES<T>, h, rows);
        outer(back.data(), given, sums, h, d, rows);
        return value;
    }

    double squashed(const T *gradient, T *sums, i64 rows) {
        if (!shape.tanh_output) return squash<ClipBack>(gradient, out.data(), pull.data(), sums, shape.k, rows);
        tanh_in_place(out.data(), shape.k, rows);
        return squash<TanhBack>(gradient, out.data(), pull.data(), sums, shape.k, rows);
    }

    const Shape shape;
    const T *net = nullptr;
    Buffer<T> tile, hidden, back, out, pull, lanes, turned, nothing;
};

// A whole power by repeated squares: libraries may round it differently.
double power(double base, i64 exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2) result *= base;
    return result;
}

// One step of Adam on a network, its gradients multiplied by `share`; what leaves its sign (0: any) is 0.
template <class T>
void adam(T *GCE_RESTRICT net, const T *GCE_RESTRICT gradient, double share, T *GCE_RESTRICT mean, T *GCE_RESTRICT square,
          const T *GCE_RESTRICT sign, i64 size, double steps, double rate) {
    const double first = 1 / (1 - power(BETA1, i64(steps))), second = 1 / (1 - power(BETA2, i64(steps)));
    for (i64 i = 0; i < size; i++) {
        const double g = share * gradient[i];
        mean[i] = T(mean[i] + (1 - BETA1) * (g - mean[i]));
        square[i] = T(BETA2 * square[i] + (1 - BETA2) * g * g);
        const T moved = T(net[i] - rate * first * mean[i] / (std::sqrt(second * square[i]) + EPSILON));
        net[i] = sign[i] * moved < 0 ? T(0) : moved;
    }
}

// What a schedule knows of a network, and its rule.
struct State {
    double rate, best, epochs_without_progress, epochs_left, failed, steps;
};
struct Schedule {
    double floor, patience, last_epochs, progress;
};

// The plateau rule; true where the value is the best.
bool advance(State &state, double value, const Schedule &schedule) {
    if (!std::isfinite(value)) {
        state.failed = 1;
        state.rate = 0;
        return false;
    }
    const bool improved = value < state.best;
    if (improved) {
        const double needed = std::isinf(state.best) ? 0.0 : schedule.progress * std::fabs(state.best);
        state.epochs_without_progress = value < state.best - needed ? 0 : state.epochs_without_progress + 1;
        state.best = value;
    } else {
        state.epochs_without_progress += 1;
    }
    state.epochs_left -= 1;
    if (state.epochs_left <= 0) {
        state.rate = 0;
    } else if (state.epochs_without_progress > schedule.patience && state.rate > schedule.floor) {
        state.rate = std::max(state.rate / 10, schedule.floor);
        state.epochs_without_progress = 0;
        if (state.rate == schedule.floor) state.epochs_left = schedule.last_epochs;
    }
    return improved;
}

// Orders of the rows, one per epoch or one for all, and where batches begin and end in an order.
struct Batches {
    const i64 *orders;
    i64 n_orders;
    const i64 *ends;
    i64 count;
};

// The network, its best, its gradients, a chunk's gradients, Adam's two means, and signs, `size` numbers each.
template <class T> struct Vectors {
    T *net, *best, *gradient, *part, *mean, *square, *sign;

    Vectors(T *all, i64 size)
        : net(all), best(all + size), gradient(all + 2 * size), part(all + 3 * size), mean(all + 4 * size),
          square(all + 5 * size), sign(all + 6 * size) {}
};

// The value and the gradient of a batch.
template <class T>
double of_batch(Gradients<T> &gradients, const Rows<T> &data, const i64 *rows, i64 count, const T *packed, Vectors<T> &v,
                i64 size, double total) {
    gradients.set(v.net);
    std::fill(v.gradient, v.gradient + size, T(0));
    for (i64 first = 0; first < count; first += CHUNK) {
        total += gradients.of_chunk(data, rows, count, packed, first, v.part);
        for (i64 i = 0; i < size; i++) v.gradient[i] += v.part[i];
    }
    return total;
}

// Gradients of rows that are divided among processes are added up as integers, which have no order: each chunk's is rounded
// to units of 2^-40, and cut off at 2^48 of them, so that 2^15 chunks cannot overflow. Objectives are scaled so that the
// gradients of all rows are of order 1. A value is rounded to units of 2^-46.
constexpr double GRADIENT_UNITS = double(i64(1) << 40), VALUE_UNITS = double(i64(1) << 46), MOST_UNITS = double(i64(1) << 48);

// The nearest integer of a number up to 2^51 in size: added to 1.5 * 2^52, it is in the last bits. Unlike calls of a library
// this is done for many numbers at once.
i64 nearest(double number) {
    constexpr double shift = 6755399441055744.0;
    const double shifted = number + shift;
    i64 bits, zero;
    std::memcpy(&bits, &shifted, sizeof bits);
    std::memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

i64 in_units(double number, double units) { return nearest(std::min(std::max(number * units, -MOST_UNITS), MOST_UNITS)); }

// Add the gradients and the value of a chunk to `sums`, or 1 to their last number where one of them is not finite.
template <class T> void add_chunk(const T *GCE_RESTRICT gradient, double value, i64 *GCE_RESTRICT sums, i64 size) {
    // NaN where a number is not finite
    double broken = value - value;
    for (i64 i = 0; i < size; i++) broken += double(gradient[i]) - double(gradient[i]);
    if (broken != 0) {
        sums[size + 1] += 1;
        return;
    }
    for (i64 i = 0; i < size; i++) sums[i] += in_units(gradient[i], GRADIENT_UNITS);
    sums[size] += in_units(value, VALUE_UNITS);
}

// Add the gradients of pieces of rows to `sums`, then their value, then how many chunks have numbers that are not finite.
template <class T>
int piece_sums(const Rows<T> &data, const i64 *rows, const i64 *ends, i64 pieces, const T *net, const Shape &shape,
               i64 *sums) {
    const i64 size = shape.size();
    Gradients<T> gradients(shape);
    gradients.set(net);
    Buffer<T> part(size);
    for (i64 p = 0; p < pieces; p++) {
        const i64 begin = ends[p], count = ends[p + 1] - begin;
        for (i64 first = 0; first < count; first += CHUNK) {
            const double value = gradients.of_chunk(data, rows + begin, count, nullptr, first, part.data());
            add_chunk(part.data(), value, sums, size);
        }
    }
    return GCE_OK;
}

template <class T>
int train(const Rows<T> &data, const u8 *present, const T *packed, const Batches &batches, i64 epochs, T *vectors,
          State &state, const Schedule &schedule, const Shape &shape) {
    const i64 size = shape.size();
    Vectors<T> v(vectors, size);
    Gradients<T> gradients(shape);
    Buffer<i64> rows(data.n);
    for (i64 epoch = 0; epoch < epochs && state.rate != 0; epoch++) {
        const i64 *order = batches.orders + epoch % batches.n_orders * data.n;
        double total = 0;
        for (i64 b = 0; b < batches.count; b++) {
            const i64 first = batches.ends[b], last = batches.ends[b + 1];
            i64 count = 0;
            for (i64 i = first; i < last; i++) {
                rows.data()[count] = order[i];
                count += present[order[i]];
            }
            total = of_batch(gradients, data, rows.data(), count, packed, v, size, total);
            if (packed && advance(state, total, schedule)) std::copy(v.net, v.net + size, v.best);
            state.steps += 1;
            const double share = double(data.n) / double(last - first);
            adam(v.net, v.gradient, share, v.mean, v.square, v.sign, size, state.steps, state.rate);
        }
        if (!packed && advance(state, total, schedule)) std::copy(v.net, v.net + size, v.best);
    }
    return GCE_OK;
}

} // namespace

GCE_EXPORT i64 gce_tile() { return TILE; }

GCE_EXPORT i64 gce_chunk() { return CHUNK; }

GCE_EXPORT double gce_gradient_units() { return GRADIENT_UNITS; }

GCE_EXPORT double gce_value_units() { return VALUE_UNITS; }

GCE_EXPORT int gce_advance(double *state, double value, const double *schedule) {
    return advance(*reinterpret_cast<State *>(state), value, *reinterpret_cast<const Schedule *>(schedule));
}

#define GCE_TRAINING(T, NAME)                                                                                            \
    GCE_EXPORT int gce_pack_##NAME(const T *X, const T *S, i64 n, const i64 *rows, i64 count, const i64 *shape,          \
                                   T *packed) {                                                                          \
        const Shape known(shape);                                                                                        \
        for (i64 row = 0; row < count; row += TILE)                                                                      \
            pack(Rows<T>{X, S, n}, known, rows + row, std::min(TILE, count - row), packed + row * (known.d + known.k));  \
        return GCE_OK;                                                                                                   \
    }                                                                                                                    \
    GCE_EXPORT int gce_chunk_gradients_##NAME(const T *X, const T *S, i64 n, const i64 *rows, i64 count, const T *packed,\
                                              i64 is_packed, i64 first, const T *net, const i64 *shape, T *into,         \
                                              double *value) {                                                           \
        return guarded([&] {                                                                                             \
            Gradients<T> gradients{Shape(shape)};                                                                        \
            gradients.set(net);                                                                                          \
            *value = gradients.of_chunk(Rows<T>{X, S, n}, rows, count, is_packed ? packed : nullptr, first, into);       \
            return GCE_OK;                                                                                               \
        });                                                                                                              \
    }                                                                                                                    \
    GCE_EXPORT int gce_piece_sums_##NAME(const T *X, const T *S, i64 n, const i64 *rows, const i64 *ends, i64 pieces,     \
                                         const T *net, const i64 *shape, i64 *sums) {                                    \
        return guarded([&] { return piece_sums(Rows<T>{X, S, n}, rows, ends, pieces, net, Shape(shape), sums); });       \
    }                                                                                                                    \
    GCE_EXPORT int gce_adam_##NAME(T *net, const T *gradient, double share, T *mean, T *square, const T *sign, i64 size, \
                                   double steps, double rate) {                                                          \
        adam(net, gradient, share, mean, square, sign, size, steps, rate);                                               \
        return GCE_OK;                                                                                                   \
    }                                                                                                                    \
    GCE_EXPORT int gce_train_##NAME(const T *X, const T *S, i64 n, const u8 *present, const T *packed, i64 is_packed,    \
                                    const i64 *orders, i64 n_orders, i64 epochs, const i64 *ends, i64 n_batches,         \
                                    T *vectors, double *state, const double *schedule, const i64 *shape) {               \
        return guarded([&] {                                                                                             \
            return train(Rows<T>{X, S, n}, present, is_packed ? packed : nullptr,                                        \
                         Batches{orders, n_orders, ends, n_batches}, epochs, vectors,                                    \
                         *reinterpret_cast<State *>(state), *reinterpret_cast<const Schedule *>(schedule),               \
                         Shape(shape));                                                                                  \
        });                                                                                                              \
    }
GCE_TRAINING(double, f64)
GCE_TRAINING(float, f32)
