// Shapley values of trees against rows of a background.
//
// In the game of a row x and a row b a coalition has x's values for its players and b's for all others. A leaf is reached by
// coalitions that have all players of the path that only x follows (a of them) and none of those that only b follows (c of them).
// Its value v gives each of the former v (a - 1)! c! / (a + c)!, and takes v a! (c - 1)! / (a + c)! from each of the latter
// (Lundberg et al., 2020). A walk goes to both sides only where x and b differ and the player has not been decided on the path,
// and returns sums of these numbers over the leaves below.
#include "shapley.hpp"

namespace {

// Where a player stands on a path.
enum Side : u8 { UNDECIDED, ROW, OTHER_ROW };

struct BackgroundJob {
    const Trees &trees;
    const double *X;
    i64 n, width;
    const double *background, *share;
    i64 others;
    const i32 *player_of;
    i64 players;
    const double *weight;
    const i64 *into;
    double *result;
};

// The number of ways to choose a of a + c, inverted: no factorial overflows.
double coalition_weight(i64 a, i64 c) {
    double chosen = 1;
    for (i64 i = 1; i <= std::min(a, c); i++) chosen = chosen * static_cast<double>(a + c + 1 - i) / static_cast<double>(i);
    return 1 / chosen;
}

struct PairWalk {
    const Trees *of = nullptr;
    TreePlayers tree;
    // for each node whether the row, and each row of the background, passes to the right
    std::vector<u8> right;
    std::vector<u8> others;
    const u8 *other = nullptr;
    std::vector<u8> side;
    // sums below by depth, for players of the row and of the other; values by slot
    std::vector<double> sums, phi;
    // weights of leaves by a and c, fewer than `most` each
    std::vector<double> weights;
    i64 most = 0;
    std::vector<i64> depths;

    void set(const Trees &trees, i64 t, const i32 *player_of) {
        of = &trees;
        tree.set(trees, t, player_of);
        most = std::min(slots(), deepest()) + 1;
        weights.resize(most * most);
        for (i64 a = 0; a < most; a++)
            for (i64 c = 0; c < most; c++) weights[a * most + c] = coalition_weight(a, c);
        right.assign(tree.size, 0);
        side.assign(slots(), UNDECIDED);
    }

    i64 slots() const { return static_cast<i64>(tree.player.size()); }

    i64 deepest() {
        depths.assign(tree.size, 0);
        for (i64 node = 1; node < tree.size; node++) depths[node] = depths[tree.parent[node]] + 1;
        return *std::max_element(depths.begin(), depths.end());
    }

    void compare(const double *row, u8 *to) const {
        for (i64 node = 0; node < tree.size; node++)
            if (!tree.is_leaf(*of, node)) to[node] = passes_right(*of, tree.root + node, row[of->feature[tree.root + node]]);
    }

    void compare_pattern(i64 pattern, u8 *to) const {
        for (i64 node = 0; node < tree.size; node++) to[node] = tree.pattern_right(node, pattern);
    }

    double *sums_at(i64 depth) {
        const i64 each = 2 * of->outputs;
        if (static_cast<i64>(sums.size()) < (depth + 2) * each) sums.resize((depth + 2) * each);
        return &sums[depth * each];
    }

    // Add the values of all players below a node, where `a` and `c` are decided above, times a share.
    void walk(i64 node, i64 depth, i64 a, i64 c, double share) {
        const i64 outputs = of->outputs;
        i64 left;
        // where only one way is open there is nothing to add
        for (; (left = of->left[tree.root + node]) != 0;) {
            const u8 decided = side[tree.slot[node]];
            if (right[node] == other[node] || decided == ROW)
                node = left + right[node];
            else if (decided == OTHER_ROW)
                node = left + other[node];
            else
                break;
        }
        double *sum = sums_at(depth);
        if (left == 0) {
            // (a - 1)! c! / (a + c)! and a! (c - 1)! / (a + c)!
            const double all = weights[a * most + c];
            const double for_row = a ? all / static_cast<double>(a) : 0, for_other = c ? all / static_cast<double>(c) : 0;
            for (i64 j = 0; j < outputs; j++) {
                const double value = share * leaf_value(*of, tree.root + node, j);
                sum[j] = value * for_row;
                sum[outputs + j] = value * for_other;
            }
            return;
        }
        const i32 slot = tree.slot[node];
        side[slot] = ROW;
        walk(left + right[node], depth + 1, a + 1, c, share);
        add_up(slot, depth, true);
        side[slot] = OTHER_ROW;
        walk(left + other[node], depth + 1, a, c + 1, share);
        add_up(slot, depth, false);
        side[slot] = UNDECIDED;
    }

