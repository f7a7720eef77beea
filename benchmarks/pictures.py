"""Pictures of the committed results, for docs/benchmarks.md: drawn when the site is built, from JSON under results/."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accuracy_rows
import numpy as np
import tables_page
from accuracy_models import MODELS
from accuracy_picture import draw
from accuracy_ranks import set_ranks
from accuracy_rows import Rows
from accuracy_tables import ranked
from harness import RESULTS
from tables_models import AUTOGLUON
from tables_models import MODELS as TABLE_MODELS

_OURS, _OTHERS = "#b3261e", "#7a869a"
#: The models whose fits were timed in a quiet hour.
_TIMED = ("GCE", "CatBoost")


def accuracy_ranks(path: Path) -> None:
    """Mean ranks on tables of numbers."""
    rows = {model: accuracy_rows.read(RESULTS / "accuracy", model) for model in MODELS}
    held = ranked(rows)["RMSE or error"]
    draw([("Mean rank by RMSE or error", held.models, set_ranks(held.values, held.sets))], path)


def tables_ranks(path: Path) -> None:
    """Mean ranks on tables with categories, dates and text."""
    rows = _table_rows()
    models = [model for model in tables_page.begun(rows) if model != AUTOGLUON]
    pairs = tables_page.common(rows, models, tables_page.MAIN)
    losses = tables_page.losses(rows, models, pairs, tables_page.MAIN)
    draw([("Mean rank by RMSE or log-loss", models, set_ranks(losses, [name for name, _ in pairs]))], path)


def fit_seconds(path: Path) -> None:
    """Seconds of default fits relative to CatBoost's, table by table."""
    kinds = {
        "tables of numbers": {model: accuracy_rows.read(RESULTS / "accuracy", model) for model in _TIMED},
        "tables as people have them": _table_rows(),
    }
    figure, axes = _panels(len(kinds), "Seconds of a default fit of GCE, CatBoost's = 1", height=3.8)
    for ax, (title, rows) in zip(axes, kinds.items(), strict=True):
        ratios = sorted(relative_seconds(rows).items(), key=lambda pair: -pair[1])
        mean = float(np.exp(np.mean(np.log([ratio for _, ratio in ratios]))))
        ax.axvline(1, color=_OTHERS, linewidth=1)
        ax.scatter([ratio for _, ratio in ratios], [name for name, _ in ratios], color=_OURS, s=24)
        ax.set_xscale("log")
        ax.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"], minor=False)
        ax.set_xticks([], minor=True)
        ax.tick_params(labelsize=8)
        ax.set_title(f"{len(ratios)} {title}\ngeometric mean {mean:.2f}", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def relative_seconds(rows: Rows) -> dict[str, float]:
    """GCE's seconds relative to CatBoost's by table, geometric means of the splits that both were timed on.

    Only times of a quiet hour count, on one kind of machine: those of the same rows on a busy one say little.
    """
    ours, theirs = (rows[model] for model in _TIMED)
    logs: dict[str, list[float]] = {}
    for pair, row in theirs.items():
        own = ours.get(pair, {})
        if "fit_seconds" in row and "fit_seconds" in own and (_timed_on(row) or "") == _timed_on(own):
            logs.setdefault(pair[0], []).append(float(np.log(own["fit_seconds"] / row["fit_seconds"])))
    return {name: float(np.exp(np.mean(values))) for name, values in logs.items()}


def serving(path: Path) -> None:
    """Rows per second, and one row, of default models."""
    tables = json.loads((RESULTS / "speed.json").read_text())["sections"]["serving"]["tables"]
    sets = [table for table in tables if "rows/s" in table["head"] and table["title"] != "ratios"]
    figure, axes = _panels(
        2 * len(sets), "Serving: rows per second (more is better), milliseconds of one row (less is)"
    )
    for column, table in enumerate(sets):
        for ax, key, form in zip(
            axes[2 * column : 2 * column + 2], ("rows/s", "one row ms"), ("{:,.0f}", "{:.2f}"), strict=True
        ):
            place = table["head"].index(key) + 1
            values = {row[0]: float(row[place].replace(",", "")) for row in table["rows"]}
            _bars(ax, f"{table['title']}: {key}", values, form)
    _save(figure, path)


def pruned(path: Path) -> None:
    """Loss of pruned models against their speed, relative to the whole model and to XGBoost's default."""
    lines = json.loads((RESULTS / "pruned.json").read_text())["lines"]
    whole = {line["seed"]: line["mse"] for line in lines if line["way"] == "whole"}
    xgboost = {line["seed"]: line["rows_a_second"] for line in lines if line["way"] == "XGBoost"}
    figure, (ax,) = _panels(1, "california: GCE pruned, beside XGBoost's default")
    kinds = dict.fromkeys((line["way"], line["goal"]) for line in lines)
    for way, goal in kinds:
        own = [line for line in lines if (line["way"], line["goal"]) == (way, goal)]
        speed = np.mean([line["rows_a_second"] / xgboost[line["seed"]] for line in own])
        loss = np.mean([line["mse"] / whole[line["seed"]] for line in own])
        ax.scatter(speed, loss, color=_OTHERS if way == "XGBoost" else _OURS, s=24)
        if goal is None:
            words = {"whole": "default", "both": "weights solved anew"}.get(way, way)
            ax.annotate(words, (speed, loss), xytext=(6, -3), textcoords="offset points", fontsize=9)
    ax.set_xlabel("rows a second, XGBoost's default = 1")
    ax.set_ylabel("test loss, GCE's default = 1")
    _save(figure, path)


def _table_rows() -> Rows:
    return {model: accuracy_rows.read(RESULTS / "tables", model) for model in TABLE_MODELS}


def _timed_on(row: dict[str, Any]) -> str | None:
    """The kind of machine of a row's seconds, if it did nothing else."""
    return row.get("timed_on", row.get("machine")) if row.get("quiet") else None


def _panels(count: int, title: str, height: float = 2.0) -> tuple[Any, Any]:
    """Panels of one size, two beside each other, of some height in inches."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    rows = (count + 1) // 2
    size = (8.5, 3.6 if count == 1 else 0.6 + height * rows)
    figure, axes = plt.subplots(rows, min(count, 2), figsize=size, squeeze=False, layout="constrained")
    figure.suptitle(title, fontsize=11)
    return figure, axes.ravel()


def _bars(ax: Any, title: str, values: dict[str, float], form: str) -> None:
    names = list(values)[::-1]
    bars = ax.barh(
        names, [values[name] for name in names], color=[_OURS if name == "GCE" else _OTHERS for name in names]
    )
    ax.bar_label(bars, [form.format(values[name]) for name in names], padding=3, fontsize=9)
    ax.set_title(title, fontsize=10)
    ax.margins(x=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_visible(False)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path)
    plt.close(figure)


#: By the name of the file that docs/benchmarks.md shows.
PICTURES: dict[str, Callable[[Path], None]] = {
    "accuracy_ranks": accuracy_ranks,
    "tables_ranks": tables_ranks,
    "fit_seconds": fit_seconds,
    "serving": serving,
    "pruned": pruned,
}
