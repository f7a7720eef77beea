// Extremely randomised trees on a GPU: the trees of native/grow_random.cpp to the bit, because all sums are integers.
//
// A block grows the first nodes of a tree, and leaves those of few rows to a second kernel, whose warps take one such node each
// and grow all that is below it. A lane has a column: the record of a row (its codes and targets) is read once for all of them.
//
// No place of a node is reserved: a cut is known by where the rows of its right side begin, a leaf by where its rows begin. Nodes
// of one level follow each other as their rows do, and gce/bases/trees/grower_forest.py puts the levels one after another.
#include "forest_node.cuh"

// Nodes that wait in a block or warp: of two children the larger waits, so that each is at most half of the one before.
constexpr int MOST_WAITING = 40;

struct Stack {
    Part part[MOST_WAITING];
    int count;
};

// Children of a node that is cut; the smaller one is taken next.
template <class Push> void push_children(const Part &part, const Cut &cut, const Push &push) {
    const u32 rows = static_cast<u32>(cut.rows);
    const Part left{key_of_left(part.key), part.first, rows, part.tree, part.depth + 1};
    const Part right{key_of_right(part.key), part.first + rows, part.size - rows, part.tree, part.depth + 1};
    push(left.size < right.size ? right : left);
    push(left.size < right.size ? left : right);
}

template <Kind KIND, bool WEIGHTED> void grow_large(const Forest &forest, u64 *memory) {
    BlockTeam team(memory);
    Stack &stack = *reinterpret_cast<Stack *>(memory + BlockTeam::WORDS);
    i32 *const columns = forest.block_columns + block_index() * forest.d;
    const u32 tree = static_cast<u32>(block_index());
    Grower<KIND, WEIGHTED, BlockTeam> grower(forest, team, columns, tree);
    const i64 n = forest.tree_rows(tree);
    u32 *const order = forest.order_of(tree, 0);
    for (i64 i = thread_index(); i < n; i += thread_count())
        order[i] = static_cast<u32>(i);
    const auto push = [&](const Part &part) {
        if (part.size > forest.few)
            stack.part[stack.count++] = part;
        else
            forest.waiting[fetch_add(forest.pushed, u64(1))] = part;
    };
    if (thread_index() == 0) {
        stack.count = 0;
        push({forest.seed[tree], 0, static_cast<u32>(n), tree, 0});
    }
    sync_block();
    while (stack.count > 0) {
        const Part part = stack.part[stack.count - 1];
        sync_block();
        const Cut cut = grower.grow(part);
        if (thread_index() == 0) {
            stack.count--;
            if (cut.column >= 0)
                push_children(part, cut, push);
        }
        sync_block();
    }
}

template <Kind KIND, bool WEIGHTED> void grow_small(const Forest &forest, u64 *memory) {
    const int warp = thread_index() / WARP;
    WarpTeam team(memory + warp * WarpTeam::WORDS);
    Stack &stack = reinterpret_cast<Stack *>(memory + thread_count() / WARP * WarpTeam::WORDS)[warp];
    i32 *const columns = forest.warp_columns + (block_index() * (thread_count() / WARP) + warp) * forest.d;
    while (true) {
        u64 taken = 0;
        if (lane_index() == 0)
            taken = fetch_add(forest.taken, u64(1));
        taken = from_lane(taken, 0);
        if (taken >= *forest.pushed)
            return;
        if (lane_index() == 0) {
            stack.count = 1;
            stack.part[0] = forest.waiting[taken];
        }
        sync_warp();
        Grower<KIND, WEIGHTED, WarpTeam> grower(forest, team, columns, stack.part[0].tree);
        while (stack.count > 0) {
            const Part part = stack.part[stack.count - 1];
            sync_warp();
            const Cut cut = grower.grow(part);
            if (lane_index() == 0) {
                stack.count--;
                if (cut.column >= 0)
                    push_children(part, cut, [&](const Part &child) { stack.part[stack.count++] = child; });
            }
            sync_warp();
        }
    }
}

template <bool LARGE, Kind KIND> void grow(const Forest &forest, u64 *memory) {
    if constexpr (LARGE)
        forest.weighted ? grow_large<KIND, true>(forest, memory) : grow_large<KIND, false>(forest, memory);
    else
        forest.weighted ? grow_small<KIND, true>(forest, memory) : grow_small<KIND, false>(forest, memory);
}

// One kernel for each kind of targets: registers are those of the kind that needs the most.
#define GCE_GROW(name, LARGE, KIND) \
    GCE_KERNEL GCE_BOUNDS(LARGE ? 512 : 256, KIND == SINGLE ? (LARGE ? 2 : 3) : (LARGE ? 1 : 2)) name(Forest forest) { \
        GCE_SHARED(memory); \
        grow<LARGE, KIND>(forest, memory); \
    }

GCE_GROW(grow_large_single, true, SINGLE)
GCE_GROW(grow_large_several, true, SEVERAL)
GCE_GROW(grow_large_classes, true, CLASSES)
GCE_GROW(grow_small_single, false, SINGLE)
GCE_GROW(grow_small_several, false, SEVERAL)
GCE_GROW(grow_small_classes, false, CLASSES)
