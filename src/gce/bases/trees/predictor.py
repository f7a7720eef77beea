"""Rows dropped through trees, compiled.

A tree of up to 64 leaves is not walked. Each of its cuts rules out leaves for the rows beyond it, those under its left
child; of the leaves that no cut rules out the leftmost is where a row ends (Lucchese et al., QuickScorer, 2015). Rows
are bytes first, the numbers of cuts below their values, and leaves are ruled out eight at a time, a byte again (Ye et
al., RapidScorer, 2018): a vector instruction serves 32 rows or more, and nothing is to be guessed or waited for.
"""

from __future__ import annotations

import numpy as np

from gce._utils.jit import compiled, interruptible

#: Rows times trees below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 18
#: Rows that are worked on in full, be they there or not.
TILE = 64
#: Rows that meet a tree at once.
_ROWS = 1024
#: Fewer rows than that are walked through trees one by one.
_FEW = 12
#: Rows that traverse a tree together, so that their memory accesses overlap.
_LANES = 16
#: Cuts of a column that a value is compared with one by one; more are searched.
_LINE = 48

_U, _B = np.uint64, np.uint8
_0, _1 = _U(0), _U(1)

_compiled = compiled(nogil=True, error_model="numpy")
_inlined = compiled(nogil=True, error_model="numpy", forceinline=True)


@interruptible
@_compiled
def sieve(size, first, column, code, left, value, leaves):
    """The cuts of all trees of few leaves, with the leaves that each rules out for rows beyond it.

    Parameters
    ----------
    size, first, left, value : arrays
        The trees.
    column, code : arrays of shape (nodes,)
        A row is beyond a node's cut where its byte in that column is larger than ``code``.
    leaves : int
        More leaves are too many.

    Returns
    -------
    begin : array of shape (T, 9)
        Where the cuts that rule out some of a tree's first eight leaves begin, of its second eight, ..., and where the
        last of these end; always a multiple of four further. Larger trees have none.
    column, code, out : arrays of shape (cuts,)
        Cuts of one column at one place are one, so that a tree that cuts all nodes of a level alike has one a level.
    origin : array of shape (T + 1,)
        Where each tree's leaves begin.
    leaf : array of shape (leaves, v)
        Values of the leaves, from left to right.
    """
    origin, most = np.zeros(len(size) + 1, np.int64), 0
    for t in range(len(size)):
        own = (size[t] + 1) // 2
        origin[t + 1] = origin[t] + (own if own <= leaves else 0)
        most = max(most, own if own <= leaves else 0)
    begin, end = np.zeros((len(size), 9), np.int64), 0
    # nothing is beyond 255
    room = origin[-1] * 8 + 32 * len(size)
    columns, codes, out = np.zeros(room, np.uint64), np.full(room, 255, np.uint8), np.zeros(room, np.uint8)
    leaf = np.empty((origin[-1], value.shape[1]), value.dtype)
    under, start, ruled = np.empty(2 * most, np.uint64), np.empty(2 * most, np.uint64), np.empty(most, np.uint64)
    asked, edge = np.empty(most, np.uint64), np.empty(most, np.uint8)
    for t in range(len(size)):
        begin[t] = end
        if origin[t] == origin[t + 1]:
            continue
        # children come after their parents: leaves are counted backwards and numbered forwards
        for p in range(size[t] - 1, -1, -1):
            child = left[first[t] + p]
            under[p] = under[child] + under[child + 1] if child else _1
        start[0], cuts = _0, 0
        for p in range(size[t]):
            node = first[t] + p
            child = left[node]
            if not child:
                leaf[origin[t] + np.int64(start[p])] = value[node]
                continue
            start[child], start[child + 1] = start[p], start[p] + under[child]
            place = 0
            while place < cuts and (asked[place] != _U(column[node]) or edge[place] != code[node]):
                place += 1
            if place == cuts:
                asked[place], edge[place], ruled[place], cuts = column[node], code[node], _0, cuts + 1
            ruled[place] |= ((_1 << under[child]) - _1) << start[p]
        for eight in range(8):
            for place in range(cuts):
                some = _B(ruled[place] >> _U(8 * eight))
                if some:
                    columns[end], codes[end], out[end], end = asked[place], edge[place], some, end + 1
            end = begin[t, eight] + (end - begin[t, eight] + 3) // 4 * 4
            begin[t, eight + 1] = end
    return begin, columns[:end], codes[:end], out[:end], origin, leaf


@_inlined
def _code(X, start, count, column, number, edges, codes, value):
    """Rows as bytes, columns first: how many of the edges are below each value."""
    for s in range(len(column)):
        c, at, own = _U(column[s]), _U(s * _ROWS), edges[s]
        for r in range(count):
            value[r] = X[_U(start) + r, c]
            codes[at + r] = _B(0)
        if number[s] <= _LINE:
            for q in range(0, number[s], 4):
                e, f, g, h = own[q], own[q + 1], own[q + 2], own[q + 3]
                for r in range(count):
                    v = value[r]
                    codes[at + r] = _B(codes[at + r] + _B(e < v) + _B(f < v) + _B(g < v) + _B(h < v))
            continue
        for r in range(count):
            # a loop over these eight steps would be a branch a step, which can only be guessed
            v = value[r]
            p = _U(own[_U(127)] < v) << _U(7)
            p += _U(own[p + _U(63)] < v) << _U(6)
            p += _U(own[p + _U(31)] < v) << _U(5)
            p += _U(own[p + _U(15)] < v) << _U(4)
            p += _U(own[p + _U(7)] < v) << _U(3)
            p += _U(own[p + _U(3)] < v) << _U(2)
            p += _U(own[p + _1] < v) << _1
            codes[at + r] = _B(p + _U(own[p] < v))


