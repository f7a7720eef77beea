// What the rows of a node add up to: weights and weighted targets, as integers.
//
// Sums of integers do not depend on the order of rows, so that these may be moved as is fastest, and every instruction
// set gives the same sums.
#pragma once

#include <algorithm>
#include <vector>

#include "common.hpp"

// One target; several; or classes, of which a row has one.
enum Kind { SINGLE, SEVERAL, CLASSES };

struct Targets {
    i64 n, k;
    const i32 *weight;   // (n,): at least 1; not read where all are equal
    const i32 *target;   // (k, n): times the weight; or classes, (n,)
    const i32 *plain;    // (k, n): without the weight; only where weights differ, and not for classes
    const double *scale; // (k,): units of the targets relative to each other
};

// What goes left.
struct Side {
    i64 rows, mass;
    double score; // of both sides
};

// A sum of 32-bit numbers in halves, which 32 bits hold for CHUNK of them: lanes need not be widened.
struct Halves {
    static constexpr i64 CHUNK = 1 << 15;
    u32 low = 0;
    i32 high = 0;
    void add(i32 x) {
        low += static_cast<u32>(x) & 0xFFFFu;
        high += x >> 16;
    }
    i64 sum() const { return static_cast<i64>(high) * 65536 + static_cast<i64>(low); }
};

// A weighted mean of 32-bit numbers, whose products with weights are added up in halves.
struct Mean {
    i64 high = 0, low = 0, whole = 0;
    void add(i64 weight, i32 own) {
        const i64 product = weight * own;
        high += product >> 32;
        low += product & 0xFFFFFFFF;
        whole += weight;
    }
    double value() const {
        return (static_cast<double>(high) * 4294967296.0 + static_cast<double>(low)) / static_cast<double>(whole);
    }
};

// Codes of one column, a byte of the words of a block.
struct Column {
    const u32 *word;
    int shift;
    u32 code(i64 i) const { return (word[i] >> shift) & 255u; }
};

