"""The compiled growers of trees on histograms: best leaf first, or one split for a whole level.

Columns are bins, see :class:`gce.bases.trees.binned.BinnedRows`: ``bin <= cut`` goes left. A node's children are
adjacent, so that the index of the left one is enough: ``left[node]`` and ``left[node] + 1``, 0 for a leaf. Gradients
and Hessians are rounded to integers and added up as such (native/histogram.hpp): a tree depends neither on the order of
additions nor on the number of threads.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.native import INT, array, kernel
from gce.bases.trees.binning import Grown, Kinds

#: Gradients of rows times columns below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 16

#: Adds up int64 histograms over shards in place: the address of the numbers and how many there are.
Reduce = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)


@dataclass(frozen=True)
class Shape:
    """The shape of trees.

    Parameters
    ----------
    max_leaf_nodes : int
    max_depth : int
    symmetric : bool
        One split for all nodes of a level, down to ``max_depth``.
    """

    max_leaf_nodes: int
    max_depth: int
    symmetric: bool

    def most_nodes(self, rows: int) -> int:
        """Nodes that a tree of so many rows can have."""
        if self.symmetric:
            return int(2 ** (self.max_depth + 1)) - 1
        return 2 * self.most_leaves(rows) - 1

    def most_leaves(self, rows: int) -> int:
        """Leaves that a tree of so many rows can have."""
        return max(1, min(self.max_leaf_nodes, rows))


@dataclass(frozen=True)
class CategoryRule:
    """What guards against splits that fit the noise of categories, of which there are many.

    The side of a split that categories are singled out to has those with the least or the largest mean gradients;
    all others are on the other side, also rare ones and those that are not among a node's rows.

    Parameters
    ----------
    smoothing : float
        Rows without a gradient that are added to a category, when categories are ordered.
    least : float
        Rows of a category that may be singled out.
    l2 : float
        Rows without a gradient that are added to both sides when splits are compared, beside those of each leaf.
    few : int
        Up to so many categories of a node none of these counts.
    most : int
        Categories that may be singled out together.
    """

    smoothing: float = 10.0
    least: float = 10.0
    l2: float = 10.0
    few: int = 4
    most: int = 32


#: The rule of all trees. LightGBM's numbers.
CATEGORIES = CategoryRule()


@dataclass(frozen=True, eq=False)
class TreeData:
    """What the trees of one round learn from: one tree for each of ``M`` members and ``k`` outputs.

    A tree lowers ``sum D u + u^2 H / 2``.

    Parameters
    ----------
    codes : array of shape (B, N, 4)
        Binned rows; the first ``n`` are trained on.
    widths : array of shape (d,)
        Number of bins of each column.
    gradient, hessian : array of shape (M, n, k)
        ``D`` and ``H``; rows without a Hessian are not learned from.
    least : array of shape (M,)
        Minimum sum of Hessians of a leaf, as a fraction of that of all rows.
    l2 : array of shape (M,)
        Added to a leaf's sum of Hessians, as a fraction of that of all rows.
    kinds : Kinds, optional
        Columns with missing values or categories.
    unit : array of shape (M,), optional
        A row's Hessian as a fraction of that of all rows, for the rule of categories.
    """

    codes: NDArray[np.uint8]
    widths: NDArray[np.int64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    least: NDArray[np.float64]
    l2: NDArray[np.float64]
    kinds: Kinds | None = None
    unit: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Sampling:
    """Rows and columns that are drawn for each tree.

    Parameters
    ----------
    keys : array of shape (M,)
        A random number for each member.
    names : array of shape (N,) or (0,)
        A hash of what each row holds: equal rows are drawn together. Not needed where all rows are used.
    subsample : float
        Fraction of the rows.
    columns : int
        Number of columns.
    """

    keys: NDArray[np.uint64]
    names: NDArray[np.uint64]
    subsample: float
    columns: int


@dataclass(frozen=True, eq=False)
class Constraints:
    """What trees may not do.

    Parameters
    ----------
    signs : array of shape (d,) or None
        1, 0 or -1: the trees are increasing in a column, anything, or decreasing.
    groups : array of shape (d, W) or None
        The sets of columns that may interact, one bit each in ``W`` words, that a column belongs to.
    """

    signs: NDArray[np.int64] | None = None
    groups: NDArray[np.uint64] | None = None


class Scratch:
    """Memory that trees are grown in, lent to one thread at a time and used again by the next tree."""

    def __init__(self) -> None:
        self._free: deque[NDArray[np.uint8]] = deque()

    def take(self, size: int) -> NDArray[np.uint8]:
        """Memory of at least so many bytes."""
        try:
            memory = self._free.pop()
        except IndexError:
            return np.empty(size, np.uint8)
        return memory if len(memory) >= size else np.empty(size, np.uint8)

    def give_back(self, memory: NDArray[np.uint8]) -> None:
        """Return memory that is no longer used."""
        self._free.append(memory)


class _Round(ctypes.Structure):
    """``Round`` of native/grow_trees.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("codes",)),
        *((name, ctypes.c_int64) for name in ("n_rows", "n_columns")),
        *((name, ctypes.c_void_p) for name in ("widths", "gradient", "hessian")),
        *((name, ctypes.c_int64) for name in ("members", "n_train", "outputs")),
        *((name, ctypes.c_void_p) for name in ("least", "l2", "names", "keys")),
        ("subsample", ctypes.c_double),
        ("columns_per_tree", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("signs", "groups")),
        ("group_words", ctypes.c_int64),
        ("reduce", Reduce),
        *((name, ctypes.c_int64) for name in ("symmetric", "leaves", "depth", "most_nodes", "threads")),
        *((name, ctypes.c_void_p) for name in ("feature", "cut", "left", "value", "size", "leaf", "next")),
        *((name, ctypes.c_void_p) for name in ("missing", "categorical", "smoothing", "rarest", "extra")),
        *((name, ctypes.c_int64) for name in ("few", "most")),
        *((name, ctypes.c_void_p) for name in ("missing_left", "sets")),
    ]


