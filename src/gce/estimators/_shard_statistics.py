"""Statistics of the target by category, from all training rows of shards: one more pass where some column has them.

Sums over the rows of a category and an inner fold are integers, so that they have the same bits for any number of
processes. The inner fold of a row depends on what it holds, on its group or on its number, not on who reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gce.distributed.exact_sums import ExactSums
from gce.estimators._encoding import learn_statistics, learn_summaries, summed_targets
from gce.estimators._shard_blocks import Block, ShardReader
from gce.estimators._shard_choice import Chosen
from gce.estimators._validation import EncodedRows
from gce.preprocessing import read_frame
from gce.preprocessing.splits import Members
from gce.preprocessing.target_statistics import StatisticsFit, TargetStatistics, name_rows, positions
from gce.preprocessing.target_summaries import INNER_FOLDS, LevelSums, SummaryRule, cells_of, draw_folds
from gce.training.targets import class_codes

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Hashes = NDArray[np.uint64]


class RowStatistics(Protocol):
    """Statistics of training rows, in which their own targets are not."""

    def of_training_rows(self, X: Array, block: Block) -> Array:
        """The statistics ``(n, p)`` of the encoded rows ``(n, d)`` of a block."""


@dataclass(frozen=True, eq=False)
class KnownStatistics:
    """Those of rows that are all in memory.

    Parameters
    ----------
    number : array of shape (N,)
        Of each row among all rows, ascending.
    own : array of shape (N, p)
    """

    number: Hashes
    own: Array

    def of_training_rows(self, X: Array, block: Block) -> Array:
        return self.own[np.searchsorted(self.number, block.number)]


@dataclass(frozen=True, eq=False)
class InnerFolds:
    """The inner folds of rows, wherever they are read.

    Parameters
    ----------
    columns : int
        Rows are told apart by so many encoded columns, the table's own.
    by_number : bool
        Categories have too few different rows for that: each row is drawn by itself.
    """

    columns: int
    by_number: bool

    def of(self, X: Array, number: Hashes, group: Hashes | None) -> Indices:
        """The inner folds ``(n,)`` of encoded rows, of which those of a group stay together.

        Parameters
        ----------
        X : array of shape (n, d)
        number : array of shape (n,)
            Of each row among all rows.
        group : array of shape (n,) or None
        """
        if group is not None:
            return draw_folds(group)
        return draw_folds(number if self.by_number else name_rows(X[:, : self.columns]))


@dataclass(frozen=True, eq=False)
class FoldStatistics:
    """Those of rows of which most are in files: by category and inner fold.

    Parameters
    ----------
    sizes : dict of int to int
        The columns that have statistics, and how many codes each has.
    inner : list of arrays of shape ((L + 2) F, s)
        Of each of these columns the statistics of each code, of missing values, and of no code, in each inner fold.
    folds : InnerFolds
    """

    sizes: dict[int, int]
    inner: list[Array]
    folds: InnerFolds

    def of_training_rows(self, X: Array, block: Block) -> Array:
        return self.of(X, self.folds.of(X, block.number, block.group))

    def of(self, X: Array, fold: Indices) -> Array:
        """The statistics ``(n, p)`` of encoded rows ``(n, d)`` in inner folds ``(n,)``."""
        columns = zip(self.sizes.items(), self.inner, strict=True)
        return np.concatenate([own[cells_of(positions(X[:, j], size), fold)] for (j, size), own in columns], axis=1)


Learned = tuple[TargetStatistics | None, Array | None, RowStatistics | None]


def learn_from_shards(
    reader: ShardReader, chosen: Chosen, encoded: EncodedRows, members: Members, sources: dict[int, int]
) -> Learned:
    """Statistics of the target from all training rows.

    Parameters
    ----------
    reader : ShardReader
    chosen : Chosen
        The rows in memory.
    encoded : EncodedRows
        The same.
    members : Members
        The one member that there is.
    sources : dict of int to int
        The columns that have statistics, and how many codes each has.

    Returns
    -------
    statistics : TargetStatistics or None
        None where no column has any.
    columns : array of shape (N, p) or None
        Those of the rows in memory.
    of_rows : RowStatistics or None
        Those of all training rows.
    """
    rows, schema, target = encoded.rows, encoded.schema, encoded.target
    if not sources or chosen.roles.sampled >= 1:
        found, own = learn_statistics(sources, members, rows.X, rows.target, target, rows.groups)
        return found, own, None if own is None else KnownStatistics(chosen.number, own)
    assert isinstance(rows.X, np.ndarray)
    summaries, trained, width = learn_summaries(members, rows.target, target), members.train[0] > 0, len(schema.columns)
    told_apart = StatisticsFit(sources, summaries, members.train, members.count, rows.X[:, :width])
    folds = InnerFolds(width, chosen.group is None and told_apart.parts_equal_rows(trained))
    rule = summaries.rule(members.train[0])
    levels = _Pass(reader, chosen, encoded, sources, folds, rule).run()
    statistics = TargetStatistics(
        tuple(sources), (*summaries.names, "count"), tuple(own.of_new_rows()[None] for own in levels)
    )
    of_rows = FoldStatistics(sources, [own.of_folds() for own in levels], folds)
    inner = of_rows.of(rows.X, folds.of(rows.X, chosen.number, chosen.group))
    return statistics, np.where(trained[:, None], inner, statistics.transform(rows.X)), of_rows


class _Pass:
    """Sums over the training rows, and what they are measured in.

    A row has the numbers ``w``, ``w u`` of targets ``u``, ``w b`` of indicators ``b``, and ``w u^2``, all between -1
    and 1: weights in units of a power of two that exceeds them, and so are targets, from their mean in the sample.
    """

    def __init__(
        self,
        reader: ShardReader,
        chosen: Chosen,
        encoded: EncodedRows,
        sizes: dict[int, int],
        folds: InnerFolds,
        rule: SummaryRule,
    ) -> None:
        rows, self._schema, self._target = encoded.rows, encoded.schema, encoded.target
        self._reader, self._chosen, self._sizes, self._folds, self._rule = reader, chosen, sizes, folds, rule
        self._factors = chosen.class_factors(self._target)
        self._unit = _power_of_two(np.array(chosen.range_weight[1] * np.max(self._factors)))
        self._centre, self._scale = np.zeros(rule.numbers), np.ones(rule.numbers)
        if rule.numbers:
            assert chosen.range_y is not None
            self._centre = rows.target[:, : rule.numbers].mean(0)
            self._scale = _power_of_two(np.abs(chosen.range_y[:, : rule.numbers] - self._centre).max(0))
        n, summaries = int(chosen.counts.sum()), rule.of(summed_targets(rows.target[:1], self._target)).shape[1]
        #: Of weights and of their squares.
        self._weights = ExactSums(1, 2, n)
        columns = 1 + summaries + rule.numbers
        self._sums = [ExactSums((size + 2) * INNER_FOLDS, columns, n) for size in sizes.values()]

    def run(self) -> list[LevelSums]:
        """Read all rows, and add up those of all processes."""
        for block in self._chosen.training_blocks(self._reader):
            self._add(block)
        world = self._reader.world
        ((total, squares),) = self._weights.total(world).tolist()
        # weights in rows: only proportions matter where they count as fewer rows than there are
        per_unit = max(float(self._unit), total / squares)
        return [self._levels(sums.total(world), per_unit) for sums in self._sums]

    def _add(self, block: Block) -> None:
        X = self._schema.encode_columns(read_frame(block.features))
        y = self._target.encode(block.y)
        fold = self._folds.of(X, block.number, block.group)
        factors = self._factors if isinstance(self._factors, float) else self._factors[class_codes(y)]
        weight = (block.weight * factors / self._unit)[:, None]
        V = self._rule.of(summed_targets(y, self._target))
        u = (V[:, : self._rule.numbers] - self._centre) / self._scale
        numbers = np.column_stack([weight, weight * u, weight * V[:, self._rule.numbers :], weight * u * u])
        self._weights.add(np.zeros(len(X), np.intp), np.column_stack([weight, weight * weight]))
        for sums, (j, size) in zip(self._sums, self._sizes.items(), strict=True):
            sums.add(cells_of(positions(X[:, j], size), fold), numbers)

    def _levels(self, total: Array, per_unit: float) -> LevelSums:
        """The sums ``((L + 2) F, c)`` of a column, measured in rows and in targets, from the mean of all rows."""
        k = self._rule.numbers
        shares = total.shape[1] - 1 - 2 * k
        scale = np.concatenate([self._scale, np.ones(shares)])
        cells = per_unit * total.reshape(-1, INNER_FOLDS, total.shape[1])
        rows, sums = cells[:, :, 0], cells[:, :, 1 : 1 + k + shares] * scale
        mean = sums.sum((0, 1)) / rows.sum()
        # an indicator is its own square
        squares = np.concatenate([cells[:, :, 1 + k + shares :] * self._scale**2, sums[:, :, k:]], axis=2).sum(1)
        squares += mean**2 * rows.sum(1)[:, None] - 2 * mean * sums.sum(1)
        prior = mean + np.concatenate([self._centre, np.zeros(shares)])
        spread = np.sqrt(np.maximum(squares.sum(0), 0.0) / rows.sum())
        return LevelSums(rows, sums - rows[:, :, None] * mean, np.maximum(squares, 0.0), prior, spread)


def _power_of_two(numbers: Array) -> Array:
    """The power of two above each number, of any shape; 1 for 0."""
    return np.where(numbers > 0, np.ldexp(1.0, np.frexp(numbers)[1]), 1.0)