template <Kind KIND, bool WEIGHTED> class NodeTargets {
  public:
    // Words that may be read beyond the last row.
    static constexpr i64 SPARE = 8;

    static i64 arrays(i64 k) { return (WEIGHTED ? 1 : 0) + (KIND == CLASSES ? 1 : k) + (WEIGHTED && KIND != CLASSES ? k : 0); }

    // Copy targets into arrays of n words each, whose order the caller may change.
    NodeTargets(const Targets &given, u32 *next) : n(given.n), k(given.k), scale(given.scale), total(given.k), sums(given.k) {
        const auto keep = [&](const i32 *from, i64 count) {
            i32 *const kept = reinterpret_cast<i32 *>(next);
            std::copy(from, from + count * n, kept);
            next += count * n;
            return kept;
        };
        if (WEIGHTED)
            weight = keep(given.weight, 1);
        plain = target = keep(given.target, KIND == CLASSES ? 1 : k);
        if (WEIGHTED && KIND != CLASSES)
            plain = keep(given.plain, k);
    }

    // Whether the rows of a node differ in their targets. It is the node at hand from then on.
    bool uneven(i64 start, i64 count) {
        first = start;
        size = count;
        for (i64 j = 0; j < (KIND == SEVERAL ? k : 1); ++j) {
            const i32 *const own = plain + j * n + first;
            for (i64 i = 1; i < size; ++i)
                if (own[i] != own[0])
                    return true;
        }
        return false;
    }

    // The weight of the node's rows, which are added up.
    i64 add_up() {
        mass = WEIGHTED ? 0 : size;
        if (WEIGHTED)
            for (i64 i = 0; i < size; ++i)
                mass += weight[first + i];
        std::fill(total.begin(), total.end(), 0);
        if (KIND == CLASSES) {
            for (i64 i = 0; i < size; ++i)
                total[of(0)[i]] += weight_of(i);
            square = 0;
            for (i64 j = 0; j < k && !WEIGHTED; ++j)
                square += total[j] * total[j];
            return mass;
        }
        for (i64 j = 0; j < k; ++j) {
            i64 sum = 0;
            for (i64 i = 0; i < size; ++i)
                sum += of(j)[i];
            total[j] = sum;
        }
        return mass;
    }

    // What goes left at a cut.
    Side side(const Column &column, u32 cut) {
        if (KIND == SINGLE)
            return size <= SPARE ? side_of_lanes(column, cut) : side_of_one(column, cut);
        if (KIND == SEVERAL)
            return side_of_several(column, cut);
        return WEIGHTED || size >= k ? side_of_classes(column, cut) : side_of_few(column, cut);
    }

    // Weighted means of the targets, of single rows without a rounding of their weights' product.
    void means(double *value) {
        if (KIND == CLASSES) {
            const double whole = static_cast<double>(add_up());
            for (i64 j = 0; j < k; ++j)
                value[j] = static_cast<double>(total[j]) / whole;
            return;
        }
        for (i64 j = 0; j < k; ++j) {
            Mean mean;
            for (i64 i = 0; i < size; ++i)
                mean.add(weight_of(i), plain[j * n + first + i]);
            value[j] = mean.value();
        }
    }

    // The same of the rows on each side of a cut.
    void side_means(const Column &column, u32 cut, double *left, double *right) const {
        for (i64 j = 0; j < k; ++j) {
            Mean mean[2];
            for (i64 i = 0; i < size; ++i) {
                const i32 own = KIND == CLASSES ? of(0)[i] == static_cast<i32>(j) : plain[j * n + first + i];
                mean[column.code(i) <= cut ? 0 : 1].add(weight_of(i), own);
            }
            left[j] = mean[0].value();
            right[j] = mean[1].value();
        }
    }

    i64 outputs() const { return k; }

  private:
    i64 weight_of(i64 i) const { return WEIGHTED ? static_cast<i64>(weight[first + i]) : 1; }
    const i32 *of(i64 j) const { return target + j * n + first; }

    Side side_of_one(const Column &column, u32 cut) const {
        const i32 *const own = of(0);
        const i32 *const weights = WEIGHTED ? weight + first : nullptr;
        i64 rows = 0, part = 0, sum = 0;
        for (i64 start = 0; start < size; start += Halves::CHUNK) {
            const i64 end = std::min(size, start + Halves::CHUNK);
            Halves targets, masses;
            i32 count = 0;
            for (i64 i = start; i < end; ++i) {
                const i32 goes = -static_cast<i32>(column.code(i) <= cut);
                count -= goes;
                targets.add(own[i] & goes);
                if (WEIGHTED)
                    masses.add(weights[i] & goes);
            }
            rows += count;
            sum += targets.sum();
            part += WEIGHTED ? masses.sum() : count;
        }
        const double a = static_cast<double>(sum), b = static_cast<double>(total[0] - sum);
        return {rows, part, a * a / static_cast<double>(part) + b * b / static_cast<double>(mass - part)};
    }

    // The same for at most SPARE rows, without a loop: the words of rows that follow are read, and count as 0.
    Side side_of_lanes(const Column &column, u32 cut) const {
        const i32 *const own = of(0);
        const i32 *const weights = WEIGHTED ? weight + first : nullptr;
        const i32 count = static_cast<i32>(size);
        Halves targets, masses;
        for (i32 i = 0; i < static_cast<i32>(SPARE); ++i) {
            const i32 goes = -static_cast<i32>(column.code(i) <= cut) & -static_cast<i32>(i < count);
            // rows are counted in the upper half of a sum whose lower half holds all of them
            targets.low += (static_cast<u32>(own[i]) & 0xFFFFu & static_cast<u32>(goes)) - (static_cast<u32>(goes) << 24);
            targets.high += (own[i] & goes) >> 16;
            if (WEIGHTED)
                masses.add(weights[i] & goes);
        }
        const i64 rows = targets.low >> 24;
        targets.low &= 0xFFFFFFu;
        const i64 sum = targets.sum(), part = WEIGHTED ? masses.sum() : rows;
        const double a = static_cast<double>(sum), b = static_cast<double>(total[0] - sum);
        return {rows, part, a * a / static_cast<double>(part) + b * b / static_cast<double>(mass - part)};
    }

    Side side_of_several(const Column &column, u32 cut) {
        i64 rows = 0, part = 0;
        std::fill(sums.begin(), sums.end(), 0);
        for (i64 i = 0; i < size; ++i) {
            const i64 goes = -static_cast<i64>(column.code(i) <= cut);
            rows -= goes;
            part += weight_of(i) & goes;
            for (i64 j = 0; j < k; ++j)
                sums[j] += of(j)[i] & goes;
        }
        double score = 0.0;
        for (i64 j = 0; j < k; ++j) {
            const double a = scale[j] * static_cast<double>(sums[j]), b = scale[j] * static_cast<double>(total[j] - sums[j]);
            score += a * a / static_cast<double>(part) + b * b / static_cast<double>(mass - part);
        }
        return {rows, part, score};
    }

    Side side_of_classes(const Column &column, u32 cut) {
        const i32 *const own = of(0);
        i64 rows = 0, part = 0;
        std::fill(sums.begin(), sums.end(), 0);
        for (i64 i = 0; i < size; ++i) {
            const i64 goes = -static_cast<i64>(column.code(i) <= cut), here = weight_of(i) & goes;
            rows -= goes;
            part += here;
            sums[own[i]] += here;
        }
        double left = 0.0, right = 0.0;
        for (i64 j = 0; j < k; ++j) {
            const double a = static_cast<double>(sums[j]), b = static_cast<double>(total[j] - sums[j]);
            left += a * a;
            right += b * b;
        }
        return {rows, part, left / static_cast<double>(part) + right / static_cast<double>(mass - part)};
    }

    // The same where there are fewer rows than classes, none with a weight of its own: squares of counts are integers,
    // and only the classes of the rows are looked at.
    Side side_of_few(const Column &column, u32 cut) {
        const i32 *const own = of(0);
        i64 rows = 0, left = 0, product = 0;
        for (i64 i = 0; i < size; ++i)
            sums[own[i]] = 0;
        for (i64 i = 0; i < size; ++i) {
            const i64 goes = column.code(i) <= cut;
            i64 &count = sums[own[i]];
            left += goes * (2 * count + 1);
            product += goes * total[own[i]];
            count += goes;
            rows += goes;
        }
        const double a = static_cast<double>(left), b = static_cast<double>(square - 2 * product + left);
        return {rows, rows, a / static_cast<double>(rows) + b / static_cast<double>(mass - rows)};
    }

    const i64 n, k;
    const double *scale;
    const i32 *weight = nullptr, *target = nullptr, *plain = nullptr;
    i64 first = 0, size = 0, mass = 0, square = 0;
    std::vector<i64> total, sums;
};
