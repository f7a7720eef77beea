"""The grower for the linear oracle: leaves at one of two ends, by the sign of their gradients' sum.

Columns are codes, as in :mod:`gce.bases.trees.binned`. A node's children are adjacent, so that the index of the left
one is enough: ``left[node]`` and ``left[node] + 1``, 0 for a leaf.
"""

from __future__ import annotations

from ctypes import c_void_p
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.native import FLOAT, INT, array, kernel
from gce.bases.trees.binning import Grown, KeptKinds, Kinds
from gce.bases.trees.integers import SHORT, Floats, integer_weights, rounded


def grow_by_sign(
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    D: Floats,
    mass: Floats,
    leaves: int,
    widths: NDArray[np.int64],
    depth: int,
    least: float,
    kinds: Kinds | None = None,
) -> Grown:
    """A tree that lowers ``sum D u`` over ``|u| <= 1`` greedily, its best leaf split next.

    Gradients are rounded to integers, by at most 2^-30 of the largest, and so are masses that are not multiples of the
    smallest: the tree does not depend on the order of the rows.

    Parameters
    ----------
    codes : array of shape (ceil(d / 4), N, 4)
    rows : array of shape (n,)
        Which rows to learn from.
    D, mass : arrays of shape (N,)
        Slopes, and what rows weigh.
    leaves : int
        At most.
    widths : array of shape (d,)
        How many codes each column has.
    depth : int
        At most.
    least : float
        Least mass of a leaf, as a share of all.
    kinds : Kinds, optional
        Columns with missing values or categories.

    Returns
    -------
    feature, cut, left : arrays of shape (nodes,)
    value : array of shape (nodes,)
        -1, 0 or 1.
    missing_left, sets : arrays of shape (nodes,) and (S, 4)
        Where columns have kinds, see :meth:`gce.bases.trees.binning.Bins.as_splits`.
    """
    n, nodes = len(rows), np.zeros(1, np.int64)
    leaves = max(1, min(leaves, n))
    feature, cut, left = (np.zeros(2 * leaves - 1, np.int32) for _ in range(3))
    value = np.zeros(2 * leaves - 1)
    gradient, own_mass = rounded(D[None, rows])[0][0], integer_weights(mass[rows])[0]
    kept = KeptKinds(kinds, 2 * leaves - 1)
    _grow_sign()(
        *(codes, codes.shape[1], len(widths), widths, *kept.given, rows, n, gradient, own_mass, leaves, depth),
        *(SHORT * least, feature, cut, left, value, *kept.arrays, nodes),
    )
    end = int(nodes[0])
    return kept.tree(feature[:end], cut[:end], left[:end], value[:end])


@cache
def _grow_sign() -> Any:
    ints, longs = array(np.int32), array(np.int64)
    table = (array(np.uint8), INT, INT, longs, c_void_p, c_void_p, array(np.uint32), INT)
    tree = (ints, ints, ints, array(np.float64), c_void_p, c_void_p)
    return kernel("grow_sign", *table, ints, ints, INT, INT, FLOAT, *tree, longs)
