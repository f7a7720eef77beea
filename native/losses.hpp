// Losses of raw scores with their gradients and the diagonals of their Hessians, for some rows at a time.
#pragma once

#include <algorithm>

#include "elementary.hpp"

// Rows that a loss is computed of at a time: their scores stay in the first-level cache.
constexpr i64 LOSS_ROWS = 128;

// log(1 + x) for x from 0 to 1 by the series of atanh(x / (2 + x)): 17 terms, because (1/9)^17 is below a rounding.
inline double log_one_plus(double x) {
    const double s = x / (2.0 + x), square = s * s;
    double tail = 1.0 / 35;
    for (int i = 16; i >= 0; i--) tail = tail * square + 1.0 / (2 * i + 1);
    return 2.0 * s * tail;
}

// `operator()` writes losses (rows,), gradients and Hessians (rows, k) of scores and targets (rows, k), which it may change.

// The mean of squared residuals over outputs.
struct Squared {
    i64 k;

    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        const double outputs = static_cast<double>(k);
        for (i64 i = 0; i < rows * k; i++) {
            score[i] -= y[i];
            D[i] = 2.0 * score[i] / outputs;
            H[i] = 2.0 / outputs;
        }
        for (i64 i = 0; i < rows; i++) {
            double sum = 0;
            for (i64 j = 0; j < k; j++) sum += score[i * k + j] * score[i * k + j];
            loss[i] = sum / outputs;
        }
    }
};

// log(1 + exp(f)) - y f of one score, without cancellation where both are large.
struct Logistic {
    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        for (i64 i = 0; i < rows; i++) loss[i] = elementary::exp(-std::fabs(score[i]));
        for (i64 i = 0; i < rows; i++) {
            const double less = loss[i] / (1.0 + loss[i]), f = score[i];
            D[i] = f >= 0 ? (1.0 - y[i]) - less : less - y[i];
            H[i] = less * (1.0 - less);
            loss[i] = std::max(f, 0.0) - y[i] * f + log_one_plus(loss[i]);
        }
    }
};

// log sum exp(f - f_y): the largest term is factored out, so that the others keep their digits where it is the class's own.
struct CrossEntropy {
    i64 k;

    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        for (i64 i = 0; i < rows; i++) {
            double *own = score + i * k;
            const double top = *std::max_element(own, own + k);
            double right = 0;
            for (i64 j = 0; j < k; j++) right += y[i * k + j] * own[j];
            loss[i] = top - right;
            for (i64 j = 0; j < k; j++) own[j] -= top;
        }
        for (i64 i = 0; i < rows * k; i++) score[i] = elementary::exp(score[i]);
        for (i64 i = 0; i < rows; i++) one_row(score + i * k, y + i * k, loss + i, D + i * k, H + i * k);
    }

  private:
    // From exp(f - max f), of which one is 1.
    void one_row(const double *e, const double *y, double *loss, double *D, double *H) const {
        const i64 top = std::max_element(e, e + k) - e;
        double others = 0, sum = 0, wrong = 0;
        for (i64 j = 0; j < k; j++) sum += e[j], others += j == top ? 0.0 : e[j];
        *loss += others <= 1 ? log_one_plus(others) : elementary::log(1.0 + others);
        for (i64 j = 0; j < k; j++) {
            const double p = e[j] / sum;
            H[j] = p * (1.0 - p);
            D[j] = (1.0 - y[j]) * p;
            wrong += D[j];
        }
        for (i64 j = 0; j < k; j++) D[j] -= y[j] * wrong;
    }
};

// Half the unit deviance of a Tweedie distribution of variance mu^power with mu = exp(f), the mean over outputs.
struct Deviance {
    i64 k;
    double power;

    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        const double outputs = static_cast<double>(k);
        for (i64 i = 0; i < rows; i++) {
            double sum = 0;
            for (i64 j = 0; j < k; j++) sum += one(score[i * k + j], y[i * k + j], D[i * k + j], H[i * k + j]);
            loss[i] = sum / outputs;
        }
        for (i64 i = 0; i < rows * k; i++) D[i] /= outputs, H[i] /= outputs;
    }

  private:
    double one(double f, double y, double &D, double &H) const {
        const double mean = power < 2 ? elementary::exp_any((2 - power) * f) : 1.0;
        const double target = power > 1 ? y * elementary::exp_any((1 - power) * f) : y;
        D = mean - target;
        H = (2 - power) * mean + (power - 1) * target;
        if (power == 1) return y > 0 ? std::max(mean - y - y * (f - elementary::log(y)), 0.0) : mean;
        if (power == 2) return std::max(target - 1 + f - elementary::log(y), 0.0);
        const double least = y > 0 ? elementary::exp_any((2 - power) * elementary::log(y)) / ((2 - power) * (power - 1)) : 0.0;
        return std::max(mean / (2 - power) + target / (power - 1) - least, 0.0);
    }
};

// Pinball losses times a factor, the mean over outputs. Gradients and Hessians are those of smooth minorants and of
// parabolas above them, times a scale for each output.
struct Pinball {
    i64 k;
    double factor;
    const double *levels, *scales, *widths; // (k,)

    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        const double part = factor / static_cast<double>(k);
        for (i64 i = 0; i < rows; i++) {
            double sum = 0;
            for (i64 j = 0; j < k; j++) {
                const double r = score[i * k + j] - y[i * k + j];
                const double bend = 0.5 / std::sqrt(r * r + widths[j] * widths[j]);
                D[i * k + j] = scales[j] * part * (r * bend + 0.5 - levels[j]);
                H[i * k + j] = scales[j] * part * bend;
                sum += std::max((1 - levels[j]) * r, -levels[j] * r);
            }
            loss[i] = part * sum;
        }
    }
};

// Huber's loss, the mean over outputs; the curvature is that of a parabola above it, and both have a scale.
struct Huber {
    i64 k;
    double delta;
    const double *scales; // (k,)

    void operator()(double *score, const double *y, i64 rows, double *loss, double *D, double *H) const {
        const double outputs = static_cast<double>(k);
        for (i64 i = 0; i < rows; i++) {
            double sum = 0;
            for (i64 j = 0; j < k; j++) {
                const double r = score[i * k + j] - y[i * k + j], size = std::fabs(r), near = std::min(size, delta);
                D[i * k + j] = scales[j] * std::min(std::max(r, -delta), delta) / outputs;
                H[i * k + j] = scales[j] * (delta / std::max(size, delta)) / outputs;
                sum += near * (size - near / 2);
            }
            loss[i] = sum / outputs;
        }
    }
};
