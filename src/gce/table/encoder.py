"""From coded columns to what networks see: numbers scaled, gaps marked, categories as 0/1 columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gce.rows import Matrix, SparseRows
from gce.table.scaling import Standardizer
from gce.table.schema import Schema

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Encoder:
    """Coded columns ``(n, d)`` to inputs ``(n, d')``: the scaled numbers first, then flags.

    A gap in a number becomes that column's centre. A flag says whether a column has a certain code, or is missing; its
    two values are 1 apart, with mean 0 over the rows of the fit (a variance of 1 for each flag was worse on both sets
    with categories, benchmarks/results/encodings.md). What the fit never saw in a column (a category,
    or a gap) has all its flags at 0: it counts as an average one.

    Parameters
    ----------
    numbers : array of shape (p,)
        Columns that are scaled.
    scaling : Standardizer
        Of these columns.
    flagged : array of shape (q,)
        The column of each flag.
    codes : array of shape (q,)
        Its code; NaN: missing.
    on, off : array of shape (q,)
        Its values where it holds and where it does not.
    """

    numbers: Places
    scaling: Standardizer
    flagged: Places
    codes: Array
    on: Array
    off: Array

    @classmethod
    def learn(cls, X: Matrix, weight: Array, schema: Schema, scale: str, clip: float) -> Encoder:
        """Learn from coded rows ``(n, d)`` with weights ``(n,)``; sparse ones are all numbers and have no gaps."""
        if isinstance(X, SparseRows):
            none = np.zeros(0)
            scaling = Standardizer.fit(X, weight, clip, scale)
            return cls(schema.of_kind("number"), scaling, none.astype(np.intp), none, none, none)
        share = weight / weight.sum()
        numbers = schema.of_kind("number")
        flags: list[tuple[int, float, float]] = []
        for j, column in enumerate(schema.columns):
            found = _shares(X[:, j], share) if column.kind != "number" else [(np.nan, share[np.isnan(X[:, j])].sum())]
            # what all rows have says nothing
            flags += [(j, code, part) for code, part in found if 0 < part < 1 - 1e-12]
        columns = np.array([j for j, *_ in flags], dtype=np.intp)
        codes, parts = (np.array([flag[i] for flag in flags], dtype=np.float64) for i in (1, 2))
        scaled = X if len(numbers) == X.shape[1] else np.ascontiguousarray(X[:, numbers])
        return cls(numbers, Standardizer.fit(scaled, weight, clip, scale), columns, codes, 1 - parts, -parts)

    @property
    def width(self) -> int:
        """How many inputs a row becomes."""
        return len(self.numbers) + len(self.flagged)

    def transform(self, X: Matrix) -> Matrix:
        """Encode coded rows ``(n, d)``; sparse ones stay so where there are no flags."""
        if not isinstance(X, SparseRows):
            return self._transform(X)
        return self._transform(X.toarray()) if len(self.flagged) else self.scaling.transform_sparse(X)

    def _transform(self, X: Array) -> Array:
        numbers = X if len(self.numbers) == X.shape[1] else np.ascontiguousarray(X[:, self.numbers])
        scaled = self.scaling.transform(numbers)
        if len(self.flagged) == 0:
            return scaled
        return np.concatenate([scaled, self._flags(X)], axis=1)

    def _flags(self, X: Array) -> Array:
        out = np.empty((len(X), len(self.flagged)))
        for j, (first, last) in self._runs.items():
            column, codes = X[:, j, None], self.codes[first:last]
            hit = np.where(np.isnan(codes), np.isnan(column), column == codes)
            out[:, first:last] = np.where(hit, self.on[first:last], self.off[first:last])
            if j not in self.numbers:
                out[~hit.any(1), first:last] = 0.0
        return out

    @cached_property
    def _runs(self) -> dict[int, tuple[int, int]]:
        """Where each column's flags stand, as (first, last)."""
        ends = {}
        for j in np.unique(self.flagged):
            places = np.flatnonzero(self.flagged == j)
            ends[int(j)] = (int(places[0]), int(places[-1]) + 1)
        return ends


def _shares(column: Array, share: Array) -> list[tuple[float, float]]:
    """Each code of a column with its share of the rows; the missing ones last."""
    found = [(float(code), float(share[column == code].sum())) for code in np.unique(column[~np.isnan(column)])]
    missing = float(share[np.isnan(column)].sum())
    return [*found, (np.nan, missing)] if missing > 0 else found
