"""Binned columns: at most 256 bins each, with edges between the values of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.native import INT, array, kernel

Array = NDArray[np.float64]
#: One tree, or several: arrays of its nodes.
Grown = tuple[NDArray[Any], ...]

#: Maximum number of bins of a column.
CODES = 256
#: The bins of categories: of those without a code, of missing values, and of the first code.
OTHER_BIN, MISSING_BIN, FIRST_CODE_BIN = 0, 1, 2
#: How a node parts rows, in :class:`gce.bases.trees.TreeArrays`.
MISSING_LEFT, MISSING_RIGHT, IN_SET = 0, 1, 2
#: A threshold that no number exceeds: missing values are parted from all numbers.
ALL_NUMBERS = float(np.finfo(np.float64).max)
#: Numbers below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 18


@dataclass(frozen=True)
class Kinds:
    """Columns with missing values or categories.

    Parameters
    ----------
    missing, categorical : arrays of shape (d,), uint8
        1 where the last bin of a column is that of missing values, and where its bins are categories, without order.
    """

    missing: NDArray[np.uint8]
    categorical: NDArray[np.uint8]


@dataclass(frozen=True)
class Bins:
    """The bin edges of each column: the bin of a value is the number of edges below it.

    Missing numbers have a bin of their own, the last. Categories have a bin for each code, one for all others and one
    for missing values, the same in every fit.

    Parameters
    ----------
    edges : tuple of arrays
        Of each column, ascending; ``code <= c`` is ``value <= edges[c]``. Of categories: one less than their bins.
    kinds : Kinds, optional
        Default: there are numbers only, and none is missing.
    """

    edges: tuple[Array, ...]
    kinds: Kinds | None = None

    @classmethod
    def learn(
        cls,
        blocks: Iterable[Callable[[], Array]],
        rows: int,
        columns: int,
        codes: int = CODES,
        categorical: NDArray[np.bool_] | None = None,
    ) -> tuple[Bins, NDArray[np.uint8]]:
        """Learn edges half-way between neighbouring values, or between quantiles where a column has too many values.

        Values count once however often they are repeated, so that repeated and weighted rows have the same bins.

        Parameters
        ----------
        blocks : iterable of functions that return arrays of shape (4, n)
            Four columns each, the last block what is left: columns become dense, and float64, only when they are used.
        rows, columns : int
            ``n`` and ``d``.
        codes : int, default=256
            Maximum number of bins of numbers.
        categorical : array of shape (d,), optional
            Whether a column has codes of categories; any column may have missing values then. Default: there are
            numbers only, and none is missing.

        Returns
        -------
        Bins
        array of shape (ceil(d / 4), n, 4)
            Bins of the values, in blocks of four columns, padded by 0.
        """
        out = np.zeros((-(-columns // 4), rows, 4), dtype=np.uint8)
        threads = min(parallel.threads(), len(out), 1 + rows * columns // _WORTH_A_THREAD)
        with parallel.workers(threads) as run:
            if categorical is None:
                learned = run([partial(_binned, *given, codes) for given in zip(blocks, out, strict=True)])
                return cls(tuple(edges for some in learned for edges in some)), out
            kinds = np.array_split(categorical, range(4, columns, 4))
            mixed = run([partial(_binned_mixed, *given, codes) for given in zip(blocks, out, kinds, strict=True)])
        every = [column for some in mixed for column in some]
        missing = np.array([some for _, some in every], np.uint8)
        return cls(tuple(edges for edges, _ in every), Kinds(missing, categorical.astype(np.uint8))), out

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Number of bins of each column, ``(d,)``."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64) + self._missing

    @cached_property
    def _missing(self) -> NDArray[np.int64]:
        """Whether a column has a bin of missing values behind the others, ``(d,)``."""
        return np.zeros(len(self.edges), np.int64) if self.kinds is None else self.kinds.missing.astype(np.int64)

    def thresholds(self, feature: NDArray[np.int32], cut: NDArray[np.int32], ordered: NDArray[np.bool_]) -> Array:
        """The thresholds of nodes ``(nodes,)``; 0 for leaves and nodes of categories, which are not ``ordered``."""
        out, starts = np.zeros(len(feature)), np.cumsum(self.widths - 1) - (self.widths - 1)
        out[ordered] = self._flat[starts[feature[ordered]] + cut[ordered]]
        return out

    def as_splits(self, grown: Grown) -> Grown:
        """A grown tree, or several, as :class:`gce.bases.trees.TreeArrays` has them.

        Parameters
        ----------
        grown : tuple of arrays
            Feature, cut, left and value of each node; where columns have kinds, also whether missing values go left and
            the sets ``(S, 4)`` of bins that go left, which the cuts of categories are indices of.

        Returns
        -------
        tuple of arrays
            Feature, threshold, left and value; where columns have kinds, also rule and sets.
        """
        feature, cut, left, value = grown[:4]
        if self.kinds is None:
            return feature, self.thresholds(feature, cut, left > 0), left, value
        missing_left, sets = grown[4:]
        parts_categories = (left > 0) & (self.kinds.categorical[feature] > 0)
        threshold = self.thresholds(feature, cut, (left > 0) & ~parts_categories)
        threshold[parts_categories] = cut[parts_categories]
        rule = np.where(parts_categories, IN_SET, np.where(missing_left > 0, MISSING_LEFT, MISSING_RIGHT))
        return feature, threshold, left, value, rule.astype(np.uint8), sets.view(np.int64)

    def as_cuts(
        self,
        feature: NDArray[np.int32],
        threshold: Array,
        left: NDArray[np.int32],
        value: Array,
        rule: NDArray[np.uint8] | None = None,
        sets: NDArray[np.int64] | None = None,
    ) -> Grown:
        """Trees of :class:`gce.bases.trees.TreeArrays` as they were grown, the inverse of :meth:`as_splits`.

        Parameters
        ----------
        feature, threshold, left, value : arrays of shape (nodes,), value (nodes, v)
        rule : array of shape (nodes,), optional
        sets : array of shape (S, 4), optional
            Where columns have kinds.

        Returns
        -------
        tuple of arrays
            Feature, cut, left and value; where columns have kinds, also whether missing values go left, and a set
            ``(nodes, 4)`` of bins that go left for every node.

        Raises
        ------
        ValueError
            The trees were grown by other bins.
        """
        ordered = left > 0 if rule is None else (left > 0) & (rule != IN_SET)
        cut = np.zeros(len(feature), np.int32)
        for column in np.unique(feature[ordered]).tolist():
            own = ordered & (feature == column)
            cut[own] = np.searchsorted(self.edges[column], threshold[own])
        known = (cut < self.widths[feature] - 1) | ~ordered
        if (rule is None) != (self.kinds is None) or not known.all():
            raise ValueError("these trees were not grown by the bins of these rows")
        if (self.thresholds(feature, cut, ordered) != np.where(ordered, threshold, 0.0)).any():
            raise ValueError("these trees were not grown by the bins of these rows")
        if rule is None or sets is None:
            return feature, cut, left, value
        every, in_set = np.zeros((len(feature), 4), np.uint64), (left > 0) & (rule == IN_SET)
        every[in_set] = sets.view(np.uint64)[threshold[in_set].astype(np.intp)]
        return feature, cut, left, value, (rule == MISSING_LEFT).astype(np.uint8), every

    @cached_property
    def _flat(self) -> Array:
        beyond = [np.full(some, ALL_NUMBERS) for some in self._missing]
        return np.concatenate([np.zeros(0), *(part for both in zip(self.edges, beyond, strict=True) for part in both)])

    @cached_property
    def values(self) -> Array:
        """The midpoint of each bin of each column, one column after another; 0 for bins of missing values."""
        columns = []
        for edges, missing in zip(self.edges, self._missing, strict=True):
            inner = (edges[1:] + edges[:-1]) / 2
            ends = edges[[0, -1]] if len(edges) else np.zeros(1)
            columns.append(np.concatenate([ends[:1], inner, ends[1:], np.zeros(missing)]))
        return np.concatenate([np.zeros(0), *columns])


def _binned(block: Callable[[], Array], out: NDArray[np.uint8], codes: int) -> list[Array]:
    """The edges of some columns, whose codes are written to ``out`` ``(n, 4)``."""
    learned = []
    for j, column in enumerate(block()):
        edges = bin_edges(distinct(column), codes)
        write_codes(column, edges, out, j)
        learned.append(edges)
    return learned


def _binned_mixed(
    block: Callable[[], Array], out: NDArray[np.uint8], categorical: NDArray[np.bool_], codes: int
) -> list[tuple[Array, bool]]:
    """The same for columns of any kind: the edges of each, and whether its last bin is that of missing values."""
    learned = []
    for j, (column, kind) in enumerate(zip(block(), categorical, strict=True)):
        if kind:
            out[:, j] = category_bins(column)
            learned.append((np.arange(int(out[:, j].max(initial=0)), dtype=np.float64), False))
            continue
        missing = np.isnan(column)
        some = bool(missing.any())
        # numbers need two bins to be split at all
        edges = bin_edges(distinct(column[~missing] if some else column), max(2, codes - some))
        write_codes(column, edges, out, j)
        if some:
            out[missing, j] = len(edges) + 1
        learned.append((edges, some))
    return learned


def category_bins(codes: Array) -> NDArray[np.uint8]:
    """The bins of codes of categories ``(n,)``: NaN is missing, and what no byte can hold has no code."""
    has_code = (codes >= 0) & (codes < CODES - FIRST_CODE_BIN)
    bins = np.where(has_code, codes + FIRST_CODE_BIN, OTHER_BIN)
    return np.where(np.isnan(codes), MISSING_BIN, bins).astype(np.uint8)


def write_codes(column: Array, edges: Array, out: NDArray[np.uint8], place: int) -> None:
    """Write how many edges are below each number ``(n,)`` to one of the columns of ``out`` ``(n, 4)``."""
    _kernels()[1](column, len(column), edges, len(edges), out, place)


def distinct(column: Array) -> Array:
    """The distinct values of a column ``(n,)``, ascending."""
    out, count = np.empty(len(column)), np.zeros(1, np.int64)
    _kernels()[0](column, len(column), out, count)
    return out[: int(count[0])]


@cache
def _kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
    floats = array(np.float64)
    return (
        kernel("distinct", floats, INT, floats, array(np.int64)),
        kernel("code", floats, INT, floats, INT, array(np.uint8), INT),
    )


def binned_on_device(X: Tensor, codes: int = CODES) -> tuple[Bins, Tensor]:
    """The edges of :meth:`Bins.learn` and the bins of rows, with tensor operations on their device.

    Parameters
    ----------
    X : Tensor of shape (n, d)
    codes : int, default=256
        Maximum number of bins.

    Returns
    -------
    Bins
    Tensor of shape (ceil(d / 4), n, 4), uint8
    """
    n, d = X.shape
    out, learned = X.new_zeros(-(-d // 4), n, 4, dtype=torch.uint8), []
    for c in range(d):
        # one number for both zeros
        column = X[:, c].double().contiguous() + 0.0
        values = column.unique()
        places = torch.from_numpy(_places(len(values), codes))
        below, above = (values[some.to(X.device)].cpu().numpy() for some in (places - 1, places))
        learned.append(_middle(below, above))
        out[c // 4, :, c % 4] = torch.searchsorted(torch.from_numpy(learned[-1]).to(X.device), column)
    return Bins(tuple(learned)), out


def bin_edges(values: Array, codes: int) -> Array:
    """Edges of at most ``codes`` bins between sorted distinct values ``(v,)``."""
    places = _places(len(values), codes)
    return _middle(values[places - 1], values[places])


def _places(count: int, codes: int) -> NDArray[np.intp]:
    """Which of so many distinct values begin a bin."""
    if count > codes:
        return np.linspace(0, count - 1, codes + 1).round().astype(np.intp)[1:-1]
    return np.arange(1, count)


def _middle(below: Array, above: Array) -> Array:
    """Edges between neighbouring values."""
    middle = below + (above - below) / 2
    # between neighbours in floating point there is nothing: what is at most the edge must be the value below it
    return np.where(middle < above, middle, below)


class KeptKinds:
    """The kinds of columns, and memory for what the nodes of a tree keep of them.

    Parameters
    ----------
    kinds : Kinds or None
        None: there are numbers only, and none is missing.
    nodes : int
        Nodes that a tree may have.

    Attributes
    ----------
    given, arrays : tuples of two ints or None
        Addresses: of the kinds of columns, and of the memory; None where there are no kinds.
    """

    def __init__(self, kinds: Kinds | None, nodes: int) -> None:
        self._kinds = kinds
        self.given: tuple[int | None, int | None] = (None, None)
        self.arrays: tuple[int | None, int | None] = (None, None)
        if kinds is not None:
            self._missing_left = np.zeros(nodes, np.uint8)
            # most of it is never written to, and takes no memory then
            self._sets = np.empty((nodes // 2, 4), np.uint64)
            self.given = kinds.missing.ctypes.data, kinds.categorical.ctypes.data
            self.arrays = self._missing_left.ctypes.data, self._sets.ctypes.data

    def tree(
        self, feature: NDArray[np.int32], cut: NDArray[np.int32], left: NDArray[np.int32], value: NDArray[np.float64]
    ) -> Grown:
        """A grown tree, see :meth:`gce.bases.trees.binning.Bins.as_splits`."""
        if self._kinds is None:
            return feature, cut, left, value
        parts_categories = (left > 0) & (self._kinds.categorical[feature] > 0)
        sets = self._sets[: int(parts_categories.sum())]
        return feature, cut, left, value, self._missing_left[: len(left)].copy(), sets.copy()
