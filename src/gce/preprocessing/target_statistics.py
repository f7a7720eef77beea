"""Statistics of the target for the categories of a column, which cannot leak.

Each member has statistics of its own, from its own training rows only: the rows that it holds out see what new rows
will see. For a training row itself they are computed from the other inner folds of these rows, so that its own target
is in none of them. All statistics are shrunk to those of all rows by empirical Bayes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.splitmix import splitmix64
from gce.preprocessing.columns import Column
from gce.preprocessing.row_hashes import hash_rows
from gce.preprocessing.schema import Schema
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.preprocessing.target_summaries import LevelSums, Summaries, cells_of, draw_folds

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Hashes = NDArray[np.uint64]

#: Share of rows with a category that is not frequent, from which on a column has statistics of the target.
RARE_SHARE = 0.1
#: Share of categories whose rows differ in their targets only, beyond which inner folds may part equal rows.
MAX_UNDIVIDED = 0.2
#: What stands for a missing value where rows are hashed: no code.
_MISSING = 2.0**40


def with_statistics(schema: Schema, X: Matrix, weight: Array) -> dict[int, int]:
    """The columns that have statistics of the target: those where many rows have a category that is not frequent.

    Frequent categories are split by trees as they are, which is better than a number in their place, and beside it the
    number only adds noise (benchmarks/results/category_statistics.md).

    Parameters
    ----------
    schema : Schema
        All columns.
    X : array or SparseRows of shape (n, d)
        Encoded training rows; sparse ones have no categories.
    weight : array of shape (n,)
        Sample weights.

    Returns
    -------
    dict of int to int
        The indices of the columns, and how many categories with a code each has.
    """
    if isinstance(X, SparseRows):
        return {}
    return {
        j: len(column.categories)
        for j, column in enumerate(schema.columns)
        if len(column.categories) > 1 and _rare_share(column, X[:, j], weight) >= RARE_SHARE
    }


def _rare_share(column: Column, codes: Array, weight: Array) -> float:
    rare = (codes >= len(column.frequent)) | (codes < 0)
    return float(weight[rare].sum() / weight.sum())


def positions(codes: Array, size: int) -> Indices:
    """Where the statistics of codes are: of missing values after all codes, of no category last.

    Parameters
    ----------
    codes : array of shape (n,)
    size : int
        How many codes there are.

    Returns
    -------
    array of shape (n,)
    """
    return np.where(np.isnan(codes), size, np.where(codes < 0, size + 1, codes)).astype(np.intp)


def name_rows(X: Array) -> Hashes:
    """Hashes of what encoded rows hold, without their targets.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    array of shape (n,)
    """
    return hash_rows(np.nan_to_num(X, nan=_MISSING))


@dataclass(frozen=True, eq=False)
class TargetStatistics:
    """Statistics of the target by category, for ``M`` members.

    Parameters
    ----------
    sources : tuple of int
        The columns whose categories have statistics.
    names : tuple of str
        What the ``s`` statistics of a category are.
    values : tuple of arrays of shape (M, L + 2, s)
        Of each source the statistics of its ``L`` codes, of missing values, and of categories without a code.
    """

    sources: tuple[int, ...]
    names: tuple[str, ...]
    values: tuple[Array, ...]

    @property
    def members(self) -> int:
        """The number of members."""
        return len(self.values[0])

    @property
    def sizes(self) -> dict[int, int]:
        """The sources, and how many codes each has."""
        return {j: own.shape[1] - 2 for j, own in zip(self.sources, self.values, strict=True)}

    @cached_property
    def owner(self) -> Indices:
        """The member that each column of statistics belongs to, ``(M p,)``."""
        return np.repeat(np.arange(self.members), len(self.sources) * len(self.names))

    @cached_property
    def columns(self) -> Indices:
        """The column of the table that each column of statistics is made of, ``(M p,)``."""
        return np.tile(np.repeat(self.sources, len(self.names)), self.members)

    def column_names(self, names: Sequence[str]) -> list[str]:
        """Names of the columns of statistics, from those of the table's columns."""
        own = [f"{names[j]}: {name}" for j in self.sources for name in self.names]
        return [f"{name} (member {m})" for m in range(self.members) for name in own]

    def transform(self, X: Array) -> Array:
        """The statistics of encoded rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Codes of categories in the columns of the sources.

        Returns
        -------
        array of shape (n, M p)
            All statistics of the first member, then those of the next.
        """
        at = [positions(X[:, j], size) for j, size in self.sizes.items()]
        parts = [own[m][index] for m in range(self.members) for own, index in zip(self.values, at, strict=True)]
        return np.concatenate(parts, axis=1)

    def equals(self, other: TargetStatistics) -> bool:
        """Whether statistics are the same, to the bit.

        Parameters
        ----------
        other : TargetStatistics
        """
        pairs = zip(self.values, other.values, strict=False)
        same = (self.sources, self.names) == (other.sources, other.names)
        return same and all(np.array_equal(own, its) for own, its in pairs)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""
        meta = {"names": list(self.names), "columns": list(self.sources)}
        return meta, {f"values.{i}": own for i, own in enumerate(self.values)}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TargetStatistics:
        """Restore statistics from their state.

        Raises
        ------
        ValueError
            The parts of the state are inconsistent.
        """
        sources, names = tuple(map(int, meta["columns"])), tuple(map(str, meta["names"]))
        found = cls(sources, names, tuple(arrays[f"values.{i}"] for i in range(len(sources))))
        shapes = {(own.ndim, own.dtype, len(own), own.shape[-1]) for own in found.values}
        finite = all(bool(np.isfinite(own).all()) for own in found.values)
        if len(shapes) != 1 or not finite or found.values[0].ndim != 3 or found.values[0].shape[2] != len(names):
            raise ValueError("the statistics of categories are inconsistent")
        return found


