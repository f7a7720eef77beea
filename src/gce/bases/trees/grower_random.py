"""A compiled grower of extremely randomised trees; columns are codes, as in :mod:`gce.bases.trees.grower`."""

from __future__ import annotations

import numpy as np

from gce._utils.jit import interruptible, jit
from gce.bases.trees.grower import _SHORT, splitmix64

_fast = jit(nogil=True, error_model="numpy", boundscheck=False)
_summing = jit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, forceinline=True)
_inline = jit(nogil=True, error_model="numpy", boundscheck=False, inline="always")
_U = np.uint64
_0, _1 = _U(0), _U(1)


@_inline
def _drawn(state):
    """The next number of a stream (splitmix64)."""
    before = state[0]
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return splitmix64(before)


@_fast
def _side(here, cut, weight, Y, sums):
    """Weight and weighted targets of the rows that go left, added up."""
    for j in range(len(sums)):
        sums[j] = 0.0
    for i in range(len(here)):
        # a product and no branch, which would be guessed wrong half of the time
        own = weight[i] * (here[i] <= cut)
        sums[0] += own
        for j in range(Y.shape[1]):
            sums[1 + j] += own * Y[i, j]


@_summing
def _side_of_one(here, cut, weight, Y, sums):
    """The same for one target."""
    mass, total = 0.0, 0.0
    for i in range(len(here)):
        own = weight[i] * (here[i] <= cut)
        mass += own
        total += own * Y[i, 0]
    sums[0], sums[1] = mass, total


@_fast
def _at_value(values, low, high, drawn):
    """A code from ``low`` to below ``high``, by a value drawn between theirs: codes alone would know ranks only."""
    point = values[low] + float(drawn >> _U(11)) / 2.0**53 * (values[high] - values[low])
    first, last = int(low), int(high) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if values[middle] <= point:
            first = middle
        else:
            last = middle - 1
    return np.uint8(first)


@_fast
def _random_cut(codes, order, weight, Y, total, tries, least, state, columns, sums, here, values, starts):
    """The best of one random cut in each of several columns that vary here: column (-1: none) and code."""
    best, where, at, known = -1.0, -1, 0, 0
    left, n = len(columns), len(order)
    while left > 0 and known < tries:
        pick = int(_drawn(state) % _U(left))
        left -= 1
        columns[pick], columns[left] = columns[left], columns[pick]
        column = codes[columns[left]]
        low, high = np.uint8(255), np.uint8(0)
        for i in range(_U(n)):
            here[i] = column[order[i]]
            low, high = min(low, here[i]), max(high, here[i])
        if low == high:
            continue
        known += 1
        cut = _at_value(values[starts[columns[left]] : starts[columns[left] + 1]], low, high, _drawn(state))
        if Y.shape[1] == 1:
            _side_of_one(here[:n], cut, weight, Y, sums)
        else:
            _side(here[:n], cut, weight, Y, sums)
        rest = total[0] - sums[0]
        if sums[0] < least or rest < least:
            continue
        score = 0.0
        for j in range(Y.shape[1]):
            score += sums[1 + j] ** 2 / sums[0] + (total[1 + j] - sums[1 + j]) ** 2 / rest
        # sums round: of cuts as good as each other the first is taken
        if score > best + 1e-12 * abs(best):
            best, where, at = score, columns[left], int(cut)
    return where, at


@_fast
def _summed(weight, Y, total, value):
    """Weight and weighted targets of a node into ``total``, means into ``value``; how uneven its targets are."""
    total[:], square, even = 0.0, 0.0, 0.0
    for i in range(len(weight)):
        total[0] += weight[i]
        for j in range(Y.shape[1]):
            total[1 + j] += weight[i] * Y[i, j]
            square += weight[i] * Y[i, j] ** 2
    for j in range(Y.shape[1]):
        value[j] = total[1 + j] / total[0]
        even += total[1 + j] * value[j]
    return square - even > 1e-12 * square


@interruptible
@_fast
def scatter(codes, rows, weight, Y, tries, least, seed, values, starts):
    """An extremely randomised tree (Geurts, Ernst and Wehenkel, 2006): leaves hold weighted means of targets.

    Parameters
    ----------
    codes : array of shape (d, N)
    rows : array of shape (n,)
    weight : array of shape (n,)
    Y : array of shape (n, k)
    tries : int
        Columns that vary at a node and are tried there, by one random cut each.
    least : float
        Least weight of a leaf.
    seed : int
    values, starts : arrays
        A value for each code of each column, and where each column's begin.

    Returns
    -------
    feature, cut, left : arrays of shape (nodes,)
    value : array of shape (nodes, k)
    """
    n, k = len(rows), Y.shape[1]
    most = 2 * n - 1
    feature, cut, left = np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most, np.int32)
    value, first, last = np.zeros((most, k)), np.zeros(most, np.int64), np.zeros(most, np.int64)
    state, columns = np.array([seed], np.uint64), np.arange(codes.shape[0])
    order, weight, Y, here = rows.copy(), weight.copy(), Y.copy(), np.empty(n, np.uint8)
    spare, spare_weight, spare_Y = np.empty_like(order), np.empty_like(weight), np.empty_like(Y)
    total, sums = np.empty(1 + k), np.empty(1 + k)
    last[0], nodes, node, least = n, 1, 0, _SHORT * least
    while node < nodes:
        own = slice(first[node], last[node])
        uneven, where, at = _summed(weight[own], Y[own], total, value[node]), -1, 0
        if uneven and total[0] >= 2 * least:
            where, at = _random_cut(
                codes, order[own], weight[own], Y[own], total, tries, least, state, columns, sums, here, values, starts
            )
        if where >= 0:
            low = _part_targets(
                codes[where], np.uint8(at), order[own], weight[own], Y[own], spare, spare_weight, spare_Y
            )
            feature[node], cut[node], left[node] = where, at, nodes
            first[nodes], last[nodes] = first[node], first[node] + low
            first[nodes + 1], last[nodes + 1] = first[node] + low, last[node]
            nodes += 2
        node += 1
    return feature[:nodes].copy(), cut[:nodes].copy(), left[:nodes].copy(), value[:nodes].copy()


@_fast
def _part_targets(column, cut, order, weight, Y, spare, spare_weight, spare_Y):
    """Rows with those that go left first; how many go left."""
    low, high = _0, _0
    for i in range(_U(len(order))):
        row, own = order[i], weight[i]
        order[low], weight[low] = row, own
        spare[high], spare_weight[high] = row, own
        for j in range(Y.shape[1]):
            target = Y[i, j]
            Y[low, j], spare_Y[high, j] = target, target
        goes = _U(column[row] <= cut)
        low, high = low + goes, high + (_1 - goes)
    order[low:], weight[low:], Y[low:] = spare[:high], spare_weight[:high], spare_Y[:high]
    return int(low)
