"""The page of benchmarks/intervals.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]

METHODS = ("constant", "auto", "mapie split", "mapie quantiles", "lightgbm pair", "catboost pair")
#: How far from the nominal coverage of 0.9 the mean of a set may be.
ALLOWED = 0.02

ABOUT = """# Prediction intervals of 90 %

Made by `python benchmarks/intervals.py` on {machine}, one thread, {seeds} seeds of each set, at most {most:,}
training and as many test rows. *constant* and *auto* are `predict_interval` of one default fit: the same width for
all rows, and widths by row where the fit found these to be better. *mapie split* is MAPIE's
`SplitConformalRegressor` around a default fit of four fifths of the rows, calibrated on the rest; *mapie quantiles*
its `ConformalizedQuantileRegressor` of three default fits with `loss=Quantile(...)` on the same rows, of the first
seed only, because they take five to ten times as long. The pairs are quantiles 0.05 and 0.95 of LightGBM and
CatBoost at their defaults, as they are. How scales are learned was chosen on other seeds (10 to 14) of these sets.
funnel and regimes are made up, with noise that depends on the row. The test rows of small sets are few (diabetes
89, boston 102, energy 154, concrete 206): there the mean coverage over five seeds has a standard error of about
0.015.
"""


def page(rows: Sequence[Row], sets: Sequence[str]) -> str:
    """The page, from all lines."""
    sets = [name for name in sets if any(row["set"] == name for row in rows)]
    machines = " and ".join(sorted({row["machine"] for row in rows}))
    out = [ABOUT.format(machine=machines, seeds=len({row["seed"] for row in rows}), most=4000)]
    out += _table("Coverage", rows, sets, lambda own, base: _mean(own, "coverage"), ".3f")
    out += [_within(rows, sets), ""]
    out += _table("Mean width, of the constant one's", rows, sets, _ratio("width"), ".3f", total=True)
    words = "Interval score, of the constant one's"
    out += _table(words, rows, sets, _ratio("score"), ".3f", total=True)
    out += ["The interval score (Winkler, 1972) is the width, plus 20 times the distance of targets outside.", ""]
    out += _table("CPU seconds, fits and predictions", rows, sets, lambda own, base: _mean(own, "cpu"), ".1f")
    return "\n".join(out)


def _mean(rows: Sequence[Row], name: str) -> float:
    return sum(row[name] for row in rows) / len(rows)


def _ratio(name: str) -> Callable[[Sequence[Row], Sequence[Row]], float]:
    def ratio(own: Sequence[Row], base: Sequence[Row]) -> float:
        seeds = {row["seed"] for row in own}
        return _mean(own, name) / _mean([row for row in base if row["seed"] in seeds], name)

    return ratio


def _of(rows: Sequence[Row], name: str, method: str) -> list[Row]:
    return [row for row in rows if row["set"] == name and row["method"] == method]


def _table(
    title: str,
    rows: Sequence[Row],
    sets: Sequence[str],
    value: Callable[[Sequence[Row], Sequence[Row]], float],
    form: str,
    *,
    total: bool = False,
) -> list[str]:
    """Means over seeds; last, where asked for, the geometric mean over the sets."""
    cells = {
        (name, method): value(own, _of(rows, name, "constant"))
        for name in sets
        for method in METHODS
        if (own := _of(rows, name, method))
    }
    lines = [f"## {title}", "", f"| set | {' | '.join(METHODS)} |", "|---|" + "---:|" * len(METHODS)]
    for name in sets:
        shown = [format(cells[name, method], form) if (name, method) in cells else "" for method in METHODS]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    if total:
        means = []
        for method in METHODS:
            own = [cells[name, method] for name in sets if (name, method) in cells]
            means.append(format(math.exp(sum(map(math.log, own)) / len(own)), form) if len(own) == len(sets) else "")
        lines.append(f"| geometric mean | {' | '.join(means)} |")
    return [*lines, ""]


def _within(rows: Sequence[Row], sets: Sequence[str]) -> str:
    """How many sets each method covers as it says."""
    parts = []
    for method in METHODS:
        means = [_mean(own, "coverage") for name in sets if (own := _of(rows, name, method))]
        good = sum(abs(mean - 0.9) <= ALLOWED for mean in means)
        parts.append(f"{method} {good} of {len(means)}")
    return f"Sets whose mean coverage is within {ALLOWED} of 0.9: {', '.join(parts)}."
