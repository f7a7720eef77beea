// Trees prepared for prediction.
//
// Rows become bytes first, the numbers of thresholds below their values. A tree of up to 256 leaves is not walked: its cuts are
// gone through from the first to the last, each for as many rows as a vector has bytes, whether they are at the cut or not, and
// those that are move on. Of a symmetric tree the comparisons are the bits of the leaf's index. Larger trees are walked, several
// rows side by side.
#pragma once

#include <vector>

#include "code_set.hpp"

// Thresholds of a column that a byte can tell apart, columns of a group, leaves and levels of a tree whose leaves a byte numbers.
constexpr i32 MOST_CUTS = 255, MOST_COLUMNS = 1 << 16, MOST_LEAVES = 256, MOST_LEVELS = 8;
// Bytes of categories: of those without a code, of missing ones, and of the first code.
constexpr u32 OTHER = 0, MISSING = 1, FIRST_CODE = 2;
// Columns of codes that a column of categories has.
constexpr size_t CATEGORY_COLUMNS = 3;

// How rows pass a tree: by the bits of its levels, cut by cut, by walking bytes, or by walking numbers that no byte tells apart.
enum class Shape : u8 { SYMMETRIC, SMALL, WALKED, RAW };

// How a node parts rows: numbers by a threshold, missing ones to the left or to the right; or categories by a set.
enum class Rule : u8 { MISSING_LEFT, MISSING_RIGHT, SET };

// What the codes of a column of a group are. Numbers: how many edges are below a row's value; of a missing one none, or more than
// of any other. Categories: their bytes. All less 128. Two columns follow one of categories: where their bits are in the bytes of
// a set, and these bits.
enum class Coding : u8 { MISSING_FIRST, MISSING_LAST, CATEGORY };

// A column of a group of trees; `begin` is where its edges begin.
struct Column {
    i64 index, begin;
    i32 number;
    Coding coding;
};

// Consecutive trees that share codes.
struct Group {
    i64 first, last;
    std::vector<Column> columns;
};

// A cut for all rows: those whose code in a column (its position in the group) is at least ``edge`` go right. Leaves are numbered
// from left to right, and a row is at a cut where its number so far is ``start``, the first leaf under the cut; those that go
// right add ``step``, the number of leaves on the left.
struct Cut {
    i32 column;
    std::int8_t edge;
    u8 start, step;
};

// A node for walking: rows whose code in a column (its position in the group) is at most ``code`` go left. A leaf leads to itself.
// Of two children the one with more leaves is followed by its own children, so that a path lies in few cache lines.
struct Node {
    u32 left;
    u16 column;
    std::int8_t code;
    // whether the column has categories, which go left if they are in the node's set
    bool categorical;
};

// What is wrong with the nodes of trees, see gce/bases/trees/predictor.py.
enum Fault { SIZES = 1, COLUMN, ORDER, PARENTS };

// Whether sizes add up, children come after their parents in their own tree, and each node but the roots is the child of one.
int check_trees(const i64 *size, i64 count, i64 nodes, const i32 *left);

struct Tree {
    Shape shape;
    i64 root, size;
    // leaves of trees that are not walked: their number, and the first one's values
    i32 leaves;
    i64 leaf;
    // its cuts: one for each level of a symmetric tree; parents before their children, and the left before the right, of others
    i64 first_cut, last_cut;
};

struct Trees {
    // as given: nodes and values
    const i32 *feature, *left;
    const double *threshold;
    // null where no node parts missing values or categories; otherwise the threshold of a node with a set is its number
    const u8 *rule;
    const CodeSet *sets;
    i64 n_sets;
    const void *value;
    bool single;
    i64 outputs;
    // the largest column that is looked at, if any
    i64 widest = -1;

    std::vector<Tree> trees;
    std::vector<Group> groups;
    std::vector<double> edges, leaves;
    std::vector<Cut> cuts;
    // of each cut the number of its set, or -1; empty where there are none
    std::vector<i32> set_of_cut;
    // each node with its index among those given
    std::vector<Node> nodes;
    std::vector<u32> origin;
    // of each node for walking that has one, the number of its set; empty where there are none
    std::vector<u32> set_of;
    // the bytes of all sets, 32 each
    std::vector<u8> set_bytes;
    // while they are prepared: the number of each given node's threshold
    std::vector<i32> number;

    Rule rule_of(i64 node) const { return rule ? static_cast<Rule>(rule[node]) : Rule::MISSING_LEFT; }
};

// The byte of a category's code.
inline u32 byte_of(double code) {
    if (code != code) return MISSING;
    return code >= 0 && code < MOST_BINS - FIRST_CODE ? static_cast<u32>(code) + FIRST_CODE : OTHER;
}
