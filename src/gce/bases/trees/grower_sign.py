"""A compiled grower for the linear oracle: leaves at one of two ends, by the sign of their gradients' sum.

The data are those of :mod:`gce.bases.trees.grower`: columns as codes, children side by side.
"""

from __future__ import annotations

import numpy as np

from gce._utils.jit import interruptible, jit
from gce.bases.trees.grower import _SHORT, _fill, _part

_fast = jit(nogil=True, error_model="numpy", boundscheck=False)

#: A gain below this share of all gradients is rounding: sides of one sign gain nothing.
_ROUNDING = 1e-9


@_fast
def _best_cut(hist, columns, starts, total, least, nothing, plan):
    """The cut whose sides disagree most: gain, place among the columns, code, and the left sums."""
    G, mass = total[0], total[1]
    plan[0] = 0.0
    for c in range(len(columns)):
        left, part = 0.0, 0.0
        for b in range(starts[c + 1] - starts[c] - 1):
            left += hist[starts[c] + b, 0]
            part += hist[starts[c] + b, 1]
            if part < least:
                continue
            if mass - part < least:
                break
            gain = abs(left) + abs(G - left) - abs(G)
            # sums round: of cuts as good as each other the first is taken
            if gain > nothing and gain > plan[0] * (1 + 1e-9):
                plan[0], plan[1], plan[2], plan[3], plan[4] = gain, c, b, left, part


@interruptible
@_fast
def grow_by_sign(codes, rows, D, mass, leaves, columns, widths, depth, least):
    """A tree that lowers ``sum D u`` over ``|u| <= 1`` greedily, its best leaf split next.

    Parameters
    ----------
    codes : array of shape (d, N)
    rows : array of shape (n,)
        Which rows to learn from.
    D, mass : arrays of shape (N,)
        Slopes, and what rows weigh.
    leaves : int
        At most.
    columns : array of shape (c,)
        Which columns may split.
    widths : array of shape (d,)
        How many codes each column has.
    depth : int
        At most.
    least : float
        Least mass of a leaf, as a share of all.

    Returns
    -------
    feature, cut, left : arrays of shape (nodes,)
    value : array of shape (nodes,)
        -1, 0 or 1.
    """
    n, most = len(rows), 2 * leaves - 1
    feature, cut, left = np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most, np.int32)
    level, first, last = np.zeros(most, np.int32), np.zeros(most, np.int64), np.zeros(most, np.int64)
    sums, plan = np.zeros((most, 2)), np.zeros((most, 5))
    starts = np.zeros(len(columns) + 1, np.int64)
    for c in range(len(columns)):
        starts[c + 1] = starts[c] + widths[columns[c]]
    hist = np.empty((starts[-1], 2))
    order, gradient, own_mass = rows.copy(), D[rows], mass[rows]
    spare, spare_gradient, spare_mass = np.empty_like(order), np.empty(n), np.empty(n)
    sums[0, 0], sums[0, 1], last[0] = gradient.sum(), own_mass.sum(), n
    nothing, least = _ROUNDING * np.abs(gradient).sum(), _SHORT * least * sums[0, 1]
    _fill(hist, codes, order, gradient, own_mass, columns, starts)
    _best_cut(hist, columns, starts, sums[0], least, nothing, plan[0])
    nodes = 1
    while nodes < most:
        node = np.argmax(plan[:nodes, 0])
        if not plan[node, 0] > 0:
            break
        c, plan[node, 0] = int(plan[node, 1]), 0.0
        feature[node], cut[node], left[node] = columns[c], int(plan[node, 2]), nodes
        a, b = first[node], last[node]
        own = slice(a, b)
        low = _part(
            codes[columns[c]], cut[node], order[own], gradient[own], own_mass[own], spare, spare_gradient, spare_mass
        )
        one, two = nodes, nodes + 1
        nodes += 2
        first[one], last[one], first[two], last[two] = a, a + low, a + low, b
        sums[one] = plan[node, 3:]
        sums[two] = sums[node] - sums[one]
        level[one] = level[two] = level[node] + 1
        for child in (one, two):
            if level[child] < depth:
                part = slice(first[child], last[child])
                _fill(hist, codes, order[part], gradient[part], own_mass[part], columns, starts)
                _best_cut(hist, columns, starts, sums[child], least, nothing, plan[child])
    value = np.zeros(nodes)
    for leaf in range(nodes):
        if abs(sums[leaf, 0]) > nothing:
            value[leaf] = -np.sign(sums[leaf, 0])
    return feature[:nodes], cut[:nodes], left[:nodes], value
