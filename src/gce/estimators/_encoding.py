"""The encoding of a fit's rows: statistics of the target by category, scaling and indicators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing import Schema, Table
from gce.preprocessing.encoder import MAX_INDICATORS, Encoder
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.preprocessing.splits import Members, TrainingRows
from gce.preprocessing.table import expanded
from gce.preprocessing.target_statistics import StatisticsFit, TargetStatistics
from gce.preprocessing.target_summaries import Summaries
from gce.training.targets import Target

Array = NDArray[np.float64]
Groups = NDArray[Any] | None


def learn_statistics(
    sources: dict[int, int], members: Members, X: Matrix, y: Array, target: Target, groups: Groups
) -> tuple[TargetStatistics | None, Array | None]:
    """Statistics of the target, and those of the rows themselves ``(N, M p)``; None where no categories have any."""
    if not sources or isinstance(X, SparseRows):
        return None, None
    return StatisticsFit(sources, learn_summaries(members, y, target), members.train, members.count, X, groups).run()


def learn_summaries(members: Members, y: Array, target: Target) -> Summaries:
    """What is summed of encoded targets ``(N, k)``."""
    summed, classes = target.summed(y)
    return Summaries(summed, classes, (members.train * members.count[:, None]).sum(0))


def summed_targets(y: Array, target: Target) -> Array:
    """Encoded targets ``(n, k)`` as :class:`Summaries` has them: numbers, or codes of classes ``(n, 1)``."""
    return target.summed(y)[0]


def statistics_again(
    table: Table, members: Members, X: Matrix, y: Array, target: Target, groups: Groups
) -> Array | None:
    """The statistics of the rows of an earlier fit ``(N, M p)``, if these are its rows.

    None for other rows: to a model that goes on with them they are new, with the statistics that it predicts by.
    """
    known = table.statistics
    if known is None or known.members != len(members.train):
        return None
    found, own = learn_statistics(known.sizes, members, X, y, target, groups)
    return own if found is not None and found.equals(known) else None


def fit_table(
    model: Any, rows: TrainingRows, schema: Schema, statistics: TargetStatistics | None, own: Array | None
) -> Table:
    """The encoding of rows, learned from the training rows and their statistics ``(N, M p)``."""
    clip = np.inf if model.clip is None else float(model.clip)
    X = expanded(schema, rows.X, None if own is None else own[: len(rows.X)])
    numbers = np.append(schema.numbers, np.arange(schema.width, X.shape[1]))
    most = {} if statistics is None else dict.fromkeys(statistics.sources, MAX_INDICATORS)
    parts = range(len(schema.columns), schema.width)
    return Table(schema, Encoder.fit(X, rows.weight, numbers, model.scale, clip, most, parts), statistics)
