"""A classifier on the given rows: confusion matrix, calibration, errors by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from gce.inspection.report.charts import Line, guide, level, line_chart
from gce.inspection.report.evaluation import Array, Predictions
from gce.inspection.report.markup import NOTHING, Markup, Section, card, heading, percent, short, shown, table, tag
from gce.inspection.report.scales import Scale

#: Most classes of a matrix with large cells and of any matrix; pairs or classes listed beyond that.
_LARGE, _MATRIX, _LISTED = 4, 12, 20
_BINS = 10


def section(evaluation: Predictions) -> Section | None:
    """Confusions between classes, and the calibration of probabilities."""
    if not evaluation.classifies:
        return None
    counts = confusion_matrix(
        evaluation.y, evaluation.predicted, labels=evaluation.model.classes_, sample_weight=evaluation.weight
    )
    counts = np.asarray(counts, dtype=np.float64)
    names = [str(label) for label in evaluation.model.classes_]
    unit = "rows" if evaluation.weight is None else "weight"
    draw = _matrix if len(names) <= _MATRIX else _pairs
    cards = [draw(counts, names, unit), _calibration(evaluation), _by_class(counts, names, unit)]
    lead = "Which classes are confused on the given rows, and whether probabilities are calibrated."
    return Section("classes", "Classes", lead, cards)


def _matrix(counts: Array, names: list[str], unit: str) -> Markup:
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    head = tag("tr", tag("td", "true ↓ / predicted →", class_="corner"), *(heading(name, "col") for name in names))
    body = []
    for i, name in enumerate(names):
        cells = []
        for j, other in enumerate(names):
            words = f"{name} predicted as {other}: {shown(counts[i, j])} {unit}, {percent(share[i, j])} of {name}"
            kind = "right" if i == j else "wrong"
            look = f"{kind} {'full' if share[i, j] > 0.5 else ''} {'' if counts[i, j] else 'none'}".strip()
            # the square root keeps rare errors visible
            shade = f"--v:{np.sqrt(share[i, j]):.3f}"
            cells.append(tag("td", shown(counts[i, j], 3), class_=" ".join(look.split()), style=shade, title=words))
        body.append(tag("tr", heading(name, "row"), *cells))
    caption = tag("caption", "Confusion matrix: true classes down, predicted across", class_="unseen")
    size = "heat large" if len(names) <= _LARGE else "heat"
    inner = tag("table", caption, tag("thead", head), tag("tbody", *body), class_=size, data_chart="confusion")
    box = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix")
    return card("Confusion matrix", box, note="Rows are true classes, columns predicted ones.")


def _pairs(counts: Array, names: list[str], unit: str) -> Markup:
    wrong = counts * (1 - np.eye(len(counts)))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_LISTED]
    pairs = [divmod(int(place), len(names)) for place in order if wrong.flat[place] > 0]
    largest = max((wrong[pair] for pair in pairs), default=1.0)
    rows = []
    for i, j in pairs:
        share = percent(counts[i, j] / counts[i].sum())
        rows.append(
            [
                f"{names[i]} predicted as {names[j]}",
                level(counts[i, j] / largest, look="c1"),
                shown(counts[i, j]),
                share,
            ]
        )
    head = ["true and predicted class", "", unit, "of the class"]
    body = table(head, rows, caption="Most frequent confusions", class_="levels")
    note = f"{len(names)} classes; of {shown(counts.sum())} {unit}, {shown(wrong.sum())} misclassified."
    return card("Most frequent confusions", tag("div", body, data_chart="confusion"), note=note)


def _by_class(counts: Array, names: list[str], unit: str) -> Markup:
    true, predicted, right = counts.sum(1), counts.sum(0), counts.diagonal()
    missed = np.where(true > 0, 1 - right / np.maximum(true, 1e-300), np.nan)
    false = np.where(predicted > 0, 1 - right / np.maximum(predicted, 1e-300), np.nan)
    order = np.argsort(-np.nan_to_num(missed, nan=-1.0), kind="stable")
    listed = order[:_LISTED] if len(names) > _MATRIX else np.arange(len(names))
    rows = []
    top = max(float(np.nanmax(missed)), 1e-300)
    for i in listed.tolist():
        bar = level(float(np.nan_to_num(missed[i])) / top, look="c1")
        rows.append(
            [
                names[i],
                shown(true[i]),
                bar,
                percent(float(missed[i])),
                percent(float(false[i])),
                _confused_with(counts, names, i),
            ]
        )
    head = ["class", unit, "", "missed", "false positives", "confused with"]
    body = table(head, rows, caption="Errors by class", class_="levels crowded")
    note = "Missed is 1 - recall, false positives are 1 - precision."
    if len(listed) < len(names):
        note += f" The {len(listed)} worst of {len(names)} classes."
    return card("Errors by class", tag("div", body, data_chart="per-class"), note=note, wide=True)


def _confused_with(counts: Array, names: list[str], i: int) -> str:
    others = counts[i].copy()
    others[i] = 0
    return names[int(others.argmax())] if others.any() else NOTHING


def _calibration(evaluation: Predictions) -> Markup:
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
