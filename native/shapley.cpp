// Shapley values of trees whose nodes know how much of the training weight passed them.
//
// Let z_i be the product of the shares of the weight that a path follows at the nodes of player i, and o_i be 1 where the row
// takes the path at all of them, else 0. A coalition S reaches the leaf with the weight prod_{i in S} o_i prod_{i not in S} z_i,
// and a Shapley value weighs coalitions of the m - 1 other players by s! (m - 1 - s)! / m! = int_0^1 t^s (1 - t)^(m - 1 - s) dt, so
// that the leaf's value v gives player j
//
//     v (o_j - z_j) int_0^1 prod_{i != j} (o_i t + z_i (1 - t)) dt.
//
// The integrand is a polynomial of degree m - 1, which the rule of Gauss and Legendre with m / 2 points (rounded up) integrates
// exactly. All its factors are positive: nothing cancels. With P the product of all factors f_i, one walk through a tree finds P
// on the way down and sums of v P on the way up, where each edge adds to its player what it changes of (o - z) P / f. That takes
// a few operations for a node and a point, instead of the square of the depth for each leaf.
#include "shapley_edges.hpp"

namespace {

// Rows that walk side by side, one in each lane.
constexpr int LANES = 8;
// Numbers of rows that are turned at once.
constexpr i64 NUMBERS = 1 << 20;

struct Lanes {
    double v[LANES];
};

struct Job {
    const Trees &trees;
    const float *cover;
    const double *X;
    i64 n, width;
    const i32 *player_of;
    i64 players;
    const double *weight;
    const i64 *into;
    double *result;
};

// One tree and some rows side by side. Whether a row goes somewhere is 1 or 0: of several products one is kept, and the others are
// 0, which is exact and needs no branch.
struct Walk {
    const Trees *of = nullptr;
    TreePlayers tree;
    Edges edges;
    // the rows column by column, or, of a symmetric tree, the first of as many patterns
    const double *columns = nullptr;
    i64 pattern = 0;
    // of each slot which rows have taken all edges so far
    std::vector<Lanes> taken;
    // level by level: products, and sums over the leaves below by output
    std::vector<Lanes> products, sums;
    // values by slot and output; of pairs by slot, slot and output
    std::vector<Lanes> phi, pairs;
    // of each slot the last edge, and the slots of the path
    std::vector<i32> edge_of, path;

    void set(const Trees &trees, i64 t, const float *cover, const i32 *player_of) {
        of = &trees;
        tree.set(trees, t, player_of);
        edges.set(trees, tree, cover);
        products.resize((edges.deepest + 1) * edges.points);
        sums.resize((edges.deepest + 1) * edges.points * of->outputs);
    }

    i64 slots() const { return static_cast<i64>(tree.player.size()); }

    void begin(const double *rows, i64 first_pattern) {
        columns = rows;
        pattern = first_pattern;
        taken.resize(slots());
        for (Lanes &own : taken) std::fill(own.v, own.v + LANES, 1.0);
        phi.assign(slots() * of->outputs, Lanes{});
        for (i64 q = 0; q < edges.points; q++) std::fill(products[q].v, products[q].v + LANES, 1.0);
    }

    void begin_pairs(const double *rows) {
        begin(rows, 0);
        edge_of.assign(slots(), -1);
        path.clear();
        pairs.assign(slots() * slots() * of->outputs, Lanes{});
    }

    // Which rows pass a node to the right.
    Lanes right(i64 node) const {
        Lanes out;
        if (!columns) {
            for (int r = 0; r < LANES; r++) out.v[r] = tree.pattern_right(node, pattern + r);
            return out;
        }
        const double *value = columns + of->feature[tree.root + node] * LANES, threshold = of->threshold[tree.root + node];
        switch (of->rule_of(tree.root + node)) {
        case Rule::MISSING_LEFT:
            for (int r = 0; r < LANES; r++) out.v[r] = value[r] > threshold ? 1.0 : 0.0;
            break;
        case Rule::MISSING_RIGHT:
            for (int r = 0; r < LANES; r++) out.v[r] = value[r] <= threshold ? 0.0 : 1.0;
            break;
        default:
            for (int r = 0; r < LANES; r++) out.v[r] = passes_right(*of, tree.root + node, value[r]);
        }
        return out;
    }

