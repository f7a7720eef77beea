// One node of an extremely randomised tree, grown by the threads of a team: a block or a warp.
#pragma once

#include "random_draws.hpp"
#include "teams.cuh"

// One target; several; or classes, of which a row has one.
enum Kind { SINGLE, SEVERAL, CLASSES };

// A later cut must be better by more than the rounding of weights, which rows that are repeated do not have.
constexpr double BETTER = 1e-9;

// Rows of a tree that are not parted yet, side by side in its order.
struct Part {
    u64 key;
    u32 first, size, tree, depth;
};

struct Cut {
    i64 column;
    u32 code;
    i64 rows; // that go left
};

// Trees to be grown. A record of a row: its codes, four columns to a word; its weight, where weights differ; its targets times the
// weight, or its class; its targets, where weights differ and it has no class.
struct Forest {
    const u32 *records;      // of all members
    const i64 *record_start; // (members + 1,): of each member's first row, in records
    const double *scale;     // (members, k): units of the weighted targets relative to each other
    const double *units;     // (members, 2, k): two factors of a target's unit
    const double *least;     // (members,): least weight of a leaf
    const i64 *member;       // (trees,)
    const i64 *start;        // (trees,): of each tree's rows among those of all trees
    const u64 *seed;         // (trees,)
    const double *values;    // of each code of each column
    const i64 *value_start;  // (d + 1,)
    u32 *order;              // (2, rows of all trees): records of rows, those of a node side by side; levels take turns
    i32 *depth;              // (2 * rows of all trees,): one more than that of a cut or leaf, 0 where there is none
    i32 *split;              // (rows of all trees,): column and code of cuts
    double *value;           // (rows of all trees, k): of leaves
    i32 *block_columns;      // (blocks of the first kernel, d), where shared memory does not hold columns
    i32 *warp_columns;       // (warps of the second kernel, d), likewise
    Part *waiting;           // (rows of all trees,): nodes of few rows
    u64 *pushed, *taken;     // how many of these there are, and how many are being grown
    i64 rows, d, k, words, tries, few, weighted;

    i64 tree_rows(u32 tree) const { return record_start[member[tree] + 1] - record_start[member[tree]]; }
    u32 *order_of(u32 tree, u32 level) const { return order + (level & 1) * rows + start[tree]; }
};

