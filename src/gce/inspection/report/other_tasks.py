"""Reports of tasks whose answers are neither one number nor one class: times until an event, several labels."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import hamming_loss, log_loss, roc_auc_score, zero_one_loss

from gce.inspection.harrell import concordance_index
from gce.inspection.report import columns, fitted, importance, timing, training, weights
from gce.inspection.report.charts import Line, line_chart
from gce.inspection.report.evaluation import Array, Evaluation, name_of
from gce.inspection.report.markup import Markup, Section, card, counted, percent, shown, table
from gce.inspection.report.measures import Measure
from gce.inspection.report.scales import fitting
from gce.preprocessing.survival import nelson_aalen

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
    weight, events = evaluation.weight, evaluation.y[:, 0]
    found = concordance_index(evaluation.y, evaluation.predicted, weight)
    cost, alone = (
        evaluation.mean(evaluation.losses_of(scores, evaluation.target))
        for scores in (evaluation.scores, evaluation.model.ensemble_.offset.expand(evaluation.rows, -1))
    )
    return [
        Measure("Concordance", shown(found, 3), "0.5 is chance, 1 the right order of all pairs", found),
        Measure("Loss", shown(cost), f"{name_of(evaluation.model.loss_)}; offset alone: {shown(alone)}", cost),
        Measure("Events", percent(evaluation.mean(events)), "of the rows; the others are censored", events.mean()),
    ]


def _survival(evaluation: Evaluation) -> Section:
    times, risk = evaluation.model.event_times_, evaluation.predicted
    thirds = np.array_split(np.argsort(risk, kind="stable"), len(_GROUPS))
    lines = []
    for rows, (words, look) in zip(thirds, _GROUPS, strict=True):
        if len(rows):
            some = rows[:: max(1, len(rows) // _MOST_ROWS)]
            predicted = evaluation.model.survival_from_raw(evaluation.scores[some], times)
            mean = np.average(predicted, axis=0, weights=evaluation.weight_of(some))
            lines += [
                Line(words, times, mean, look),
                Line("", times, _observed(evaluation.y[rows], times), f"faint {look}"),
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


def _observed(y: Array, times: Array) -> Array:
    """The share of rows without an event until some times, by the cumulative hazard of all of them."""
    if not y[:, 0].any():
        return np.ones(len(times))
    at, hazard = nelson_aalen(y)
    return np.exp(-np.append(0.0, hazard)[np.searchsorted(at, times, side="right")])


def _of_labels(evaluation: Evaluation) -> list[Measure]:
    y, weight, probability = evaluation.y, evaluation.weight, evaluation.probability
    assert probability is not None
    wrong = float(hamming_loss(y, evaluation.predicted, sample_weight=weight))
    rows = float(zero_one_loss(y, evaluation.predicted, sample_weight=weight))
    never = float(np.average(np.minimum(y.mean(0), 1 - y.mean(0))))
    cost = float(np.mean([_log_loss(evaluation, j) for j in range(y.shape[1])]))
    return [
        Measure("Wrong labels", percent(wrong), f"the commoner answer for each label: {percent(never)}", wrong),
        Measure("Rows with a wrong label", percent(rows), f"of {y.shape[1]} labels", rows),
        Measure("Log-loss", shown(cost), "of a label, on average", cost),
    ]


def _log_loss(evaluation: Evaluation, label: int) -> float:
    assert evaluation.probability is not None
    p = evaluation.probability[:, label]
    both = np.column_stack([1 - p, p])
    return float(log_loss(evaluation.y[:, label], both, sample_weight=evaluation.weight, labels=[0, 1]))


def _labels(evaluation: Evaluation) -> Section:
    rows = []
    assert evaluation.probability is not None
    for j in range(min(evaluation.y.shape[1], _MOST_LABELS)):
        y, weight = evaluation.y[:, j], evaluation.weight
        wrong = float(zero_one_loss(y, evaluation.predicted[:, j], sample_weight=weight))
        both = 0 < y.mean() < 1
        area = shown(float(roc_auc_score(y, evaluation.probability[:, j], sample_weight=weight)), 3) if both else "none"
        rows.append([f"label {j}", percent(evaluation.mean(y)), percent(wrong), shown(_log_loss(evaluation, j)), area])
    body: Markup = table(["label", "frequency", "error", "log-loss", "ROC AUC"], rows, caption="Errors by label")
    return Section("labels", "Labels", "Each label on the given rows.", [card("Errors by label", body, wide=True)])
