"""Compiled growers of trees on histograms: best leaf first, or one cut for a whole level.

Columns are codes, ``(d, N)`` of bytes: ``code <= cut`` goes left. A node's children are adjacent, so that
the index of the left one is enough: ``left[node]`` and ``left[node] + 1``, 0 for a leaf.
"""

from __future__ import annotations

import numpy as np

from gce._utils import splitmix
from gce._utils.jit import interruptible, jit

_fast = jit(nogil=True, error_model="numpy", boundscheck=False)
splitmix64 = _fast(splitmix.splitmix64)
#: Gradients of rows times columns below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 16

_U = np.uint64
_0, _1 = _U(0), _U(1)
#: Sums round: a leaf of just as many rows as it must have may seem to have a little less.
_SHORT = 1 - 1e-9


@_fast
def _fill(hist, codes, order, gradient, hessian, columns, starts):
    """Add up gradients and hessians by column and code."""
    hist[:] = 0.0
    flat, n = hist.reshape(-1), _U(len(order))
    for c in range(len(columns)):
        column, start = codes[columns[c]], _U(2 * starts[c])
        for i in range(n):
            place = start + (_U(column[order[i]]) << _1)
            flat[place] += gradient[i]
            flat[place + _1] += hessian[i]


@_fast
def _best_cut(hist, columns, starts, total, least, l2, plan):
    """The cut that lowers the quadratic model most: gain, place among the columns, code, and the left sums."""
    G, H = total[0], total[1]
    plan[0] = 0.0
    whole = G * G / (H + l2)
    for c in range(len(columns)):
        left, hessian = 0.0, 0.0
        for b in range(starts[c + 1] - starts[c] - 1):
            left += hist[starts[c] + b, 0]
            hessian += hist[starts[c] + b, 1]
            if hessian < least:
                continue
            rest = H - hessian
            if rest < least:
                break
            right = G - left
            gain = left * left / (hessian + l2) + right * right / (rest + l2) - whole
            # sums round: of cuts as good as each other the first is taken
            if gain > plan[0] * (1 + 1e-9):
                plan[0], plan[1], plan[2], plan[3], plan[4] = gain, c, b, left, hessian


@_fast
def _part(column, cut, order, gradient, hessian, spare, spare_gradient, spare_hessian):
    """Rows of a node with those that go left first, each side in its order; how many go left."""
    low, high = _0, _0
    # both sides are written and one place moves on: a branch would be guessed wrong half of the time
    for i in range(_U(len(order))):
        row, D, H = order[i], gradient[i], hessian[i]
        order[low], gradient[low], hessian[low] = row, D, H
        spare[high], spare_gradient[high], spare_hessian[high] = row, D, H
        goes = _U(column[row] <= cut)
        low, high = low + goes, high + (_1 - goes)
    order[low:], gradient[low:], hessian[low:] = spare[:high], spare_gradient[:high], spare_hessian[:high]
    return int(low)


@interruptible
@_fast
def chosen(hessian, names, key, share):
    """Rows with a Hessian, ``(n,)``, or a share of them: equal rows are chosen together, whatever other rows there are.

    Parameters
    ----------
    hessian : array of shape (N, k)
    names : array of shape (N,)
        A number for what each row holds.
    key : int
        Says which of them are drawn.
    share : float
    """
    every, some = np.empty(len(hessian), np.uint32), np.empty(len(hessian), np.uint32)
    limit, count, drawn = share * 2.0**64, 0, 0
    for i in range(len(hessian)):
        if not np.any(hessian[i]):
            continue
        every[count], count = i, count + 1
        if share < 1:
            some[drawn] = i
            drawn += float(splitmix64(names[i] ^ key)) < limit
    return some[:drawn] if drawn else every[:count]


@_fast
def _gathered(rows, D, H, output):
    """Rows with the gradients and hessians of one output, to be put in order."""
    gradient, hessian = np.empty(len(rows)), np.empty(len(rows))
    for i in range(len(rows)):
        gradient[i], hessian[i] = D[rows[i], output], H[rows[i], output]
    return rows.copy(), gradient, hessian


@_fast
def _fall(codes, feature, cut, left, leaf):
    """Let rows without a leaf (-1) fall into theirs, by codes."""
    for i in range(codes.shape[1]):
        if leaf[i] >= 0:
            continue
        node = 0
        while left[node]:
            node = left[node] + (codes[feature[node], i] > cut[node])
        leaf[i] = node


