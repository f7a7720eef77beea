"""Shapley values on a sample of the rows: importances, a beeswarm, and the values of the most important columns."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import counted
from gce.inspection.report.charts import guide, level, scatter_chart
from gce.inspection.report.evaluation import Array, Evaluation, rows_of
from gce.inspection.report.markup import NOTHING, Markup, Section, card, percent, short, shown, table, tag
from gce.inspection.report.scales import fitting
from gce.inspection.report.swarm import Lane, beeswarm, shades
from gce.inspection.shapley import ShapExplanation
from gce.preprocessing.dates import as_text
from gce.training.targets import score_names

#: Most rows explained, and those that are timed first; rows of a background; seconds to spend.
_ROWS, _PROBE, _BACKGROUND, _SECONDS = 300, 16, 30, 4.0
#: Pairs of permutations where there are more columns than coalitions can be counted of.
_PERMUTATIONS = 4
#: Columns of the table and of a beeswarm, outputs that have one, columns with a picture of their own, and categories.
_LISTED, _LANES, _OUTPUTS, _DRAWN, _LEVELS = 20, 12, 3, 3, 12


@dataclass(frozen=True)
class _Explained:
    """Shapley values of some rows.

    Parameters
    ----------
    values : array of shape (m, d, k)
    error : float or None
        The mean standard error of a value; None where all are exact.
    rows : int array of shape (m,)
    weight : array of shape (m,)
        The sample weights of these rows.
    background : int
        The rows of the background; 0 without one.
    """

    values: Array
    error: float | None
    rows: NDArray[np.intp]
    weight: Array
    background: int

    @property
    def size(self) -> Array:
        """The mean absolute value of each column, the sum over outputs, ``(d,)``."""
        return np.average(np.abs(self.values), axis=0, weights=self.weight).sum(1)


def section(evaluation: Evaluation) -> Section:
    """Shapley values, or why there are none."""
    title = "Shapley values"
    if evaluation.external:
        words = f"Not computed: {evaluation.external[0].unstorable_name} is no atom of gce."
        return Section("shapley", title, words, [])
    found = _explained(evaluation)
    lead = (
        "What each column adds to the raw score of a row: base value and values of all columns sum to the score. "
        f"On {counted(len(found.rows), 'row')}{_how(found)}."
    )
    order = np.argsort(-found.size, kind="stable")
    cards = [_importances(evaluation, found, order)]
    outputs = _outputs(evaluation, found)
    cards += [_swarm(evaluation, found, order, k) for k in outputs]
    cards += [_dependence(evaluation, found, int(j), outputs[0], place) for place, j in enumerate(order[:_DRAWN])]
    return Section("shapley", title, lead, cards)


def _how(found: _Explained) -> str:
    unknown = "; where a column is not known, trees are averaged over both branches and networks have its mean"
    if found.background:
        unknown = f", against a background of {counted(found.background, 'row')}"
    if found.error is None:
        return unknown
    return f"{unknown}. Estimated, with a mean standard error of {shown(found.error, 2)}"


def _explained(evaluation: Evaluation) -> _Explained:
    """As many rows as can be explained in time."""
    probe = evaluation.sample_rows(_PROBE)
    known: NDArray[np.intp] | None = None
    start = time.perf_counter()
    try:
        found = _values(evaluation, probe, None)
    except ValueError:
        # trees of older files do not know how many rows they were grown on
        known = evaluation.sample_rows(_BACKGROUND)
        found = _values(evaluation, probe, known)
    one = (time.perf_counter() - start) / len(probe)
    rows = evaluation.sample_rows(max(_PROBE, min(_ROWS, int(_SECONDS / one))))
    if len(rows) > len(probe):
        found = _values(evaluation, rows, known)
    values, errors = found.values, found.standard_errors
    rows = rows if len(rows) == len(values) else probe
    weight = evaluation.weight_of(rows)
    return _Explained(
        values if values.ndim == 3 else values[:, :, None],
        None if errors is None or not errors.any() else float(errors.mean()),
        rows,
        np.ones(len(rows)) if weight is None else weight,
        0 if known is None else len(known),
    )


def _values(evaluation: Evaluation, rows: NDArray[np.intp], known: NDArray[np.intp] | None) -> ShapExplanation:
    background = None if known is None else rows_of(evaluation.X, known)
    found: ShapExplanation = evaluation.model.shap_values(
        rows_of(evaluation.X, rows), background, n_permutations=_PERMUTATIONS
    )
    return found


def _outputs(evaluation: Evaluation, found: _Explained) -> list[int]:
    """The outputs that are drawn: the first ones, or the most frequent classes."""
    count = found.values.shape[2]
    if count == 1 or not evaluation.classifies or count < len(evaluation.model.classes_):
        return list(range(min(count, _OUTPUTS)))
    share = [evaluation.mean(evaluation.y == label) for label in evaluation.model.classes_]
    return sorted(np.argsort(-np.array(share), kind="stable")[:_OUTPUTS].tolist())


def _name(evaluation: Evaluation, k: int, count: int) -> str:
    """What is raised by a positive value."""
    if evaluation.classifies:
        model = evaluation.model
        return short(str(model.classes_[1]) if count == 1 else score_names(model.result_.target, count)[k], 40)
    return "" if count == 1 else evaluation.output_name(k)


def _importances(evaluation: Evaluation, found: _Explained, order: NDArray[np.intp]) -> Markup:
    names, size = evaluation.sheet.names, found.size
    own = evaluation.model.result_.importances
    widest, rows = max(float(size.max()), 1e-300), []
    for j in order[:_LISTED].tolist():
        share = NOTHING if own is None else percent(float(own[j]))
        rows.append([names[j], level(size[j] / widest), shown(float(size[j]), 3), share])
    head = ["column", "", "mean |value|", "importance"]
    body = table(head, rows, caption="Shapley values and importances of columns", class_="levels")
    note = "Mean |value|: the mean absolute Shapley value"
    note += ", summed over outputs." if found.values.shape[2] > 1 else "."
    if own is not None:
        note += " Importance: the share of the fall of the training risk that a column brought (feature_importances_)."
    if len(rows) < len(names):
        note += f" The {len(rows)} largest of {len(names):,} columns."
    return card("Importances", tag("div", body, data_chart="shapley"), note=note, wide=True)


def _swarm(evaluation: Evaluation, found: _Explained, order: NDArray[np.intp], k: int) -> Markup:
    count = found.values.shape[2]
    lanes = [
        Lane(evaluation.sheet.names[j], found.values[:, j, k], _shade(evaluation, found, j))
        for j in order[:_LANES].tolist()
    ]
    what = _name(evaluation, k, count)
    title = f"Values by row{', ' + what if what else ''}"
    label = f"Shapley value, raw score{' of ' + what if what else ''}"
    words = f"Shapley values of {len(found.rows)} rows for {len(lanes)} columns{', ' + what if what else ''}"
    note = "One dot per row: to the right of 0 the column raises the score."
    if len(lanes) < len(order):
        note += f" The {len(lanes)} columns with the largest values."
    return card(title, beeswarm(lanes, name=f"swarm-{k}", words=words, label=label), note=note, wide=count == 1)


def _shade(evaluation: Evaluation, found: _Explained, j: int) -> NDArray[np.intp]:
    kind = evaluation.model.table_.schema.columns[j].kind
    column = evaluation.coded[found.rows, j]
    return np.full(len(column), -1) if kind == "category" else shades(column)


def _dependence(evaluation: Evaluation, found: _Explained, j: int, k: int, place: int) -> Markup:
    """The values of a column against its Shapley values."""
    name, kind = evaluation.sheet.names[j], evaluation.model.table_.schema.columns[j].kind
    values, column = found.values[:, j, k], evaluation.coded[found.rows, j]
    what = _name(evaluation, k, found.values.shape[2])
    title = f"{short(name, 40)}{', ' + what if what else ''}"
    if kind == "category":
        return card(title, _levels(evaluation, found, j, values), note="Mean Shapley value of each category.")
    present = ~np.isnan(column)
    note = ""
    if not present.all():
        mean = float(np.average(values[~present], weights=found.weight[~present]))
        note = f"Missing: mean value {shown(mean, 3)}, not drawn."
    if not present.any():
        return card(title, note=note)
    x_label, column = short(name, 40), column[present]
    if kind == "date" or kind == "duration":
        low, high = float(column.min()), float(column.max())
        x_label += f" (0: {as_text(kind, low)}, 1: {as_text(kind, high)})"
        column = (column - low) / max(high - low, 1e-300)
    x, y = fitting(column), fitting(values[present], [0.0])
    chart = scatter_chart(
        column,
        values[present],
        x,
        y,
        name=f"dependence-{place}",
        words=f"Shapley values of {short(name, 60)} against its values in {int(present.sum())} rows",
        x_label=x_label,
        y_label="Shapley value",
        marks=[guide(x, y, [(x.low, 0.0), (x.high, 0.0)])],
    )
    return card(title, chart, note=note)


def _levels(evaluation: Evaluation, found: _Explained, j: int, values: Array) -> Markup:
    """The mean Shapley value of each of the most frequent categories."""
    column = [_category(value) for value in evaluation.sheet.columns[j][found.rows].tolist()]
    levels, index, counts = np.unique(
        np.array(column, dtype=object).astype(str), return_inverse=True, return_counts=True
    )
    means = np.bincount(index, found.weight * values) / np.bincount(index, found.weight)
    widest = max(float(np.abs(means).max()), 1e-300)
    rows = [
        [
            levels[i],
            level(abs(means[i]) / widest, look="c0" if means[i] >= 0 else "c1"),
            shown(means[i], 3),
            shown(int(counts[i])),
        ]
        for i in np.argsort(-counts, kind="stable")[:_LEVELS].tolist()
    ]
    return table(["category", "", "mean value", "rows"], rows, caption="Shapley values by category", class_="levels")


def _category(value: object) -> str:
    return "missing" if value is None or value != value else str(value)
