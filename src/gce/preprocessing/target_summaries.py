"""What is summed over the rows of a category and inner fold, and the statistics that are computed of these sums.

Targets are summed, and indicators of their bins or of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gce._utils.splitmix import splitmix64
from gce.preprocessing.scaling import weighted_quantiles

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Classes with a statistic of their own, the most frequent ones.
MAX_CLASSES = 10
#: Targets with a mean of their own.
MAX_TARGETS = 10
#: Bins of a target; as many distinct values have a bin each.
TARGET_BINS = 6
#: Inner folds of the training rows.
INNER_FOLDS = 5
#: Standard deviations under chance by which an F statistic must exceed 1 before categories count as different.
SIGNIFICANT = 3.0
#: Statistics are rounded to this fraction of the spread of what they summarise. A category has a slightly different
#: value in each inner fold, and a tree that could tell these apart would learn the folds.
_RESOLUTION = 2.0**-4
#: The logarithm of a count is rounded as well: sums of weights and of repeated rows differ in rounding.
_COUNT_RESOLUTION = 2.0**-10


@dataclass(frozen=True, eq=False)
class SummaryRule:
    """What is summed, of targets of any rows.

    Parameters
    ----------
    numbers : int
        Targets that are summed themselves.
    classes : array of shape (c,), optional
        Codes of classes with an indicator each.
    edges : array of shape (b - 1,), optional
        Where the bins of a target begin, but for the first; each has an indicator.
    """

    numbers: int
    classes: NDArray[np.intp] | None = None
    edges: Array | None = None

    def of(self, targets: Array) -> Array:
        """The summaries of rows: first numbers, then indicators.

        Parameters
        ----------
        targets : array of shape (n, k)
            Numbers, or codes of classes ``(n, 1)``.

        Returns
        -------
        array of shape (n, s)
        """
        if self.classes is not None:
            return np.asarray(targets == self.classes, dtype=np.float64)
        if self.edges is None:
            return targets[:, : self.numbers]
        bins = np.searchsorted(self.edges, targets[:, 0], side="left")
        return np.column_stack([targets, bins[:, None] == np.arange(len(self.edges) + 1)])


@dataclass(frozen=True, eq=False)
class Summaries:
    """What is known of the targets of rows.

    Parameters
    ----------
    targets : array of shape (N, k)
        Numbers, or codes of classes ``(N, 1)``.
    n_classes : int or None
        Number of classes; None where targets are numbers.
    weight : array of shape (N,)
        Sample weights, by which classes are frequent.
    """

    targets: Array
    n_classes: int | None
    weight: Array

    @property
    def names(self) -> tuple[str, ...]:
        """What the ``s`` summaries of a row are."""
        if self.n_classes is not None:
            return tuple(f"share of class {c}" for c in self._classes)
        k = self.targets.shape[1]
        if k > 1:
            return tuple(f"mean of target {j}" for j in range(min(k, MAX_TARGETS)))
        return ("mean", *(f"share of bin {b}" for b in range(len(self._edges(self.weight)) + 1)))

    @property
    def _classes(self) -> NDArray[np.intp]:
        assert self.n_classes is not None
        if self.n_classes == 2:
            return np.array([1])
        total = np.bincount(self.targets[:, 0].astype(np.intp), self.weight / self.weight.sum(), self.n_classes)
        # sums of weights are rounded, which must not change the order
        return np.sort(np.lexsort((np.arange(self.n_classes), -np.round(total, 12)))[:MAX_CLASSES])

    def _edges(self, weight: Array) -> Array:
        """Where the bins of a target begin, but for the first: after each distinct value, or at quantiles."""
        distinct = np.unique(self.targets)
        if len(distinct) <= TARGET_BINS:
            return (distinct[:-1] + distinct[1:]) / 2
        trained = weight > 0
        levels = np.arange(1, TARGET_BINS) / TARGET_BINS
        return weighted_quantiles(self.targets[trained], weight[trained], levels.tolist())[:, 0]

    def rule(self, weight: Array) -> SummaryRule:
        """What is summed for a member with training weights ``(N,)``.

        Parameters
        ----------
        weight : array of shape (N,)

        Returns
        -------
        SummaryRule
        """
        if self.n_classes is not None:
            return SummaryRule(0, classes=self._classes)
        if self.targets.shape[1] > 1:
            return SummaryRule(min(self.targets.shape[1], MAX_TARGETS))
        return SummaryRule(1, edges=self._edges(weight))

    def of(self, weight: Array) -> Array:
        """Summaries of all rows, for a member with training weights ``(N,)``.

        Parameters
        ----------
        weight : array of shape (N,)

        Returns
        -------
        array of shape (N, s)
        """
        return self.rule(weight).of(self.targets)


def draw_folds(units: NDArray[np.uint64]) -> Indices:
    """The inner folds of units: the same for rows of one unit.

    Parameters
    ----------
    units : array of shape (n,)

    Returns
    -------
    array of shape (n,)
    """
    return np.asarray(splitmix64(units) % np.uint64(INNER_FOLDS)).astype(np.intp)


def cells_of(index: Indices, fold: Indices) -> Indices:
    """Where the rows of categories and inner folds are summed.

    Parameters
    ----------
    index, fold : arrays of shape (n,)

    Returns
    -------
    array of shape (n,)
    """
    return index * INNER_FOLDS + fold


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums of ``s`` summaries over the rows of ``L`` categories, the last of which is that of values without a code.

    Summaries are measured from their mean over all rows, the prior, so that targets may lie far from 0.

    Parameters
    ----------
    rows : array of shape (L, F)
        Weights in rows, of each inner fold.
    sums : array of shape (L, F, s)
        Of the summaries.
    squares : array of shape (L, s)
        Of their squares.
    prior : array of shape (s,)
    spread : array of shape (s,)
        Standard deviations of the summaries.
    """

    rows: Array
    sums: Array
    squares: Array
    prior: Array
    spread: Array

    @classmethod
    def of_rows(cls, index: Indices, fold: Indices, size: int, V: Array, weight: Array) -> LevelSums:
        """The sums of rows in memory.

        Parameters
        ----------
        index, fold : arrays of shape (N,)
            The category and the inner fold of each row.
        size : int
            ``L``.
        V : array of shape (N, s)
            Summaries.
        weight : array of shape (N,)
            In rows.

        Returns
        -------
        LevelSums
        """
        cell, cells = cells_of(index, fold), size * INNER_FOLDS
        rows = np.asarray(np.bincount(cell, weight, cells), dtype=np.float64).reshape(size, INNER_FOLDS)
        prior = weight @ V / weight.sum()
        V = V - prior
        sums: Array = np.stack([np.bincount(cell, weight * v, cells) for v in V.T], axis=1)
        squares: Array = np.stack([np.bincount(index, weight * v * v, size) for v in V.T], axis=1)
        spread = np.sqrt(weight @ np.square(V) / weight.sum())
        return cls(rows, sums.reshape(size, INNER_FOLDS, -1), squares, prior, spread)

    @cached_property
    def _unit(self) -> Array:
        # a power of two: sums that differ in rounding have the same unit
        least = np.maximum(1e-12 * np.abs(self.prior), 1e-300)
        return np.asarray(_RESOLUTION * np.exp2(np.ceil(np.log2(np.maximum(self.spread, least)) - 1e-9)))

    @cached_property
    def _smoothing(self) -> Array:
        """Rows of the prior that are added to a category, ``(s,)``; infinite where categories do not differ.

        Let the mean of a category be drawn with variance ``t`` around that of all rows, and its rows with variance
        ``v`` around it. The posterior mean of ``n`` rows is ``prior + sum / (n + m)`` with ``m = v / t``. Both
        variances are those of the analysis of variance with one factor. Where its F statistic could be chance, ``t`` is
        0.
        """
        rows, sums = self.rows[:-1].sum(1), self.sums[:-1].sum(1)
        seen = rows > 0
        n, levels, sums, squares = rows[seen], int(seen.sum()), sums[seen], self.squares[:-1][seen]
        total = n.sum()
        if levels < 2 or total - levels < 1:
            return np.full(sums.shape[1], np.inf)
        mean = sums.sum(0) / total
        between = np.maximum((sums**2 / n[:, None]).sum(0) - total * mean**2, 0.0) / (levels - 1)
        within = np.maximum((squares - sums**2 / n[:, None]).sum(0), 0.0) / (total - levels)
        # the rows that a category of average size has
        size = (total - (n**2).sum() / total) / (levels - 1)
        chance = 1 + SIGNIFICANT * np.sqrt(2 / (levels - 1) + 2 / (total - levels))
        differ = (between > chance * within) & (between > 0)
        variance = np.where(differ, (between - within) / size, 1.0)
        return np.where(differ, within / variance, np.inf)

    def of_new_rows(self) -> Array:
        """The statistics of each category, ``(L, s + 1)``."""
        rows, sums = self.rows.sum(1), self.sums.sum(1)
        # those without a code are no category
        rows[-1], sums[-1] = 0.0, 0.0
        return self._shrunk(rows, sums)

    def of_folds(self) -> Array:
        """The statistics of training rows of each category and inner fold, from the others, ``(L F, s + 1)``."""
        rows = self.rows.sum(1, keepdims=True) - self.rows
        sums = self.sums.sum(1, keepdims=True) - self.sums
        rows[-1], sums[-1] = 0.0, 0.0
        return self._shrunk(rows.reshape(-1), sums.reshape(-1, sums.shape[2]))

    def _shrunk(self, rows: Array, sums: Array) -> Array:
        rows = np.where(rows > 1e-9, rows, 0.0)
        with np.errstate(invalid="ignore"):
            share = np.where(
                np.isinf(self._smoothing), 0.0, 1 / (1 + self._smoothing / np.maximum(rows, 1e-9)[:, None])
            )
        means = sums / np.maximum(rows, 1e-9)[:, None]
        found = self.prior + np.where(rows[:, None] > 0, share * means, 0.0)
        # a column of which no statistic differs is no longer looked at
        counted = rows if np.isfinite(self._smoothing).any() else np.zeros_like(rows)
        counts = np.round(np.log1p(counted) / _COUNT_RESOLUTION) * _COUNT_RESOLUTION
        return np.column_stack([np.round(found / self._unit) * self._unit, counts])
