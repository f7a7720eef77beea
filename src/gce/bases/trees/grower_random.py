"""The grower of extremely randomised trees; columns are codes, as in :mod:`gce.bases.trees.binned`."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.native import FLOAT, INT, array, kernel
from gce.bases.trees import TreeArrays
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import Grown, KeptKinds, Kinds
from gce.bases.trees.integers import DIGITS, SHORT, Floats, Ints, integer_weights, rounded, scaled
from gce.bases.trees.tree_data import UNCONSTRAINED, Constraints

#: Rows of a node up to which monotone columns are cut, where others can be: such a cut bounds all leaves
#: below it, and high up in a tree these bounds cost more than the column tells (benchmarks/results/constraints.md).
LATE = 50.0


@dataclass(frozen=True)
class WeightedTargets:
    """Weights and targets of rows as integers: their sums do not depend on the order of rows.

    A weighted target is off by at most half a unit, 2^-31 to 2^-30 of the largest one, which matters for the choice of
    cuts only; a leaf's mean is that of targets rounded before they are weighted, and as accurate whatever the weights.

    Parameters
    ----------
    weight : array of shape (n,)
        In units of ``unit``, at least 1; empty where all are equal.
    unit : float
    weighted, plain : arrays of shape (k, n)
        Targets times weights, and without them (empty where all weights are equal). Of classes: the class of each row,
        ``(n,)``, and nothing.
    exponent : array of shape (k,)
        Targets are in units of 2 to the power of these.
    relative : array of shape (k,)
        Units of the weighted targets relative to each other.
    k : int
    """

    weight: Ints
    unit: float
    weighted: Ints
    plain: Ints
    exponent: NDArray[np.int64]
    relative: Floats
    k: int

    @classmethod
    def of(cls, weight: Floats, Y: Floats) -> WeightedTargets:
        """Round weights ``(n,)``, all positive, and targets ``(n, k)``; one-hot targets of classes are exact."""
        whole, unit = integer_weights(weight)
        whole = whole if whole.max() > 1 else whole[:0]
        k = Y.shape[1]
        if k > 1 and ((Y == 0) | (Y == 1)).all() and (Y.sum(1) == 1).all():
            classes, none = Y.argmax(1).astype(np.int32), np.empty(0, np.int32)
            return cls(whole, unit, classes, none, np.zeros(k, np.int64), np.ones(k), k)
        rows_last = np.ascontiguousarray(Y.T)
        plain, exponent = rounded(rows_last)
        if not len(whole):
            return cls(whole, unit, plain, np.empty(0, np.int32), exponent, _relative(exponent), k)
        # scaled to [-1, 1] first: a product with a weight must not overflow
        weighted, own = rounded(scaled(rows_last, -(exponent + DIGITS)) * whole)
        return cls(whole, unit, weighted, plain, exponent, _relative(own + exponent), k)


def _relative(exponent: NDArray[np.int64]) -> Floats:
    return np.ldexp(1.0, exponent - exponent.max())


@dataclass(frozen=True)
class RandomTrees:
    """What the random trees of several members are grown from.

    Parameters
    ----------
    binned : BinnedRows
    members : tuple of (array of shape (n,), WeightedTargets)
        The rows that each member learns from, and their targets.
    tries : int
        Columns that vary at a node and are tried there, by one random cut each.
    least : float
        Least weight of a leaf.
    constraints : Constraints, optional
        Default: none.
    """

    binned: BinnedRows
    members: tuple[tuple[NDArray[np.uint32], WeightedTargets], ...]
    tries: int
    least: float
    constraints: Constraints = UNCONSTRAINED

    def grown(self, seeds: Sequence[Sequence[int]], dtype: torch.dtype) -> TreeArrays:
        """Trees of given seeds of each member, one member after another, with leaves of a dtype."""
        jobs = [partial(self._tree, m, seed) for m, own in enumerate(seeds) for seed in own]
        with parallel.workers(min(parallel.threads(), len(jobs))) as run:
            return TreeArrays.of(run(jobs), dtype)

    def _tree(self, member: int, seed: int) -> Grown:
        return self.binned.bins.as_splits(self.nodes(member, seed))

    def nodes(self, member: int, seed: int) -> Grown:
        """One tree, whose nodes are in the order of :func:`scatter`."""
        bins, (rows, targets) = self.binned.bins, self.members[member]
        starts = np.append(0, np.cumsum(bins.widths))
        given = self.binned.codes, rows, targets, self.tries, self.least, seed, bins.values, starts, bins.kinds
        return scatter(*given, self.constraints)


def scatter(
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    targets: WeightedTargets,
    tries: int,
    least: float,
    seed: int,
    values: Floats,
    starts: NDArray[np.int64],
    kinds: Kinds | None = None,
    constraints: Constraints = UNCONSTRAINED,
) -> Grown:
    """An extremely randomised tree (Geurts, Ernst and Wehenkel, 2006): leaves hold weighted means of targets.

    Parameters
    ----------
    codes : array of shape (ceil(d / 4), N, 4)
    rows : array of shape (n,)
    targets : WeightedTargets
        Of these rows.
    tries : int
        Columns that vary at a node and are tried there, by one random cut each.
    least : float
        Least weight of a leaf.
    seed : int
    values, starts : arrays
        A value for each code of each column, and where each column's begin.
    kinds : Kinds, optional
        Columns with missing values or categories.
    constraints : Constraints, optional
        A cut of a monotone column is taken only if the means of its sides are in order, and no side of a later cut may
        pass the middle between these; in nodes of more than ``LATE`` rows other columns come first. Where sets of
        columns may interact, columns are drawn from those that share a set with all columns on the path. Default: none.

    Returns
    -------
    feature, cut, left : arrays of shape (nodes,)
        0 for leaves. Nodes are level by level: children follow each other in the order of their parents.
    value : array of shape (nodes, k)
        0 but for leaves.
    missing_left, sets : arrays of shape (nodes,) and (S, 4)
        Where columns have kinds, see :meth:`gce.bases.trees.binning.Bins.as_splits`.
    """
    n, k, nodes = len(rows), targets.k, np.zeros(1, np.int64)
    feature, cut, left = (np.empty(2 * n - 1, np.int32) for _ in range(3))
    value = np.empty((2 * n - 1, k))
    kept = KeptKinds(kinds, 2 * n - 1)
    signs, groups = _contiguous(constraints.signs, np.int64), _contiguous(constraints.groups, np.uint64)
    _grow_random()(
        *(codes, codes.shape[1], len(starts) - 1, values, starts, *kept.given, rows, n, k),
        *(bool(len(targets.weight)), targets.weighted.ndim == 1, targets.weight, targets.weighted, targets.plain),
        *(targets.relative, tries, SHORT * least / targets.unit, LATE / targets.unit, seed),
        *(_address(signs), _address(groups), 0 if groups is None else groups.shape[1]),
        *(feature, cut, left, value, *kept.arrays, nodes),
    )
    end = int(nodes[0])
    if targets.weighted.ndim == 2:
        value = scaled(value[:end].T, targets.exponent).T
    return kept.tree(feature[:end].copy(), cut[:end].copy(), left[:end].copy(), value[:end].copy())


def _contiguous(given: NDArray[Any] | None, dtype: Any) -> NDArray[Any] | None:
    return None if given is None else np.ascontiguousarray(given, dtype)


def _address(given: NDArray[Any] | None) -> int | None:
    return None if given is None else given.ctypes.data


@cache
def _grow_random() -> Any:
    ints, longs, floats = array(np.int32), array(np.int64), array(np.float64)
    table = (array(np.uint8), INT, INT, floats, longs, c_void_p, c_void_p, array(np.uint32))
    tree = (ints, ints, ints, floats, c_void_p, c_void_p, longs)
    return kernel(
        "grow_random",
        *(*table, INT, INT, INT, INT, ints, ints, ints, floats, INT, FLOAT, FLOAT, INT, c_void_p, c_void_p, INT, *tree),
    )