@interruptible
@_fast
def grow(codes, rows, D, H, output, columns, widths, least, l2, leaf, leaves, depth):
    """A tree that lowers ``sum D u + u^2 H / 2`` greedily, its best leaf split next.

    Parameters
    ----------
    codes : array of shape (d, N)
    rows : array of shape (n,)
        Which rows to learn from.
    D, H : arrays of shape (N, k)
    output : int
        Which of the ``k``.
    columns : array of shape (c,)
        Which columns may split.
    widths : array of shape (d,)
        How many codes each column has.
    least : float
        Least mass of a leaf, as a share of all rows.
    l2 : float
        Added to a leaf's sum of ``H``, as a share of that of all rows.
    leaf : array of shape (N,)
        Receives the leaf of each row, also of those that were not learned from.
    leaves, depth : int
        Most of each.

    Returns
    -------
    feature, cut, left, value : arrays of shape (nodes,)
    """
    n, most = len(rows), 2 * leaves - 1
    feature, cut = np.zeros(most, np.int32), np.zeros(most, np.int32)
    left, value = np.zeros(most, np.int32), np.zeros(most)
    level, first, last = np.zeros(most, np.int32), np.zeros(most, np.int64), np.zeros(most, np.int64)
    sums, plan = np.zeros((most, 2)), np.zeros((most, 5))
    starts = np.zeros(len(columns) + 1, np.int64)
    for c in range(len(columns)):
        starts[c + 1] = starts[c] + widths[columns[c]]
    hists, slot = np.empty((leaves, starts[-1], 2)), np.zeros(most, np.int64)
    order, gradient, hessian = _gathered(rows, D, H, output)
    spare, spare_gradient, spare_hessian = np.empty_like(order), np.empty(n), np.empty(n)
    sums[0, 0], sums[0, 1], last[0] = gradient.sum(), hessian.sum(), n
    l2 *= sums[0, 1]
    # a leaf's mass is taken for its share of H, so that rows need not be counted beside gradients and hessians
    least_hessian = _SHORT * least * sums[0, 1]
    value[0] = -sums[0, 0] / (sums[0, 1] + l2)
    _fill(hists[0], codes, order, gradient, hessian, columns, starts)
    _best_cut(hists[0], columns, starts, sums[0], least_hessian, l2, plan[0])
    nodes, used = 1, 1
    while used < leaves:
        node = np.argmax(plan[:nodes, 0])
        if not plan[node, 0] > 0:
            break
        c, plan[node, 0], value[node] = int(plan[node, 1]), 0.0, 0.0
        feature[node], cut[node], left[node] = columns[c], int(plan[node, 2]), nodes
        a, b = first[node], last[node]
        own = slice(a, b)
        low = _part(
            codes[columns[c]], cut[node], order[own], gradient[own], hessian[own], spare, spare_gradient, spare_hessian
        )
        one, two = nodes, nodes + 1
        nodes, used = nodes + 2, used + 1
        first[one], last[one], first[two], last[two] = a, a + low, a + low, b
        sums[one] = plan[node, 3:]
        sums[two] = sums[node] - sums[one]
        level[one] = level[two] = level[node] + 1
        for child in (one, two):
            value[child] = -sums[child, 0] / (sums[child, 1] + l2)
        if used == leaves or level[one] >= depth:
            continue
        # the larger child's histogram is the parent's less the smaller one's
        small, large = (one, two) if low <= b - a - low else (two, one)
        slot[large], slot[small] = slot[node], used - 1
        part = slice(first[small], last[small])
        _fill(hists[slot[small]], codes, order[part], gradient[part], hessian[part], columns, starts)
        hists[slot[large]] -= hists[slot[small]]
        for child in (one, two):
            _best_cut(hists[slot[child]], columns, starts, sums[child], least_hessian, l2, plan[child])
    leaf[:] = -1
    for end in range(nodes):
        if left[end] == 0:
            for i in range(first[end], last[end]):
                leaf[order[i]] = end
    _fall(codes, feature, cut, left, leaf)
    return feature[:nodes], cut[:nodes], left[:nodes], value[:nodes]