@_inlined
def _beyond(code, edge, out):
    return out if code > edge else _B(0)


@_inlined
def _sift(codes, sieve, t, weight, result, start, count, lanes, work):
    """Add what rows get from a tree of few leaves."""
    begin, column, edge, out, origin, leaf = sieve
    ruled, byte, place = work
    for r in range(lanes):
        byte[r], place[r] = _B(0), _B(0)
    # backwards, so that the leftmost eight leaves that are not all ruled out have the last word
    for eight in range((origin[t + 1] - origin[t] + 7) // 8 - 1, -1, -1):
        for r in range(lanes):
            ruled[r] = _B(0)
        # four cuts at a time: leaves that are ruled out are read and written once for all of them
        for q in range(begin[t, eight], begin[t, eight + 1], 4):
            a, b = column[q] * _U(_ROWS), column[q + 1] * _U(_ROWS)
            c, d = column[q + 2] * _U(_ROWS), column[q + 3] * _U(_ROWS)
            e, f, g, h = edge[q], edge[q + 1], edge[q + 2], edge[q + 3]
            i, j, k, m = out[q], out[q + 1], out[q + 2], out[q + 3]
            for r in range(lanes):
                one = _beyond(codes[a + r], e, i) | _beyond(codes[b + r], f, j)
                ruled[r] = _B(ruled[r] | one | _beyond(codes[c + r], g, k) | _beyond(codes[d + r], h, m))
        here = _B(8 * eight)
        for r in range(lanes):
            full = ruled[r] == _B(255)
            byte[r] = byte[r] if full else ruled[r]
            place[r] = place[r] if full else here
    for r in range(lanes):
        # the lowest bit that is 0
        one = _B(_B(~byte[r]) & _B(byte[r] + _B(1)))
        high = _B(4) if one & _B(0xF0) else _B(0)
        low = (_B(2) if one & _B(0xCC) else _B(0)) | (_B(1) if one & _B(0xAA) else _B(0))
        place[r] = _B(place[r] | high | low)
    base, v = _U(origin[t]), _U(leaf.shape[1])
    total, says, at = result.reshape(-1), leaf.reshape(-1), _U(start) * v
    if v == _1:
        for r in range(count):
            total[at + r] += weight[0] * says[base + _U(place[r])]
        return
    for r in range(count):
        own = (base + _U(place[r])) * v
        for j in range(v):
            total[at + r * v + j] += weight[j] * says[own + j]


@_inlined
def _walk(X, nodes, t, weight, result, start, end, place):
    """Add what rows get from a tree, some side by side."""
    first, feature, threshold, left, value = nodes
    root = _U(first[t])
    for some in range(start, end, _LANES):
        row, count = _U(some), _U(min(_LANES, end - some))
        for r in range(count):
            place[r] = root
        moving = _1
        while moving:
            moving = _0
            for r in range(count):
                node = place[r]
                child = _U(left[node])
                further = root + child + _U(X[row + r, _U(feature[node])] > threshold[node])
                # chosen, not branched to: whether a row is at its leaf can only be guessed
                place[r] = further if child else node
                moving |= child
        for r in range(count):
            for j in range(value.shape[1]):
                result[row + r, j] += weight[j] * value[place[r], j]


@_compiled
def fall(X, nodes, coding, sieve, weight, into, result, start, end):
    """``result[into[t], i] += weight[t] * leaf`` for rows from ``start`` to ``end``, tree by tree in their order.

    Parameters
    ----------
    X : array of shape (n, d)
    nodes : tuple of arrays
        ``first, feature, threshold, left, value`` of the trees.
    coding : tuple of arrays
        Trees that share bytes, see :class:`gce.bases.trees.bin_thresholds.ThresholdBins`.
    sieve : tuple of arrays
        See :func:`sieve`.
    weight : array of shape (T, v)
    into : array of shape (T,)
    result : array of shape (count, n, v)
    start, end : int
    """
    group, begin, column, number, edges = coding
    origin, place = sieve[4], np.empty(_LANES, np.uint64)
    most = 0
    for g in range(len(group) - 1):
        most = max(most, begin[g + 1] - begin[g])
    codes, value = np.zeros(most * _ROWS, np.uint8), np.zeros(_ROWS)
    work = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.uint8)
    for here in range(start, end, _ROWS):
        last = min(here + _ROWS, end)
        count = _U(last - here)
        lanes = (count + _U(TILE - 1)) // _U(TILE) * _U(TILE)
        for g in range(len(group) - 1):
            own = slice(begin[g], begin[g + 1])
            if count >= _FEW:
                _code(X, here, count, column[own], number[own], edges[own], codes, value)
            for t in range(group[g], group[g + 1]):
                out = result[into[t]]
                if count < _FEW or origin[t] == origin[t + 1]:
                    _walk(X, nodes, t, weight[t], out, here, last, place)
                else:
                    _sift(codes, sieve, t, weight[t], out, here, count, lanes, work)
