// What the path to a node of a tree allows: which columns may be split there, and between which bounds its means are.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "common.hpp"
#include "constraints.hpp"

// The columns that may be split below those of a path: all that share a set with every one of them. Paths of which the
// same sets are left have one number together, and the columns of each number are listed once.
class PathSets {
  public:
    PathSets(const Constraints &given, i64 d) : given(given), d(d) { number(std::vector<u64>(given.words, ~u64(0))); }

    std::vector<i32> &columns(i64 path) { return open[path]; }

    // The number of a path that splits one column more.
    i64 after(i64 path, i64 column) {
        if (given.words == 0)
            return path;
        const auto [found, is_new] = longer.try_emplace({path, column}, 0);
        if (is_new) {
            std::vector<u64> left(given.words);
            given.after(column, alive[path]->data(), left.data());
            found->second = number(std::move(left));
        }
        return found->second;
    }

  private:
    i64 number(std::vector<u64> left) {
        const auto [found, is_new] = numbers.try_emplace(std::move(left), static_cast<i64>(open.size()));
        if (is_new) {
            alive.push_back(&found->first);
            open.emplace_back();
            for (i64 column = 0; column < d; ++column)
                if (given.allowed(column, found->first.data()))
                    open.back().push_back(static_cast<i32>(column));
        }
        return found->second;
    }

    const Constraints given;
    const i64 d;
    std::map<std::vector<u64>, i64> numbers;
    std::map<std::pair<i64, i64>, i64> longer;
    std::vector<const std::vector<u64> *> alive; // keys of `numbers`, which stay where they are
    std::vector<std::vector<i32>> open;
};

// Along a monotone column neither child of a node may pass the middle of their means, so that all leaves below one lie on one
// side of all leaves below the other: the tree is monotone.
class PathLimits {
  public:
    PathLimits(const Constraints &given, i64 d, i64 k)
        : given(given), k(k), sets(given, d), path(1, 0), bounds(given.sign ? k : 0), sides(2 * k), middle(k) {}

    bool ordered() const { return given.sign != nullptr; }
    i64 sign(i64 column) const { return given.monotone(column); }

    // The columns that may be split at a node; their order may be changed for a while.
    std::vector<i32> &columns(i64 node) { return sets.columns(path[given.words ? node : 0]); }

    // Means of the left and of the right side of a cut, (2, k), for `keep`.
    double *means() { return sides.data(); }

    // Whether a mean of the node's rows may be out of bounds.
    bool bounded(i64 node) const {
        for (i64 j = 0; j < k && ordered(); ++j)
            if (bounds[node * k + j].low > -infinity() || bounds[node * k + j].high < infinity())
                return true;
        return false;
    }

    // Whether these are within the bounds of the node and ordered by the sign; the middles of the last that are will be kept.
    // Leaves that are moved to their bounds would all be moved the same way: it is better to have fewer.
    bool keep(i64 node, i64 sign) {
        const Interval *const own = bounds.data() + node * k;
        for (i64 j = 0; j < k; ++j) {
            const double left = sides[j], right = sides[k + j];
            if (own[j].clip(left) != left || own[j].clip(right) != right || static_cast<double>(sign) * (right - left) < 0)
                return false;
        }
        for (i64 j = 0; j < k; ++j)
            middle[j] = (sides[j] + sides[k + j]) / 2;
        return true;
    }

    // Add the two children of a node, by a cut of a column whose sides keep the order of a sign.
    void divide(i64 node, i64 column, i64 sign) {
        if (given.words)
            path.insert(path.end(), 2, sets.after(path[node], column));
        if (!ordered())
            return;
        for (int side = 0; side < 2; ++side)
            for (i64 j = 0; j < k; ++j) {
                Interval child = bounds[node * k + j];
                if (sign)
                    ((sign > 0) == (side == 0) ? child.high : child.low) = middle[j];
                bounds.push_back(child);
            }
    }

    // The means of a leaf within its bounds.
    void clip(i64 node, double *value) const {
        for (i64 j = 0; j < k && ordered(); ++j)
            value[j] = bounds[node * k + j].clip(value[j]);
    }

  private:
    const Constraints given;
    const i64 k;
    PathSets sets;
    std::vector<i64> path;        // (nodes,), or that of the root where there are no sets
    std::vector<Interval> bounds; // (nodes, k), where columns are monotone
    std::vector<double> sides, middle;
};