@_fast
def _best_level(hists, count, columns, starts, sums, least, l2, score):
    """The one cut for all nodes of a level that lowers the quadratic model most: place among the columns, code."""
    best, where, at = 0.0, -1, 0
    for c in range(len(columns)):
        width = starts[c + 1] - starts[c] - 1
        score[:width] = 0.0
        for node in range(count):
            G, H = sums[node, 0], sums[node, 1]
            if 2 * least > H:
                continue
            whole, left, hessian = G * G / (H + l2), 0.0, 0.0
            for b in range(width):
                left += hists[node, starts[c] + b, 0]
                hessian += hists[node, starts[c] + b, 1]
                if hessian < least:
                    continue
                rest = H - hessian
                if rest < least:
                    break
                right = G - left
                score[b] += left * left / (hessian + l2) + right * right / (rest + l2) - whole
        for b in range(width):
            # sums round: of cuts as good as each other the first is taken
            if score[b] > best * (1 + 1e-9):
                best, where, at = score[b], c, b
    return where, at


@interruptible
@_fast
def grow_level(codes, rows, D, H, output, columns, widths, least, l2, leaf, depth):
    """A symmetric tree: one cut for all nodes of a level.

    Parameters, and what is returned, are those of :func:`grow`, but for the number of leaves, two to the ``depth``.
    """
    n, most = len(rows), 1 << depth
    starts = np.zeros(len(columns) + 1, np.int64)
    for c in range(len(columns)):
        starts[c + 1] = starts[c] + widths[columns[c]]
    hists, score = np.empty((most // 2, starts[-1], 2)), np.empty(256)
    order, gradient, hessian = _gathered(rows, D, H, output)
    spare, spare_gradient, spare_hessian = np.empty_like(order), np.empty(n), np.empty(n)
    first, sums, halves = np.zeros(most + 1, np.int64), np.zeros((most, 2)), np.zeros((most, 2))
    bounds = np.zeros(most + 1, np.int64)
    feature, cut, left = (
        np.zeros(2 * most - 1, np.int32),
        np.zeros(2 * most - 1, np.int32),
        np.zeros(2 * most - 1, np.int32),
    )
    value = np.zeros(2 * most - 1)
    sums[0, 0], sums[0, 1], first[1] = gradient.sum(), hessian.sum(), n
    l2 *= sums[0, 1]
    least_hessian, count, node = _SHORT * least * sums[0, 1], 1, 0
    _fill(hists[0], codes, order, gradient, hessian, columns, starts)
    while count < most:
        c, at = _best_level(hists, count, columns, starts, sums, least_hessian, l2, score)
        if c < 0:
            break
        column, last = codes[columns[c]], 2 * count == most
        for own in range(count):
            here = slice(first[own], first[own + 1])
            low = _part(column, at, order[here], gradient[here], hessian[here], spare, spare_gradient, spare_hessian)
            bounds[2 * own], bounds[2 * own + 1] = first[own], first[own] + low
            halves[2 * own] = 0.0
            for b in range(starts[c], starts[c] + at + 1):
                halves[2 * own] += hists[own, b]
            halves[2 * own + 1] = sums[own] - halves[2 * own]
            feature[node + own], cut[node + own], left[node + own] = columns[c], at, node + count + 2 * own
        bounds[2 * count] = n
        # from the last leaf on, so that no histogram is overwritten before it is used
        for own in range(count - 1, -1, -1):
            if last:
                break
            one, two = 2 * own, 2 * own + 1
            small = one if bounds[one + 1] - bounds[one] <= bounds[two + 1] - bounds[two] else two
            large, part = one + two - small, slice(bounds[small], bounds[small + 1])
            kept = hists[own].copy()
            _fill(hists[small], codes, order[part], gradient[part], hessian[part], columns, starts)
            hists[large] = kept - hists[small]
        node, count = node + count, 2 * count
        first[: count + 1], sums[:count] = bounds[: count + 1], halves[:count]
    loudest, leaf[:] = 0.0, -1
    for end in range(count):
        value[node + end] = -sums[end, 0] / (sums[end, 1] + l2) if first[end + 1] > first[end] else 0.0
        if sums[end, 1] >= least_hessian:
            loudest = max(loudest, abs(value[node + end]))
        for i in range(first[end], first[end + 1]):
            leaf[order[i]] = node + end
    # a split is made in all nodes: leaves with too few rows are clipped to the range of the others
    value[:] = np.minimum(np.maximum(value, -loudest), loudest)
    nodes = node + count
    _fall(codes, feature, cut, left, leaf)
    return feature[:nodes], cut[:nodes], left[:nodes], value[:nodes]
