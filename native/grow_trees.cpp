// Trees of one round, for each member one per output or one for all, each grown by whichever thread is free.
#include <atomic>

#include "best_first.hpp"
#include "round.hpp"
#include "symmetric.hpp"
#include "vector_trees.hpp"

namespace {

// Rows with a Hessian in any output, or a share of them by a hash of what they hold: equal rows are drawn together,
// whatever other rows there are.
i64 sample_rows(const Round &round, i64 member, u32 *rows) {
    const double *H = round.H + member * round.n_train * round.outputs, limit = std::ldexp(round.subsample, 64);
    for (const bool all : {round.subsample >= 1, true}) {
        i64 count = 0;
        for (i64 i = 0; i < round.n_train; i++) {
            bool used = false;
            for (i64 j = 0; j < round.outputs; j++)
                used |= H[i * round.outputs + j] != 0;
            if (used && !all)
                used = drawn(round.names[i], round.keys[member], limit);
            rows[count] = static_cast<u32>(i);
            count += used;
        }
        if (all)
            return count;
        i64 everywhere = count;
        if (round.reduce)
            round.reduce(&everywhere, 1, ADDED);
        // a sample without rows is none: all rows are used
        if (everywhere > 0)
            return count;
    }
    return 0;
}

struct Drawn {
    u32 *rows;
    i64 *columns;
};

Drawn take_drawn(const Round &round, Arena &arena) {
    return {arena.take<u32>(round.n_train), arena.take<i64>(round.n_columns)};
}

Kinds kinds(const Round &round, i64 member) {
    if (!round.mixed())
        return {};
    return {round.missing, round.categorical,
            {round.smoothing[member], round.rarest[member], round.extra[member], round.few, round.most}};
}

struct Largest {
    double D, H;
};

// The largest gradient and Hessian of the outputs of a tree, of all shards.
Largest largest_of(const Round &round, i64 member, i64 output) {
    Largest found = {0, 0};
    const auto see = [&](double D, double H) { found = {std::max(found.D, std::fabs(D)), std::max(found.H, H)}; };
    if (round.largest) {
        for (i64 j = output; j < round.outputs; j += round.trees)
            see(round.largest[j], round.largest[round.outputs + j]);
        return found;
    }
    const i64 size = round.n_train * round.outputs;
    for (i64 i = output; i < size; i += round.trees)
        see(round.D[member * size + i], round.H[member * size + i]);
    if (round.reduce) {
        // numbers that are not negative have the order of their bits
        i64 bits[2];
        std::memcpy(bits, &found, sizeof(bits));
        round.reduce(bits, 2, LARGEST);
        std::memcpy(&found, bits, sizeof(bits));
    }
    return found;
}

Training training(const Round &round, i64 tree, const Drawn &drawn) {
    const i64 member = tree / round.trees, output = tree % round.trees;
    const i64 n = sample_rows(round, member, drawn.rows);
    sample_columns(round.keys[member], output, round.n_columns, round.columns_per_tree, drawn.columns);
    const double *D = round.D + member * round.n_train * round.outputs, *H = round.H + member * round.n_train * round.outputs;
    const Largest largest = largest_of(round, member, output);
    return {{round.codes, round.n_rows},
            drawn.rows,
            n,
            D,
            H,
            round.outputs,
            output,
            drawn.columns,
            round.columns_per_tree,
            round.widths,
            round.least[member],
            round.l2[member],
            {round.sign, round.group, round.group_words},
            round.reduce,
            exponent_for(largest.D),
            exponent_for(largest.H),
            round.threads,
            kinds(round, member),
            // rows that are not trained on are the same everywhere
            round.all_train + round.n_rows - round.n_train,
            round.bundles};
}

// The memory of the widest tree that could be drawn: all rows and all columns.
i64 scratch_size(const Round &round) {
    Arena arena(nullptr);
    const Drawn drawn = take_drawn(round, arena);
    Training all{{round.codes, round.n_rows}, drawn.rows, round.n_train, nullptr,      nullptr, round.outputs, 0,
                 nullptr,                     round.n_columns, round.widths};
    all.constraints = {round.sign, round.group, round.group_words};
    all.bundles = round.bundles, all.reduce_sums = round.reduce;
    if (round.leaf_values() > 1) {
        if (round.symmetric)
            VectorSymmetric(arena, all, round.n_train, round.depth);
        else
            VectorBestFirst(arena, all, round.n_train, round.leaves, round.depth);
        return arena.used();
    }
    // columns of any kind take the same memory, but for the plans of nodes
    if (round.symmetric)
        Symmetric<true>(arena, all, round.depth);
    else
        BestFirst<true>(arena, all, round.leaves, round.depth);
    return arena.used();
}

template <bool MIXED> void grow(const Round &round, i64 at, void *scratch) {
    Arena arena(scratch);
    const Drawn drawn = take_drawn(round, arena);
    const Training given = training(round, at, drawn);
    const Tree tree = round.tree(at, round.leaf + at * round.n_rows);
    round.size[at] = round.symmetric ? Symmetric<MIXED>(arena, given, round.depth).grow(tree)
                                     : BestFirst<MIXED>(arena, given, round.leaves, round.depth).grow(tree);
}

// One tree for all outputs.
void grow_vectors(const Round &round, i64 at, void *scratch) {
    Arena arena(scratch);
    const Drawn drawn = take_drawn(round, arena);
    const Training given = training(round, at, drawn);
    const Tree tree = round.tree(at, round.leaf + at * round.n_rows);
    round.size[at] = round.symmetric ? VectorSymmetric(arena, given, round.n_train, round.depth).grow(tree)
                                     : VectorBestFirst(arena, given, round.n_train, round.leaves, round.depth).grow(tree);
}

} // namespace

