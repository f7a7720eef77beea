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
