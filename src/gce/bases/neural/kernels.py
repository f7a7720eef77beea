"""Compiled loops for the CPU: training two-layer networks.

Rows are worked on in *tiles* of ``TILE`` rows, columns first: every inner loop runs over the rows of a tile, has a
length the compiler knows, and is one vector operation after another; a tile's hidden layer stays in the first-level
cache between its product, its nonlinearity and its gradients. Products are unrolled four by four, so that a number
loaded is used four times. Buffers are flat because offsets within one array need no test for overlap, and indices
unsigned because negative ones would mean "from the end". All are in one file: numba's cache on disk looks at no other.
"""

from __future__ import annotations

import numpy as np

from gce._utils.jit import compiled

#: Rows of a tile: a multiple of eight, and not a power of two, whose columns would share cache sets.
TILE = 120
#: Slopes are summed over this many rows first, then over such chunks: threads may share a batch without changing a bit.
CHUNK = 8 * TILE

_U, _BETA1, _BETA2, _EPSILON = np.uint64, 0.9, 0.999, 1e-8
_R, _0, _1, _2, _3, _4 = _U(TILE), _U(0), _U(1), _U(2), _U(3), _U(4)

# sums may be reordered and products fused; NaN and infinity keep their meaning: they tell that a net failed
_HOW: dict = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
# by force: a process that compiles and one that loads from disk would call other copies, and round differently
_compiled, _inlined = compiled(**_HOW), compiled(**_HOW, forceinline=True)


@_inlined
def _clear(vector):
    for i in range(len(vector)):
        vector[i] = 0


@_inlined
def _copy(vector, into):
    for i in range(len(vector)):
        into[i] = vector[i]


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
                z[z0 + r] += a0 * p + a1 * q + a2 * s + a3 * t
                z[z1 + r] += b0 * p + b1 * q + b2 * s + b3 * t
                z[z2 + r] += c0 * p + c1 * q + c2 * s + c3 * t
                z[z3 + r] += d0 * p + d1 * q + d2 * s + d3 * t
        for i in range(i4, columns):
            a0, b0, c0, d0 = W[w0 + i], W[w1 + i], W[w2 + i], W[w3 + i]
            for r in range(_R):
                p = X[i * _R + r]
                z[z0 + r] += a0 * p
                z[z1 + r] += b0 * p
                z[z2 + r] += c0 * p
                z[z3 + r] += d0 * p
    for j in range(j4, rows):
        z0, w0 = j * _R, j * columns
        for i in range(_0, i4, _4):
            x0, x1, x2, x3 = i * _R, (i + _1) * _R, (i + _2) * _R, (i + _3) * _R
            a0, a1, a2, a3 = W[w0 + i], W[w0 + i + _1], W[w0 + i + _2], W[w0 + i + _3]
            for r in range(_R):
                z[z0 + r] += a0 * X[x0 + r] + a1 * X[x1 + r] + a2 * X[x2 + r] + a3 * X[x3 + r]
        for i in range(i4, columns):
            a0 = W[w0 + i]
            for r in range(_R):
                z[z0 + r] += a0 * X[i * _R + r]


@_inlined
def _add4(vector, at, a, b, c, d):
    vector[at] += a
    vector[at + _1] += b
    vector[at + _2] += c
    vector[at + _3] += d


