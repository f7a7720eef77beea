// Extremely randomised trees on binned rows.
//
// What a row has moves with it (its codes, four columns to a word, or its index where few of the columns are looked at;
// weight; targets): a node's rows are adjacent, and are read in sequence.
#include <cstring>
#include <memory>

#include "part_rows.hpp"
#include "random_draws.hpp"
#include "random_targets.hpp"

namespace {

// A later cut must be better by more than the rounding of weights, which rows that are repeated do not have.
constexpr double BETTER = 1e-9;

struct Table {
    const u32 *codes; // (blocks, N): four columns to a word
    i64 N, d;
    const double *values; // of each code of each column
    const i64 *starts;    // (d + 1,)
};

struct Limits {
    i64 tries;
    double least;
    u64 seed;
};

struct Nodes {
    i32 *feature, *cut, *left;
    double *value; // (nodes, k)
};

// Random cuts of several columns, found together: no search waits for another.
struct Cuts {
    explicit Cuts(i64 most) : column(most), code(most), size(most), start(most), point(most) {}

    // A code from low to below high, by a value drawn between theirs: codes alone would know ranks only.
    void add(i64 own, i64 from, const double *values, u32 low, u32 high, u32 drawn) {
        const double share = static_cast<double>(drawn) / 4294967296.0;
        column[count] = static_cast<i32>(own);
        start[count] = from;
        point[count] = values[from + low] + share * (values[from + high] - values[from + low]);
        code[count] = static_cast<i32>(low);
        size[count] = static_cast<i32>(high - low);
        widest = std::max(widest, size[count++]);
    }

    // The largest codes whose values are at most the points, by bisection.
    void find(const double *values) {
        i32 *const GCE_RESTRICT codes = code.data(), *const GCE_RESTRICT sizes = size.data();
        for (; widest > 1; widest -= widest / 2)
            for (i64 i = 0; i < count; ++i) {
                const i32 half = sizes[i] >> 1;
                // no branch, which would be guessed wrong half of the time
                codes[i] += half & -static_cast<i32>(values[start[i] + codes[i] + half] <= point[i]);
                sizes[i] -= half;
            }
    }