    // The rows that have taken all edges of a player, the next one included: to the right, or to the left.
    static Lanes followed(const Lanes &was, const Lanes &right, i64 side) {
        Lanes is;
        for (int r = 0; r < LANES; r++) is.v[r] = was.v[r] * (side ? right.v[r] : 1.0 - right.v[r]);
        return is;
    }

    // P of a child from its parent's.
    void multiply(i64 child, i64 depth, const Lanes &was, const Lanes &is) {
        const i64 points = edges.points;
        const double *both = &edges.both[child * points], *one = &edges.one[child * points], neither = edges.neither[child];
        const Lanes *from = &products[depth * points];
        Lanes *to = &products[(depth + 1) * points];
        for (i64 q = 0; q < points; q++)
            for (int r = 0; r < LANES; r++)
                to[q].v[r] = from[q].v[r] * (is.v[r] * both[q] + (was.v[r] - is.v[r]) * one[q] + (1.0 - was.v[r]) * neither);
    }

    // What an edge adds to its player, from sums by point.
    void add(i64 child, const Lanes &was, const Lanes &is, const Lanes *sum, Lanes &total) const {
        const double *both = &edges.add_both[child * edges.points], *one = &edges.add_one[child * edges.points];
        Lanes own = total;
        for (i64 q = 0; q < edges.points; q++)
            for (int r = 0; r < LANES; r++) own.v[r] += sum[q].v[r] * (is.v[r] * both[q] + (was.v[r] - is.v[r]) * one[q]);
        total = own;
    }

    // The values of all players, from the edge above a node down.
    void values(i64 node, i64 depth) {
        const i64 points = edges.points, outputs = of->outputs, left = of->left[tree.root + node];
        Lanes *sum = &sums[depth * outputs * points];
        if (left == 0) {
            for (i64 j = 0; j < outputs; j++) {
                const double value = leaf_value(*of, tree.root + node, j);
                for (i64 q = 0; q < points; q++)
                    for (int r = 0; r < LANES; r++) sum[j * points + q].v[r] = value * products[depth * points + q].v[r];
            }
            return;
        }
        const i32 slot = tree.slot[node];
        const Lanes was = taken[slot], goes = right(node), *below = sum + outputs * points;
        for (i64 side = 0; side < 2; side++) {
            const Lanes is = taken[slot] = followed(was, goes, side);
            multiply(left + side, depth, was, is);
            values(left + side, depth + 1);
            for (i64 j = 0; j < outputs; j++) add(left + side, was, is, below + j * points, phi[slot * outputs + j]);
            for (i64 i = 0; i < outputs * points; i++)
                for (int r = 0; r < LANES; r++) sum[i].v[r] = side ? sum[i].v[r] + below[i].v[r] : below[i].v[r];
        }
        taken[slot] = was;
    }

    // (o - z) / f of a slot's last edge.
    double ratio(i32 slot, i64 q, int r) const {
        const double z = edges.share[edge_of[slot]], t = edges.point[q];
        if (taken[slot].v[r] > 0) return (1 - z) / (t + z * (1 - t));
        return z > 0 ? -1 / (1 - t) : 0;
    }

    // Half of what pairs of players add to each other, leaf by leaf: as above, without two factors.
    void interactions(i64 node, i64 depth) {
        const i64 left = of->left[tree.root + node];
        if (left == 0) {
            for (size_t a = 0; a < path.size(); a++)
                for (size_t b = 0; b < a; b++) add_pair(node, depth, path[a], path[b]);
            return;
        }
        const i32 slot = tree.slot[node], last = edge_of[slot];
        const Lanes was = taken[slot], goes = right(node);
        if (last < 0) path.push_back(slot);
        for (i64 side = 0; side < 2; side++) {
            const Lanes is = taken[slot] = followed(was, goes, side);
            edge_of[slot] = static_cast<i32>(left + side);
            multiply(left + side, depth, was, is);
            interactions(left + side, depth + 1);
        }
        taken[slot] = was;
        edge_of[slot] = last;
        if (last < 0) path.pop_back();
    }