@_inlined
def _outer(A, X, G, rows, columns, zero):
    """``G_ji += sum_r A_jr X_ir``: ``A`` and ``X`` tiles, ``G`` flat ``(rows, columns)``."""
    j4, i4 = rows // _4 * _4, columns // _4 * _4
    for j in range(_0, j4, _4):
        z0, z1, z2, z3 = j * _R, (j + _1) * _R, (j + _2) * _R, (j + _3) * _R
        w0, w1, w2, w3 = j * columns, (j + _1) * columns, (j + _2) * columns, (j + _3) * columns
        for i in range(_0, i4, _4):
            x0, x1, x2, x3 = i * _R, (i + _1) * _R, (i + _2) * _R, (i + _3) * _R
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = zero
            for r in range(_R):
                p, q, s, t = X[x0 + r], X[x1 + r], X[x2 + r], X[x3 + r]
                a, b, c, d = A[z0 + r], A[z1 + r], A[z2 + r], A[z3 + r]
                a0, a1, a2, a3 = a0 + a * p, a1 + a * q, a2 + a * s, a3 + a * t
                b0, b1, b2, b3 = b0 + b * p, b1 + b * q, b2 + b * s, b3 + b * t
                c0, c1, c2, c3 = c0 + c * p, c1 + c * q, c2 + c * s, c3 + c * t
                d0, d1, d2, d3 = d0 + d * p, d1 + d * q, d2 + d * s, d3 + d * t
            _add4(G, w0 + i, a0, a1, a2, a3)
            _add4(G, w1 + i, b0, b1, b2, b3)
            _add4(G, w2 + i, c0, c1, c2, c3)
            _add4(G, w3 + i, d0, d1, d2, d3)
        for i in range(i4, columns):
            a0 = b0 = c0 = d0 = zero
            for r in range(_R):
                p = X[i * _R + r]
                a0, b0, c0, d0 = a0 + A[z0 + r] * p, b0 + A[z1 + r] * p, c0 + A[z2 + r] * p, d0 + A[z3 + r] * p
            G[w0 + i] += a0
            G[w1 + i] += b0
            G[w2 + i] += c0
            G[w3 + i] += d0
    for j in range(j4, rows):
        z0, w0 = j * _R, j * columns
        for i in range(_0, i4, _4):
            x0, x1, x2, x3 = i * _R, (i + _1) * _R, (i + _2) * _R, (i + _3) * _R
            a0 = a1 = a2 = a3 = zero
            for r in range(_R):
                a = A[z0 + r]
                a0, a1, a2, a3 = a0 + a * X[x0 + r], a1 + a * X[x1 + r], a2 + a * X[x2 + r], a3 + a * X[x3 + r]
            _add4(G, w0 + i, a0, a1, a2, a3)
        for i in range(i4, columns):
            a0 = zero
            for r in range(_R):
                a0 += A[z0 + r] * X[i * _R + r]
            G[w0 + i] += a0


@_inlined
def _activate(z, size, curved, zero):
    """The hidden layer's nonlinearity in place; NaN stays NaN."""
    if curved:
        for r in range(size):
            z[r] = np.tanh(z[r])
    else:
        for r in range(size):
            z[r] = zero if z[r] < zero else z[r]


@_inlined
def _activate_backward(gradient, hidden, sums, count, curved, zero, one):
    """Carry gradients back through the hidden layer in place, and add up each unit's."""
    for j in range(count):
        total = zero
        for r in range(_R):
            t = hidden[j * _R + r]
            if curved:
                gradient[j * _R + r] *= one - t * t
            else:
                gradient[j * _R + r] = gradient[j * _R + r] if t > zero else zero
            total += gradient[j * _R + r]
        sums[j] += total


@_inlined
def _squash_backward(gradient, z, pull, sums, count, curved, zero, one):
    """Value ``sum gradient * squash(z)``; its gradients in ``z`` go to ``pull``, their sums over rows to ``sums``."""
    value = zero
    for j in range(count):
        total = zero
        for r in range(_R):
            t, s = z[j * _R + r], gradient[j * _R + r]
            if curved:
                unit = np.tanh(t)
                pulled = s * (one - unit * unit)
            else:
                unit = -one if t < -one else (one if t > one else t)
                pulled = s if unit == t else zero
            value += unit * s
            pull[j * _R + r] = pulled
            total += pulled
        sums[j] += total
    return value


@_compiled
def pack(X, S, rows, tile):
    """Copy up to ``TILE`` rows of ``X (n, d)`` and ``S (k, n)`` to a tile ``((d + k) * TILE,)``; the rest is 0."""
    count, d, k = _U(len(rows)), _U(X.shape[1]), _U(S.shape[0])
    for r in range(count):
        for i in range(d):
            tile[i * _R + r] = X[rows[r], i]
    for j in range(k):
        for r in range(count):
            tile[(d + j) * _R + r] = S[j, rows[r]]
    for i in range(d + k):
        for r in range(count, _R):
            tile[i * _R + r] = 0


@_inlined
def _tile_gradients(tile, net, turned, into, work, shape, curved, unit):
    """Add one tile's gradients to ``into``; return its value. ``turned`` is ``W2`` transposed."""
    d, h, k = _U(shape[0]), _U(shape[1]), _U(shape[2])
    zero, one = unit[0], unit[1]
    w2, e1, e2 = h * d + h, h * d, h * d + h + k * h
    hidden, back = work[: h * _R], work[h * _R : _2 * h * _R]
    out, pull = work[_2 * h * _R : (_2 * h + k) * _R], work[(_2 * h + k) * _R : (_2 * h + _2 * k) * _R]
    nothing = work[(_2 * h + _2 * k) * _R :]
    _product(net[:e1], tile, net[e1:w2], hidden, h, d)
    _activate(hidden, h * _R, curved[0], zero)
    _product(net[w2:e2], hidden, net[e2:], out, k, h)
    value = _squash_backward(tile[d * _R :], out, pull, into[e2:], k, curved[1], zero, one)
    _outer(pull, hidden, into[w2:e2], k, h, zero)
    _product(turned, pull, nothing, back, h, k)
    _activate_backward(back, hidden, into[e1:w2], h, curved[0], zero, one)
    _outer(back, tile, into[:e1], h, d, zero)
    return value


