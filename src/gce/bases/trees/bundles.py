"""Bundles of columns that are never both away from their most frequent bins, such as the flags of one category.

They share one column of codes, see native/bundles.hpp: code 0 where all of them are at their most frequent bins, and
behind it the other bins of each. No row is an exception, so that the bin of every column can be read from the codes,
and trees are the same to the bit as those of codes by column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.native import INT, array, kernel
from gce.bases.trees.binning import Bins, bin_edges, distinct
from gce.preprocessing.sparse import SparseRows

Codes = NDArray[np.uint8]
Counts = NDArray[np.int64]

#: The columns that may be bundled: a share of the rows that are at most away from the most frequent bin, and most bins.
AWAY, MOST_BINS = 0.2, 128
#: Bundles must leave at most this share of the columns to be worth what they cost.
WORTH = 0.75
#: Bundles that a column is tried in.
_TRIES = 128


@dataclass(frozen=True, eq=False)
class Bundles:
    """Where the bins of ``d`` columns are among the codes of ``s`` stored columns.

    Parameters
    ----------
    store : array of shape (d,)
        The stored column of each column.
    offset : array of shape (d,)
        The code of its first bin that is not the most frequent one.
    common : array of shape (d,)
        Its most frequent bin; -1 where the stored column is its own, and codes are bins.
    widths : array of shape (s,)
        Numbers of codes of the stored columns.
    """

    store: Counts
    offset: Counts
    common: Counts
    widths: Counts

    def unfold(self, stored: Codes, widths: Counts) -> Codes:
        """The bins of all columns ``(ceil(d / 4), n, 4)`` of widths ``(d,)``, from codes ``(ceil(s / 4), n, 4)``."""
        out = np.zeros((-(-len(widths) // 4), stored.shape[1], 4), np.uint8)
        given = np.ascontiguousarray(stored), stored.shape[1], len(widths), widths
        _kernels().unfold(*given, self.store, self.offset, self.common, out)
        return out


@dataclass(frozen=True, eq=False)
class Away:
    """The rows of ``c`` columns that are not in the column's most frequent bin.

    Parameters
    ----------
    columns, common : arrays of shape (c,)
        Columns, ascending, and the bins of all rows that are not listed.
    start : array of shape (c + 1,)
        Where the rows of each column begin.
    rows, bins : arrays of shape (start[-1],)
    """

    columns: Counts
    common: Counts
    start: Counts
    rows: NDArray[np.uint32]
    bins: Codes

    @classmethod
    def of_codes(cls, codes: Codes, widths: Counts) -> Away | None:
        """The columns of codes ``(ceil(d / 4), n, 4)`` that may be bundled; None where they would not be worth it."""
        n, few = codes.shape[1], np.flatnonzero(widths <= MOST_BINS)
        if not _worth(len(widths) - len(few) + 1, len(widths)):
            return None
        common, away = np.empty(len(few), np.int64), np.empty(len(few), np.int64)
        _kernels().most_common(codes, n, few, len(few), common, away)
        some = away <= AWAY * n
        columns, common, start = few[some], common[some], np.append(0, np.cumsum(away[some]))
        if not _worth(len(widths) - len(columns) + 1, len(widths)):
            return None
        rows, bins = np.empty(start[-1], np.uint32), np.empty(start[-1], np.uint8)
        _kernels().away(codes, n, columns, len(columns), common, start, rows, bins)
        return cls(columns, common, start, rows, bins)

    def bundled(self, widths: Counts, n: int) -> Bundles | None:
        """Bundles of some of these columns, of all columns of widths ``(d,)``; None where they are not worth it."""
        d = len(widths)
        few = np.flatnonzero((widths[self.columns] <= MOST_BINS) & (np.diff(self.start) <= AWAY * n))
        if not _worth(d - len(few) + 1, d):
            return None
        own, sizes = self._of(few), widths[self.columns[few]] - 1
        number = np.empty(len(few), np.int64)
        _kernels().bundle(own.start, own.rows, sizes, len(few), n, _TRIES, number)
        shared = np.bincount(number)[number] > 1
        few, sizes, number = few[shared], sizes[shared], np.unique(number[shared], return_inverse=True)[1]
        bundles, columns = int(number.max(initial=-1)) + 1, self.columns[few]
        alone = np.setdiff1d(np.arange(d), columns)
        if not _worth(len(alone) + bundles, d):
            return None
        store, offset, common = np.zeros(d, np.int64), np.zeros(d, np.int64), np.full(d, -1)
        store[alone], store[columns] = np.arange(len(alone)), len(alone) + number
        common[columns] = self.common[few]
        # the codes of a bundle's columns follow each other, from 1 on
        order = np.argsort(number, kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        ends = np.bincount(number, sizes, bundles).astype(np.int64)
        offset[columns[order]] = 1 + before - (np.cumsum(ends) - ends)[number[order]]
        return Bundles(store, offset, common, np.concatenate([widths[alone], 1 + ends]))

    def fold(self, bundles: Bundles, out: Codes) -> None:
        """Write the codes of these columns to ``out`` ``(ceil(s / 4), n, 4)``, which has zeros in their place."""
        for column, common in zip(self.columns, self.common, strict=True):
            if bundles.common[column] < 0:
                stored = bundles.store[column]
                out[stored // 4, :, stored % 4] = common
        given = self.columns, len(self.columns), self.start, self.rows, self.bins
        _kernels().fold(*given, bundles.store, bundles.offset, bundles.common, out.shape[1], out)

    def _of(self, some: NDArray[np.intp]) -> Away:
        """Some of the columns."""
        sizes, taken = np.diff(self.start), np.zeros(len(self.columns), bool)
        taken[some] = True
        listed = np.repeat(taken, sizes)
        start = np.append(0, np.cumsum(sizes[some]))
        return Away(self.columns[some], self.common[some], start, self.rows[listed], self.bins[listed])


def bundle_codes(codes: Codes, widths: Counts) -> tuple[Codes, Bundles | None]:
    """Codes ``(ceil(d / 4), n, 4)`` of columns of widths ``(d,)`` with some of them bundled, where that is worth it.

    Tables of numbers pay for nothing: columns of many bins are not looked at.

    Parameters
    ----------
    codes : array of shape (ceil(d / 4), n, 4)
    widths : array of shape (d,)

    Returns
    -------
    array of shape (ceil(s / 4), n, 4)
    Bundles or None
        None: ``codes`` are returned as they are.
    """
    away = Away.of_codes(codes, widths)
    bundles = None if away is None else away.bundled(widths, codes.shape[1])
    if away is None or bundles is None:
        return codes, None
    out = empty_codes(codes.shape[1], len(bundles.widths))
    for c in np.flatnonzero(bundles.common < 0):
        s = bundles.store[c]
        out[s // 4, :, s % 4] = codes[c // 4, :, c % 4]
    away.fold(bundles, out)
    return out, bundles


def learn_sparse(X: SparseRows, codes: int) -> tuple[Bins, Away]:
    """The bins of sparse rows ``(n, d)``, at most ``codes`` each, and the rows of all columns away from the bin of 0.

    Nothing becomes dense: a column's values are those that are stored, and that of the others.

    Parameters
    ----------
    X : SparseRows of shape (n, d)
    codes : int

    Returns
    -------
    Bins
    Away
        Of all ``d`` columns.
    """
    by_column, centre = X.matrix.tocsc(), X.centre.double().numpy()
    (n, d), first = X.shape, by_column.indptr.astype(np.int64)
    values = by_column.data.astype(np.float64) + np.repeat(centre, np.diff(first))
    edges, common, bins = [], np.empty(d, np.int64), np.empty(len(values), np.uint8)
    for c in range(d):
        own = values[first[c] : first[c + 1]]
        every = np.append(own, centre[c]) if len(own) < n else np.ascontiguousarray(own)
        edges.append(bin_edges(distinct(every), codes))
        bins[first[c] : first[c + 1]] = np.searchsorted(edges[c], own)
        common[c] = np.searchsorted(edges[c], centre[c])
    away = bins != np.repeat(common, np.diff(first))
    start = np.append(0, np.cumsum(away))[first]
    rows = by_column.indices[away].astype(np.uint32)
    return Bins(tuple(edges)), Away(np.arange(d), common, start, rows, bins[away])


def unbundled(widths: Counts) -> Bundles:
    """Columns of widths ``(d,)``, each stored alone."""
    d = len(widths)
    return Bundles(np.arange(d), np.zeros(d, np.int64), np.full(d, -1), widths)


def empty_codes(n: int, columns: int) -> Codes:
    """Codes of ``n`` rows, all 0."""
    return np.zeros((-(-columns // 4), n, 4), np.uint8)


def _worth(stored: int, columns: int) -> bool:
    return stored <= WORTH * columns


@dataclass(frozen=True)
class _Kernels:
    most_common: Callable[..., Any]
    away: Callable[..., Any]
    bundle: Callable[..., Any]
    fold: Callable[..., Any]
    unfold: Callable[..., Any]


@cache
def _kernels() -> _Kernels:
    codes, ints, rows = array(np.uint8), array(np.int64), array(np.uint32)
    return _Kernels(
        kernel("most_common", codes, INT, ints, INT, ints, ints),
        kernel("away", codes, INT, ints, INT, ints, ints, rows, codes),
        kernel("bundle", ints, rows, ints, INT, INT, INT, ints),
        kernel("fold", ints, INT, ints, rows, codes, ints, ints, ints, INT, codes),
        kernel("unfold", codes, INT, INT, ints, ints, ints, ints, codes),
    )
