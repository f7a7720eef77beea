"""A classifier on the given rows: confusion matrix, errors by class; its calibration is in ``calibration.py``."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import confusion_matrix

from gce.inspection.report.calibration import calibration, calibration_by_class
from gce.inspection.report.charts import level
from gce.inspection.report.evaluation import Array, Predictions
from gce.inspection.report.markup import NOTHING, Markup, Section, card, heading, percent, short, shown, table, tag

#: Most classes of a matrix with large cells and of any matrix; pairs or classes listed beyond that.
_LARGE, _MATRIX, _LISTED = 4, 12, 20


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
    cards = [draw(counts, names, unit), calibration(evaluation), _by_class(counts, names, unit)]
    if len(names) > 2:
        cards.append(calibration_by_class(evaluation))
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
    return short(names[int(others.argmax())], 30) if others.any() else NOTHING
