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
#include "shapley.hpp"

namespace {

// Rows that walk side by side, one in each lane.
constexpr int LANES = 8;
// Numbers of rows that are turned at once.
constexpr i64 NUMBERS = 1 << 20;

struct Lanes {
    double v[LANES];
};

// What a tree's edges multiply and add, edge by edge (by the node below) and point by point.
struct Edges {
    i64 points = 0;
    std::vector<double> point, weight;
    // the share of the weight on the player's edges so far, and the edge of the same player before, or -1
    std::vector<double> share;
    std::vector<i32> before;
    // factors of P: of rows that take both edges, and that take the one before only; and, one number, of those that took neither
    std::vector<double> both, one, neither;
    // what is added of S: in the first two cases; in the third it is nothing
    std::vector<double> add_both, add_one;
    // players of a path, at most
    i64 players = 0;

    void set(const Trees &of, const TreePlayers &tree, const float *cover);

  private:
    std::vector<double> total;
    std::vector<i32> count;
    void find_shares(const Trees &of, const TreePlayers &tree, const float *cover);
};

// Shares of the weight; of a node that no row passed each side has half.
void Edges::find_shares(const Trees &of, const TreePlayers &tree, const float *cover) {
    total.assign(tree.size, 0);
    for (i64 node = tree.size - 1; node >= 0; node--) {
        if (tree.is_leaf(of, node)) total[node] = static_cast<double>(cover[tree.root + node]);
        if (node) total[tree.parent[node]] += total[node];
    }
    share.assign(tree.size, 1);
    before.assign(tree.size, -1);
    count.assign(tree.size, 0);
    players = 0;
    for (i64 node = 1; node < tree.size; node++) {
        const i32 parent = tree.parent[node], slot = tree.slot[parent];
        const double own = total[parent] > 0 ? total[node] / total[parent] : 0.5;
        // the edge above that the same player decides
        i32 above = parent;
        while (above && tree.slot[tree.parent[above]] != slot) above = tree.parent[above];
        before[node] = above ? above : -1;
        share[node] = own * (above ? share[above] : 1);
        count[node] = count[parent] + (above == 0);
        players = std::max<i64>(players, count[node]);
    }
}

void Edges::set(const Trees &of, const TreePlayers &tree, const float *cover) {
    find_shares(of, tree, cover);
    const i64 needed = std::max<i64>(1, (players + 1) / 2);
    if (needed != points) {
        points = needed;
        point.resize(points);
        weight.resize(points);
        quadrature(points, point.data(), weight.data());
    }
    for (auto *some : {&both, &one, &add_both, &add_one}) some->assign(tree.size * points, 0);
    neither.assign(tree.size, 0);
    for (i64 node = 1; node < tree.size; node++) {
        const double z = share[node], last = before[node] < 0 ? 1 : share[before[node]];
        neither[node] = last > 0 ? z / last : 0;
        for (i64 q = 0; q < points; q++) {
            const i64 at = node * points + q;
            const double t = point[q], w = weight[q], rest = 1 - t;
            const double follows = t + z * rest, followed = before[node] < 0 ? 1 : t + last * rest;
            both[at] = follows / followed;
            one[at] = z * rest / followed;
            const double known = (1 - last) * w / followed;
            add_both[at] = (1 - z) * w / follows - known;
            // (o - z) / f is -1 / (1 - t) where o = 0; where z = 0 too, P is 0 from here on
            add_one[at] = (z > 0 ? -w / rest : 0) - known;
        }
    }
}

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

// One tree and some rows side by side.
struct Walk {
    const Trees *of = nullptr;
    TreePlayers tree;
    Edges edges;
    // of each node which rows pass it to the right, and of each slot which rows have taken all edges so far, a bit each
    std::vector<u8> right, taken;
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
        right.assign(tree.size, 0);
    }

    i64 slots() const { return static_cast<i64>(tree.player.size()); }

    void begin(i64 pair_slots) {
        taken.assign(slots(), 0xff);
        edge_of.assign(slots(), -1);
        path.clear();
        phi.assign(slots() * of->outputs, Lanes{});
        pairs.assign(pair_slots * pair_slots * of->outputs, Lanes{});
        products.resize(edges.points);
        for (Lanes &own : products) std::fill(own.v, own.v + LANES, 1.0);
        sums.clear();
    }

    void compare(const double *columns) {
        for (i64 node = 0; node < tree.size; node++) {
            if (tree.is_leaf(*of, node)) continue;
            const double *value = columns + of->feature[tree.root + node] * LANES;
            u8 bits = 0;
            for (int r = 0; r < LANES; r++) bits |= static_cast<u8>(passes_right(*of, tree.root + node, value[r])) << r;
            right[node] = bits;
        }
    }

