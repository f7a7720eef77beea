// Whole rounds of boosting. Members are independent of each other: a thread takes one that is behind, grows its next trees,
// adds them to its predictions, and computes its risk, gradient and Hessian there for the round after.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "losses.hpp"
#include "round.hpp"
#include "take_member.hpp"

namespace {

enum : i64 { SQUARED, LOGISTIC, CROSS_ENTROPY, DEVIANCE, PINBALL, HUBER };

// What gce/bases/trees/booster.py fills in; arrays are in C order.
struct Boost {
    const Round *rounds; // (M,), of one member each; nodes (count, T, most_nodes)
    i64 members, count, loss;
    const double *y, *weight, *held_out; // (N, k), (M, n), (M, N)
    const double *offset, *bound;        // (k,)
    const double *about;                 // what the gap is divided by, and the parameters of the loss
    double learning_rate;
    const u64 *keys;                                     // (count, M)
    double *pred, *D, *H, *outputs;                      // (M, N, k), (M, n, k), (M, n, k), (M, N, k)
    double *zero, *level;                                // (M,) weight of the zero function, sum of D pred
    double *largest;                                     // (M, 2, k) gradients and Hessians
    double *size, *limit, *gap, *risk, *validation;      // (count, M)
    i64 *done, *taken;                                   // (M,) rounds of this call, and whether a thread is at it
    const i64 *ends; // (own,) where the logical shards of this process end among its n rows
    i64 own, first, shards; // its shards are first, first + 1, ... of all
};

// Sums over the training rows. The largest gradients and Hessians of k outputs each follow behind.
enum Which : i64 { RISK, LEVEL, INNER, SUMS };

// Sums and largest numbers of each logical shard. Sums are added up in the order of the shards, whichever process has them.
class ShardSums {
  public:
    ShardSums(const Boost &boost, i64 k, Reduce reduce)
        : boost_(boost), k_(k), reduce_(reduce), parts_(static_cast<size_t>((SUMS + 2 * k) * boost.shards)), totals_{} {}

    // Of a shard of this process, counted from 0.
    double &at(i64 which, i64 shard) { return parts_[static_cast<size_t>(which * boost_.shards + boost_.first + shard)]; }

    // In one message: processes wait for each other.
    void join(double *largest) {
        static_assert(sizeof(double) == sizeof(i64), "bits that are added to those of 0 stay as they are");
        if (reduce_) {
            std::vector<i64> bits(parts_.size());
            std::memcpy(bits.data(), parts_.data(), sizeof(i64) * bits.size());
            reduce_(bits.data(), static_cast<i64>(bits.size()), ADDED);
            std::memcpy(parts_.data(), bits.data(), sizeof(i64) * bits.size());
        }
        for (i64 which = 0; which < SUMS; which++) {
            const double *own = parts_.data() + which * boost_.shards;
            totals_[which] = own[0];
            for (i64 shard = 1; shard < boost_.shards; shard++) totals_[which] += own[shard];
        }
        for (i64 j = 0; j < 2 * k_; j++) {
            const double *own = parts_.data() + (SUMS + j) * boost_.shards;
            largest[j] = *std::max_element(own, own + boost_.shards);
        }
    }

    double total(Which which) const { return totals_[which]; }

  private:
    const Boost &boost_;
    i64 k_;
    Reduce reduce_;
    std::vector<double> parts_; // (SUMS + 2 k, shards)
    double totals_[SUMS];
};

// One member's part of the arrays.
struct Member {
    const Boost &boost;
    i64 m, n, rows, k;

    Member(const Boost &boost, i64 m)
        : boost(boost), m(m), n(boost.rounds[m].n_train), rows(boost.rounds[m].n_rows), k(boost.rounds[m].outputs) {}

    double *pred() const { return boost.pred + m * rows * k; }
    double *D() const { return boost.D + m * n * k; }
    double *H() const { return boost.H + m * n * k; }
    double *largest() const { return boost.largest + m * 2 * k; }

    // Trees of round t of this call.
    Round trees(i64 t) const {
        Round own = boost.rounds[m];
        const i64 first = t * own.trees * own.most_nodes;
        own.feature += first, own.cut += first, own.left += first, own.value += first * own.leaf_values();
        if (own.mixed()) own.missing_left += first, own.sets += 4 * first;
        own.size += t * own.trees;
        own.keys = boost.keys + t * boost.members + m;
        own.largest = largest();
        return own;
    }

