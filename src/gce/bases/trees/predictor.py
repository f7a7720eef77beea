"""Rows dropped through trees: the kernels of ``native/trees_prepare.cpp`` and ``native/trees_predict.cpp``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.native import INT, array, kernel

Array = NDArray[np.float64]

#: Rows times trees below which a second thread costs more than it brings, and how many trees a walked one counts for.
WORTH_A_THREAD, _WALKED = 1 << 18, 32
#: Nodes of the largest tree that is not walked.
_MOST_NODES = 511
#: Rows that are divided among threads in whole.
TILE = 64
#: Most parts of rows for each thread, and least rows of a part, where trees are not walked and where they are.
_PARTS, _ROWS, _WALKED_ROWS = 4, 1 << 11, 1 << 14

_NOT_A_TREE = -2
#: What is wrong with nodes of a file, by what the kernel returns.
_FAULTS = {
    1: "the sizes of the trees do not sum to the number of nodes",
    2: "a tree splits on a column that does not exist: there are {inputs}",
    3: "a node's children must come after it in its own tree",
    4: "each node except the roots must be the child of exactly one node",
}
_POINTER = ctypes.c_void_p


class PreparedTrees:
    """Trees with what kernels need beside their nodes: thresholds as bytes, and masks of leaves.

    Parameters
    ----------
    size : array of shape (T,), int64
    feature : array of shape (nodes,), int32
    threshold : array of shape (nodes,), float64
    left : array of shape (nodes,), int32
    value : array of shape (nodes, v), float32 or float64
        See :class:`gce.bases.trees.TreeArrays`. The arrays of nodes are kept and must not change.
    rule : array of shape (nodes,), uint8, or None
    sets : array of shape (S, 4), int64, or None

    Raises
    ------
    ValueError
        The nodes are no trees.
    """

    def __init__(
        self,
        size: NDArray[np.int64],
        feature: NDArray[np.int32],
        threshold: Array,
        left: NDArray[np.int32],
        value: NDArray[Any],
        rule: NDArray[np.uint8] | None = None,
        sets: NDArray[np.int64] | None = None,
    ) -> None:
        nodes = (len(feature),)
        if not feature.shape == threshold.shape == left.shape == value.shape[:1] == nodes or value.ndim != 2:
            raise ValueError(f"nodes have {len(feature)} columns, but other parts have other lengths")
        if value.dtype not in (np.float32, np.float64) or not value.flags.c_contiguous:
            raise ValueError("values of leaves must be contiguous, in float32 or float64")
        if rule is not None and (rule.shape != nodes or sets is None or sets.ndim != 2 or sets.shape[1] != 4):
            raise ValueError("each node needs a rule, and a set has four words")
        self._nodes = feature, threshold, left, value, rule, sets
        self._count, self._outputs = len(size), value.shape[1]
        walked = int((size > _MOST_NODES).sum())
        self._work, self._rows = len(size) + (_WALKED - 1) * walked, _WALKED_ROWS if walked else _ROWS
        handle, single = _POINTER(), value.dtype == np.float32
        status = _prepare()(
            size,
            len(size),
            *nodes,
            feature,
            threshold,
            left,
            value.ctypes.data,
            single,
            value.shape[1],
            *(None if rule is None else rule.ctypes.data, None if sets is None else sets.ctypes.data),
            *(0 if sets is None else len(sets), handle),
        )
        if status == _NOT_A_TREE:
            raise ValueError("nodes are no trees: sizes must sum to their number, and children follow their parents")
        self._handle = handle.value
        finalize(self, _free(), self._handle)
        self._columns = _widest()(self._handle) + 1

    @property
    def handle(self) -> int:
        """What kernels take; it lives as long as this object."""
        assert self._handle is not None
        return self._handle

    def summed(self, X: Array, weights: Array, into: NDArray[np.int64], count: int) -> Array:
        """``result[into[t], i] += weights[t] * leaf``, tree by tree in their order, ``(count, n, v)``.

        Parameters
        ----------
        X : array of shape (n, d)
        weights : array of shape (T, v)
        into : array of shape (T,), int64
            The sum that each tree belongs to, below ``count``.
        count : int
        """
        # a tree that is one leaf looks at the first column, to no effect
        X = X if X.shape[1] else np.zeros((len(X), 1))
        n, d = X.shape
        if d < self._columns:
            raise ValueError(f"rows have {d} columns, but trees look at {self._columns}")
        if weights.shape != (self._count, self._outputs) or into.shape != (self._count,):
            raise ValueError(f"{self._count} trees of {self._outputs} output(s) need a weight and a sum for each")
        if self._count and not 0 <= into.min() <= into.max() < count:
            raise ValueError(f"trees belong to sums from 0 to {count - 1}")
        result = np.zeros((count, n, self._outputs))
        run_part = partial(_sum(), self._handle, X, n, d, weights, into, result)
        threads = max(1, min(parallel.threads(), n * self._work // WORTH_A_THREAD))
        if threads == 1:
            run_part(0, n)
            return result
        # more parts than threads, which are not always equally fast, but few, because each part fetches all trees
        parts = threads * max(1, min(_PARTS, n // (threads * self._rows)))
        tiles = -(-n // TILE)
        ends = [min(n, TILE * (tiles * i // parts)) for i in range(parts + 1)]
        with parallel.workers(threads) as run:
            run([partial(run_part, *part) for part in pairwise(ends)])
        return result


def restored_nodes(
    size: NDArray[np.int64],
    inner: NDArray[np.bool_],
    feature: NDArray[np.int32],
    threshold: Array,
    left: NDArray[np.int32],
    inputs: int,
) -> tuple[NDArray[np.int32], Array, NDArray[np.int32]]:
    """Columns, thresholds and left children of all nodes of trees, ``(nodes,)`` each, from those of inner nodes alone.

    Parameters
    ----------
    size : array of shape (T,)
    inner : array of shape (nodes,)
        Whether a node has children.
    feature, threshold, left : arrays of shape (inner nodes,)
    inputs : int
        Number of columns that exist.

    Raises
    ------
    ValueError
        The nodes are no trees.
    """
    nodes = len(inner)
    out = np.empty(nodes, np.int32), np.empty(nodes), np.empty(nodes, np.int32)
    fault = _restore()(size, len(size), inner.view(np.uint8), nodes, inputs, feature, threshold, left, *out)
    if fault:
        raise ValueError(_FAULTS[fault].format(inputs=inputs))
    return out


@cache
def _restore() -> Callable[..., int]:
    small, number = array(np.int32), array(np.float64)
    whole, byte = array(np.int64), array(np.uint8)
    return kernel("trees_restore", whole, INT, byte, INT, INT, small, number, small, small, number, small)


@cache
def _prepare() -> Callable[..., int]:
    whole, small = array(np.int64), array(np.int32)
    kinds = whole, INT, INT, small, array(np.float64), small, _POINTER, INT, INT, _POINTER, _POINTER, INT
    return kernel("trees_prepare", *kinds, ctypes.POINTER(_POINTER))


@cache
def _sum() -> Callable[..., int]:
    number = array(np.float64)
    return kernel("trees_sum", _POINTER, number, INT, INT, number, array(np.int64), number, INT, INT)


@cache
def _widest() -> Callable[..., int]:
    return kernel("trees_widest", _POINTER, result=INT)


@cache
def _free() -> Callable[..., None]:
    return kernel("trees_free", _POINTER, result=ctypes.c_void_p)
