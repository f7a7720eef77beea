"""Tables of the accuracy benchmark's seconds, and how tables are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from accuracy_models import CATBOOST, GCE, SLOW
from accuracy_rows import Row, Rows
from accuracy_sets import SEEDS, SETS


def value(number: float) -> str:
    """Four digits, and no exponent that a table has to be read twice for."""
    return f"{number:,.0f}" if abs(number) >= 1e3 else f"{number:#.4g}"


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    rule = "|---|" + "---:|" * (len(head) - 1)
    return ["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(line) + " |" for line in lines), ""]


def timed(rows: dict[tuple[str, int], Row], name: str) -> list[Row]:
    """The rows of a set whose seconds count: those of a quiet hour where there are any, else all that did not fail."""
    held = [rows[name, seed] for seed in SEEDS if (name, seed) in rows and "fit_seconds" in rows[name, seed]]
    return [row for row in held if row.get("quiet")] or held


def _mean(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _ratio(ours: list[Row], theirs: list[Row], key: str) -> float | None:
    """Mean seconds over mean seconds, where both were measured on one machine."""
    machines = {row.get("timed_on", row["machine"]) for row in (*ours, *theirs)}
    if not ours or not theirs or len(machines) > 1:
        return None
    return _mean(ours, key) / _mean(theirs, key)


def times_section(rows: Rows, sets: Sequence[str] = SETS) -> list[str]:
    """Seconds of fits and predictions, a line a set, and GCE's beside CatBoost's."""
    models = [name for name in rows if name not in SLOW and rows[name]]
    out = [
        "## Seconds of a fit",
        "",
        "Two threads. Of a quiet hour (seed 0) where there is no `~`; with it means over the",
    ]
    out += [
        "seeds of a machine that had other work, which say little: CPU seconds, in the last column, suffer less.",
        "",
    ]
    both = GCE in models and CATBOOST in models
    lines, ratios = [], []
    for name in sets:
        held = {model: timed(rows[model], name) for model in models}
        if not any(held.values()):
            continue
        line = [name, *(_seconds(held[model], "fit_seconds") for model in models)]
        if both:
            pair = [_ratio(held[GCE], held[CATBOOST], key) for key in ("fit_seconds", "cpu_seconds")]
            mark = _mark([*held[GCE], *held[CATBOOST]])
            line += ["" if one is None else f"{mark}{one:.2f}" for one in pair]
            ratios.append(pair)
        lines.append(line)
    if both:
        columns = [[one for one in column if one is not None] for column in zip(*ratios, strict=True)]
        for title, of in (("geometric mean", _geometric), ("largest", max)):
            lines.append([title, *[""] * len(models), *(f"{of(column):.2f}" if column else "" for column in columns)])
    out += table(["", *models, *(["GCE / CatBoost", "CPU: GCE / CatBoost"] if both else [])], lines)
    out += ["## Seconds of a prediction", "", "`predict` on the test rows, the first call after the fit.", ""]
    lines = [[name, *(_seconds(timed(rows[model], name), "predict_seconds") for model in models)] for name in sets]
    return [*out, *table(["", *models], [line for line in lines if any(line[1:])])]


def _seconds(rows: list[Row], key: str) -> str:
    return f"{_mark(rows)}{_mean(rows, key):.3g}" if rows else ""


def _mark(rows: list[Row]) -> str:
    return "" if all(row.get("quiet") for row in rows) else "~"


def _geometric(column: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(column))))
