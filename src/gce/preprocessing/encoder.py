"""Inputs of networks: scaled numbers, and indicators of missing values and categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.schema import Schema
from gce.preprocessing.sparse import Matrix, SparseRows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


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
    def fit(cls, X: Matrix, weight: Array, schema: Schema, scale: str, clip: float) -> Encoder:
        """Fit an encoder.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded columns; sparse rows are all numbers and have no missing values.
        weight : array of shape (n,)
            Sample weights.
        schema : Schema
            Kinds of the columns.
        scale : {"auto", "each", "robust", "common"}
            See :meth:`Standardizer.fit`.
        clip : float
            See :class:`Standardizer`.

        Returns
        -------
        Encoder
        """
        if isinstance(X, SparseRows):
            none = np.zeros(0)
            scaling = Standardizer.fit(X, weight, clip, scale)
            return cls(schema.indices_of_kind("number"), scaling, none.astype(np.intp), none, none, none)
        share = weight / weight.sum()
        numbers = schema.indices_of_kind("number")
        flags: list[tuple[int, float, float]] = []
        for j, column in enumerate(schema.columns):
            values = _shares(X[:, j], share) if column.kind != "number" else [(np.nan, share[np.isnan(X[:, j])].sum())]
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
        for j, (first, last) in self._indicator_slices.items():
            column, codes = X[:, j, None], self.codes[first:last]
            hit = np.where(np.isnan(codes), np.isnan(column), column == codes)
            out[:, first:last] = np.where(hit, self.on[first:last], self.off[first:last])
            if j not in self.numbers:
                out[~hit.any(1), first:last] = 0.0
        return out

    @cached_property
    def _indicator_slices(self) -> dict[int, tuple[int, int]]:
        """The range of each column's indicators, as (first, last)."""
        ends = {}
        for j in np.unique(self.flagged):
            index = np.flatnonzero(self.flagged == j)
            ends[int(j)] = (int(index[0]), int(index[-1]) + 1)
        return ends


def _shares(column: Array, share: Array) -> list[tuple[float, float]]:
    """Each code of a column with its share of the weight; missing values last."""
    shares = [(float(code), float(share[column == code].sum())) for code in np.unique(column[~np.isnan(column)])]
    missing = float(share[np.isnan(column)].sum())
    return [*shares, (np.nan, missing)] if missing > 0 else shares