    void compare_patterns(i64 first) {
        for (i64 node = 0; node < tree.size; node++) {
            u8 bits = 0;
            for (int r = 0; r < LANES; r++) bits |= static_cast<u8>(tree.pattern_right(node, first + r)) << r;
            right[node] = bits;
        }
    }

    // P of a child from its parent's.
    void multiply(i64 child, u8 was, u8 is, const Lanes *from, Lanes *to) const {
        const double *both = &edges.both[child * edges.points], *one = &edges.one[child * edges.points], neither = edges.neither[child];
        for (i64 q = 0; q < edges.points; q++)
            for (int r = 0; r < LANES; r++)
                to[q].v[r] = from[q].v[r] * (is >> r & 1 ? both[q] : was >> r & 1 ? one[q] : neither);
    }

    // What an edge adds to its player, from sums by point.
    void add(i64 child, u8 was, u8 is, const Lanes *sum, Lanes *total) const {
        const double *both = &edges.add_both[child * edges.points], *one = &edges.add_one[child * edges.points];
        for (i64 q = 0; q < edges.points; q++)
            for (int r = 0; r < LANES; r++)
                total->v[r] += sum[q].v[r] * (is >> r & 1 ? both[q] : was >> r & 1 ? one[q] : 0.0);
    }

    // The values of all players, from the edge above a node down.
    void values(i64 node, i64 depth) {
        const i64 points = edges.points, outputs = of->outputs, left = of->left[tree.root + node];
        if (left == 0) {
            Lanes *sum = sums_at(depth);
            for (i64 j = 0; j < outputs; j++) {
                const double value = leaf_value(*of, tree.root + node, j);
                for (i64 q = 0; q < points; q++)
                    for (int r = 0; r < LANES; r++) sum[j * points + q].v[r] = value * products[depth * points + q].v[r];
            }
            return;
        }
        const i32 slot = tree.slot[node];
        const u8 was = taken[slot];
        for (i64 side = 0; side < 2; side++) {
            const u8 is = was & (side ? right[node] : static_cast<u8>(~right[node]));
            taken[slot] = is;
            products_at(depth + 1);
            multiply(left + side, was, is, &products[depth * points], &products[(depth + 1) * points]);
            values(left + side, depth + 1);
            Lanes *sum = sums_at(depth);
            const Lanes *below = sum + outputs * points;
            for (i64 j = 0; j < outputs; j++) add(left + side, was, is, below + j * points, &phi[slot * outputs + j]);
            for (i64 i = 0; i < outputs * points; i++)
                for (int r = 0; r < LANES; r++) sum[i].v[r] = side ? sum[i].v[r] + below[i].v[r] : below[i].v[r];
        }
        taken[slot] = was;
    }

    Lanes *sums_at(i64 depth) {
        const i64 each = of->outputs * edges.points;
        if (static_cast<i64>(sums.size()) < (depth + 2) * each) sums.resize((depth + 2) * each);
        return &sums[depth * each];
    }

    Lanes *products_at(i64 depth) {
        if (static_cast<i64>(products.size()) < (depth + 1) * edges.points) products.resize((depth + 1) * edges.points);
        return &products[depth * edges.points];
    }

    // (o - z) / f of a slot's last edge.
    double ratio(i32 slot, i64 q, int r) const {
        const double z = edges.share[edge_of[slot]], t = edges.point[q];
        if (taken[slot] >> r & 1) return (1 - z) / (t + z * (1 - t));
        return z > 0 ? -1 / (1 - t) : 0;
    }

    // Half of what pairs of players add to each other, leaf by leaf: as above, without two factors.
    void interactions(i64 node, i64 depth) {
        const i64 points = edges.points, left = of->left[tree.root + node];
        if (left == 0) {
            for (size_t a = 0; a < path.size(); a++)
                for (size_t b = 0; b < a; b++) add_pair(node, depth, path[a], path[b]);
            return;
        }
        const i32 slot = tree.slot[node], last = edge_of[slot];
        const u8 was = taken[slot];
        if (last < 0) path.push_back(slot);
        for (i64 side = 0; side < 2; side++) {
            const u8 is = was & (side ? right[node] : static_cast<u8>(~right[node]));
            taken[slot] = is;
            edge_of[slot] = static_cast<i32>(left + side);
            products_at(depth + 1);
            multiply(left + side, was, is, &products[depth * points], &products[(depth + 1) * points]);
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
        walk.compare_patterns(pattern);
        walk.begin(0);
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
        walk.compare(&turned[block * LANES * job.width]);
        walk.begin(0);
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
                walk.compare(&turned[block * LANES * job.width]);
                walk.begin(walk.slots());
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
