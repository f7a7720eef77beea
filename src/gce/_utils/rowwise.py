"""Compiled loops for the CPU in which a row gets the same bits whatever rows are beside it.

A product of matrices, or ``exp`` of a vector, rounds one way in the middle of a vector instruction and another way in
what is left over at the end. Here every row goes through the same operations in the same order, each of them rounded as
IEEE 754 says: the compiler may not reorder sums, products are added by one operation that is fused on a processor or is
not, and ``exp``, ``log`` and ``tanh`` are written out. They all live in one file: numba's on-disk cache looks at a
function's own file only.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from gce._utils.jit import compiled

#: Rows of a tile: a multiple of eight, and not a power of two, whose columns would share cache sets.
TILE = 120

_U = np.uint64
_R, _0, _1, _2, _3, _4 = _U(TILE), _U(0), _U(1), _U(2), _U(3), _U(4)

# no fastmath: it allows the compiler to round a vector's lanes and a loop's last rows differently
_HOW: dict = {"nogil": True, "error_model": "numpy"}
_compiled, _inlined = compiled(**_HOW), compiled(**_HOW, forceinline=True)

_LOG2E, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_SQRT_HALF = math.sqrt(0.5)
#: Beyond these exp is 0 and tanh is 1, to the last bit.
_NOTHING, _SURE = -746.0, 22.0
_LEAST_POWER = -1080
_POWERS = np.ldexp(1.0, np.arange(_LEAST_POWER, 80))
#: Of ``(exp(r) - 1 - r) / r^2`` and of ``log((1 + s) / (1 - s)) / 2s`` in ``s^2``, the highest power first.
_EXP = tuple(1 / math.factorial(i) for i in range(13, 1, -1))
_LOG = tuple(1 / (2 * i + 1) for i in range(10, -1, -1))


@intrinsic
def _add_product(typing, a, b, c):
    """``a * b + c``, rounded once on a processor that can and twice on others: one and the same for all of a loop."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        fused = builder.module.declare_intrinsic("llvm.fmuladd", [kind], ir.FunctionType(kind, [kind] * 3))
        return builder.call(fused, arguments)

    return a(a, b, c), generate