    i64 count = 0;
    i32 widest = 0;
    std::vector<i32> column, code, size;
    std::vector<i64> start;
    std::vector<double> point;
};

// LANES bytes that are compared at once, written so that the compiler cannot miss it.
template <int LANES> struct Bytes {
#if defined(__GNUC__)
    typedef u8 Lanes __attribute__((vector_size(LANES)));
    Lanes lane;
    void least(const Bytes &other) { lane = other.lane < lane ? other.lane : lane; }
    void most(const Bytes &other) { lane = other.lane > lane ? other.lane : lane; }
#else
    u8 lane[LANES];
    void least(const Bytes &other) {
        for (int l = 0; l < LANES; ++l)
            lane[l] = other.lane[l] < lane[l] ? other.lane[l] : lane[l];
    }
    void most(const Bytes &other) {
        for (int l = 0; l < LANES; ++l)
            lane[l] = other.lane[l] > lane[l] ? other.lane[l] : lane[l];
    }
#endif
    explicit Bytes(const u8 *from) { std::memcpy(&lane, from, LANES); }
    void keep(u8 *into) const { std::memcpy(into, &lane, LANES); }
};

// The least and the largest of every fourth byte, of at least LANES bytes.
template <int LANES> void range_in_lanes(const u8 *bytes, i64 count, u8 *least, u8 *most) {
    Bytes<LANES> low(bytes), high(bytes);
    for (i64 at = LANES; at < count; at += LANES) {
        // bytes at the end are looked at twice where lanes are left over
        const Bytes<LANES> here(bytes + std::min(at, count - LANES));
        low.least(here);
        high.most(here);
    }
    u8 ends[2][LANES];
    low.keep(ends[0]);
    high.keep(ends[1]);
    if constexpr (LANES > 4) {
        u8 other[LANES];
        range_in_lanes<LANES / 2>(ends[0], LANES, least, other);
        range_in_lanes<LANES / 2>(ends[1], LANES, other, most);
    } else {
        std::memcpy(least, ends[0], 4);
        std::memcpy(most, ends[1], 4);
    }
}

template <Kind KIND, bool WEIGHTED> class Grower {
  public:
    Grower(const Table &table, const u32 *rows, const Targets &given, const Limits &limits, bool moved)
        : table(table), n(given.n), blocks((table.d + 3) / 4), limits(limits), moved(moved), head(moved ? blocks : 1),
          arrays(head + NodeTargets<KIND, WEIGHTED>::arrays(given.k)), buffer(new u32[arrays * n + SPARE]()),
          gathered(new u32[moved ? 0 : n + SPARE]()), targets(given, buffer.get() + head * n), columns(table.d),
          range_of(blocks, -1), low(4 * blocks), high(4 * blocks),
          cuts(std::min(limits.tries, table.d)) {
        for (i64 b = 0; b < blocks && moved; ++b)
            for (i64 i = 0; i < n; ++i)
                buffer[b * n + i] = table.codes[b * table.N + rows[i]];
        if (!moved)
            std::copy(rows, rows + n, buffer.get());
        for (i64 c = 0; c < table.d; ++c)
            columns[c] = static_cast<i32>(c);
    }

    // Grow, level by level, and return the number of nodes.
    i64 grow(const Nodes &out, i64 k) {
        std::vector<u32> begin(2 * n - 1), count(2 * n - 1);
        std::vector<u64> keys(2 * n - 1);
        count[0] = static_cast<u32>(n);
        keys[0] = limits.seed;
        i64 nodes = 1;
        for (node = 0; node < nodes; ++node) {
            first = begin[node];
            size = count[node];
            key = keys[node];
            gathered_block = -1;
            Cut cut;
            if (targets.uneven(first, size)) {
                mass = targets.add_up();
                if (static_cast<double>(mass) >= 2 * limits.least)
                    cut = best_cut();
            }
            out.feature[node] = out.cut[node] = out.left[node] = 0;
            if (cut.column < 0) {
                targets.means(out.value + node * k);
                continue;
            }
            std::fill(out.value + node * k, out.value + (node + 1) * k, 0.0);
            out.feature[node] = static_cast<i32>(cut.column);
            out.cut[node] = static_cast<i32>(cut.code);
            out.left[node] = static_cast<i32>(nodes);
            const Column column = column_of(cut.column);
            part_rows(buffer.get() + first, n, arrays, size, cut.rows, [&](i64 i) { return column.code(i) <= cut.code; });
            begin[nodes] = static_cast<u32>(first);
            count[nodes] = static_cast<u32>(cut.rows);
            begin[nodes + 1] = static_cast<u32>(first + cut.rows);
            count[nodes + 1] = static_cast<u32>(size - cut.rows);
            keys[nodes] = key_of_left(key);
            keys[nodes + 1] = key_of_right(key);
            nodes += 2;
        }
        return nodes;
    }

  private:
    static constexpr i64 SPARE = NodeTargets<KIND, WEIGHTED>::SPARE;

    struct Cut {
        i64 column = -1;
        u32 code = 0;
        i64 rows = 0; // that go left
    };

    // The codes of a block of four columns, for the rows of the node.
    const u32 *words(i64 block) {
        if (moved)
            return buffer.get() + block * n + first;
        if (gathered_block != block) {
            const u32 *const from = table.codes + block * table.N, *const own = buffer.get() + first;
            for (i64 i = 0; i < size; ++i)
                gathered[i] = from[own[i]];
            gathered_block = block;
        }
        return gathered.get();
    }

    Column column_of(i64 column) { return {words(column >> 2), 8 * static_cast<int>(column & 3)}; }

    // The least and the largest code of each of four columns.
    void find_range(i64 block) {
        const u8 *const bytes = reinterpret_cast<const u8 *>(words(block));
        u8 *const least = low.data() + 4 * block, *const most = high.data() + 4 * block;
        if (size >= 8)
            range_in_lanes<32>(bytes, 4 * size, least, most);
        else if (size >= 4)
            range_in_lanes<16>(bytes, 4 * size, least, most);
        else
            range_in_lanes<4>(bytes, 4 * size, least, most);
        range_of[block] = node;
    }

    // Draw one cut in each of several columns that vary here.
    void draw() {
        // two rows are parted in one way only
        const i64 wanted = size > 2 ? limits.tries : 1;
        i64 drawn = 0;
        cuts.count = cuts.widest = 0;
        for (; drawn < table.d && cuts.count < wanted; ++drawn) {
            const u64 number = drawn_number(key, drawn);
            const i64 left = table.d - drawn, pick = pick_of(number, left), column = columns[pick];
            columns[pick] = columns[left - 1];
            if (range_of[column >> 2] != node)
                find_range(column >> 2);
            if (low[column] < high[column])
                cuts.add(column, table.starts[column], table.values, low[column], high[column], static_cast<u32>(number));
        }
        // what a node draws must not depend on those before it
        for (i64 i = 0; i < drawn; ++i) {
            const i64 pick = pick_of(drawn_number(key, i), table.d - i);
            columns[pick] = static_cast<i32>(pick);
        }
        cuts.find(table.values);
    }

    // The best of the cuts that are drawn.
    Cut best_cut() {
        draw();
        Cut best;
        double score = -1.0;
        for (i64 i = 0; i < cuts.count; ++i) {
            const u32 code = static_cast<u32>(cuts.code[i]);
            const Side own = targets.side(column_of(cuts.column[i]), code);
            if (static_cast<double>(own.mass) < limits.least || static_cast<double>(mass - own.mass) < limits.least)
                continue;
            if (own.score > score + BETTER * std::abs(score)) {
                score = own.score;
                best = {cuts.column[i], code, own.rows};
            }
        }
        return best;
    }

    const Table table;
    const i64 n, blocks;
    const Limits limits;
    const bool moved; // codes move with the rows
    const i64 head, arrays;
    const std::unique_ptr<u32[]> buffer;   // (arrays, n): codes or indices of rows, weights, targets
    const std::unique_ptr<u32[]> gathered; // (n,): codes of a block for the rows of the node, where they do not move
    NodeTargets<KIND, WEIGHTED> targets;
    u64 key = 0;
    std::vector<i32> columns;  // (d,): those that are not drawn yet come first
    std::vector<i64> range_of; // (blocks,): the node whose range of codes is known
    std::vector<u8> low, high; // (4 blocks,)
    Cuts cuts;
    i64 node = 0, first = 0, size = 0, mass = 0, gathered_block = -1;
};

template <Kind KIND, bool WEIGHTED>
i64 grown(const Table &table, const u32 *rows, const Targets &targets, const Limits &limits, const Nodes &out) {
    // codes are better read in sequence than gathered, but a copy of all of them, in each thread, is not worth its memory
    // where few of many columns are looked at
    const bool moved = 16 * limits.tries >= table.d;
    return Grower<KIND, WEIGHTED>(table, rows, targets, limits, moved).grow(out, targets.k);
}

} // namespace

