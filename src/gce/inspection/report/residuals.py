"""A regressor on the given rows: residuals, and the coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import r2_score

from gce.inspection.report.charts import Bar, bar_chart, guide, scatter_chart
from gce.inspection.report.evaluation import Array, Predictions, rows_of
from gce.inspection.report.markup import Markup, Section, card, percent, shown, table
from gce.inspection.report.scales import fitting
from gce.training.metrics import of_numbers

#: Most outputs drawn, dots per chart, bins of the histogram, most rows for the coverage of intervals.
_DRAWN, _DOTS, _BINS, _INTERVAL_ROWS = 3, 1500, 31, 5000
_COVERAGES = (0.5, 0.8, 0.9, 0.95)


def section(evaluation: Predictions) -> Section | None:
    """Residuals: true values minus predictions."""
    if evaluation.classifies:
        return None
    predicted = evaluation.predicted.reshape(evaluation.rows, -1)
    residual = evaluation.target - predicted
    outputs = residual.shape[1]
    cards = []
    for k in range(min(outputs, _DRAWN)):
        which = "" if outputs == 1 else f", {evaluation.output_name(k)}"
        cards.append(_scatter(evaluation, predicted[:, k], residual[:, k], which))
    cards.append(_histogram(evaluation, residual[:, 0]) if outputs == 1 else _by_target(evaluation, predicted))
    if evaluation.levels is not None:
        cards.append(_levels(evaluation, predicted, evaluation.levels))
    elif evaluation.has_intervals:
        cards.append(_intervals(evaluation))
    lead = "Residuals on the given rows: true values minus predictions."
    return Section("residuals", "Residuals", lead, cards)


def _scatter(evaluation: Predictions, predicted: Array, residual: Array, which: str) -> Markup:
    sample = evaluation.sample_rows(_DOTS)
    x, y = fitting(predicted[sample]), fitting(residual[sample], [0.0])
    chart = scatter_chart(
        predicted[sample],
        residual[sample],
        x,
        y,
        name="residuals",
        words=f"residuals of {len(sample)} rows against predictions{which}",
        x_label="prediction",
        y_label="residual",
        marks=[guide(x, y, [(x.low, 0.0), (x.high, 0.0)])],
    )
    note = "A funnel or a curve is structure that the model did not learn."
    if len(sample) < evaluation.rows:
        note += f" {len(sample):,} of {evaluation.rows:,} rows, sampled at random."
    return card(f"Residuals against predictions{which}", chart, note=note)


def _histogram(evaluation: Predictions, residual: Array) -> Markup:
    # outliers would squeeze all others into one bar
    x = fitting(np.quantile(residual, [0.002, 0.998]), room=0.0)
    low, high = x.low, x.high
    counts, edges = np.histogram(np.clip(residual, low, high), _BINS, (low, high), weights=evaluation.weight)
    total = counts.sum()
    bars = [
        Bar(
            left,
            right,
            0.0,
            float(count / total),
            "c0",
            f"{shown(left)} to {shown(right)}: {percent(float(count / total))}",
        )
        for left, right, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        if count
    ]
    mean, half = evaluation.mean(residual), evaluation.mean(np.abs(residual))
    y = fitting([0.0, float(counts.max() / total)], zero=True)
    zero = [guide(x, y, [(0.0, 0.0), (0.0, y.high)])] if low < 0 < high else []
    chart = bar_chart(
        bars,
        x,
        y,
        name="residual-histogram",
        words=f"histogram of residuals: mean {shown(mean)}, mean absolute value {shown(half)}",
        x_label="residual",
        y_label="share of rows",
        marks=zero,
    )
    note = f"Mean {shown(mean, 3)} (0 is unbiased), mean absolute value {shown(half, 3)}."
    return card("Distribution of residuals", chart, note=note)


def _by_target(evaluation: Predictions, predicted: Array) -> Markup:
    rows = []
    for k in range(predicted.shape[1]):
        pair = evaluation.target[:, k], predicted[:, k]
        values = of_numbers(*pair, evaluation.weight)
        cells = [shown(values["rmse"]), shown(values["mae"])]
        r2 = float(r2_score(*pair, sample_weight=evaluation.weight)) if evaluation.rows > 1 else float("nan")
        rows.append([evaluation.output_name(k), *cells, shown(r2, 3)])
    return card("Errors by target", table(["target", "RMSE", "MAE", "R²"], rows, caption="Errors by target"))


def _levels(evaluation: Predictions, predicted: Array, levels: Sequence[float]) -> Markup:
    below = np.average(evaluation.target <= predicted, axis=0, weights=evaluation.weight)
    rows = [[f"{level:g}", percent(float(share))] for level, share in zip(levels, below, strict=True)]
    note = "How many true values are at or below each predicted quantile: as many as its level says, if it is right."
    body = table(["level", "below it here"], rows, caption="Shares below the quantiles")
    return card("Quantiles", body, note=note)


def _intervals(evaluation: Predictions) -> Markup:
    sample = evaluation.sample_rows(_INTERVAL_ROWS)
    X, y = rows_of(evaluation.X, sample), evaluation.target[sample]
    rows = []
    for coverage in _COVERAGES:
        low, high = np.moveaxis(evaluation.model.predict_interval(X, coverage).reshape(*y.shape, 2), -1, 0)
        covered, width = (
            float(np.average(values.mean(1), weights=evaluation.weight_of(sample)))
            for values in ((low <= y) & (y <= high), high - low)
        )
        rows.append([f"{100 * coverage:g} %", percent(covered), shown(width)])
    head = ["nominal", "covered here", "mean width"]
    note = "Conformal intervals (predict_interval): how often they contain the true value on the given rows."
    if y.shape[1] > 1:
        # widths of several targets have no common unit
        head, rows = head[:2], [row[:2] for row in rows]
        note += f" Means over {y.shape[1]} targets."
    body = table(head, rows, caption="Coverage of intervals")
    return card("Prediction intervals", body, note=note)
