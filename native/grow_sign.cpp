// Trees of the linear oracle: leaves at one of two ends, by the sign of their gradients' sum.
//
// Gradients and masses are integers: sums do not depend on the order of rows, and a histogram less another is exact.
#include <memory>
#include <queue>
#include <vector>

#include "part_rows.hpp"

namespace {

// Of cuts as good as each other the first is taken, where masses and gradients are rounded too.
constexpr double BETTER = 1e-9;
// A gain below this share of all gradients is rounding: sides of one sign gain nothing.
constexpr double NOTHING = 1e-9;
// Rows from which a node's histogram is kept: subtracting one then costs less than adding up rows, and those that are
// kept take a few bytes for each code.
constexpr i64 KEPT = 1024;

struct Sum {
    i64 gradient, mass;
};

using Histogram = std::vector<Sum>;

struct Node {
    i64 first = 0, size = 0;
    Sum sum{0, 0};
    i64 level = 0;
    // the best cut; without a gain there is none
    i64 gain = 0, column = 0, code = 0;
    Sum left{0, 0};
    std::unique_ptr<Histogram> histogram;
};

struct Tree {
    i32 *feature, *cut, *left;
    double *value;
};

class SignGrower {
  public:
    SignGrower(const u32 *codes, i64 N, i64 d, const i64 *widths, const u32 *rows, i64 n, const i32 *gradient,
               const i32 *mass)
        : codes(codes), N(N), n(n), d(d), blocks((d + 3) / 4), starts(4 * blocks + 1), buffer(new u32[3 * n]) {
        for (i64 c = 0; c < 4 * blocks; ++c)
            // all codes of columns that fill the last block are 0
            starts[c + 1] = starts[c] + (c < d ? widths[c] : 1);
        scratch.resize(starts.back());
        std::copy(rows, rows + n, buffer.get());
        for (i64 i = 0; i < n; ++i) {
            buffer[n + i] = static_cast<u32>(gradient[i]);
            buffer[2 * n + i] = static_cast<u32>(mass[i]);
        }
    }

    // Grow, the best leaf split next, and return the number of nodes.
    i64 grow(i64 leaves, i64 depth, double share, const Tree &out) {
        nodes.resize(2 * leaves - 1);
        begin(share);
        std::priority_queue<std::pair<i64, i64>> best; // gain and -node: of equal ones the first
        best.push({nodes[0].gain, 0});
        i64 count = 1;
        while (count < 2 * leaves - 1 && !best.empty() && best.top().first > 0) {
            const i64 at = -best.top().second;
            best.pop();
            Node &node = nodes[at];
            out.feature[at] = static_cast<i32>(node.column);
            out.cut[at] = static_cast<i32>(node.code);
            out.left[at] = static_cast<i32>(count);
            split(node, nodes[count], nodes[count + 1]);
            if (node.level + 1 < depth && count + 2 < 2 * leaves - 1) {
                plan(node, nodes[count], nodes[count + 1]);
                best.push({nodes[count].gain, -count});
                best.push({nodes[count + 1].gain, -count - 1});
            }
            node.histogram.reset();
            count += 2;
        }
        for (i64 at = 0; at < count; ++at) {
            const i64 sum = nodes[at].sum.gradient;
            out.value[at] = static_cast<double>(std::abs(sum)) > nothing ? (sum > 0 ? -1.0 : 1.0) : 0.0;
        }
        return count;
    }

  private:
    void begin(double share) {
        Node &root = nodes[0];
        root.size = n;
        i64 all = 0;
        for (i64 i = 0; i < n; ++i) {
            const i64 gradient = static_cast<i32>(buffer[n + i]);
            root.sum.gradient += gradient;
            root.sum.mass += static_cast<i32>(buffer[2 * n + i]);
            all += std::abs(gradient);
        }
        nothing = NOTHING * static_cast<double>(all);
        least = share * static_cast<double>(root.sum.mass);
        root.histogram.reset(new Histogram(starts.back()));
        fill(root, *root.histogram);
        best_cut(root, *root.histogram);
    }