// weight and plain may be null: all weights are 1 then. classes says that the target is a class.
GCE_EXPORT int gce_grow_random(const u8 *codes, i64 N, i64 d, const double *values, const i64 *starts, const u32 *rows,
                               i64 n, i64 k, i64 weighted, i64 classes, const i32 *weight, const i32 *target,
                               const i32 *plain, const double *scale, i64 tries, double least, u64 seed, i32 *feature,
                               i32 *cut, i32 *left, double *value, i64 *nodes) {
    return guarded([&] {
        const Table table{reinterpret_cast<const u32 *>(codes), N, d, values, starts};
        const Targets targets{n, k, weight, target, plain, scale};
        const Limits limits{tries, least, seed};
        const Nodes out{feature, cut, left, value};
        const Kind kind = classes ? CLASSES : k == 1 ? SINGLE : SEVERAL;
        const auto run = [&](auto weights) {
            constexpr bool W = decltype(weights)::value;
            return kind == CLASSES  ? grown<CLASSES, W>(table, rows, targets, limits, out)
                   : kind == SINGLE ? grown<SINGLE, W>(table, rows, targets, limits, out)
                                    : grown<SEVERAL, W>(table, rows, targets, limits, out);
        };
        *nodes = weighted ? run(std::true_type{}) : run(std::false_type{});
        return GCE_OK;
    });
}
