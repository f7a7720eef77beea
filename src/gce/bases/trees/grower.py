"""The compiled growers of trees on histograms: best leaf first, or one split for a whole level.

Columns are bins, see :class:`gce.bases.trees.binned.BinnedRows`: ``bin <= cut`` goes left. A node's children are
adjacent, so that the index of the left one is enough: ``left[node]`` and ``left[node] + 1``, 0 for a leaf. Gradients
and Hessians are rounded to integers and added up as such (native/histogram.hpp): a tree depends neither on the order of
additions nor on the number of threads.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.native import INT, array, kernel
from gce.bases.trees.binning import Grown, Kinds
from gce.bases.trees.bundles import Bundles
from gce.bases.trees.shards import Reduce, Shards
from gce.bases.trees.tree_data import CATEGORIES, Constraints, Sampling, Shape, TreeData

#: Gradients of rows times columns below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 16


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


class Round(ctypes.Structure):
    """``Round`` of native/round.hpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("codes",)),
        *((name, ctypes.c_int64) for name in ("n_rows", "n_columns")),
        *((name, ctypes.c_void_p) for name in ("widths", "gradient", "hessian")),
        *((name, ctypes.c_int64) for name in ("members", "n_train", "outputs", "trees")),
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
        *((name, ctypes.c_void_p) for name in ("store", "offset", "common", "stored_widths")),
        *((name, ctypes.c_int64) for name in ("stored", "all_train")),
        ("largest", ctypes.c_void_p),
    ]


