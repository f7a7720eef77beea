"""Trees that split categories and missing values themselves, against trees that split their indicators one by one.

    python benchmarks/native_categories.py FOLDER [--rows 3000] [--seeds 10 11 12]

FOLDER has tables.json, which describes tables by their targets, tasks and columns of dates, and one NAME.parquet for
each. Every fit is a line of JSON in benchmarks/results/native_categories.jsonl, and is not repeated;
native_categories.md is made of them. A split is ``RandomState(seed).permutation(n)``: the first rows to fit on, the
next 3,000 to be tried on; of a table with groups, a fifth of the groups are tried on. Columns of dates are left out.
Models are the defaults of each class. "indicators" gives them the inputs of networks, all of which are numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from harness import RESULTS, run_script
from sklearn.metrics import log_loss

from gce import GCEClassifier, GCERegressor
from gce.bases.trees import grower

LEDGER = RESULTS / "native_categories.jsonl"
#: Tables with categories or gaps; of more classes than two a fit takes long.
TABLES = (
    *("ames", "lending_club", "hotel_rates", "loans", "wa_churn"),
    *("nass_cds", "doctor_contacts", "star", "seattle_pets", "movielens"),
)
FAMILIES = ("tree", "symmetric", "forest", "auto")
VIEWS = ("indicators", "columns")
#: Other rules of categories, for boosted trees: what they change.
RULES: dict[str, dict[str, float]] = {
    "no smoothing, penalty and least rows": {"smoothing": 0, "least": 0, "l2": 0},
    "3 rows of each": {"smoothing": 3, "least": 3, "l2": 3},
    "no penalty": {"l2": 0},
    "penalty 30": {"l2": 30},
    "smoothing 50": {"smoothing": 50},
    "at least 30 rows": {"least": 30},
    "also for few categories": {"few": 0},
    "not up to 8 categories": {"few": 8},
    "at most 8 on one side": {"most": 8},
}
_TRIED = 3000


def split(about: dict[str, Any], frame: pd.DataFrame, seed: int, rows: int) -> tuple[Any, Any]:
    """Indices of the rows to fit on and to be tried on."""
    rng = np.random.RandomState(seed)
    if about["split"] == "group":
        key = frame[about["key"]].to_numpy()
        groups = rng.permutation(np.unique(key))
        tried = np.isin(key, groups[: len(groups) // 5])
        order = rng.permutation(len(frame))
        return order[~tried[order]][:rows], order[tried[order]][:_TRIED]
    order = rng.permutation(len(frame))
    rows = min(rows, int(len(frame) * 0.75))
    return order[:rows], order[rows : rows + _TRIED]


def measured(folder: Path, name: str, seed: int, rows: int) -> list[dict[str, Any]]:
    """All fits to one split of a table."""
    about = json.loads((folder / "tables.json").read_text())[name]
    frame = pd.read_parquet(folder / f"{name}.parquet").dropna(subset=[about["target"]])
    train, test = split(about, frame, seed, rows)
    y = frame[about["target"]].to_numpy()
    keys = [about["key"]] if about["split"] == "group" else []
    X = frame.drop(columns=[about["target"], *about["dates"], *keys])
    regression = about["task"] == "regression"
    y = y if regression else y.astype(str)
    kind = GCERegressor if regression else GCEClassifier
    once = kind(basis="tree", max_iter=1, max_atoms=1, random_state=seed).fit(X.iloc[train], y[train])
    inputs = [once.table_.transform(once.code_rows(X.iloc[some])) for some in (train, test)]
    views = {"columns": [X.iloc[train], X.iloc[test]], "indicators": inputs}
    out = []
    for family, view in [*product(FAMILIES, VIEWS), *product(FAMILIES[:2], RULES)]:
        model, (own, tried) = kind(basis=family, random_state=seed), views.get(view, views["columns"])
        began = time.perf_counter()
        with patch.object(grower, "CATEGORIES", replace(grower.CATEGORIES, **RULES.get(view, {}))):
            model.fit(own, y[train])
        seconds = time.perf_counter() - began
        if regression:
            score = float(np.sqrt(np.mean((model.predict(tried) - y[test]) ** 2)))
        else:
            score = float(log_loss(y[test], model.predict_proba(tried), labels=model.classes_))
        out.append(
            {"table": name, "seed": seed, "family": family, "view": view, "score": score, "seconds": round(seconds, 2)}
        )
    return out


def page(lines: list[dict[str, Any]], rows: int) -> str:
    """The results as tables."""
    found = {(line["family"], line["table"], line["view"], line["seed"]): line for line in lines}
    seeds = sorted({line["seed"] for line in lines})
    parts = [
        "# Trees that split categories and missing values themselves",
        f"Made by benchmarks/native_categories.py on {os.cpu_count()} cores ({platform.machine()}), with other work "
        f"beside it: times are a guide. Up to {rows:,} rows, splits {seeds[0]} to {seeds[-1]}; RMSE or log-loss on "
        "other rows, the mean over splits, and the geometric mean of its ratio to that of indicators.",
    ]
    for family in FAMILIES:
        body, ratios, times = [], [], []
        for name in TABLES:
            own = [[found[family, name, view, seed] for seed in seeds] for view in VIEWS]
            scores, seconds = (np.array([[line[key] for line in some] for some in own]) for key in ("score", "seconds"))
            ratios.append(np.log(scores[1] / scores[0]).mean())
            times.append(np.log(seconds[1].mean() / seconds[0].mean()))
            cells = [f"{value:.4g}" for value in scores.mean(1)]
            body.append(
                f"| {name} | {cells[0]} | {cells[1]} | {100 * np.expm1(ratios[-1]):+.2f} % | {np.exp(times[-1]):.2f} |"
            )
        mean = f"| geometric mean | | | {100 * np.expm1(np.mean(ratios)):+.2f} % | {np.exp(np.mean(times)):.2f} |"
        head = "| | indicators | columns | change | time, relative |\n|---|---:|---:|---:|---:|"
        parts.append(f"## {family}\n\n" + "\n".join([head, *body, mean]))
    body = []
    for view in VIEWS[1:] + tuple(RULES):
        cells = []
        for family in FAMILIES[:2]:
            pairs = [
                [found[family, name, v, seed]["score"] for v in (view, VIEWS[0])]
                for name, seed in product(TABLES, seeds)
            ]
            cells.append(f"{100 * np.expm1(np.log(pairs) @ [1, -1]).mean():+.2f} %")
        body.append(f"| {'the rule' if view in VIEWS else view} | {' | '.join(cells)} |")
    head = "| change against indicators, mean | tree | symmetric |\n|---|---:|---:|"
    parts.append("## Other rules of categories\n\n" + "\n".join([head, *body]))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    given = parser.parse_args()
    lines = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    for seed, name in product(given.seeds, TABLES):
        if not any((line["table"], line["seed"]) == (name, seed) for line in lines):
            with warnings.catch_warnings():
                # many tables have columns of rare categories
                warnings.simplefilter("ignore")
                lines += measured(given.folder, name, seed, given.rows)
            LEDGER.write_text("".join(json.dumps(line) + "\n" for line in lines))
    LEDGER.with_suffix(".md").write_text(page(lines, given.rows))


if __name__ == "__main__":
    run_script(main)