    void add(const double *outputs, double size) const {
        double *into = pred();
        for (i64 i = 0; i < rows * k; i++) into[i] += size * outputs[i];
    }

    ShardSums sums() const { return {boost, k, boost.rounds[m].reduce}; }

    // Calls a function with each shard of this process and its rows [first, last).
    template <class Of> void each_shard(Of of) const {
        for (i64 shard = 0, first = 0; shard < boost.own; first = boost.ends[shard++]) of(shard, first, boost.ends[shard]);
    }

    void inner(const double *outputs, ShardSums &sums) const {
        each_shard([&](i64 shard, i64 first, i64 last) {
            double sum = 0;
            for (i64 i = first * k; i < last * k; i++) sum += D()[i] * outputs[i];
            sums.at(INNER, shard) = sum;
        });
    }
};

// Gradients and Hessians at the present predictions, times sample weights; the risk and the loss on rows held out.
template <class Loss> class Evaluation {
  public:
    Evaluation(const Member &own, const Loss &loss)
        : own_(own), loss_(loss), memory_(static_cast<size_t>(LOSS_ROWS * (3 * own.k + 1))),
          largest_(static_cast<size_t>(2 * own.k)) {}

    // The loss on rows held out, which are not divided among processes.
    double operator()(ShardSums &sums) {
        own_.each_shard([&](i64 shard, i64 first, i64 last) {
            std::fill(largest_.begin(), largest_.end(), 0.0);
            const Part found = rows(first, last);
            sums.at(RISK, shard) = found.risk, sums.at(LEVEL, shard) = found.level;
            for (i64 j = 0; j < 2 * own_.k; j++) sums.at(SUMS + j, shard) = largest_[static_cast<size_t>(j)];
        });
        rows(own_.n, own_.rows);
        return validation_;
    }

  private:
    struct Part {
        double risk = 0, level = 0;
    };

    Part rows(i64 begin, i64 end) {
        const Boost &boost = own_.boost;
        const double *weight = boost.weight + own_.m * own_.n, *held_out = boost.held_out + own_.m * own_.rows;
        const i64 k = own_.k;
        double *score = memory_.data(), *D = score + LOSS_ROWS * k, *H = D + LOSS_ROWS * k, *cost = H + LOSS_ROWS * k;
        Part found;
        for (i64 first = begin; first < end; first += LOSS_ROWS) {
            const i64 count = std::min(LOSS_ROWS, end - first);
            const double *pred = own_.pred() + first * k;
            for (i64 i = 0; i < count; i++)
                for (i64 j = 0; j < k; j++) score[i * k + j] = boost.offset[j] + pred[i * k + j];
            loss_(score, boost.y + first * k, count, cost, D, H);
            for (i64 i = 0; i < count; i++) {
                const i64 row = first + i;
                if (held_out[row] > 0) validation_ += held_out[row] * cost[i];
                if (row >= own_.n) continue;
                if (weight[row] > 0) found.risk += weight[row] * cost[i];
                for (i64 j = 0; j < k; j++) {
                    const double gradient = weight[row] * D[i * k + j];
                    own_.D()[row * k + j] = gradient;
                    own_.H()[row * k + j] = weight[row] * H[i * k + j];
                    found.level += gradient * pred[i * k + j];
                }
            }
            see_largest(first, std::min(first + count, own_.n));
        }
        return found;
    }

    // Of rows that were just computed, and by themselves: in the loop above memory would be written for each row.
    void see_largest(i64 first, i64 last) {
        const i64 k = own_.k;
        for (i64 j = 0; j < k; j++) {
            double &most_D = largest_[static_cast<size_t>(j)], &most_H = largest_[static_cast<size_t>(k + j)];
            double D = most_D, H = most_H;
            for (i64 i = first * k + j; i < last * k; i += k) {
                D = std::max(D, std::fabs(own_.D()[i]));
                H = std::max(H, own_.H()[i]);
            }
            most_D = D, most_H = H;
        }
    }

    const Member &own_;
    const Loss loss_;
    std::vector<double> memory_, largest_;
    double validation_ = 0;
};

double evaluate(const Member &own, ShardSums &sums) {
    const double *about = own.boost.about;
    switch (own.boost.loss) {
    case SQUARED: return Evaluation<Squared>(own, Squared{own.k})(sums);
    case LOGISTIC: return Evaluation<Logistic>(own, Logistic{})(sums);
    case CROSS_ENTROPY: return Evaluation<CrossEntropy>(own, CrossEntropy{own.k})(sums);
    case DEVIANCE: return Evaluation<Deviance>(own, Deviance{own.k, about[1]})(sums);
    case PINBALL: {
        const double *levels = about + 2;
        return Evaluation<Pinball>(own, Pinball{own.k, about[1], levels, levels + own.k, levels + 2 * own.k})(sums);
    }
    default: return Evaluation<Huber>(own, Huber{own.k, about[1], about + 2})(sums);
    }
}

void run_round(const Boost &boost, i64 m, i64 t, void *scratch) {
    const Member own(boost, m);
    const Round trees = own.trees(t);
    const i64 at = t * boost.members + m;
    double *outputs = boost.outputs + m * own.rows * own.k, length = 0;
    *trees.next = 0;
    gce_grow_trees(&trees, scratch);
    gce_scale_trees(&trees, boost.bound, 1, &length, outputs, 0);
    ShardSums sums = own.sums();
    own.inner(outputs, sums);
    boost.limit[at] = boost.zero[m];
    boost.size[at] = std::min(boost.learning_rate * length, boost.zero[m]);
    own.add(outputs, boost.size[at]);
    boost.zero[m] = std::max(boost.zero[m] - boost.size[at], 0.0);
    boost.validation[at] = evaluate(own, sums);
    sums.join(own.largest());
    boost.gap[at] = std::max(boost.level[m] - std::min(sums.total(INNER), 0.0), 0.0) / boost.about[0];
    boost.risk[at] = sums.total(RISK), boost.level[m] = sums.total(LEVEL);
}

// Outputs of trees by the bins of rows, as in training, where their leaves are no longer known.
void drop_rows(const Round &trees, const double *bound, double *outputs) {
    const Codes codes{trees.codes, trees.n_rows};
    const i64 width = trees.leaf_values();
    for (i64 t = 0; t < trees.trees; t++) {
        const Tree tree = trees.tree(t, trees.leaf);
        std::fill(trees.leaf, trees.leaf + trees.n_rows, -1);
        drop_others(codes, trees.bundles, tree, Kinds{trees.missing, trees.categorical, {}}, trees.widths);
        for (i64 i = 0; i < trees.n_rows; i++)
            for (i64 v = 0; v < width; v++)
                outputs[i * trees.outputs + t + v] = bound[t + v] * tree.value[tree.leaf[i] * width + v];
    }
}

} // namespace

