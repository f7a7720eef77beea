"""Whether probabilities are calibrated: for the predicted class, and class by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.inspection.report.charts import Line, guide, line_chart
from gce.inspection.report.evaluation import Array, Predictions
from gce.inspection.report.markup import Markup, card, percent, short, shown, tag
from gce.inspection.report.scales import Scale

#: Bins of a curve; most classes that have a curve of their own.
_BINS, _CLASSES = 10, 12


def calibration(evaluation: Predictions) -> Markup:
    """Observed frequencies against probabilities: of the second class, or of the predicted one of several."""
    several = len(evaluation.model.classes_) > 2
    curves = {"probabilities": _claims(evaluation, evaluation.probability)}
    before = evaluation.untempered
    if before is not None:
        curves = {f"at temperature {shown(evaluation.temperature, 3)}": curves["probabilities"]}
        curves["before (temperature 1)"] = _claims(evaluation, before)
    lines, words, least = [], [], 1.0
    looks = ("c0", "faint dashed c1")
    for (label, (claimed, truth)), look in zip(curves.items(), looks, strict=False):
        x, y, off = binned(claimed, truth, evaluation.weight)
        lines.append(Line(label, x, y, look))
        least = min(least, x.min(), y.min())
        words.append(f"{label}: calibration error {percent(off)}")
    # the points of a confident model all lie in one corner
    low = np.floor(10 * least) / 10 if least > 0.4 else 0.0
    axis = Scale(min(float(low), 0.9), 1.0)
    event = "the predicted class" if several else short(str(evaluation.model.classes_[1]), 40)
    observed = "share of correct predictions" if several else f"share of {event}"
    chart = line_chart(
        lines,
        axis,
        axis,
        name="calibration",
        words=f"{observed} against the probability of {event}; {'; '.join(words)}",
        x_label=f"probability of {event}",
        y_label=observed,
        marks=[guide(axis, axis, [(axis.low, axis.low), (1, 1)])],
        markers=True,
    )
    note = f"On the diagonal, probabilities equal observed frequencies. {'; '.join(words).capitalize()}."
    return card("Calibration", chart, note=note)


def calibration_by_class(evaluation: Predictions) -> Markup:
    """A small chart for each class: how often it is true, against the probability it was given."""
    probability, classes = evaluation.probability, evaluation.model.classes_
    assert probability is not None
    share = np.array([evaluation.mean(evaluation.y == label) for label in classes])
    # a class without rows has no frequencies to compare with
    there = np.flatnonzero(share > 0)
    drawn = np.sort(there[np.argsort(-share[there], kind="stable")[:_CLASSES]])
    charts = [_one_class(evaluation, probability[:, k], k) for k in drawn.tolist()]
    note = "Each class against all others, in ten bins of equal size. Above the diagonal a class is more frequent than "
    note += "its probability says. Axes end at the largest value."
    if len(drawn) < len(classes):
        note += f" The {len(drawn)} most frequent of {len(classes)} classes."
    return card("Calibration by class", tag("div", *charts, class_="multiples"), note=note, wide=True)


def _one_class(evaluation: Predictions, claimed: Array, k: int) -> Markup:
    label = evaluation.model.classes_[k]
    x, y, off = binned(claimed, evaluation.y == label, evaluation.weight)
    axis = Scale(0.0, min(1.0, 1.04 * max(float(x.max()), float(y.max()), 0.01)))
    name = short(str(label), 24)
    return line_chart(
        [Line(name, x, y, "c0")],
        axis,
        axis,
        name=f"calibration-{k}",
        words=f"share of {name} against its probability: calibration error {percent(off)}",
        x_label="probability",
        y_label=f"{name}: error {percent(off)}",
        marks=[guide(axis, axis, [(0.0, 0.0), (axis.high, axis.high)])],
        markers=True,
    )


def _claims(evaluation: Predictions, probability: Array | None) -> tuple[Array, NDArray[np.bool_]]:
    """Each row's probability of class 1, or of the predicted class, and whether it is the true class."""
    assert probability is not None
    classes = evaluation.model.classes_
    if len(classes) == 2:
        return probability[:, 1], evaluation.y == classes[1]
    return probability.max(1), evaluation.y == classes[probability.argmax(1)]


def binned(claimed: Array, truth: NDArray[np.bool_], weight: Array | None) -> tuple[Array, Array, float]:
    """Bins of equal weight: mean probability, observed frequency, and their mean absolute difference.

    Examples
    --------
    >>> claimed = np.repeat([0.2, 0.8], 10)
    >>> x, y, off = binned(claimed, np.arange(20) >= 10, None)
    >>> len(x), round(off, 6)
    (2, 0.2)
    """
    w = np.ones(len(claimed)) if weight is None else weight
    order = np.argsort(claimed, kind="stable")
    edges = np.searchsorted(np.cumsum(w[order]), np.arange(1, _BINS) / _BINS * w.sum() * (1 - 1e-12))
    # equal probabilities share a bin
    place = np.searchsorted(np.unique(claimed[order][edges]), claimed, side="left")
    mass = np.bincount(place, w)
    there = mass > 0
    x, y = (np.bincount(place, w * values)[there] / mass[there] for values in (claimed, truth))
    return x, y, float(np.average(np.abs(x - y), weights=mass[there]))