@dataclass(frozen=True, eq=False)
class StatisticsFit:
    """The statistics of a fit's rows.

    Parameters
    ----------
    sizes : dict of int to int
        The columns that have statistics, and how many codes each has.
    summaries : Summaries
        What is known of the targets of ``N`` rows.
    train : array of shape (M, N)
        Training weights of each member, which sum to 1.
    count : array of shape (M,)
        How many rows they represent.
    X : array of shape (N, d)
        Encoded rows.
    groups : array of shape (n,), optional
        Groups of the first rows, which inner folds keep together as folds do.
    """

    sizes: dict[int, int]
    summaries: Summaries
    train: Array
    count: Array
    X: Array = field(repr=False)
    groups: NDArray[Any] | None = None

    @cached_property
    def _names(self) -> tuple[Hashes, Hashes]:
        """Hashes of what rows hold, without their targets and with them, ``(N,)`` each."""
        X = np.nan_to_num(self.X, nan=_MISSING)
        return name_rows(self.X), hash_rows(np.column_stack([X, self.summaries.targets]))

    def inner_folds(self, trained: NDArray[np.bool_]) -> Indices:
        """The inner fold of each row, ``(N,)``, for a member that trains on some of them.

        Rows that are equal but for their targets are in the same fold, however often they are repeated. By their
        targets they must not be parted: those of one target alone would have no row of it in the other folds, and
        their statistics would tell it. Where categories have too few different rows for that, each row is drawn by
        itself. Groups stay
        together: of a group that is held out as a whole, a member knows nothing but what it shares with others.

        Parameters
        ----------
        trained : array of shape (N,)

        Returns
        -------
        array of shape (N,)
            0 for other rows.
        """
        fold = np.zeros(len(trained), np.intp)
        fold[trained] = draw_folds(self._units(trained))
        return fold

    def _units(self, trained: NDArray[np.bool_]) -> Hashes:
        """What each training row is drawn by: rows with the same number are in the same inner fold."""
        if self.groups is not None:
            codes = np.unique(self.groups, return_inverse=True)[1].astype(np.uint64)
            return codes[trained[: len(codes)]]
        rows, with_targets = (own[trained] for own in self._names)
        if self.parts_equal_rows(trained):
            return with_targets ^ splitmix64(_occurrences(with_targets))
        return rows

    def parts_equal_rows(self, trained: NDArray[np.bool_]) -> bool:
        """Whether categories have too few different rows for inner folds that keep equal rows together.

        Parameters
        ----------
        trained : array of shape (N,)

        Returns
        -------
        bool
        """
        return self._undivided(trained) > MAX_UNDIVIDED

    def _undivided(self, trained: NDArray[np.bool_]) -> float:
        """The share of categories whose rows differ in nothing but their targets, of those that have different rows.

        All rows of such a category would be in one inner fold, and none would know anything of it. Copies of a row do
        not count: a row of weight 2 is two rows.
        """
        first = np.unique(self._names[1][trained], return_index=True)[1]
        unit, share = np.unique(self._names[0][trained][first], return_inverse=True)[1], 0.0
        for j, size in self.sizes.items():
            level = positions(self.X[trained, j], size)[first]
            pairs = np.bincount(level, minlength=size + 2)[: size + 1]
            units = np.bincount(np.unique(level * len(first) + unit) // len(first), minlength=size + 2)
            several = pairs > 1
            if several.any():
                share = max(share, float((units[: size + 1][several] == 1).mean()))
        return share

    def run(self) -> tuple[TargetStatistics, Array]:
        """Fit statistics, and return those of the rows themselves.

        Returns
        -------
        statistics : TargetStatistics
        columns : array of shape (N, M p)
            Each member's own: of its training rows from the other inner folds, of all other rows as they will be of
            new ones.
        """
        names = (*self.summaries.names, "count")
        values: list[list[Array]] = [[] for _ in self.sizes]
        columns = []
        at = [positions(self.X[:, j], size) for j, size in self.sizes.items()]
        for weight, count in zip(self.train, self.count, strict=True):
            V, fold = self.summaries.of(weight), self.inner_folds(weight > 0)
            for own, size, index in zip(values, self.sizes.values(), at, strict=True):
                sums = LevelSums.of_rows(index, fold, size + 2, V, weight * count)
                own.append(sums.of_new_rows())
                inner = sums.of_folds()[cells_of(index, fold)]
                columns.append(np.where((weight > 0)[:, None], inner, own[-1][index]))
        statistics = TargetStatistics(tuple(self.sizes), names, tuple(np.stack(own) for own in values))
        return statistics, np.concatenate(columns, axis=1)


def _occurrences(names: Hashes) -> Hashes:
    """How many equal names are before each of them, ``(n,)``."""
    order = np.argsort(names, kind="stable")
    begins = np.concatenate([[True], names[order][1:] != names[order][:-1]])
    place = np.arange(len(names))
    counted = np.empty(len(names), np.uint64)
    counted[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return counted