    void add_pair(i64 node, i64 depth, i32 a, i32 b) {
        const i64 points = edges.points, outputs = of->outputs;
        Lanes total{};
        for (i64 q = 0; q < points; q++)
            for (int r = 0; r < LANES; r++)
                total.v[r] += edges.weight[q] * products[depth * points + q].v[r] * ratio(a, q, r) * ratio(b, q, r);
        for (i64 j = 0; j < outputs; j++) {
            const double half = leaf_value(*of, tree.root + node, j) / 2;
            for (i32 first : {a, b}) {
                Lanes &own = pairs[(first * slots() + (first == a ? b : a)) * outputs + j];
                for (int r = 0; r < LANES; r++) own.v[r] += half * total.v[r];
            }
        }
    }
};

// Rows in blocks of LANES, column by column in each; a last row stands in for those that are not there.
void turn_rows(const Job &job, i64 first, i64 count, std::vector<double> &turned) {
    const i64 blocks = (count + LANES - 1) / LANES;
    turned.resize(std::max<i64>(1, blocks * LANES * job.width));
    for (i64 i = 0; i < blocks * LANES; i++) {
        const double *row = job.X + (first + std::min(i, count - 1)) * job.width;
        double *to = &turned[(i / LANES) * LANES * job.width + i % LANES];
        for (i64 c = 0; c < job.width; c++) to[c * LANES] = row[c];
    }
}

// Add what one row has of a tree, of `lane`, to its values.
void add_values(const Job &job, const Walk &walk, i64 t, i64 row, const Lanes *phi, int lane) {
    const i64 outputs = job.trees.outputs;
    double *to = job.result + (job.into[t] * job.n + row) * job.players * outputs;
    for (i64 s = 0; s < walk.slots(); s++)
        for (i64 j = 0; j < outputs; j++)
            to[walk.tree.player[s] * outputs + j] += job.weight[t * outputs + j] * phi[s * outputs + j].v[lane];
}

// A symmetric tree: rows that pass its levels alike have the same values, which are computed once.
void add_by_pattern(const Job &job, Walk &walk, i64 t, i64 first, i64 count, std::vector<Lanes> &table) {
    const i64 patterns = i64(1) << walk.tree.levels, each = walk.slots() * job.trees.outputs;
    table.clear();
    for (i64 pattern = 0; pattern < patterns; pattern += LANES) {
        walk.begin(nullptr, pattern);
        walk.values(0, 0);
        table.insert(table.end(), walk.phi.begin(), walk.phi.end());
    }
    for (i64 i = first; i < first + count; i++) {
        const i64 pattern = walk.tree.pattern_of(job.trees, job.X + i * job.width);
        add_values(job, walk, t, i, table.data() + pattern / LANES * each, static_cast<int>(pattern % LANES));
    }
}

void add_by_rows(const Job &job, Walk &walk, i64 t, i64 first, i64 count, const std::vector<double> &turned) {
    for (i64 block = 0; block * LANES < count; block++) {
        walk.begin(&turned[block * LANES * job.width], 0);
        walk.values(0, 0);
        for (int r = 0; r < LANES && block * LANES + r < count; r++)
            add_values(job, walk, t, first + block * LANES + r, walk.phi.data(), r);
    }
}

// Rows of a chunk: as many as may be turned at once.
i64 chunk_rows(const Job &job) { return std::max<i64>(LANES, NUMBERS / std::max<i64>(job.width, 1) / LANES * LANES); }

int add_all_values(const Job &job, i64 start, i64 end) {
    std::vector<double> turned;
    std::vector<Lanes> table;
    Walk walk;
    for (i64 first = start; first < end; first += chunk_rows(job)) {
        const i64 count = std::min(chunk_rows(job), end - first);
        turn_rows(job, first, count, turned);
        for (i64 t = 0; t < static_cast<i64>(job.trees.trees.size()); t++) {
            walk.set(job.trees, t, job.cover, job.player_of);
            if (walk.tree.size == 1) continue;
            if (walk.tree.levels > 0 && count > i64(1) << walk.tree.levels)
                add_by_pattern(job, walk, t, first, count, table);
            else
                add_by_rows(job, walk, t, first, count, turned);
        }
    }
    return GCE_OK;
}

void add_pairs(const Job &job, const Walk &walk, i64 t, i64 row, int lane) {
    const i64 outputs = job.trees.outputs, slots = walk.slots();
    double *to = job.result + (job.into[t] * job.n + row) * job.players * job.players * outputs;
    for (i64 a = 0; a < slots; a++)
        for (i64 b = 0; b < slots; b++)
            for (i64 j = 0; j < outputs; j++)
                to[(walk.tree.player[a] * job.players + walk.tree.player[b]) * outputs + j] +=
                    job.weight[t * outputs + j] * walk.pairs[(a * slots + b) * outputs + j].v[lane];
}

int add_all_pairs(const Job &job, i64 start, i64 end) {
    std::vector<double> turned;
    Walk walk;
    for (i64 first = start; first < end; first += chunk_rows(job)) {
        const i64 count = std::min(chunk_rows(job), end - first);
        turn_rows(job, first, count, turned);
        for (i64 t = 0; t < static_cast<i64>(job.trees.trees.size()); t++) {
            walk.set(job.trees, t, job.cover, job.player_of);
            for (i64 block = 0; block * LANES < count; block++) {
                walk.begin_pairs(&turned[block * LANES * job.width]);
                walk.interactions(0, 0);
                for (int r = 0; r < LANES && block * LANES + r < count; r++)
                    add_pairs(job, walk, t, first + block * LANES + r, r);
            }
        }
    }
    return GCE_OK;
}

} // namespace

