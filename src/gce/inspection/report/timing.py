"""Time of rounds and of predictions."""

from __future__ import annotations

import time

import numpy as np

from gce.inspection.plotting.readings import TrainingCurves
from gce.inspection.report.charts import Line, line_chart
from gce.inspection.report.evaluation import Evaluation, rows_of
from gce.inspection.report.markup import Markup, Section, card, counted, facts, seconds, shown
from gce.inspection.report.scales import counting, fitting

#: Rows predicted; multiple of the median beyond which the first round must have compiled.
_ROWS, _COMPILED = 10_000, 20


def section(evaluation: Evaluation) -> Section:
    """Time of the fit, by round, and of predictions."""
    if evaluation.curves is None:
        return Section("timing", "Timing", "Measured once, for predictions.", [_predictions(evaluation, [])])
    chart, numbers = _rounds(evaluation.curves)
    cards = [chart, _predictions(evaluation, numbers)]
    return Section("timing", "Timing", "Measured during the fit, and once for predictions.", cards)


def _rounds(curves: TrainingCurves) -> tuple[Markup, list[tuple[str, str]]]:
    """Seconds of each round, as a chart and as numbers."""
    each = np.diff(curves.seconds, prepend=0.0)
    x, y = counting(curves.steps), fitting(each, zero=True)
    total = float(curves.seconds[-1])
    chart = line_chart(
        [Line("seconds", curves.steps, each, "c0")],
        x,
        y,
        name="seconds",
        words=f"seconds per {curves.unit}: median {shown(float(np.median(each)))}, total {seconds(total)}",
        x_label=curves.unit,
        y_label=f"seconds per {curves.unit}",
    )
    slow = f"The first {curves.unit} includes compilation." if each[0] > _COMPILED * np.median(each) else ""
    figures = [("Fit", seconds(total)), (f"Median {curves.unit}", seconds(float(np.median(each))))]
    return card(f"Time of each {curves.unit}", chart, note=slow), figures


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