// Gradients and Hessians at the predictions that the first round starts from.
GCE_EXPORT int gce_boost_begin(const Boost *boost) {
    return guarded([&] {
        for (i64 m = 0; m < boost->members; m++) {
            const Member own(*boost, m);
            ShardSums sums = own.sums();
            evaluate(own, sums);
            sums.join(own.largest());
            boost->level[m] = sums.total(LEVEL);
        }
        return GCE_OK;
    });
}

// Run rounds until all members have `count` more; several threads may be here at once.
GCE_EXPORT int gce_boost(const Boost *boost, void *scratch) {
    static_assert(sizeof(std::atomic<i64>) == sizeof(i64), "a counter is an integer");
    return guarded([&] {
        auto *taken = reinterpret_cast<std::atomic<i64> *>(boost->taken);
        auto *done = reinterpret_cast<std::atomic<i64> *>(boost->done);
        const auto next = [&] { return take_member(taken, done, boost->members, boost->count); };
        for (i64 m = next(); m >= 0; m = next()) {
            run_round(*boost, m, done[m].load(), scratch);
            // in this order: a member that is free has all of its rounds counted
            done[m].fetch_add(1);
            taken[m].store(0);
        }
        return GCE_OK;
    });
}

// Predictions `(M, N, k)` after the first rounds of this call, from those before it: the same sums in the same order.
GCE_EXPORT void gce_boost_replay(const Boost *boost, i64 rounds, double *pred) {
    for (i64 m = 0; m < boost->members; m++) {
        const Member own(*boost, m);
        double *outputs = boost->outputs + m * own.rows * own.k, *into = pred + m * own.rows * own.k;
        for (i64 t = 0; t < rounds; t++) {
            drop_rows(own.trees(t), boost->bound, outputs);
            const double size = boost->size[t * boost->members + m];
            for (i64 i = 0; i < own.rows * own.k; i++) into[i] += size * outputs[i];
        }
    }
}
