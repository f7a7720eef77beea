// Sums over cached outputs. Outputs may be single precision while sums are double: nothing is converted first.
#include <algorithm>

#include "vectors.hpp"

namespace {

// Numbers at a time: what is added to, or multiplied by, stays in the first-level cache while atoms pass by.
constexpr i64 BLOCK = 2048;

template <class T>
void inner_products(const T *cache, i64 atoms, i64 stride, const double *GCE_RESTRICT gradient, i64 size, double *result) {
    for (i64 first = 0; first < size; first += BLOCK) {
        const i64 count = std::min(BLOCK, size - first), whole = count / LANES<double> * LANES<double>;
        const double *given = gradient + first;
        for (i64 t = 0; t < atoms; t++) {
            const T *GCE_RESTRICT own = cache + t * stride + first;
            double lanes[LANES<double>] = {};
            for (i64 i = 0; i < whole; i += LANES<double>)
                for (int l = 0; l < LANES<double>; l++) lanes[l] = std::fma(double(own[i + l]), given[i + l], lanes[l]);
            for (i64 i = whole; i < count; i++) lanes[i - whole] = std::fma(double(own[i]), given[i], lanes[i - whole]);
            result[t] += sum_of_lanes(lanes);
        }
    }
}

// Sums over parts of the numbers one by one, which end at `ends`: results (parts, atoms).
template <class T>
void inner_products_by_part(const T *cache, i64 atoms, i64 stride, const double *gradient, const i64 *ends, i64 parts,
                            double *result) {
    for (i64 p = 0, first = 0; p < parts; first = ends[p++])
        inner_products(cache + first, atoms, stride, gradient + first, ends[p] - first, result + p * atoms);
}

template <class T>
void combination(const T *cache, i64 atoms, i64 stride, const double *coefficients, i64 size, double *result) {
    for (i64 first = 0; first < size; first += BLOCK) {
        const i64 count = std::min(BLOCK, size - first);
        double *GCE_RESTRICT into = result + first;
        for (i64 t = 0; t < atoms; t++) {
            if (coefficients[t] == 0) continue;
            const T *GCE_RESTRICT own = cache + t * stride + first;
            const double coefficient = coefficients[t];
            for (i64 i = 0; i < count; i++) into[i] = std::fma(coefficient, double(own[i]), into[i]);
        }
    }
}

} // namespace

#define GCE_REDUCTIONS(T, NAME)                                                                                          \
    GCE_EXPORT int gce_inner_products_by_part_##NAME(const T *cache, i64 atoms, i64 stride, const double *gradient,      \
                                                     const i64 *ends, i64 parts, double *result) {                       \
        inner_products_by_part(cache, atoms, stride, gradient, ends, parts, result);                                     \
        return GCE_OK;                                                                                                   \
    }                                                                                                                    \
    GCE_EXPORT int gce_combination_##NAME(const T *cache, i64 atoms, i64 stride, const double *coefficients, i64 size,   \
                                          double *result) {                                                              \
        combination(cache, atoms, stride, coefficients, size, result);                                                   \
        return GCE_OK;                                                                                                   \
    }
GCE_REDUCTIONS(double, f64)
GCE_REDUCTIONS(float, f32)