class GrownTrees:
    """The trees of one round.

    Parameters
    ----------
    data : TreeData
    shape : Shape
    sampling : Sampling
    constraints : Constraints
    scratch : Scratch
    reduce : Reduce, optional
        Adds up histograms over shards. Default: there is one shard.

    Attributes
    ----------
    size : array of shape (M, k)
        Number of nodes of each tree.
    leaf : array of shape (M, k, N)
        The leaf of each row, also of rows that were not learned from.
    """

    def __init__(
        self,
        data: TreeData,
        shape: Shape,
        sampling: Sampling,
        constraints: Constraints,
        scratch: Scratch,
        reduce: Any = None,
    ) -> None:
        (members, n, k), rows, d = data.gradient.shape, data.codes.shape[1], len(data.widths)
        most = shape.most_nodes(n)
        self._data, self._most = data, most
        self._feature, self._cut, self._left = (np.empty((members, k, most), np.int32) for _ in range(3))
        self._value = np.empty((members, k, most))
        self.size, self.leaf = np.zeros((members, k), np.int64), np.empty((members, k, rows), np.int32)
        counter = np.zeros(1, np.int64)
        worth = 1 + data.gradient.size * d // _WORTH_A_THREAD
        self._threads = min(parallel.threads(), members * k, worth)
        arrays: dict[str, tuple[NDArray[Any] | None, Any]] = {
            "codes": (data.codes, np.uint8),
            "widths": (data.widths, np.int64),
            "gradient": (data.gradient, np.float64),
            "hessian": (data.hessian, np.float64),
            "least": (data.least, np.float64),
            "l2": (data.l2, np.float64),
            "names": (sampling.names, np.uint64),
            "keys": (sampling.keys, np.uint64),
            "signs": (constraints.signs, np.int64),
            "groups": (constraints.groups, np.uint64),
            "feature": (self._feature, np.int32),
            "cut": (self._cut, np.int32),
            "left": (self._left, np.int32),
            "value": (self._value, np.float64),
            "size": (self.size, np.int64),
            "leaf": (self.leaf, np.int32),
            "next": (counter, np.int64),
            **self._of_kinds(members, k),
        }
        self._round = _Round(
            n_rows=rows,
            n_columns=d,
            members=members,
            n_train=n,
            outputs=k,
            subsample=sampling.subsample,
            columns_per_tree=sampling.columns,
            group_words=_words(constraints, d),
            reduce=Reduce() if reduce is None else reduce,
            symmetric=shape.symmetric,
            leaves=shape.most_leaves(n),
            depth=shape.max_depth,
            most_nodes=most,
            few=CATEGORIES.few,
            most=CATEGORIES.most,
            # threads that have no tree of their own share the columns of another
            threads=max(1, parallel.threads() // self._threads),
            **{name: _address(name, given, kind) for name, (given, kind) in arrays.items()},
        )
        self._grow(scratch)

    def _of_kinds(self, members: int, k: int) -> dict[str, tuple[NDArray[Any] | None, Any]]:
        """What is given and kept where columns have missing values or categories."""
        kinds, unit = self._data.kinds, self._data.unit
        if kinds is None:
            return {}
        assert unit is not None
        # kept, so that what is pointed at stays
        rows = CATEGORIES.smoothing, CATEGORIES.least, CATEGORIES.l2
        self._rule = [np.ascontiguousarray(some * unit) for some in rows]
        self._missing_left = np.zeros((members, k, self._most), np.uint8)
        self._sets = np.zeros((members, k, self._most, 4), np.uint64)
        return {
            "missing": (kinds.missing, np.uint8),
            "categorical": (kinds.categorical, np.uint8),
            **dict(zip(("smoothing", "rarest", "extra"), ((rule, np.float64) for rule in self._rule), strict=True)),
            "missing_left": (self._missing_left, np.uint8),
            "sets": (self._sets, np.uint64),
        }

    def _grow(self, scratch: Scratch) -> None:
        kernels, round_ = _kernels(), ctypes.byref(self._round)
        size = kernels.scratch(round_)

        def work() -> None:
            memory = scratch.take(size)
            kernels.grow(round_, memory)
            scratch.give_back(memory)

        with parallel.workers(self._threads) as run:
            run([work] * self._threads)

    def scale(self, bound: NDArray[np.float64], free: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Turn leaf values into units of the bound; an atom is one member's trees.

        Parameters
        ----------
        bound : array of shape (k,)
        free : bool
            Only the direction of an atom counts: its leaves are scaled until the farthest reaches the bound.

        Returns
        -------
        outputs : array of shape (M, N, k)
            Of the scaled atoms.
        length : array of shape (M,)
            What leaf values were divided by, beside the bound.
        """
        members, k, rows = self.leaf.shape
        outputs, length = np.empty((members, rows, k)), np.empty(members)
        task = partial(_kernels().scale, ctypes.byref(self._round), bound, free, length, outputs)
        with parallel.workers(min(self._threads, members)) as run:
            run([partial(task, m) for m in range(members)])
        return outputs, length

    def nodes(self) -> Grown:
        """The nodes of all trees, one after another, see :meth:`gce.bases.trees.binning.Bins.as_splits`."""
        used, kinds = np.arange(self._most) < self.size[..., None], self._data.kinds
        feature, cut, left, value = self._feature[used], self._cut[used], self._left[used], self._value[used][:, None]
        if kinds is None:
            return feature, cut, left, value
        parts_categories = (left > 0) & (kinds.categorical[feature] > 0)
        sets = self._sets[used][parts_categories]
        cut[parts_categories] = np.arange(len(sets))
        return feature, cut, left, value, self._missing_left[used], sets


def _words(constraints: Constraints, columns: int) -> int:
    """How many words hold the sets of a column; 0 where there are no sets."""
    if constraints.groups is None:
        return 0
    if constraints.groups.ndim != 2 or len(constraints.groups) != columns:
        raise ValueError(f"groups must have shape ({columns}, words), got {constraints.groups.shape}")
    return int(constraints.groups.shape[1])


def _address(name: str, given: NDArray[Any] | None, kind: Any) -> int | None:
    if given is None:
        return None
    if given.dtype != kind or not given.flags.c_contiguous:
        raise TypeError(f"{name} must be a contiguous array of {np.dtype(kind)}, got {given.dtype}")
    return int(given.ctypes.data)


@dataclass(frozen=True)
class _Kernels:
    scratch: Callable[..., int]
    grow: Callable[..., None]
    scale: Callable[..., None]


@cache
def _kernels() -> _Kernels:
    f64, round_ = array(np.float64), ctypes.POINTER(_Round)
    return _Kernels(
        kernel("grow_scratch", round_, result=INT),
        kernel("grow_trees", round_, array(np.uint8), result=ctypes.c_void_p),
        kernel("scale_trees", round_, f64, INT, f64, f64, INT, result=ctypes.c_void_p),
    )
