"""Rows dropped through trees, compiled.

A tree of up to 64 leaves is not walked. Each of its cuts rules out leaves for the rows beyond it, those under its left
child; of the leaves that no cut rules out the leftmost is where a row ends (Lucchese et al., QuickScorer, 2015). All
rows of a tile meet all cuts: a few vector instructions a cut, and nothing to be guessed or waited for.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rows times trees below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 18
#: Rows that meet a cut at once.
TILE = 128
#: Fewer rows than that are walked through trees one by one.
_FEW = 12
#: Rows that are walked through a tree side by side, so that nobody waits for memory alone.
_LANES = 16
#: Numbers of rows that stay at hand while all trees pass, and tiles at most.
_NUMBERS, _TILES = 1 << 15, 32
#: Leaves of a tree that fit a mask.
_LEAVES = 64

_U = np.uint64
_0, _1, _T = _U(0), _U(1), _U(TILE)
#: A product with this has the place of a single bit in its highest six (de Bruijn).
_BRUIJN, _HIGH = _U(0x03F79D71B4CB0A89), _U(58)
_PLACES = np.zeros(64, np.uint64)
_PLACES[[(0x03F79D71B4CB0A89 << i & (2**64 - 1)) >> 58 for i in range(64)]] = np.arange(64)

_compiled = njit(cache=True, nogil=True, error_model="numpy")
_inlined = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@_compiled
def sieve(size, first, feature, threshold, left, value):
    """The cuts of all trees of up to 64 leaves, with the leaves that each rules out for rows beyond it.

    Returns
    -------
    begin : array of shape (T + 1,)
        Where each tree's cuts begin, a multiple of four; larger trees have none.
    column, cut, out : arrays of shape (cuts,)
        Cuts of one column at one place are one, so that a tree that cuts all nodes of a level alike has one a level.
    origin : array of shape (T + 1,)
        Where each tree's leaves begin.
    leaf : array of shape (leaves, v)
        What leaves say, from the left to the right.
    """
    begin, origin, room = np.zeros(len(size) + 1, np.int64), np.zeros(len(size) + 1, np.int64), 0
    for t in range(len(size)):
        leaves = (size[t] + 1) // 2
        origin[t + 1] = origin[t] + (leaves if leaves <= _LEAVES else 0)
        room += leaves + 2 if leaves <= _LEAVES else 0
    # a cut that nothing is beyond
    column, cut, out = np.zeros(room, np.uint64), np.full(room, np.inf), np.zeros(room, np.uint64)
    leaf = np.empty((origin[-1], value.shape[1]), value.dtype)
    under, start = np.empty(2 * _LEAVES, np.uint64), np.empty(2 * _LEAVES, np.uint64)
    for t in range(len(size)):
        begin[t + 1] = begin[t]
        if origin[t] == origin[t + 1]:
            continue
        # children stand after their parents: backwards leaves can be counted, forwards be numbered
        for p in range(size[t] - 1, -1, -1):
            child = left[first[t] + p]
            under[p] = under[child] + under[child + 1] if child else _1
        start[0], end = _0, begin[t]
        for p in range(size[t]):
            node = first[t] + p
            child = left[node]
            if not child:
                leaf[origin[t] + np.int64(start[p])] = value[node]
                continue
            start[child], start[child + 1] = start[p], start[p] + under[child]
            place = begin[t]
            while place < end and (column[place] != _U(feature[node]) or cut[place] != threshold[node]):
                place += 1
            column[place], cut[place] = feature[node], threshold[node]
            out[place] |= ((_1 << under[child]) - _1) << start[p]
            end = max(end, place + 1)
        begin[t + 1] = begin[t] + (end - begin[t] + 3) // 4 * 4
    return begin, column[: begin[-1]], cut[: begin[-1]], out[: begin[-1]], origin, leaf


@_inlined
def _lay(X, start, end, tiles):
    """Rows by tiles, columns first in each."""
    d = X.shape[1]
    for i in range(start, end):
        tile, lane = divmod(i - start, TILE)
        for j in range(d):
            tiles[_U((tile * d + j) * TILE + lane)] = X[i, j]


@_inlined
def _beyond(value, edge, out):
    return out if value > edge else _0


@_inlined
def _leftmost(ruled):
    """The place of the lowest bit that is 0."""
    return _PLACES[((~ruled & (ruled + _1)) * _BRUIJN) >> _HIGH]


@_inlined
def _sift(tiles, at, sieve, t, weight, result, start, end, ruled):
    """Add what a tile's rows get from a tree of few leaves."""
    begin, column, cut, out, origin, leaf = sieve
    for r in range(_T):
        ruled[r] = _0
    # four cuts at a time: leaves that are ruled out are read and written once for all of them
    for q in range(begin[t], begin[t + 1], 4):
        a, b, c, d = at + column[q] * _T, at + column[q + 1] * _T, at + column[q + 2] * _T, at + column[q + 3] * _T
        e, f, g, h = cut[q], cut[q + 1], cut[q + 2], cut[q + 3]
        i, j, k, m = out[q], out[q + 1], out[q + 2], out[q + 3]
        for r in range(_T):
            one = _beyond(tiles[a + r], e, i) | _beyond(tiles[b + r], f, j)
            ruled[r] |= one | _beyond(tiles[c + r], g, k) | _beyond(tiles[d + r], h, m)
    base, v, count = _U(origin[t]), _U(leaf.shape[1]), _U(end - start)
    total, says, here = result.reshape(-1), leaf.reshape(-1), _U(start) * v
    if v == _1:
        for r in range(count):
            total[here + r] += weight[0] * says[base + _leftmost(ruled[r])]
        return
    for r in range(count):
        place = (base + _leftmost(ruled[r])) * v
        for j in range(v):
            total[here + r * v + j] += weight[j] * says[place + j]


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
def fall(X, nodes, sieve, weight, into, result, start, end):
    """``result[into[t], i] += weight[t] * leaf`` for rows from ``start`` to ``end``, tree by tree in their order.

    Parameters
    ----------
    X : array of shape (n, d)
    nodes : tuple of arrays
        ``first, feature, threshold, left, value`` of the trees.
    sieve : tuple of arrays
        See :func:`sieve`.
    weight : array of shape (T, v)
    into : array of shape (T,)
    result : array of shape (count, n, v)
    start, end : int
    """
    d, origin = X.shape[1], sieve[4]
    block = TILE * max(1, min(_TILES, _NUMBERS // (TILE * max(1, d))))
    sifted = origin[-1] > 0 and end - start >= _FEW
    tiles = np.zeros(block * d if sifted else 0)
    ruled, place = np.empty(TILE, np.uint64), np.empty(_LANES, np.uint64)
    for here in range(start, end, block):
        last = min(here + block, end)
        if sifted:
            _lay(X, here, last, tiles)
        for t in range(len(into)):
            out = result[into[t]]
            if not sifted or origin[t] == origin[t + 1]:
                _walk(X, nodes, t, weight[t], out, here, last, place)
                continue
            for tile in range(here, last, TILE):
                stop = min(tile + TILE, last)
                if stop - tile < _FEW:
                    _walk(X, nodes, t, weight[t], out, tile, stop, place)
                else:
                    _sift(tiles, _U((tile - here) * d), sieve, t, weight[t], out, tile, stop, ruled)