template <Kind KIND, bool WEIGHTED, class Team> class Grower {
  public:
    Grower(const Forest &forest, Team &team, i32 *columns, u32 tree)
        : forest(forest), team(team), columns(columns), own(forest.member[tree]), start(forest.start[tree]),
          records(forest.records + forest.record_start[own] * forest.words), least(forest.least[own]) {
        weight_at = (forest.d + 3) / 4;
        target_at = weight_at + (WEIGHTED ? 1 : 0);
        plain_at = WEIGHTED && KIND != CLASSES ? target_at + forest.k : target_at;
    }

    // Cut a node, or make it a leaf: the cut's column is -1 then.
    Cut grow(const Part &given) {
        part = given;
        rows = forest.order_of(part.tree, part.depth) + part.first;
        Cut best{-1, 0, 0};
        const bool even = part.size == 1 || !differ();
        if (!even) {
            mass = WEIGHTED ? team.sum(own_mass()) : static_cast<i64>(part.size);
            if (static_cast<double>(mass) >= 2 * least)
                best = best_cut();
        }
        const i64 at = start + part.first;
        if (best.column < 0) {
            means(forest.value + at * forest.k, even);
            if (team.thread() == 0)
                forest.depth[2 * at + 1] = static_cast<i32>(part.depth) + 1;
            return best;
        }
        if (team.thread() == 0) {
            forest.depth[2 * (at + best.rows)] = static_cast<i32>(part.depth) + 1;
            forest.split[at + best.rows] = static_cast<i32>(best.column << 8 | best.code);
        }
        divide(best);
        return best;
    }

  private:
    // Outputs whose sums are found in one pass over the rows.
    static constexpr int TOGETHER = KIND == SINGLE ? 1 : 4;

    // What goes left of a lane's cut, of all and of some outputs.
    struct Side {
        i64 rows, mass, sum[TOGETHER], total[TOGETHER];
    };

    const u32 *record(i64 i) const { return records + rows[i] * forest.words; }
    i32 number(const u32 *at) const { return static_cast<i32>(read_only(at)); }
    i64 weight_of(const u32 *record) const { return WEIGHTED ? number(record + weight_at) : 1; }

    // Whether rows differ in their targets.
    bool differ() const {
        const u32 *const one = record(0) + plain_at;
        bool found = false;
        for (i64 i = team.thread(); i < part.size; i += team.threads()) {
            const u32 *const other = record(i) + plain_at;
            for (i64 j = 0; j < (KIND == SEVERAL ? forest.k : 1); j++)
                found |= read_only(other + j) != read_only(one + j);
        }
        return team.any(found);
    }

    i64 own_mass() const {
        i64 found = 0;
        for (i64 i = team.thread(); i < part.size; i += team.threads())
            found += weight_of(record(i));
        return found;
    }

    // Columns by random numbers, a lane's each, as many as lanes of a group; -1 where there are no more.
    i32 draw(i64 drawn, int width) {
        const i64 own_draw = drawn + lane() % width;
        u32 *const picks = team.shared();
        if (team.thread() < width && own_draw < forest.d)
            picks[team.thread()] = static_cast<u32>(pick_of(drawn_number(part.key, own_draw), forest.d - own_draw));
        team.sync();
        if (team.thread() == 0)
            for (i64 i = drawn; i < smaller(drawn + width, forest.d); i++) {
                i32 *const at = columns + picks[i - drawn];
                picks[i - drawn] = static_cast<u32>(*at);
                *at = columns[forest.d - i - 1];
            }
        team.sync();
        const i32 column = own_draw < forest.d ? static_cast<i32>(picks[own_draw - drawn]) : -1;
        team.sync();
        return column;
    }

    // Columns in their order again: what a node draws does not depend on those before it.
    void restore(i64 drawn) {
        for (i64 i = team.thread(); i < smaller(drawn, forest.d); i += team.threads()) {
            const i64 pick = pick_of(drawn_number(part.key, i), forest.d - i);
            columns[pick] = static_cast<i32>(pick);
        }
        team.sync();
    }

    // The best of random cuts of several columns that vary, tried in the order in which these are drawn.
    Cut best_cut() {
        // two rows are parted in one way only
        const i64 tries = part.size > 2 ? forest.tries : 1;
        const i64 wanted = smaller<i64>(larger<i64>(tries, part.size > 2 ? 1 : 8), forest.d);
        int width = 1;
        while (width < LANES && width < wanted)
            width *= 2;
        Cut best{-1, 0, 0};
        double score = -1.0;
        i64 drawn = 0;
        for (i64 known = 0; known < tries && drawn < forest.d; drawn += width) {
            const i32 column = draw(drawn, width);
            u32 low = 255, high = 0;
            find_range(column, width, low, high);
            const bool varies = column >= 0 && low < high;
            const int place = lane() % width;
            const u32 varying = ballot(varies && lane() < width);
            const bool tried = varies && known + bits(varying & ((1u << place) - 1)) < tries;
            known += bits(varying);
            const u32 code = tried ? code_of(column, low, high, static_cast<u32>(drawn_number(part.key, drawn + place))) : 0;
            Side side{};
            const double own_score = find_score(tried ? column : 0, code, width, side);
            const bool fits = static_cast<double>(side.mass) >= least && static_cast<double>(mass - side.mass) >= least;
            for (u32 left = ballot(tried && fits && lane() < width); left; left &= left - 1) {
                const int from = lowest(left);
                const double found = from_lane(own_score, from);
                if (found > score + BETTER * fabs(score)) {
                    score = found;
                    best = {from_lane(column, from), from_lane(code, from), from_lane(side.rows, from)};
                }
            }
        }
        restore(drawn);
        return best;
    }

    // The least and the largest code of each lane's column.
    void find_range(i32 column, int width, u32 &low, u32 &high) const {
        const i64 word = column < 0 ? 0 : column >> 2;
        const int shift = 8 * (column & 3), groups = team.groups(width);
        GCE_UNROLL_FOUR
        for (i64 i = team.group(width); i < part.size; i += groups) {
            const u32 code = read_only(record(i) + word) >> shift & 255u;
            low = smaller(low, code);
            high = larger(high, code);
        }
        low = 255 - static_cast<u32>(team.most(static_cast<i64>(255 - low), width));
        high = static_cast<u32>(team.most(static_cast<i64>(high), width));
    }

    // A code from low to below high, by a value drawn between theirs: codes alone would know ranks only.
    u32 code_of(i32 column, u32 low, u32 high, u32 drawn) const {
        const double *const values = forest.values + forest.value_start[column];
        const double least = values[low], point = least + static_cast<double>(drawn) / 4294967296.0 * (values[high] - least);
        u32 code = low;
        // the largest one whose value is at most the point, by bisection
        for (u32 size = high - low; size > 1;) {
            const u32 half = size >> 1;
            if (values[code + half] <= point)
                code += half;
            size -= half;
        }
        return code;
    }

    // Sums of outputs from the first one on; rows and weights as well.
    void add_up(i32 column, u32 code, int width, i64 output, Side &side) const {
        side = Side{};
        const i64 word = column >> 2;
        const int shift = 8 * (column & 3), groups = team.groups(width);
        GCE_UNROLL_FOUR
        for (i64 i = team.group(width); i < part.size; i += groups) {
            const u32 *const row = record(i);
            const bool goes = (read_only(row + word) >> shift & 255u) <= code;
            const i64 weight = weight_of(row);
            side.rows += goes;
            side.mass += goes ? weight : 0;
            const i64 kind = KIND == CLASSES ? number(row + target_at) : 0;
            for (int q = 0; q < TOGETHER; q++) {
                const bool there = output + q < forest.k;
                const i64 target = KIND == CLASSES ? (kind == output + q ? weight : 0) : there ? number(row + target_at + output + q) : 0;
                side.sum[q] += goes ? target : 0;
                side.total[q] += target;
            }
        }
        side.rows = team.sum(side.rows, width);
        side.mass = WEIGHTED ? team.sum(side.mass, width) : side.rows;
        for (int q = 0; q < TOGETHER; q++) {
            side.sum[q] = team.sum(side.sum[q], width);
            side.total[q] = team.sum(side.total[q], width);
        }
    }

    // The score of each lane's cut, with what goes left.
    double find_score(i32 column, u32 code, int width, Side &side) const {
        if constexpr (KIND == SINGLE) {
            add_up(column, code, width, 0, side);
            const double a = static_cast<double>(side.sum[0]), b = static_cast<double>(side.total[0] - side.sum[0]);
            return a * a / static_cast<double>(side.mass) + b * b / static_cast<double>(mass - side.mass);
        }
        double score = 0.0, left = 0.0, right = 0.0;
        for (i64 output = next(-1); output < forest.k; output = next(output + TOGETHER - 1)) {
            add_up(column, code, width, output, side);
            const double part = static_cast<double>(side.mass), rest = static_cast<double>(mass - side.mass);
            for (int q = 0; q < TOGETHER; q++) {
                if (output + q >= forest.k)
                    break;
                const double unit = KIND == CLASSES ? 1.0 : forest.scale[own * forest.k + output + q];
                const double a = unit * static_cast<double>(side.sum[q]), b = unit * static_cast<double>(side.total[q] - side.sum[q]);
                left += a * a;
                right += b * b;
                score += a * a / part + b * b / rest;
            }
        }
        return KIND == CLASSES ? left / static_cast<double>(side.mass) + right / static_cast<double>(mass - side.mass) : score;
    }

    // The next output after one; of classes the next that a row has: others add nothing.
    i64 next(i64 output) const {
        if (KIND != CLASSES)
            return output + 1;
        i64 found = forest.k;
        for (i64 i = team.thread(); i < part.size; i += team.threads()) {
            const i64 kind = number(record(i) + target_at);
            found = kind > output ? smaller(found, kind) : found;
        }
        return -team.most(-found, 1);
    }

    // Weighted means of the targets, of single rows without a rounding of their weights' product.
    void means(double *value, bool even) const {
        if (KIND == CLASSES && even) {
            const i64 kind = number(record(0) + target_at);
            for (i64 j = team.thread(); j < forest.k; j += team.threads())
                value[j] = j == kind ? 1.0 : 0.0;
            return;
        }
        for (i64 j = 0; j < forest.k; j++) {
            i64 high = 0, low = 0, whole = 0;
            for (i64 i = team.thread(); i < part.size; i += team.threads()) {
                const u32 *const row = record(i);
                const i64 weight = weight_of(row);
                const i64 plain = KIND == CLASSES ? number(row + target_at) == j : number(row + plain_at + j);
                high += weight * plain >> 32;
                low += weight * plain & 0xFFFFFFFF;
                whole += weight;
            }
            if (part.size > 1) {
                high = team.sum(high);
                low = team.sum(low);
                whole = team.sum(whole);
            }
            if (team.thread() == 0) {
                const double mean = (static_cast<double>(high) * 4294967296.0 + static_cast<double>(low)) / static_cast<double>(whole);
                const double *const units = forest.units + own * 2 * forest.k + j;
                value[j] = mean * units[0] * units[forest.k];
            }
        }
    }

    // Move the rows that go left before the others, in no particular order.
    void divide(const Cut &cut) {
        const i64 word = cut.column >> 2;
        const int shift = 8 * static_cast<int>(cut.column & 3);
        u32 *const into = forest.order_of(part.tree, part.depth + 1) + part.first;
        team.begin_places(static_cast<u32>(cut.rows));
        for (i64 begin = team.thread() - lane(); begin < part.size; begin += team.threads()) {
            const i64 i = begin + lane();
            const bool here = i < part.size;
            const bool left = here && (read_only(record(i) + word) >> shift & 255u) <= cut.code;
            const u32 place = team.place(left, here);
            if (here)
                into[place] = rows[i];
        }
        team.sync();
    }

    const Forest &forest;
    Team &team;
    i32 *const columns;
    const i64 own, start;
    const u32 *const records;
    const double least;
    i64 weight_at, target_at, plain_at;
    Part part = {};
    const u32 *rows = nullptr;
    i64 mass = 0;
};
