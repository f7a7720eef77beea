"""Reports of tasks whose answers are neither one number nor one class: times until an event, several labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gce._utils.params import counted
from gce.inspection.report import columns, fitted, importance, timing, training, weights
from gce.inspection.report.charts import Line, line_chart
from gce.inspection.report.evaluation import Array, Evaluation, name_of
from gce.inspection.report.markup import Markup, Section, card, percent, shown, table
from gce.inspection.report.measures import Measure
from gce.inspection.report.scales import fitting
from gce.preprocessing.survival import nelson_aalen
from gce.training.metrics import concordance_index, label_log_losses, of_labels

#: Groups of rows by their risk, and how they are drawn.
_GROUPS = (("lowest risks", "c0"), ("middle", "c1"), ("highest risks", "c2"))
#: Rows of a group whose survival functions are averaged.
_MOST_ROWS = 2000
#: Labels that are listed.
_MOST_LABELS = 50


def sections(evaluation: Evaluation) -> list[Section | None]:
    """The sections of such a report, the most important first."""
    own = _labels if evaluation.classifies else _survival
    usual = (training, importance, weights, columns, timing)
    return [fitted.section(evaluation), own(evaluation), *(part.section(evaluation) for part in usual)]


def answers(evaluation: Evaluation) -> str:
    """What is predicted, in words."""
    return counted(evaluation.y.shape[1], "label") if evaluation.classifies else "times until an event"


def measures(evaluation: Evaluation) -> list[Measure]:
    """The metrics of such a report, the most important first."""
    return _of_labels(evaluation) if evaluation.classifies else _of_times(evaluation)


def _of_times(evaluation: Evaluation) -> list[Measure]:
    share = evaluation.mean(evaluation.y[:, 0])
    found = concordance_index(evaluation.y, evaluation.predicted, evaluation.weight)
    cost, alone = (
        evaluation.mean(evaluation.losses_of(scores, evaluation.target))
        for scores in (evaluation.scores, evaluation.model.ensemble_.offset.expand(evaluation.rows, -1))
    )
    return [
        Measure("Concordance", shown(found, 3), "0.5 is chance, 1 the right order of all pairs", found),
        Measure("Loss", shown(cost), f"{name_of(evaluation.model.loss_)}; offset alone: {shown(alone)}", cost),
        Measure("Events", percent(share), "of the rows; the others are censored", share),
    ]


def _survival(evaluation: Evaluation) -> Section:
    times, risk = evaluation.model.event_times_, evaluation.predicted
    thirds = _groups(risk, evaluation.weight)
    lines = []
    for rows, (words, look) in zip(thirds, _GROUPS, strict=True):
        if len(rows):
            some = rows[:: max(1, len(rows) // _MOST_ROWS)]
            predicted = evaluation.model.survival_from_raw(evaluation.scores[some], times)
            mean = np.average(predicted, axis=0, weights=evaluation.weight_of(some))
            lines += [
                Line(words, times, mean, look),
                Line("", times, _observed(evaluation.y[rows], evaluation.weight_of(rows), times), f"faint {look}"),
            ]
    chart = line_chart(
        lines,
        fitting([0.0], times),
        fitting([0.0, 1.0]),
        name="survival",
        words="mean predicted survival of thirds of the rows by their risk, and what was observed",
        x_label="time",
        y_label="without an event",
    )
    note = "Thirds of the rows by their predicted risk. Bold: predicted, on average. Thin: observed (Nelson-Aalen)."
    return Section(
        "survival",
        "Survival",
        "Predicted and observed survival on the given rows.",
        [card("Survival", chart, note=note)],
    )


def _groups(risk: Array, weight: Array | None) -> list[NDArray[np.intp]]:
    """Rows in groups of equal weight, those of the lowest risk first."""
    order = np.argsort(risk, kind="stable")
    if weight is None:
        return np.array_split(order, len(_GROUPS))
    # the middle of a row's weight decides, so that weights of 1 are as none
    middle = np.cumsum(weight[order]) - weight[order] / 2
    ends = np.arange(1, len(_GROUPS)) / len(_GROUPS) * weight.sum()
    return np.split(order, np.searchsorted(middle, ends))


def _observed(y: Array, weight: Array | None, times: Array) -> Array:
    """The share of rows without an event until some times, by the cumulative hazard of all of them."""
    if not y[:, 0].any():
        return np.ones(len(times))
    at, hazard = nelson_aalen(y, weight)
    return np.exp(-np.append(0.0, hazard)[np.searchsorted(at, times, side="right")])


def _of_labels(evaluation: Evaluation) -> list[Measure]:
    y, weight, probability = evaluation.y, evaluation.weight, evaluation.probability
    assert probability is not None
    found = of_labels(y, evaluation.predicted, probability, weight)
    wrong, rows, cost = found["wrong_labels"], found["wrong_rows"], found["log_loss"]
    share = np.average(y, axis=0, weights=weight)
    never = float(np.mean(np.minimum(share, 1 - share)))
    return [
        Measure("Wrong labels", percent(wrong), f"the commoner answer for each label: {percent(never)}", wrong),
        Measure("Rows with a wrong label", percent(rows), f"of {y.shape[1]} labels", rows),
        Measure("Log-loss", shown(cost), "of a label, on average", cost),
    ]


def _labels(evaluation: Evaluation) -> Section:
    rows = []
    assert evaluation.probability is not None
    costs = label_log_losses(evaluation.y, evaluation.probability, evaluation.weight)
    for j in range(min(evaluation.y.shape[1], _MOST_LABELS)):
        y, weight = evaluation.y[:, j], evaluation.weight
        wrong = evaluation.mean(y != evaluation.predicted[:, j])
        both = 0 < y.mean() < 1
        area = shown(float(roc_auc_score(y, evaluation.probability[:, j], sample_weight=weight)), 3) if both else "none"
        rows.append([f"label {j}", percent(evaluation.mean(y)), percent(wrong), shown(float(costs[j])), area])
    body: Markup = table(["label", "frequency", "error", "log-loss", "ROC AUC"], rows, caption="Errors by label")
    return Section("labels", "Labels", "Each label on the given rows.", [card("Errors by label", body, wide=True)])
