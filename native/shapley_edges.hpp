// The edges of a tree in the integrals of native/shapley.cpp.
#pragma once

#include "shapley.hpp"

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
    // players and edges of a path, at most
    i64 players = 0, deepest = 0;

    void set(const Trees &of, const TreePlayers &tree, const float *cover);

  private:
    std::vector<double> total;
    std::vector<i32> count, depth;
    void find_shares(const Trees &of, const TreePlayers &tree, const float *cover);
};

// Shares of the weight; of a node that no row passed each side has half.
inline void Edges::find_shares(const Trees &of, const TreePlayers &tree, const float *cover) {
    total.assign(tree.size, 0);
    for (i64 node = tree.size - 1; node >= 0; node--) {
        if (tree.is_leaf(of, node)) total[node] = static_cast<double>(cover[tree.root + node]);
        if (node) total[tree.parent[node]] += total[node];
    }
    share.assign(tree.size, 1);
    before.assign(tree.size, -1);
    count.assign(tree.size, 0);
    depth.assign(tree.size, 0);
    players = deepest = 0;
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
        depth[node] = depth[parent] + 1;
        deepest = std::max<i64>(deepest, depth[node]);
    }
}

inline void Edges::set(const Trees &of, const TreePlayers &tree, const float *cover) {
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
