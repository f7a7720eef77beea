"""A regressor on the given rows: residuals, and how often intervals cover."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from gce.report.charts import Bar, bar_chart, guide, scatter_chart
from gce.report.markup import Markup, Section, card, percent, shown, table
from gce.report.scales import fitting
from gce.report.trial import Answers, Array, rows_of

#: Outputs drawn, dots a chart, bins of a histogram, rows on which intervals are tried.
_DRAWN, _DOTS, _BINS, _TRIED = 3, 1500, 31, 5000
_COVERAGES = (0.5, 0.8, 0.9, 0.95)


def section(trial: Answers) -> Section | None:
    """How far predictions lie from the truth."""
    if trial.classifies:
        return None
    answer = trial.answer.reshape(trial.rows, -1)
    residual = trial.target - answer
    outputs = residual.shape[1]
    cards = []
    for k in range(min(outputs, _DRAWN)):
        which = "" if outputs == 1 else f", target {k}"
        cards.append(_scatter(trial, answer[:, k], residual[:, k], which))
    cards.append(_histogram(trial, residual[:, 0]) if outputs == 1 else _by_target(trial, answer))
    if len(getattr(trial.model, "residuals_", ())):
        cards.append(_intervals(trial))
    lead = "How far predictions lie from the truth on the given rows; a residual is truth less prediction."
    return Section("residuals", "Residuals", lead, cards)


def _scatter(trial: Answers, answer: Array, residual: Array, which: str) -> Markup:
    some = trial.some(_DOTS)
    x, y = fitting(answer[some]), fitting(residual[some], [0.0])
    chart = scatter_chart(
        answer[some],
        residual[some],
        x,
        y,
        name="residuals",
        words=f"residuals of {len(some)} rows against predictions{which}",
        x_label="prediction",
        y_label="truth less prediction",
        marks=[guide(x, y, [(x.low, 0.0), (x.high, 0.0)])],
    )
    note = "A funnel or a bend is something the model did not learn."
    if len(some) < trial.rows:
        note += f" {len(some):,} of {trial.rows:,} rows, drawn at random."
    return card(f"Residuals against predictions{which}", chart, note=note)


def _histogram(trial: Answers, residual: Array) -> Markup:
    # far residuals would squeeze all others into one bar
    x = fitting(np.quantile(residual, [0.002, 0.998]), room=0.0)
    low, high = x.low, x.high
    counts, edges = np.histogram(np.clip(residual, low, high), _BINS, (low, high), weights=trial.weight)
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
    mean, half = trial.mean(residual), trial.mean(np.abs(residual))
    y = fitting([0.0, float(counts.max() / total)], zero=True)
    zero = [guide(x, y, [(0.0, 0.0), (0.0, y.high)])] if low < 0 < high else []
    chart = bar_chart(
        bars,
        x,
        y,
        name="residual-histogram",
        words=f"histogram of residuals: mean {shown(mean)}, mean size {shown(half)}",
        x_label="truth less prediction",
        y_label="share of rows",
        marks=zero,
    )
    note = f"Mean {shown(mean, 3)} (0 is unbiased), mean size {shown(half, 3)}."
    return card("How residuals are spread", chart, note=note)


def _by_target(trial: Answers, answer: Array) -> Markup:
    rows = []
    for k in range(answer.shape[1]):
        pair, weight = (trial.target[:, k], answer[:, k]), {"sample_weight": trial.weight}
        cells = [shown(float(error(*pair, **weight))) for error in (root_mean_squared_error, mean_absolute_error)]
        r2 = float(r2_score(*pair, **weight)) if trial.rows > 1 else float("nan")
        rows.append([f"target {k}", *cells, shown(r2, 3)])
    return card("Errors target by target", table(["target", "RMSE", "MAE", "R²"], rows, caption="Errors by target"))


def _intervals(trial: Answers) -> Markup:
    some = trial.some(_TRIED)
    X, y = rows_of(trial.X, some), trial.target[some]
    rows = []
    for coverage in _COVERAGES:
        low, high = np.moveaxis(trial.model.predict_interval(X, coverage).reshape(*y.shape, 2), -1, 0)
        covered = np.average(((low <= y) & (y <= high)).mean(1), weights=trial.weight_of(some))
        rows.append([f"{100 * coverage:g} %", percent(float(covered)), shown(float((high - low).mean()))])
    head = ["asked for", "covered here", "mean width"]
    note = "Conformal intervals (predict_interval): how often the truth lay inside on the given rows."
    if y.shape[1] > 1:
        # widths of several targets have no common unit
        head, rows = head[:2], [row[:2] for row in rows]
        note += f" Means of {y.shape[1]} targets."
    body = table(head, rows, caption="Coverage of intervals")
    return card("Prediction intervals", body, note=note)