class TreeRound:
    """The arrays of the trees of one round, or of several rounds one after another, and what they are grown from.

    Parameters
    ----------
    data : TreeData
    shape : Shape
    sampling : Sampling
    constraints : Constraints
    rounds : int, default=1
        How many rounds there is memory for, ``R``.
    shards : Shards, optional
        Default: there is one shard.
    leaf : array of shape (M, T, N), optional
        Memory for the leaves of rows. Default: its own.

    Attributes
    ----------
    sizes : array of shape (R, M, T)
        Number of nodes of each tree. A member has ``T = k`` trees of one output, or one of all ``k``.
    leaf : array of shape (M, T, N)
        The leaf of each row in the last round, also of rows that were not learned from.
    struct : ctypes.Structure
        ``Round`` of native/round.hpp.
    """

    def __init__(
        self,
        data: TreeData,
        shape: Shape,
        sampling: Sampling,
        constraints: Constraints,
        rounds: int = 1,
        shards: Shards | None = None,
        leaf: NDArray[np.int32] | None = None,
    ) -> None:
        (members, n, k), rows, d = data.gradient.shape, data.codes.shape[1], len(data.widths)
        all_rows = n if shards is None else shards.rows
        self._data, trees = data, shape.trees(k)
        self._most = most = shape.most_nodes(all_rows)
        self._feature, self._cut, self._left = (np.empty((rounds, members, trees, most), np.int32) for _ in range(3))
        self._value = np.empty((rounds, members, trees, most, k // trees))
        self.sizes = np.zeros((rounds, members, trees), np.int64)
        self.leaf = np.empty((members, trees, rows), np.int32) if leaf is None else leaf
        worth = 1 + data.gradient.size * d // _WORTH_A_THREAD
        self._threads = min(parallel.threads(), members * trees, worth) if shards is None else 1
        arrays = self._arrays(sampling, constraints)
        # the structure holds addresses only
        self._kept, self._shards = (arrays, sampling, constraints), shards
        self.struct = Round(
            n_rows=rows,
            n_columns=d,
            members=members,
            n_train=n,
            outputs=k,
            trees=trees,
            subsample=sampling.subsample,
            columns_per_tree=sampling.columns,
            group_words=_words(constraints, d),
            reduce=Reduce() if shards is None else shards.reduce,
            symmetric=shape.symmetric,
            leaves=shape.most_leaves(all_rows),
            depth=shape.max_depth,
            most_nodes=most,
            all_train=all_rows,
            stored=0 if data.bundles is None else len(data.bundles.widths),
            few=CATEGORIES.few,
            most=CATEGORIES.most,
            # threads that have no tree of their own share the columns of another
            threads=max(1, parallel.threads() // self._threads),
            **{name: _address(name, given, kind) for name, (given, kind) in arrays.items()},
        )

    def _arrays(self, sampling: Sampling, constraints: Constraints) -> dict[str, tuple[NDArray[Any] | None, Any]]:
        """The arrays of the structure with their dtypes."""
        data = self._data
        return {
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
            "size": (self.sizes, np.int64),
            "leaf": (self.leaf, np.int32),
            "next": (np.zeros(1, np.int64), np.int64),
            **self._of_kinds(*self.sizes.shape),
            **_of_bundles(data.bundles),
        }

    def _of_kinds(self, *shape: int) -> dict[str, tuple[NDArray[Any] | None, Any]]:
        """What is given and kept where columns have missing values or categories, of nodes of shape ``(R, M, T)``."""
        kinds, unit = self._data.kinds, self._data.unit
        if kinds is None:
            return {}
        assert unit is not None
        # kept, so that what is pointed at stays
        rows = CATEGORIES.smoothing, CATEGORIES.least, CATEGORIES.l2
        self._rule = [np.ascontiguousarray(some * unit) for some in rows]
        self._missing_left = np.zeros((*shape, self._most), np.uint8)
        self._sets = np.zeros((*shape, self._most, 4), np.uint64)
        return {
            "missing": (kinds.missing, np.uint8),
            "categorical": (kinds.categorical, np.uint8),
            **dict(zip(("smoothing", "rarest", "extra"), ((rule, np.float64) for rule in self._rule), strict=True)),
            "missing_left": (self._missing_left, np.uint8),
            "sets": (self._sets, np.uint64),
        }

    def check(self) -> None:
        """Raise what went wrong among the processes while a kernel ran."""
        if self._shards is not None:
            self._shards.check()

    @property
    def scratch_size(self) -> int:
        """Bytes of memory that a thread needs to grow a tree."""
        return _kernels().scratch(ctypes.byref(self.struct))

    def nodes(self, t: int = 0) -> Grown:
        """The nodes of all trees of a round, see :meth:`gce.bases.trees.binning.Bins.as_splits`."""
        return joined_nodes([self], t)

    def used(self, t: int) -> Grown:
        """The nodes of a round as they were written: every one has a set, where columns have kinds."""
        used = np.arange(self._most) < self.sizes[t, ..., None]
        parts: list[NDArray[Any]] = [self._feature, self._cut, self._left, self._value]
        if self.kinds is not None:
            parts += [self._missing_left, self._sets]
        return tuple(part[t][used] for part in parts)

    @property
    def kinds(self) -> Kinds | None:
        """Columns with missing values or categories."""
        return self._data.kinds


def joined_nodes(rounds: Sequence[TreeRound], t: int) -> Grown:
    """The nodes of all trees of round ``t``, one after another, see :meth:`gce.bases.trees.binning.Bins.as_splits`."""
    kinds = rounds[0].kinds
    parts = zip(*(own.used(t) for own in rounds), strict=True)
    feature, cut, left, value, *mixed = (np.concatenate(part) for part in parts)
    if kinds is None:
        return feature, cut, left, value
    missing_left, sets = mixed
    parts_categories = (left > 0) & (kinds.categorical[feature] > 0)
    sets = sets[parts_categories]
    cut[parts_categories] = np.arange(len(sets))
    return feature, cut, left, value, missing_left, sets


class GrownTrees(TreeRound):
    """The trees of one round, grown.

    Parameters
    ----------
    data : TreeData
    shape : Shape
    sampling : Sampling
    constraints : Constraints
    scratch : Scratch
    shards : Shards, optional
        As of :class:`TreeRound`.
    """

    def __init__(
        self,
        data: TreeData,
        shape: Shape,
        sampling: Sampling,
        constraints: Constraints,
        scratch: Scratch,
        shards: Shards | None = None,
    ) -> None:
        super().__init__(data, shape, sampling, constraints, shards=shards)
        self._grow(scratch)

    @property
    def size(self) -> NDArray[np.int64]:
        """Number of nodes of each tree, ``(M, T)``."""
        return self.sizes[0]

    def _grow(self, scratch: Scratch) -> None:
        grow, struct, size = _kernels().grow, ctypes.byref(self.struct), self.scratch_size

        def work() -> None:
            memory = scratch.take(size)
            # an address: an interruption while an array is checked would be told as a wrong argument
            grow(struct, memory.ctypes.data)
            scratch.give_back(memory)

        with parallel.workers(self._threads) as run:
            run([work] * self._threads)
        self.check()

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
        (members, _, rows), k = self.leaf.shape, len(bound)
        outputs, length = np.empty((members, rows, k)), np.empty(members)
        task = partial(_kernels().scale, ctypes.byref(self.struct), bound, free, length, outputs)
        with parallel.workers(min(self._threads, members)) as run:
            run([partial(task, m) for m in range(members)])
        return outputs, length


def _of_bundles(bundles: Bundles | None) -> dict[str, tuple[NDArray[Any] | None, Any]]:
    """What is given where columns share stored ones."""
    if bundles is None:
        return {}
    arrays = bundles.store, bundles.offset, bundles.common, bundles.widths
    names = "store", "offset", "common", "stored_widths"
    return {name: (given, np.int64) for name, given in zip(names, arrays, strict=True)}


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
    f64, round_ = array(np.float64), ctypes.POINTER(Round)
    return _Kernels(
        kernel("grow_scratch", round_, result=INT),
        kernel("grow_trees", round_, ctypes.c_void_p, result=ctypes.c_void_p),
        kernel("scale_trees", round_, f64, INT, f64, f64, INT, result=ctypes.c_void_p),
    )
