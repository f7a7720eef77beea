"""A classifier on the given rows: calibration, confusions, errors class by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from gce.report.charts import Line, guide, level, line_chart
from gce.report.markup import NOTHING, Markup, Section, card, heading, percent, short, shown, table, tag
from gce.report.scales import Scale
from gce.report.trial import Answers, Array

#: Classes up to which cells are large, up to which the whole matrix is shown, and pairs or classes listed beyond.
_ROOMY, _MATRIX, _LISTED = 4, 12, 20
_BINS = 10


def section(trial: Answers) -> Section | None:
    """Which classes are taken for which, and whether probabilities are what they say."""
    if not trial.classifies:
        return None
    counts = confusion_matrix(trial.y, trial.answer, labels=trial.model.classes_, sample_weight=trial.weight)
    counts = np.asarray(counts, dtype=np.float64)
    names = [str(label) for label in trial.model.classes_]
    unit = "rows" if trial.weight is None else "weight"
    draw = _matrix if len(names) <= _MATRIX else _pairs
    cards = [draw(counts, names, unit), _calibration(trial), _by_class(counts, names, unit)]
    lead = "Which classes are taken for which on the given rows, and whether probabilities are what they say."
    return Section("classes", "Classes", lead, cards)


def _matrix(counts: Array, names: list[str], unit: str) -> Markup:
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    head = tag("tr", tag("td", "true ↓ / predicted →", class_="corner"), *(heading(name, "col") for name in names))
    body = []
    for i, name in enumerate(names):
        cells = []
        for j, other in enumerate(names):
            words = f"{name} taken for {other}: {shown(counts[i, j])} {unit}, {percent(share[i, j])} of {name}"
            kind = "right" if i == j else "wrong"
            look = f"{kind} {'full' if share[i, j] > 0.5 else ''} {'' if counts[i, j] else 'none'}".strip()
            # a rare mistake must still be seen: the square root lifts small shares
            shade = f"--v:{np.sqrt(share[i, j]):.3f}"
            cells.append(tag("td", shown(counts[i, j], 3), class_=" ".join(look.split()), style=shade, title=words))
        body.append(tag("tr", heading(name, "row"), *cells))
    caption = tag("caption", "Confusion matrix: true classes down, predicted across", class_="unseen")
    size = "heat roomy" if len(names) <= _ROOMY else "heat"
    inner = tag("table", caption, tag("thead", head), tag("tbody", *body), class_=size, data_chart="confusion")
    box = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label="Confusion matrix")
    return card("Confusion matrix", box, note="Rows of the table are true classes, columns what the model said.")


def _pairs(counts: Array, names: list[str], unit: str) -> Markup:
    wrong = counts * (1 - np.eye(len(counts)))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_LISTED]
    pairs = [divmod(int(place), len(names)) for place in order if wrong.flat[place] > 0]
    largest = max((wrong[pair] for pair in pairs), default=1.0)
    rows = []
    for i, j in pairs:
        share = percent(counts[i, j] / counts[i].sum())
        rows.append(
            [f"{names[i]} taken for {names[j]}", level(counts[i, j] / largest, look="c1"), shown(counts[i, j]), share]
        )
    head = ["true and predicted class", "", unit, "of the class"]
    body = table(head, rows, caption="Most frequent confusions", class_="levels")
    note = f"{len(names)} classes; of {shown(counts.sum())} {unit}, {shown(wrong.sum())} went wrong."
    return card("Most frequent confusions", tag("div", body, data_chart="confusion"), note=note)


def _by_class(counts: Array, names: list[str], unit: str) -> Markup:
    true, said, right = counts.sum(1), counts.sum(0), counts.diagonal()
    missed = np.where(true > 0, 1 - right / np.maximum(true, 1e-300), np.nan)
    false = np.where(said > 0, 1 - right / np.maximum(said, 1e-300), np.nan)
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
                _taken_for(counts, names, i),
            ]
        )
    head = ["class", unit, "", "missed", "false alarms", "mostly taken for"]
    body = table(head, rows, caption="Errors class by class", class_="levels crowded")
    note = "Missed: rows of the class given another. False alarms: rows given the class that are another's."
    if len(listed) < len(names):
        note += f" The {len(listed)} worst of {len(names)} classes."
    return card("Errors class by class", tag("div", body, data_chart="per-class"), note=note, wide=True)


def _taken_for(counts: Array, names: list[str], i: int) -> str:
    others = counts[i].copy()
    others[i] = 0
    return names[int(others.argmax())] if others.any() else NOTHING


def _calibration(trial: Answers) -> Markup:
    several = len(trial.model.classes_) > 2
    curves = {"as given": _said(trial, trial.probability)}
    before = trial.untempered
    if before is not None:
        curves = {f"at temperature {shown(trial.temperature, 3)}": curves["as given"]}
        curves["before (temperature 1)"] = _said(trial, before)
    lines, words, least = [], [], 1.0
    looks = ("c0", "faint dashed c1")
    for (label, (said, truth)), look in zip(curves.items(), looks, strict=False):
        x, y, off = binned(said, truth, trial.weight)
        lines.append(Line(label, x, y, look))
        least = min(least, x.min(), y.min())
        words.append(f"{label}: off by {percent(off)} on average")
    # a sure model's points all lie in one corner
    low = np.floor(10 * least) / 10 if least > 0.4 else 0.0
    axis = Scale(min(float(low), 0.9), 1.0)
    asked = "the predicted class" if several else short(str(trial.model.classes_[1]), 40)
    answer = "share of right answers" if several else f"share of {asked}"
    chart = line_chart(
        lines,
        axis,
        axis,
        name="calibration",
        words=f"{answer} against the probability of {asked}; {'; '.join(words)}",
        x_label=f"probability of {asked}",
        y_label=answer,
        marks=[guide(axis, axis, [(axis.low, axis.low), (1, 1)])],
        markers=True,
    )
    note = f"On the diagonal probabilities are what they say. {'; '.join(words).capitalize()}."
    return card("Calibration", chart, note=note)


def _said(trial: Answers, probability: Array | None) -> tuple[Array, NDArray[np.bool_]]:
    """What a classifier said of each row, and whether it was so: of class 1, or of the class it predicted."""
    assert probability is not None
    classes = trial.model.classes_
    if len(classes) == 2:
        return probability[:, 1], trial.y == classes[1]
    return probability.max(1), trial.y == classes[probability.argmax(1)]


def binned(said: Array, truth: NDArray[np.bool_], weight: Array | None) -> tuple[Array, Array, float]:
    """Bins of equal weight: mean probability, share of truths, and by how much they differ on average.

    Examples
    --------
    >>> said = np.repeat([0.2, 0.8], 10)
    >>> x, y, off = binned(said, np.arange(20) >= 10, None)
    >>> len(x), round(off, 6)
    (2, 0.2)
    """
    w = np.ones(len(said)) if weight is None else weight
    order = np.argsort(said, kind="stable")
    passed = np.searchsorted(np.cumsum(w[order]), np.arange(1, _BINS) / _BINS * w.sum() * (1 - 1e-12))
    # equal probabilities share a bin
    place = np.searchsorted(np.unique(said[order][passed]), said, side="left")
    mass = np.bincount(place, w)
    there = mass > 0
    x, y = (np.bincount(place, w * values)[there] / mass[there] for values in (said, truth))
    return x, y, float(np.average(np.abs(x - y), weights=mass[there]))
