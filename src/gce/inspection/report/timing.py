"""Time of rounds and of predictions."""

from __future__ import annotations

import time

import numpy as np

from gce._utils.params import counted
from gce.inspection.plotting.readings import FamilyCurves
from gce.inspection.report.charts import Line, line_chart
from gce.inspection.report.evaluation import Array, Evaluation, rows_of
from gce.inspection.report.markup import Markup, Section, card, facts, seconds, shown
from gce.inspection.report.scales import counting, fitting

#: Rows predicted; multiple of the median beyond which the first round must have compiled.
_ROWS, _COMPILED = 10_000, 20
#: Multiple of the 95 % quantile of seconds at which the axis ends; colours of families.
_SLOW, _COLOURS = 2.0, 8


def section(evaluation: Evaluation) -> Section:
    """Time of the fit, by round, and of predictions."""
    if not evaluation.families:
        return Section("timing", "Timing", "Measured once, for predictions.", [_predictions(evaluation, [])])
    cards = [_rounds(evaluation.families), _predictions(evaluation, _totals(evaluation))]
    return Section("timing", "Timing", "Measured during the fit, and once for predictions.", cards)


def _rounds(families: tuple[FamilyCurves, ...]) -> Markup:
    """Seconds of each round, a line for each family; one that has a single round has no line."""
    alone, unit = len(families) == 1, families[0].curves.unit
    drawn = [(i, family) for i, family in enumerate(families) if alone or len(family.curves.steps) > 1]
    lines, words, usual = [], [], []
    for i, family in drawn:
        each = _each(family)
        name = "seconds" if alone else family.name
        lines.append(Line(name, family.curves.steps, each, f"c{i % _COLOURS}"))
        words.append(f"{name}: median {shown(float(np.median(each)))}, total {seconds(float(each.sum()))}")
        # a round that compiled, or that met another process, must not flatten all others
        usual.append(np.minimum(each, _SLOW * np.quantile(each, 0.95)))
    x = counting(np.concatenate([np.asarray(line.x) for line in lines] or [np.ones(1)]))
    y = fitting(*usual, [0.0], zero=True)
    chart = line_chart(
        lines,
        x,
        y,
        name="seconds",
        words=f"seconds per {unit}: {'; '.join(words)}",
        x_label=unit if alone else f"{unit} of the family",
        y_label=f"seconds per {unit}",
    )
    slow = any(_each(family)[0] > _COMPILED * np.median(_each(family)) for _, family in drawn)
    return card(f"Time of each {unit}", chart, note=f"The first {unit} includes compilation." if slow else "")


def _each(family: FamilyCurves) -> Array:
    return np.diff(family.curves.seconds, prepend=0.0)


def _totals(evaluation: Evaluation) -> list[tuple[str, str]]:
    families, whole = evaluation.families, evaluation.curves
    assert whole is not None
    fit = ("Fit", seconds(float(whole.seconds[-1])))
    if len(families) == 1:
        return [fit, (f"Median {whole.unit}", seconds(float(np.median(_each(families[0])))))]
    return [fit, *((f"Fit of {family.name}", seconds(float(family.curves.seconds[-1]))) for family in families)]


def _predictions(evaluation: Evaluation, fit: list[tuple[str, str]]) -> Markup:
    """Prediction times, after those of the fit."""
    sample = evaluation.sample_rows(_ROWS)
    X = rows_of(evaluation.X, sample)
    start = time.perf_counter()
    evaluation.model.predict(X)
    taken = time.perf_counter() - start
    numbers = facts(
        [
            *fit,
            (f"Predict {counted(len(sample), 'row')}", seconds(taken)),
            ("Rows per second", shown(len(sample) / taken, 3)),
            ("Per row", seconds(taken / len(sample))),
        ]
    )
    return card("Predictions", numbers, note="One call on the original table, on the machine that wrote this report.")
