// Extremely randomised trees on a GPU: the trees of native/grow_random.cpp to the bit, because all sums are integers.
//
// A block grows the first nodes of a tree, and leaves those of few rows to a second kernel, whose warps take one such node each
// and grow all that is below it. A lane has a column: the record of a row (its codes and targets) is read once for all of them.
//
// No place of a node is reserved: a cut is known by where the rows of its right side begin, a leaf by where its rows begin. Nodes
// of one level follow each other as their rows do, and gce/bases/trees/grower_forest.py puts the levels one after another.
#pragma once

#include "forest_node.cuh"

// Nodes that wait in a block or warp: of two children the larger waits, so that each is at most half of the one before.
constexpr int MOST_WAITING = 40;

struct Stack {
    Part part[MOST_WAITING];
    int count;
};

// Most threads of a block whose warps grow nodes of few rows.
constexpr int SMALL = THREADS / 2;

// Columns of a table that is not wide are kept in shared memory.
constexpr i64 NEAR_COLUMNS = 128, NEAR_WORDS = NEAR_COLUMNS / 2;

// A team's columns, ascending, where it has them.
template <class Team> i32 *near_or_far(const Team &team, i64 d, u64 *near, i32 *far) {
    i32 *const columns = d <= NEAR_COLUMNS ? reinterpret_cast<i32 *>(near) : far;
    for (i64 i = team.thread(); i < d; i += team.threads())
        columns[i] = static_cast<i32>(i);
    team.sync();
    return columns;
}

// Children of a node that is cut; the smaller one is taken next.
template <class Push> void push_children(const Part &part, const Cut &cut, const Push &push) {
    const u32 rows = static_cast<u32>(cut.rows);
    const Part left{key_of_left(part.key), part.first, rows, part.tree, part.depth + 1};
    const Part right{key_of_right(part.key), part.first + rows, part.size - rows, part.tree, part.depth + 1};
    push(left.size < right.size ? right : left);
    push(left.size < right.size ? left : right);
}

template <Kind KIND, bool WEIGHTED> void grow_large(const Forest &forest) {
    u64 *const memory = shared_words();
    BlockTeam team(memory);
    u64 *const near = memory + BlockTeam::WORDS;
    Stack &stack = *reinterpret_cast<Stack *>(near + NEAR_WORDS);
    static_assert(8 * (BlockTeam::WORDS + NEAR_WORDS) + sizeof(Stack) <= SHARED_BYTES, "a block has no more");
    i32 *const columns = near_or_far(team, forest.d, near, forest.block_columns + block() * forest.d);
    const u32 tree = static_cast<u32>(block());
    Grower<KIND, WEIGHTED, BlockTeam> grower(forest, team, columns, tree);
    const i64 n = forest.tree_rows(tree);
    u32 *const order = forest.order_of(tree, 0);
    for (i64 i = thread(); i < n; i += threads())
        order[i] = static_cast<u32>(i);
    const auto push = [&](const Part &part) {
        if (part.size > forest.few)
            stack.part[stack.count++] = part;
        else
            forest.waiting[add_atomic(forest.pushed, u64(1))] = part;
    };
    if (thread() == 0) {
        stack.count = 0;
        push({forest.seed[tree], 0, static_cast<u32>(n), tree, 0});
    }
    synchronise();
    while (stack.count > 0) {
        const Part part = stack.part[stack.count - 1];
        synchronise();
        const Cut cut = grower.grow(part);
        if (thread() == 0) {
            stack.count--;
            if (cut.column >= 0)
                push_children(part, cut, push);
        }
        synchronise();
    }
}

template <Kind KIND, bool WEIGHTED> void grow_small(const Forest &forest) {
    u64 *const memory = shared_words();
    constexpr i64 WORDS = WarpTeam::WORDS + NEAR_WORDS + (sizeof(Stack) + 7) / 8;
    static_assert(8 * WORDS * (THREADS / LANES) <= SHARED_BYTES, "a block has no more");
    u64 *const near = memory + warp() * WORDS + WarpTeam::WORDS;
    WarpTeam team(memory + warp() * WORDS);
    Stack &stack = *reinterpret_cast<Stack *>(near + NEAR_WORDS);
    i32 *const far = forest.warp_columns + (block() * (threads() / LANES) + warp()) * forest.d;
    i32 *const columns = near_or_far(team, forest.d, near, far);
    while (true) {
        u64 taken = 0;
        if (lane() == 0)
            taken = add_atomic(forest.taken, u64(1));
        taken = from_lane(taken, 0);
        if (taken >= *forest.pushed)
            return;
        if (lane() == 0) {
            stack.count = 1;
            stack.part[0] = forest.waiting[taken];
        }
        synchronise_warp();
        Grower<KIND, WEIGHTED, WarpTeam> grower(forest, team, columns, stack.part[0].tree);
        while (stack.count > 0) {
            const Part part = stack.part[stack.count - 1];
            synchronise_warp();
            const Cut cut = grower.grow(part);
            if (lane() == 0) {
                stack.count--;
                if (cut.column >= 0)
                    push_children(part, cut, [&](const Part &child) { stack.part[stack.count++] = child; });
            }
            synchronise_warp();
        }
    }
}

// Bounds of registers: several blocks share a multiprocessor.
#define GCE_GROW_LARGE(KIND) GCE_BOUNDS_OF(THREADS, KIND == SINGLE ? 2 : 1)
#define GCE_GROW_SMALL(KIND) GCE_BOUNDS_OF(SMALL, KIND == SINGLE ? 3 : 2)

template <bool LARGE, Kind KIND> void grow(const Forest &forest) {
    if constexpr (LARGE)
        forest.weighted ? grow_large<KIND, true>(forest) : grow_large<KIND, false>(forest);
    else
        forest.weighted ? grow_small<KIND, true>(forest) : grow_small<KIND, false>(forest);
}