    void add_up(i32 slot, i64 depth, bool of_row) {
        const i64 outputs = of->outputs;
        double *sum = sums_at(depth);
        const double *below = sum + 2 * outputs;
        for (i64 j = 0; j < outputs; j++) phi[slot * outputs + j] += of_row ? below[j] : -below[outputs + j];
        for (i64 j = 0; j < 2 * outputs; j++) sum[j] = of_row ? below[j] : sum[j] + below[j];
    }

    void begin() { phi.assign(slots() * of->outputs, 0); }
};

void add_phi(const BackgroundJob &job, const PairWalk &walk, i64 t, i64 row, const double *phi) {
    const i64 outputs = job.trees.outputs;
    double *to = job.result + (job.into[t] * job.n + row) * job.players * outputs;
    for (i64 s = 0; s < walk.slots(); s++)
        for (i64 j = 0; j < outputs; j++)
            to[walk.tree.player[s] * outputs + j] += job.weight[t * outputs + j] * phi[s * outputs + j];
}

// A symmetric tree: rows that pass its levels alike have the same values, and rows of the background do the same to others.
void add_patterns(const BackgroundJob &job, PairWalk &walk, i64 t, i64 start, i64 end, std::vector<double> &table) {
    const i64 patterns = i64(1) << walk.tree.levels, each = walk.slots() * job.trees.outputs;
    std::vector<double> share(patterns, 0.0);
    for (i64 b = 0; b < job.others; b++) share[walk.tree.pattern_of(job.trees, job.background + b * job.width)] += job.share[b];
    walk.others.assign(walk.tree.size, 0);
    walk.other = walk.others.data();
    table.clear();
    for (i64 own = 0; own < patterns; own++) {
        walk.begin();
        walk.compare_pattern(own, walk.right.data());
        for (i64 b = 0; b < patterns; b++) {
            if (share[b] == 0) continue;
            walk.compare_pattern(b, walk.others.data());
            walk.walk(0, 0, 0, 0, share[b]);
        }
        table.insert(table.end(), walk.phi.begin(), walk.phi.end());
    }
    for (i64 i = start; i < end; i++)
        add_phi(job, walk, t, i, table.data() + walk.tree.pattern_of(job.trees, job.X + i * job.width) * each);
}

void add_pairs_of_rows(const BackgroundJob &job, PairWalk &walk, i64 t, i64 start, i64 end) {
    walk.others.assign(job.others * walk.tree.size, 0);
    for (i64 b = 0; b < job.others; b++) walk.compare(job.background + b * job.width, &walk.others[b * walk.tree.size]);
    for (i64 i = start; i < end; i++) {
        walk.compare(job.X + i * job.width, walk.right.data());
        walk.begin();
        for (i64 b = 0; b < job.others; b++) {
            walk.other = &walk.others[b * walk.tree.size];
            walk.walk(0, 0, 0, 0, job.share[b]);
        }
        add_phi(job, walk, t, i, walk.phi.data());
    }
}

int add_against(const BackgroundJob &job, i64 start, i64 end) {
    PairWalk walk;
    std::vector<double> table;
    for (i64 t = 0; t < static_cast<i64>(job.trees.trees.size()); t++) {
        walk.set(job.trees, t, job.player_of);
        if (walk.tree.size == 1) continue;
        // decided by all rows: those of one part may be few, and sums over patterns round differently from sums over rows
        if (walk.tree.levels > 0 && job.n > i64(1) << walk.tree.levels)
            add_patterns(job, walk, t, start, end, table);
        else
            add_pairs_of_rows(job, walk, t, start, end);
    }
    return GCE_OK;
}

} // namespace

// As gce_shapley_values, against rows of a background with shares that sum to 1.
GCE_EXPORT int gce_shapley_against(const Trees *trees, const double *X, i64 n, i64 width, const double *background,
                                   const double *share, i64 others, const i32 *player_of, i64 players, const double *weight,
                                   const i64 *into, double *result, i64 start, i64 end) {
    return guarded([&] {
        return add_against({*trees, X, n, width, background, share, others, player_of, players, weight, into, result}, start, end);
    });
}
