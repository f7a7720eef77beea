// Rows dropped through trees on a GPU: a thread has a row, and walks several trees side by side so that their loads overlap.
//
// The leaves of a row are added tree by tree, in the order of the trees of a sum, as on a processor.
#include "threads.cuh"

// A node: rows whose value in a column is beyond the threshold go to the child after the left one. A leaf leads to itself, because
// nothing is beyond infinity.
struct alignas(16) Node {
    double threshold;
    u32 left;
    i32 column;
};

struct Trees {
    const Node *nodes;
    const u32 *roots;
    const void *value; // (nodes, outputs)
    i64 outputs;
};

// Sums of leaves of some trees each: those of sum s are order[start[s]] to order[start[s + 1] - 1], with weights (trees, outputs).
struct Sums {
    const i32 *order;
    const i64 *start;
    i64 count;
    const double *weight;
    double *result; // (count, rows, outputs)
};

constexpr int AT_ONCE = 4;

inline Node node_at(const Node *at) {
#if defined(__CUDACC_RTC__)
    const ulonglong2 raw = __ldg(reinterpret_cast<const ulonglong2 *>(at));
    return {__longlong_as_double(static_cast<i64>(raw.x)), static_cast<u32>(raw.y), static_cast<i32>(raw.y >> 32)};
#else
    return *at;
#endif
}

// Leaves of one row in some trees; a last tree stands in for those that are not there.
template <class Number>
void walk(const Trees &trees, const i32 *order, i64 some, const Number *x, int stride, u32 *at) {
    for (int q = 0; q < AT_ONCE; q++)
        at[q] = read_only(trees.roots + read_only(order + (q < some ? q : some - 1)));
    u32 moving;
    do {
        moving = 0;
        for (int q = 0; q < AT_ONCE; q++) {
            const Node node = node_at(trees.nodes + at[q]);
            const u32 next = node.left + (static_cast<double>(x[node.column * stride]) > node.threshold);
            moving |= next ^ at[q];
            at[q] = next;
        }
    } while (moving);
}

template <class Value> double leaf(const Trees &trees, u32 node, i64 j) {
    return static_cast<double>(read_only(static_cast<const Value *>(trees.value) + node * trees.outputs + j));
}

// One sum of one row with one output, in a register.
template <class Value, class Number>
void add_numbers(const Trees &trees, const Sums &sums, i64 s, const Number *x, int stride, double *into) {
    double total = 0.0;
    u32 at[AT_ONCE];
    for (i64 t = sums.start[s], end = sums.start[s + 1]; t < end; t += AT_ONCE) {
        const i64 some = smaller<i64>(AT_ONCE, end - t);
        walk(trees, sums.order + t, some, x, stride, at);
        for (int q = 0; q < AT_ONCE; q++)
            if (q < some)
                total += read_only(sums.weight + read_only(sums.order + t + q)) * leaf<Value>(trees, at[q], 0);
    }
    *into = total;
}

template <class Value, class Number>
void add_vectors(const Trees &trees, const Sums &sums, i64 s, const Number *x, int stride, double *into) {
    u32 at[AT_ONCE];
    for (i64 j = 0; j < trees.outputs; j++)
        into[j] = 0.0;
    for (i64 t = sums.start[s], end = sums.start[s + 1]; t < end; t += AT_ONCE) {
        const i64 some = smaller<i64>(AT_ONCE, end - t);
        walk(trees, sums.order + t, some, x, stride, at);
        for (i64 j = 0; j < trees.outputs; j++) {
            double total = into[j];
            for (int q = 0; q < AT_ONCE; q++)
                if (q < some)
                    total += read_only(sums.weight + read_only(sums.order + t + q) * trees.outputs + j) * leaf<Value>(trees, at[q], j);
            into[j] = total;
        }
    }
}

// Some sums of one row, whose values in the columns are a stride apart.
template <class Value, class Number>
void add_row(const Trees &trees, const Sums &sums, i64 first, i64 step, const Number *x, int stride, i64 row, i64 rows) {
    for (i64 s = first; s < sums.count; s += step) {
        double *const into = sums.result + (s * rows + row) * trees.outputs;
        if (trees.outputs == 1)
            add_numbers<Value>(trees, sums, s, x, stride, into);
        else
            add_vectors<Value>(trees, sums, s, x, stride, into);
    }
}

// Blocks share out tiles of rows, and sums where there are more blocks than tiles. Rows are kept column by column in shared memory
// where it holds them.
template <class Number, class Value>
void sum_leaves(const Trees &trees, const Sums &sums, const Number *X, i64 rows, i64 width, bool tiled) {
    const i64 size = threads(), tiles = (rows + size - 1) / size, part = block() / tiles, parts = blocks() / tiles;
    const i64 first = block() % tiles * size, here = smaller(size, rows - first), row = thread();
    if (!tiled) {
        if (row < here)
            add_row<Value>(trees, sums, part, parts, X + (first + row) * width, 1, first + row, rows);
        return;
    }
    Number *const tile = reinterpret_cast<Number *>(shared_words());
    // one more apart than there are rows: neighbouring numbers of a row are written to different banks
    const int stride = static_cast<int>(size) + 1;
    for (i64 i = row; i < here * width; i += size)
        tile[i % width * stride + i / width] = read_only(X + first * width + i);
    synchronise();
    if (row < here)
        add_row<Value>(trees, sums, part, parts, tile + row, stride, first + row, rows);
}

// numbers: 8 where rows are in double precision, else 4; values: the same of leaves.
GCE_KERNEL void predict_trees(GCE_PARAMETER Trees trees, GCE_PARAMETER Sums sums, const void *X, i64 rows, i64 width, i64 numbers, i64 values, i64 tiled) {
    const float *const single = static_cast<const float *>(X);
    const double *const precise = static_cast<const double *>(X);
    if (numbers == 8 && values == 8)
        sum_leaves<double, double>(trees, sums, precise, rows, width, tiled);
    else if (numbers == 8)
        sum_leaves<double, float>(trees, sums, precise, rows, width, tiled);
    else if (values == 8)
        sum_leaves<float, double>(trees, sums, single, rows, width, tiled);
    else
        sum_leaves<float, float>(trees, sums, single, rows, width, tiled);
}