@_compiled
def turn(net, turned, shape):
    """``W2`` transposed, for the way back."""
    d, h, k = shape[0], shape[1], shape[2]
    for j in range(h):
        for o in range(k):
            turned[j * k + o] = net[h * d + h + o * h + j]


@_compiled
def chunk_gradients(X, S, rows, packed, first, net, turned, into, work, tile, shape, curved, unit):
    """Slopes ``into`` of at most ``CHUNK`` rows from ``first`` on, packed here unless they all are; their value."""
    _clear(into)
    value = 0.0
    for row in range(first, min(first + CHUNK, len(rows)), TILE):
        if len(packed):
            value += _tile_gradients(packed[row // TILE], net, turned, into, work, shape, curved, unit)
        else:
            pack(X, S, rows[row : min(row + TILE, len(rows))], tile)
            value += _tile_gradients(tile, net, turned, into, work, shape, curved, unit)
    return value


@_compiled
def adam(net, gradient, share, mean, square, sign, t, rate):
    """One step of Adam on a flat network, its gradients multiplied by ``share``; what leaves its sign (0: any) is 0."""
    first, second = 1 / (1 - _BETA1**t), 1 / (1 - _BETA2**t)
    for i in range(len(net)):
        g = share * gradient[i]
        mean[i] += (1 - _BETA1) * (g - mean[i])
        square[i] = _BETA2 * square[i] + (1 - _BETA2) * g * g
        net[i] -= rate * first * mean[i] / (np.sqrt(second * square[i]) + _EPSILON)
        net[i] = 0 if sign[i] * net[i] < 0 else net[i]


@_compiled
def advance(state, value, schedule):
    """The plateau rule of :class:`gce.bases.neural.descent.Plateau` for one network; True where the value is its best.

    ``state``: rate, best value, epochs since progress, epochs left, failed, steps. ``schedule``: floor, patience, last
    epochs, progress.
    """
    if not np.isfinite(value):
        state[4], state[0] = 1, 0
        return False
    improved = value < state[1]
    if improved:
        needed = schedule[3] * abs(state[1]) if state[1] < np.inf else 0.0
        state[2] = 0 if value < state[1] - needed else state[2] + 1
        state[1] = value
    else:
        state[2] += 1
    state[3] -= 1
    if state[3] <= 0:
        state[0] = 0
    elif state[2] > schedule[1] and state[0] > schedule[0]:
        state[0], state[2] = max(state[0] / 10, schedule[0]), 0
        if state[0] == schedule[0]:
            state[3] = schedule[2]
    return improved


@_compiled
def train(X, S, present, packed, orders, epochs, batches, vectors, state, schedule, scratch, shape, curved, unit):
    """Train one network for some epochs, or until its rate is 0.

    Parameters
    ----------
    X, S : array of shape (n, d), (k, n)
        Rows, and gradients of the linear objective.
    present : bool array of shape (n,)
        Rows with a gradient: the others would add nothing and are skipped.
    packed : array of shape (tiles, (d + k) * TILE)
        The rows present, where each batch is all of them; empty for mini-batches.
    orders : int array of shape (epochs, n), or (1, n) for full batches
    batches : int array of shape (batches + 1,)
        Where batches begin and end in an order.
    vectors : tuple of seven arrays of shape (P,)
        The network, its best, gradients, a chunk's gradients, Adam's two means, and signs.
    scratch : tuple of arrays
        ``W2`` transposed, a tile's layers, a tile.
    """
    (net, best, gradient, part, mean, square, sign), (turned, work, tile) = vectors, scratch
    rows = np.empty(len(present), np.int64)
    for epoch in range(epochs):
        if state[0] == 0:
            return
        total = 0.0
        for b in range(len(batches) - 1):
            order = orders[epoch % len(orders), batches[b] : batches[b + 1]]
            count = 0
            for row in order:
                if present[row]:
                    rows[count] = row
                    count += 1
            turn(net, turned, shape)
            _clear(gradient)
            for first in range(0, count, CHUNK):
                total += chunk_gradients(
                    X, S, rows[:count], packed, first, net, turned, part, work, tile, shape, curved, unit
                )
                for i in range(len(net)):
                    gradient[i] += part[i]
            if len(packed) and advance(state, total, schedule):
                _copy(net, best)
            state[5] += 1
            adam(net, gradient, len(present) / len(order), mean, square, sign, state[5], state[0])
        if not len(packed) and advance(state, total, schedule):
            _copy(net, best)