    // Part a node's rows into its children.
    void split(const Node &node, Node &one, Node &two) {
        const u32 *const word = codes + (node.column >> 2) * N, *const order = buffer.get() + node.first;
        const int shift = 8 * static_cast<int>(node.column & 3);
        const u32 cut = static_cast<u32>(node.code);
        const auto goes_left = [&](i64 i) { return ((word[order[i]] >> shift) & 255u) <= cut; };
        i64 rows = 0;
        for (i64 i = 0; i < node.size; ++i)
            rows += goes_left(i);
        part_rows(buffer.get() + node.first, n, 3, node.size, rows, goes_left);
        one.first = node.first;
        one.size = rows;
        two.first = node.first + rows;
        two.size = node.size - rows;
        one.sum = node.left;
        two.sum = {node.sum.gradient - node.left.gradient, node.sum.mass - node.left.mass};
        one.level = two.level = node.level + 1;
    }

    // Find the best cuts of the children of a node.
    void plan(Node &node, Node &one, Node &two) {
        Node &small = one.size <= two.size ? one : two, &large = one.size <= two.size ? two : one;
        if (small.size >= KEPT)
            small.histogram.reset(new Histogram(starts.back()));
        Histogram &own = small.histogram ? *small.histogram : scratch;
        fill(small, own);
        best_cut(small, own);
        if (large.size < KEPT) {
            fill(large, scratch);
            best_cut(large, scratch);
            return;
        }
        large.histogram = std::move(node.histogram);
        Sum *const rest = large.histogram->data();
        for (i64 b = 0; b < starts.back(); ++b) {
            rest[b].gradient -= own[b].gradient;
            rest[b].mass -= own[b].mass;
        }
        best_cut(large, *large.histogram);
    }

    // Add up gradients and masses by column and code.
    void fill(const Node &node, Histogram &into) const {
        std::fill(into.begin(), into.end(), Sum{0, 0});
        const u32 *const order = buffer.get() + node.first;
        for (i64 b = 0; b < blocks; ++b) {
            const u32 *const word = codes + b * N;
            Sum *const column[4] = {&into[starts[4 * b]], &into[starts[4 * b + 1]], &into[starts[4 * b + 2]],
                                    &into[starts[4 * b + 3]]};
            for (i64 i = 0; i < node.size; ++i) {
                const u32 four = word[order[i]];
                const i64 gradient = static_cast<i32>(order[n + i]), mass = static_cast<i32>(order[2 * n + i]);
                for (int j = 0; j < 4; ++j) {
                    Sum &bin = column[j][(four >> 8 * j) & 255u];
                    bin.gradient += gradient;
                    bin.mass += mass;
                }
            }
        }
    }

    // The cut whose sides disagree most.
    void best_cut(Node &node, const Histogram &histogram) const {
        const i64 whole = node.sum.gradient, without = std::abs(whole);
        double beat = nothing;
        for (i64 c = 0; c < d; ++c) {
            Sum left{0, 0};
            for (i64 b = 0; b < starts[c + 1] - starts[c] - 1; ++b) {
                left.gradient += histogram[starts[c] + b].gradient;
                left.mass += histogram[starts[c] + b].mass;
                if (static_cast<double>(left.mass) < least)
                    continue;
                if (static_cast<double>(node.sum.mass - left.mass) < least)
                    break;
                const i64 gain = std::abs(left.gradient) + std::abs(whole - left.gradient) - without;
                if (static_cast<double>(gain) > beat) {
                    beat = std::max(nothing, static_cast<double>(gain) * (1 + BETTER));
                    node.gain = gain;
                    node.column = c;
                    node.code = b;
                    node.left = left;
                }
            }
        }
    }

    const u32 *const codes; // (blocks, N): four columns to a word
    const i64 N, n, d, blocks;
    std::vector<i64> starts;             // (4 blocks + 1,): bins of each column
    const std::unique_ptr<u32[]> buffer; // (3, n): rows, gradients, masses
    Histogram scratch;
    std::vector<Node> nodes;
    double nothing = 0.0, least = 0.0;
};

} // namespace

// gradient, mass: of the rows (n,); share: least mass of a leaf as a share of all; value is -1, 0 or 1.
GCE_EXPORT int gce_grow_sign(const u8 *codes, i64 N, i64 d, const i64 *widths, const u32 *rows, i64 n, const i32 *gradient,
                             const i32 *mass, i64 leaves, i64 depth, double share, i32 *feature, i32 *cut, i32 *left,
                             double *value, i64 *nodes) {
    return guarded([&] {
        SignGrower grower(reinterpret_cast<const u32 *>(codes), N, d, widths, rows, n, gradient, mass);
        *nodes = grower.grow(leaves, depth, share, Tree{feature, cut, left, value});
        return GCE_OK;
    });
}
