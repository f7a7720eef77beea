"""Which columns the model leans on: scikit-learn's permutation importance, on some rows."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.inspection import permutation_importance

from gce.losses import Squared
from gce.report.charts import level
from gce.report.markup import Section, card, counted, rounded, seconds, table, tag
from gce.report.trial import Array, Trial, name_of

#: Columns listed; rows and repeats at most; seconds that may be spent, and those beyond which nothing is shown.
_LISTED, _ROWS, _REPEATS = 20, 1000, 5
_SECONDS, _TOO_LONG = 4.0, 30.0


def section(trial: Trial) -> Section:
    """How much worse the model gets when a column is shuffled; where that would take too long, that it would."""
    if trial.guests:
        words = (
            f"Left out: {trial.guests[0].foreign} answers for whole rows as they are given, not for shuffled columns."
        )
        return Section("importance", "Columns that matter", words, [])
    score = _Goodness(trial)
    some, repeats, one = _budget(trial, score)
    if repeats == 0:
        columns, time_ = counted(trial.coded.shape[1], "column"), seconds(one)
        words = f"Left out: to shuffle each of {columns} once would take {time_} on {counted(len(some), 'row')}."
        return Section("importance", "Columns that matter", words, [])
    found = permutation_importance(
        trial.model,
        trial.coded[some],
        trial.target[some],
        scoring=score,
        n_repeats=repeats,
        random_state=0,
        sample_weight=trial.weight_of(some),
    )
    mean, spread = found.importances_mean, found.importances_std
    unit = "RMSE" if isinstance(trial.model.loss_, Squared) else name_of(trial.model.loss_)
    order = np.argsort(-mean, kind="stable")[:_LISTED]
    widest = max(float((mean + spread)[order].max()), 1e-300)
    rows = []
    for j in order.tolist():
        ends = ((mean[j] - spread[j]) / widest, (mean[j] + spread[j]) / widest)
        figures = f"{rounded(mean[j], spread[j])} ± {rounded(spread[j], spread[j])}"
        rows.append([trial.sheet.names[j], level(mean[j] / widest, ends), figures])
    body = table(["column", "", f"rise of {unit}"], rows, caption="Permutation importance", class_="levels long")
    note = f"On {counted(len(some), 'row')}, {repeats} shuffles each; whiskers are one standard deviation of these."
    if len(order) < len(mean):
        note += f" The {len(order)} most important of {len(mean):,} columns."
    lead = (
        f"How much the {unit} rises when one column is shuffled. Columns that say the same share what they are worth, "
        "and can all look unimportant."
    )
    cards = [card("Permutation importance", tag("div", body, data_chart="importance"), note=note, wide=True)]
    return Section("importance", "Columns that matter", lead, cards)


class _Goodness:
    """A scorer on coded rows: the loss, its sign turned, in the target's unit where it is a squared error."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def __call__(self, model: Any, coded: Array, target: Array, sample_weight: Array | None = None) -> float:
        costs = self._trial.costs_of(self._trial.scores_of(coded) / self._trial.temperature, target)
        mean = float(np.average(costs, weights=sample_weight))
        return -(mean**0.5) if isinstance(model.loss_, Squared) else -mean


def _budget(trial: Trial, score: _Goodness) -> tuple[NDArray[np.intp], int, float]:
    """Rows and repeats that keep the work within seconds, and the seconds that one shuffle of each column takes."""
    for most in (_ROWS, _ROWS // 4):
        some = trial.some(most)
        one = math.inf
        # the first call warms up: the faster of two
        for _ in range(2):
            began = time.perf_counter()
            score(trial.model, trial.coded[some], trial.target[some])
            one = min(one, (time.perf_counter() - began) * trial.coded.shape[1])
        if 2 * one <= _SECONDS:
            return some, min(_REPEATS, int(_SECONDS / one)), one
    return some, 2 if 2 * one <= _TOO_LONG else 0, one