// result[into[t], i, player] += weight[t] * value for rows i from start to end, tree by tree; see gce/bases/trees/shapley.py.
GCE_EXPORT int gce_shapley_values(const Trees *trees, const float *cover, const double *X, i64 n, i64 width, const i32 *player_of,
                                  i64 players, const double *weight, const i64 *into, double *result, i64 start, i64 end) {
    return guarded([&] { return add_all_values({*trees, cover, X, n, width, player_of, players, weight, into, result}, start, end); });
}

// The same for pairs of players, result[into[t], i, player, player], without the diagonal.
GCE_EXPORT int gce_shapley_pairs(const Trees *trees, const float *cover, const double *X, i64 n, i64 width, const i32 *player_of,
                                 i64 players, const double *weight, const i64 *into, double *result, i64 start, i64 end) {
    return guarded([&] { return add_all_pairs({*trees, cover, X, n, width, player_of, players, weight, into, result}, start, end); });
}

// mean[t] becomes the mean of each tree over the training weight.
GCE_EXPORT int gce_shapley_means(const Trees *trees, const float *cover, const i32 *player_of, double *mean) {
    return guarded([&] {
        TreePlayers tree;
        Edges edges;
        std::vector<double> reach;
        for (i64 t = 0; t < static_cast<i64>(trees->trees.size()); t++) {
            tree.set(*trees, t, player_of);
            edges.set(*trees, tree, cover);
            reach.assign(tree.size, 1);
            for (i64 node = 0; node < tree.size; node++) {
                const i32 last = edges.before[node];
                if (node) {
                    const double known = last < 0 ? 1 : edges.share[last];
                    reach[node] = reach[tree.parent[node]] * (known > 0 ? edges.share[node] / known : 0);
                }
                if (!tree.is_leaf(*trees, node)) continue;
                for (i64 j = 0; j < trees->outputs; j++)
                    mean[t * trees->outputs + j] += reach[node] * leaf_value(*trees, tree.root + node, j);
            }
        }
        return GCE_OK;
    });
}
