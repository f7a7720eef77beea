"""Permutation importance of columns, on a sample of the rows."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.inspection import permutation_importance

from gce._utils.params import counted
from gce.inspection.report.charts import level
from gce.inspection.report.evaluation import Array, Evaluation, name_of
from gce.inspection.report.markup import Section, card, rounded, seconds, table, tag
from gce.losses import Squared

#: Columns listed; most rows and repeats; seconds to spend, and seconds beyond which nothing is computed.
_LISTED, _ROWS, _REPEATS = 20, 1000, 5
_SECONDS, _TOO_LONG = 4.0, 30.0


def section(evaluation: Evaluation) -> Section:
    """The rise of the loss when a column is shuffled, or a note that it would take too long."""
    if evaluation.external:
        name = evaluation.external[0].unstorable_name
        words = f"Not computed: {name} predicts from original rows, not from encoded columns."
        return Section("importance", "Column importance", words, [])
    names = evaluation.sheet.names
    sample, repeats, one = _budget(evaluation)
    if repeats == 0:
        columns, time_ = counted(len(names), "column"), seconds(one)
        words = f"Not computed: shuffling each of {columns} once would take {time_} on {counted(len(sample), 'row')}."
        return Section("importance", "Column importance", words, [])
    found = permutation_importance(
        evaluation.model,
        _places(evaluation, sample),
        evaluation.target[sample],
        scoring=_NegativeLoss(evaluation, sample),
        n_repeats=repeats,
        random_state=0,
        sample_weight=evaluation.weight_of(sample),
    )
    mean, spread = found.importances_mean, found.importances_std
    unit = "RMSE" if isinstance(evaluation.model.loss_, Squared) else name_of(evaluation.model.loss_)
    order = np.argsort(-mean, kind="stable")[:_LISTED]
    widest = max(float((mean + spread)[order].max()), 1e-300)
    rows = []
    for j in order.tolist():
        ends = ((mean[j] - spread[j]) / widest, (mean[j] + spread[j]) / widest)
        figures = f"{rounded(mean[j], spread[j])} ± {rounded(spread[j], spread[j])}"
        rows.append([names[j], level(mean[j] / widest, ends), figures])
    body = table(["column", "", f"rise of {unit}"], rows, caption="Permutation importance", class_="levels long")
    note = f"On {counted(len(sample), 'row')}, {repeats} shuffles per column; whiskers are one standard deviation."
    if len(order) < len(mean):
        note += f" The {len(order)} most important of {len(mean):,} columns."
    lead = (
        f"How much the {unit} rises when a column is shuffled. Correlated columns share their importance "
        "and can all look unimportant."
    )
    cards = [card("Permutation importance", tag("div", body, data_chart="importance"), note=note, wide=True)]
    return Section("importance", "Column importance", lead, cards)


def _places(evaluation: Evaluation, sample: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each row of a sample and each column, the row that its value is taken from: its own, ``(m, d)``."""
    return np.repeat(np.arange(len(sample))[:, None], len(evaluation.sheet.names), axis=1)


class _NegativeLoss:
    """A scorer on places of values ``(m, d)`` in encoded rows: the negative loss, and for squared error its root.

    A column is shuffled together with its parts.
    """

    def __init__(self, evaluation: Evaluation, sample: NDArray[np.intp]) -> None:
        self._trial, self._coded = evaluation, evaluation.coded[sample]
        schema = evaluation.model.table_.schema
        self._sources = np.append(np.arange(len(schema.columns)), schema.part_sources)

    def __call__(
        self, model: Any, places: NDArray[np.intp], target: Array, sample_weight: Array | None = None
    ) -> float:
        coded = np.take_along_axis(self._coded, places[:, self._sources], axis=0)
        losses = self._trial.losses_of(self._trial.scores_of(coded) / self._trial.temperature, target)
        mean = float(np.average(losses, weights=sample_weight))
        return -(mean**0.5) if isinstance(model.loss_, Squared) else -mean


def _budget(evaluation: Evaluation) -> tuple[NDArray[np.intp], int, float]:
    """Rows and repeats within the time budget, and the seconds that one shuffle of each column takes."""
    for most in (_ROWS, _ROWS // 4):
        sample = evaluation.sample_rows(most)
        score, places, one = _NegativeLoss(evaluation, sample), _places(evaluation, sample), math.inf
        # the faster of two calls: the first may compile
        for _ in range(2):
            start = time.perf_counter()
            score(evaluation.model, places, evaluation.target[sample])
            one = min(one, (time.perf_counter() - start) * places.shape[1])
        if 2 * one <= _SECONDS:
            return sample, min(_REPEATS, int(_SECONDS / one)), one
    return sample, 2 if 2 * one <= _TOO_LONG else 0, one