// Bytes of memory that a thread needs.
GCE_EXPORT i64 gce_grow_scratch(const Round *round) { return scratch_size(*round); }

// Grow trees until none is left; several threads may be here at once.
GCE_EXPORT void gce_grow_trees(const Round *round, void *scratch) {
    static_assert(sizeof(std::atomic<i64>) == sizeof(i64), "a counter is an integer");
    auto *next = reinterpret_cast<std::atomic<i64> *>(round->next);
    const auto how = round->leaf_values() > 1 ? grow_vectors : round->mixed() ? grow<true> : grow<false>;
    for (i64 at = next->fetch_add(1); at < round->members * round->trees; at = next->fetch_add(1))
        how(*round, at, scratch);
}

// Trees as atoms in units of the bound, and their outputs (M, N, k). Where only its direction counts (`free`), an atom is
// scaled until its farthest leaf reaches the bound: one step serves all of its outputs. `length` (M,) receives the scale.
GCE_EXPORT void gce_scale_trees(const Round *round, const double *bound, i64 free, double *length, double *outputs,
                                i64 member) {
    const i64 k = round->outputs, width = round->leaf_values(), trees = round->trees;
    double farthest = 0;
    for (i64 t = 0; t < trees; t++) {
        double *value = round->value + (member * trees + t) * round->most_nodes * width;
        for (i64 i = 0; i < round->size[member * trees + t]; i++)
            for (i64 v = 0; v < width; v++) {
                value[i * width + v] /= bound[t + v];
                farthest = std::max(farthest, std::fabs(value[i * width + v]));
            }
    }
    length[member] = free && farthest > 0 ? farthest : 1.0;
    double *out = outputs + member * round->n_rows * k;
    for (i64 t = 0; t < trees; t++) {
        double *value = round->value + (member * trees + t) * round->most_nodes * width;
        for (i64 i = 0; i < round->size[member * trees + t] * width; i++)
            value[i] = std::min(std::max(value[i] / length[member], -1.0), 1.0);
        const i32 *leaf = round->leaf + (member * trees + t) * round->n_rows;
        for (i64 i = 0; i < round->n_rows; i++)
            for (i64 v = 0; v < width; v++)
                out[i * k + t + v] = bound[t + v] * value[leaf[i] * width + v];
    }
}
