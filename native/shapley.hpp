// What the kernels of Shapley values share: players of a tree, and where rows go at its nodes.
//
// Players are the user's columns: a tree may look at several columns that are made of one of them, such as a date's month and
// day, and these are one player.
#pragma once

#include <algorithm>
#include <vector>

#include "trees.hpp"

// Whether a number passes a node to the right.
inline bool passes_right(const Trees &of, i64 node, double value) {
    switch (of.rule_of(node)) {
    case Rule::SET: return !of.sets[static_cast<i64>(of.threshold[node])].has(byte_of(value));
    case Rule::MISSING_RIGHT: return !(value <= of.threshold[node]);
    default: return value > of.threshold[node];
    }
}

inline double leaf_value(const Trees &of, i64 node, i64 output) {
    const i64 at = node * of.outputs + output;
    return of.single ? static_cast<double>(static_cast<const float *>(of.value)[at]) : static_cast<const double *>(of.value)[at];
}

// One tree as a game. Nodes are numbered from its root; players are numbered in the order in which they are met ("slots").
struct TreePlayers {
    i64 root = 0, size = 0;
    // the slot of the player that an inner node asks, the players of the slots, and each node's parent (the root's is itself)
    std::vector<i32> slot, player, parent;
    // levels of a symmetric tree of at most MOST_LEVELS, and the level of each node; -1 for other trees
    int levels = -1;
    std::vector<u8> level;

    void set(const Trees &of, i64 tree, const i32 *player_of);
    bool is_leaf(const Trees &of, i64 node) const { return of.left[root + node] == 0; }
    // where a row goes that passes the levels of a symmetric tree to the right where its bits are set
    bool pattern_right(i64 node, i64 pattern) const { return pattern >> level[node] & 1; }
    // the bits of a row
    i64 pattern_of(const Trees &of, const double *row) const;

  private:
    // of each player the slot, -1 where the tree does not ask it
    std::vector<i32> slot_of;
    // the first node of each level
    std::vector<i64> first;
    void find_levels(const Trees &of);
};

// Points and weights of the Gauss-Legendre rule on [0, 1].
void quadrature(i64 count, double *point, double *weight);
