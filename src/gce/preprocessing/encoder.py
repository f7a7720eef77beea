"""Inputs of networks: scaled numbers, and indicators of missing values and categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.columns import MAX_CATEGORIES
from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.sparse import Matrix, SparseRows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Categories of a column that have an indicator beside statistics of the target.
MAX_INDICATORS = 12


@dataclass(frozen=True)
class Encoder:
    """Maps encoded columns ``(n, d)`` to inputs ``(n, d')``: first the scaled numbers, then the indicators.

    A missing number is imputed by the centre of its column. An indicator tells whether a column has a certain code, or
    is missing; its two values differ by 1 and have mean 0 over the training rows (a variance of 1 for each indicator
    was worse on both data sets with categories, benchmarks/results/encodings.md). For what does not occur in a column's
    training rows (a category, or a missing value) all indicators of the column are 0, as if it were an average one.

    Parameters
    ----------
    numbers : array of shape (p,)
        Indices of the columns that are scaled.
    scaling : Standardizer
        Scaling of these columns.
    flagged : array of shape (q,)
        Column index of each indicator.
    codes : array of shape (q,)
        Code of each indicator; NaN indicates missing values.
    on, off : array of shape (q,)
        Values of each indicator where it holds and where it does not.
    """

    numbers: Indices
    scaling: Standardizer
    flagged: Indices
    codes: Array
    on: Array
    off: Array

    @classmethod
    def fit(
        cls,
        X: Matrix,
        weight: Array,
        numbers: Indices,
        scale: str,
        clip: float,
        max_indicators: Mapping[int, int] = MappingProxyType({}),
        unflagged: range = range(0),
    ) -> Encoder:
        """Fit an encoder.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded columns; sparse rows are all numbers and have no missing values.
        weight : array of shape (n,)
            Sample weights.
        numbers : array of shape (p,)
            Indices of the columns that are numbers; all others are codes.
        scale : {"auto", "each", "robust", "common"}
            See :meth:`Standardizer.fit`.
        clip : float
            See :class:`Standardizer`.
        max_indicators : mapping of int to int
            How many categories of a column have an indicator, the most frequent ones; all of other columns.
        unflagged : range
            Indices of columns without indicators: parts of other columns, which are missing where these are.

        Returns
        -------
        Encoder
        """
        if isinstance(X, SparseRows):
            none = np.zeros(0)
            scaling = Standardizer.fit(X, weight, clip, scale)
            return cls(numbers, scaling, none.astype(np.intp), none, none, none)
        share = weight / weight.sum()
        flags: list[tuple[int, float, float]] = []
        is_number = np.isin(np.arange(X.shape[1]), numbers)
        for j in range(X.shape[1]):
            if j in unflagged:
                continue
            if is_number[j]:
                values = [(np.nan, float(share[np.isnan(X[:, j])].sum()))]
            else:
                values = _shares(X[:, j], share, max_indicators.get(j, MAX_CATEGORIES + 1))
            # an indicator that is the same in all rows is dropped
            flags += [(j, code, part) for code, part in values if 0 < part < 1 - 1e-12]
        columns = np.array([j for j, *_ in flags], dtype=np.intp)
        codes, parts = (np.array([flag[i] for flag in flags], dtype=np.float64) for i in (1, 2))
        scaled = X if len(numbers) == X.shape[1] else np.ascontiguousarray(X[:, numbers])
        return cls(numbers, Standardizer.fit(scaled, weight, clip, scale), columns, codes, 1 - parts, -parts)

    @property
    def width(self) -> int:
        """Number of inputs per row."""
        return len(self.numbers) + len(self.flagged)

    def transform(self, X: Matrix) -> Matrix:
        """Inputs ``(n, width)`` of encoded rows ``(n, d)``; sparse rows stay sparse where there are no indicators.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded rows.

        Returns
        -------
        array or SparseRows of shape (n, width)
        """
        if not isinstance(X, SparseRows):
            return self._transform(X)
        return self._transform(X.toarray()) if len(self.flagged) else self.scaling.transform_sparse(X)

    def _transform(self, X: Array) -> Array:
        numbers = X if len(self.numbers) == X.shape[1] else np.ascontiguousarray(X[:, self.numbers])
        scaled = self.scaling.transform(numbers)
        if len(self.flagged) == 0:
            return scaled
        return np.concatenate([scaled, self._indicators(X)], axis=1)

    def scale_columns(self, X: Matrix) -> Array:
        """Encoded rows ``(n, d)`` with numbers scaled as networks see them, but missing ones still NaN.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded rows.

        Returns
        -------
        array of shape (n, d)
        """
        columns = X.toarray() if isinstance(X, SparseRows) else X.copy()
        numbers = np.ascontiguousarray(columns[:, self.numbers])
        scaled = self.scaling.transform(numbers)
        scaled[np.isnan(numbers)] = np.nan
        columns[:, self.numbers] = scaled
        return columns

    def inputs_of(self, columns: Array) -> Array:
        """Inputs ``(n, width)`` of columns ``(n, d)`` from :meth:`scale_columns`, as :meth:`transform` gives them.

        Parameters
        ----------
        columns : array of shape (n, d)
            Columns whose numbers are scaled.

        Returns
        -------
        array of shape (n, width)
        """
        # a missing number is imputed by the centre, which is scaled to 0
        return np.concatenate([np.nan_to_num(columns[:, self.numbers], nan=0.0), self._indicators(columns)], axis=1)

    def _indicators(self, X: Array) -> Array:
        out = np.empty((len(X), len(self.flagged)))
        # numbers have no other indicator than that of missing values: all of them at once, since they may be thousands
        gaps = self._gaps
        out[:, gaps] = np.where(np.isnan(X[:, self.flagged[gaps]]), self.on[gaps], self.off[gaps])
        for j, (first, last) in self._category_slices.items():
            column, codes = X[:, j, None], self.codes[first:last]
            hit = np.where(np.isnan(codes), np.isnan(column), column == codes)
            out[:, first:last] = np.where(hit, self.on[first:last], self.off[first:last])
            out[~hit.any(1), first:last] = 0.0
        return out

    @cached_property
    def _gaps(self) -> Indices:
        """The indicators of columns of numbers."""
        return np.flatnonzero(np.isin(self.flagged, self.numbers))

    @cached_property
    def _category_slices(self) -> dict[int, tuple[int, int]]:
        """The range of each other column's indicators, as (first, last): those of a column are next to each other."""
        columns, first, count = np.unique(self.flagged, return_index=True, return_counts=True)
        others = np.isin(columns, self.numbers, invert=True)
        ranges = zip(columns[others].tolist(), first[others].tolist(), count[others].tolist(), strict=True)
        return {j: (start, start + length) for j, start, length in ranges}

    def restricted(self, columns: Indices) -> Encoder:
        """The encoder of some columns alone.

        Parameters
        ----------
        columns : array of shape (c,)
            Ascending indices.

        Returns
        -------
        Encoder
        """
        kept, flags = np.isin(self.numbers, columns), np.isin(self.flagged, columns)
        scaling = Standardizer(self.scaling.mean[kept], self.scaling.scale[kept], self.scaling.clip)
        numbers, flagged = (np.searchsorted(columns, some) for some in (self.numbers[kept], self.flagged[flags]))
        return Encoder(numbers, scaling, flagged, self.codes[flags], self.on[flags], self.off[flags])

    def inputs_from(self, columns: Indices) -> Indices:
        """Which inputs :meth:`restricted` keeps, ``(w,)``.

        Parameters
        ----------
        columns : array of shape (c,)
            Ascending indices.

        Returns
        -------
        array of shape (w,)
        """
        return np.flatnonzero(np.isin(np.concatenate([self.numbers, self.flagged]), columns))


def _shares(column: Array, share: Array, most: int) -> list[tuple[float, float]]:
    """The most frequent codes of a column with their shares of the weight, ascending; missing values last."""
    absent = np.isnan(column)
    codes, position = np.unique(column[~absent], return_inverse=True)
    parts = np.bincount(position, share[~absent], len(codes))
    # sums of weights are rounded, which must not change the order
    kept = np.sort(np.lexsort((codes, -np.round(parts, 12)))[:most])
    shares = [(float(codes[i]), float(parts[i])) for i in kept]
    missing = float(share[absent].sum())
    return [*shares, (np.nan, missing)] if missing > 0 else shares
