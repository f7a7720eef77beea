// Players of trees, and the rule that integrates over the order in which they join.
#include "shapley.hpp"

void TreePlayers::set(const Trees &of, i64 tree, const i32 *player_of) {
    root = of.trees[tree].root;
    size = of.trees[tree].size;
    for (i32 known : player) slot_of[known] = -1;
    player.clear();
    slot.assign(size, -1);
    parent.assign(size, 0);
    for (i64 node = 0; node < size; node++) {
        const i32 left = of.left[root + node];
        if (left == 0) continue;
        parent[left] = parent[left + 1] = static_cast<i32>(node);
        const i32 own = player_of[of.feature[root + node]];
        if (own >= static_cast<i32>(slot_of.size())) slot_of.resize(own + 1, -1);
        if (slot_of[own] < 0) {
            slot_of[own] = static_cast<i32>(player.size());
            player.push_back(own);
        }
        slot[node] = slot_of[own];
    }
    find_levels(of);
}

void TreePlayers::find_levels(const Trees &of) {
    levels = -1;
    level.assign(size, 0);
    first.clear();
    for (i64 node = 0; node < size; node++) {
        // no child comes before its parent
        const i64 depth = node == 0 ? 0 : level[parent[node]] + 1;
        if (depth > MOST_LEVELS) return;
        level[node] = static_cast<u8>(depth);
    }
    i64 deepest = *std::max_element(level.begin(), level.end());
    if (size != (i64(2) << deepest) - 1) return;
    first.assign(deepest, -1);
    for (i64 node = 0; node < size; node++) {
        if (is_leaf(of, node)) continue;
        i64 &leader = first[level[node]];
        if (leader < 0) leader = node;
        const i64 a = root + leader, b = root + node;
        if (of.feature[a] != of.feature[b] || of.threshold[a] != of.threshold[b] || of.rule_of(a) != of.rule_of(b)) return;
    }
    levels = static_cast<int>(deepest);
}

i64 TreePlayers::pattern_of(const Trees &of, const double *row) const {
    i64 pattern = 0;
    for (int depth = 0; depth < levels; depth++) {
        const i64 node = root + first[depth];
        pattern |= static_cast<i64>(passes_right(of, node, row[of.feature[node]])) << depth;
    }
    return pattern;
}

void quadrature(i64 count, double *point, double *weight) {
    for (i64 i = 0; i < count; i++) {
        // Newton's method from Tricomi's first guess finds the roots of the Legendre polynomial
        double x = std::cos(3.14159265358979323846 * (static_cast<double>(i) + 0.75) / (static_cast<double>(count) + 0.5)), slope = 1;
        for (int step = 0; step < 10; step++) {
            double before = 1, now = x;
            for (i64 k = 2; k <= count; k++) {
                const double order = static_cast<double>(k), next = ((2 * order - 1) * x * now - (order - 1) * before) / order;
                before = now;
                now = next;
            }
            slope = static_cast<double>(count) * (x * now - before) / (x * x - 1);
            x -= now / slope;
        }
        point[i] = (1 + x) / 2;
        weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
}