@_inlined
def _exponent(x):
    """``n, p`` with ``exp(x) = 2^n (1 + p)`` for ``x`` from -746 to 50."""
    n = np.floor(x * _LOG2E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    tail = 0.0
    for c in _EXP:
        tail = tail * r + c
    return np.int64(n), r + r * r * tail


@_inlined
def _exp(x):
    """``exp(x)`` for ``x <= 0``; NaN stays NaN."""
    # NaN is no index
    n, p = _exponent(x if x > _NOTHING else _NOTHING)
    return (1.0 + p) * _POWERS[_U(n - _LEAST_POWER)] if x == x else x


@_inlined
def _tanh(x):
    """``tanh(x)`` from ``exp(2x) - 1``; NaN stays NaN."""
    size = abs(x)
    n, p = _exponent(2.0 * (size if size < _SURE else _SURE))
    power = _POWERS[_U(n - _LEAST_POWER)]
    less_one = power * p + (power - 1.0)
    unit = less_one / (less_one + 2.0)
    return (-unit if x < 0 else unit) if x == x else x


@_inlined
def _log(x):
    """``log(x)`` of a finite number."""
    if not x > 0:
        return -np.inf if x == 0 else np.nan
    m, e = math.frexp(x)
    if m < _SQRT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    tail = 0.0
    for c in _LOG:
        tail = tail * (s * s) + c
    return e * _LN2_HIGH + (2.0 * s * tail + e * _LN2_LOW)


@_compiled
def sigmoid(score, result):
    """Probabilities ``(n, 2)`` of two classes from the log-odds ``(n,)`` of the second."""
    for r in range(len(score)):
        less = _exp(-abs(score[r]))
        other, likely = less / (1.0 + less), 1.0 / (1.0 + less)
        first = score[r] < 0
        result[r, 0] = likely if first else other
        result[r, 1] = other if first else likely


@_compiled
def softmax(scores, result):
    """Probabilities ``(n, k)`` from scores ``(n, k)``; sums are in the order of the classes."""
    k = scores.shape[1]
    for r in range(len(scores)):
        top, total = scores[r, 0], 0.0
        for j in range(1, k):
            top = max(top, scores[r, j])
        for j in range(k):
            result[r, j] = _exp(scores[r, j] - top)
            total += result[r, j]
        for j in range(k):
            result[r, j] /= total


@_compiled
def log_odds(p, result):
    """``log(p / (1 - p))`` of probabilities ``(n,)``."""
    for r in range(len(p)):
        result[r] = _log(p[r]) - _log(1.0 - p[r])


@_compiled
def centred_log(p, result):
    """``log(p)`` of probabilities ``(n, k)``, less its mean over the classes."""
    k = p.shape[1]
    for r in range(len(p)):
        total = 0.0
        for j in range(k):
            result[r, j] = _log(p[r, j])
            total += result[r, j]
        for j in range(k):
            result[r, j] -= total / k


@_compiled
def scaled(X, mean, factor, clip, result, first, last):
    """``z / (1 + (z / clip)^4)^(1/4)`` of ``z = (x - mean) * factor``, for rows ``first`` to ``last``."""
    for row in range(first, last):
        for i in range(X.shape[1]):
            # beyond 1e9 clips the answer is the clip to the last bit, and fourth powers would overflow at last
            z = max(min((X[row, i] - mean[i]) * factor[i], 1e9 * clip), -1e9 * clip)
            r = z / clip
            r = r * r
            result[row, i] = max(min(z / np.sqrt(np.sqrt(1 + r * r)), clip), -clip)


@_inlined
def _product(W, X, b, z, rows, columns):
    """``z_jr = b_j + sum_i W_ji X_ir`` for a tile: ``W`` flat ``(rows, columns)``, ``X`` and ``z`` tiles."""
    for j in range(rows):
        for r in range(_R):
            z[j * _R + r] = b[j]
    j4, i4 = rows // _4 * _4, columns // _4 * _4
    for j in range(_0, j4, _4):
        z0, z1, z2, z3 = j * _R, (j + _1) * _R, (j + _2) * _R, (j + _3) * _R
        w0, w1, w2, w3 = j * columns, (j + _1) * columns, (j + _2) * columns, (j + _3) * columns
        for i in range(_0, i4, _4):
            x0, x1, x2, x3 = i * _R, (i + _1) * _R, (i + _2) * _R, (i + _3) * _R
            a0, a1, a2, a3 = W[w0 + i], W[w0 + i + _1], W[w0 + i + _2], W[w0 + i + _3]
            b0, b1, b2, b3 = W[w1 + i], W[w1 + i + _1], W[w1 + i + _2], W[w1 + i + _3]
            c0, c1, c2, c3 = W[w2 + i], W[w2 + i + _1], W[w2 + i + _2], W[w2 + i + _3]
            d0, d1, d2, d3 = W[w3 + i], W[w3 + i + _1], W[w3 + i + _2], W[w3 + i + _3]
            for r in range(_R):
                p, q, s, t = X[x0 + r], X[x1 + r], X[x2 + r], X[x3 + r]
                z[z0 + r] = _add4(a0, a1, a2, a3, p, q, s, t, z[z0 + r])
                z[z1 + r] = _add4(b0, b1, b2, b3, p, q, s, t, z[z1 + r])
                z[z2 + r] = _add4(c0, c1, c2, c3, p, q, s, t, z[z2 + r])
                z[z3 + r] = _add4(d0, d1, d2, d3, p, q, s, t, z[z3 + r])
        for i in range(i4, columns):
            a0, b0, c0, d0 = W[w0 + i], W[w1 + i], W[w2 + i], W[w3 + i]
            for r in range(_R):
                p = X[i * _R + r]
                z[z0 + r] = _add_product(a0, p, z[z0 + r])
                z[z1 + r] = _add_product(b0, p, z[z1 + r])
                z[z2 + r] = _add_product(c0, p, z[z2 + r])
                z[z3 + r] = _add_product(d0, p, z[z3 + r])
    for j in range(j4, rows):
        z0, w0 = j * _R, j * columns
        for i in range(_0, i4, _4):
            x0, x1, x2, x3 = i * _R, (i + _1) * _R, (i + _2) * _R, (i + _3) * _R
            a0, a1, a2, a3 = W[w0 + i], W[w0 + i + _1], W[w0 + i + _2], W[w0 + i + _3]
            for r in range(_R):
                z[z0 + r] = _add4(a0, a1, a2, a3, X[x0 + r], X[x1 + r], X[x2 + r], X[x3 + r], z[z0 + r])
        for i in range(i4, columns):
            a0 = W[w0 + i]
            for r in range(_R):
                z[z0 + r] = _add_product(a0, X[i * _R + r], z[z0 + r])


@_inlined
def _add4(a, b, c, d, p, q, s, t, z):
    return _add_product(d, t, _add_product(c, s, _add_product(b, q, _add_product(a, p, z))))


@_inlined
def _pack(X, row, count, column, tile, columns):
    """Copy rows ``row`` to ``row + count`` of some columns of ``X`` to a tile; the rest is 0."""
    for r in range(count):
        for i in range(columns):
            tile[i * _R + r] = X[row + r, column + i]
    for i in range(columns):
        for r in range(count, _R):
            tile[i * _R + r] = 0


@_inlined
def _curve(z, size, kind, unit):
    """A layer's nonlinearity in place, by its place in :data:`gce.bases.neural.evaluation.CURVES`; NaN stays NaN."""
    zero, one = unit[0], unit[1]
    if kind == 1:
        for r in range(size):
            z[r] = zero if z[r] < zero else z[r]
    elif kind == 2:
        for r in range(size):
            z[r] = -one if z[r] < -one else (one if z[r] > one else z[r])
    elif kind == 3:
        for r in range(size):
            z[r] = _tanh(np.float64(z[r]))


@_inlined
def _evaluate(X, row, count, nets, first, last, scratch, shape, curves, unit):
    """Unit outputs of networks ``first`` to ``last`` on a tile of rows: their first layers are one product."""
    (W1, b1, W2, b2), (tile, hidden, out) = nets, scratch
    h, k = _U(shape[1]), _U(shape[2])
    units = (last - first) * h
    if shape[0] >= 0:
        d = _U(shape[0])
        _product(W1[first * h * d : last * h * d], tile, b1[first * h : last * h], hidden, units, d)
    else:
        _pack(X, row, count, first * h, hidden, units)
    _curve(hidden, units * _R, curves[0], unit)
    if not len(W2):
        for r in range(units * _R):
            out[r] = hidden[r]
        return
    for net in range(first, last):
        own = hidden[(net - first) * h * _R : (net - first + _1) * h * _R]
        result = out[(net - first) * k * _R : (net - first + _1) * k * _R]
        _product(W2[net * k * h : (net + _1) * k * h], own, b2[net * k : (net + _1) * k], result, k, h)
    _curve(out, (last - first) * k * _R, curves[1], unit)


@_compiled
def outputs(X, nets, bound, models, group, result, start, end, scratch, shape, curves, unit):
    """Outputs ``bound * unit`` of every atom on rows ``start`` to ``end`` of ``X``, into ``result (A, n, k)``.

    Parameters
    ----------
    X : array of shape (n, d), or (n, nets * h) where ``d`` is given as -1
        Rows, or the sums in the hidden units of all networks.
    nets : tuple of flat arrays
        ``W1, b1, W2, b2`` of all networks; without ``W2`` hidden units are the outputs.
    bound : array of shape (models * k,)
        Bounds of the outputs of an atom.
    models, group : int
        Networks of an atom, and networks that are evaluated at once.
    result : array of shape (A, n, k)
        Where outputs are written.
    start, end : int
        The rows.
    scratch : tuple of flat arrays
        A tile of rows, hidden units and outputs of a group.
    shape : array of int
        ``d``, ``h``, ``k`` of a network.
    curves : array of two int
        Nonlinearities of the two layers.
    unit : array of shape (2,)
        0 and 1 in the networks' precision.
    """
    tile, _, out = scratch
    k, count = _U(shape[2]), _U(len(result) * models)
    for row in range(start, end, TILE):
        rows = _U(min(TILE, end - row))
        if shape[0] >= 0:
            _pack(X, _U(row), rows, _0, tile, _U(shape[0]))
        for first in range(_0, count, _U(group)):
            last = min(first + _U(group), count)
            _evaluate(X, _U(row), rows, nets, first, last, scratch, shape, curves, unit)
            for net in range(first, last):
                for j in range(k):
                    column = net % _U(models) * k + j
                    for r in range(rows):
                        value = bound[column] * out[((net - first) * k + j) * _R + r]
                        result[net // _U(models), _U(row) + r, column] = value


@_compiled
def mixture(X, nets, bound, models, group, weights, result, start, end, scratch, shape, curves, unit):
    """Add ``sum_a weights_a atom_a`` on rows ``start`` to ``end`` to ``result (n, k)``, in float64; see ``outputs``."""
    tile, _, out = scratch
    k, count = _U(shape[2]), _U(len(weights) * models)
    total = np.empty(models * shape[2] * TILE)
    for row in range(start, end, TILE):
        rows = _U(min(TILE, end - row))
        if shape[0] >= 0:
            _pack(X, _U(row), rows, _0, tile, _U(shape[0]))
        total[:] = 0.0
        for first in range(_0, count, _U(group)):
            last = min(first + _U(group), count)
            _evaluate(X, _U(row), rows, nets, first, last, scratch, shape, curves, unit)
            for net in range(first, last):
                for j in range(k):
                    column = net % _U(models) * k + j
                    here, there = column * _R, ((net - first) * k + j) * _R
                    weight, scale = weights[net // _U(models), column], bound[column]
                    for r in range(_R):
                        total[here + r] += weight * (scale * out[there + r])
        for r in range(rows):
            for j in range(_U(models) * k):
                result[_U(row) + r, j] += total[j * _R + r]
