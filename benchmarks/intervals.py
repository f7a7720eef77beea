"""Prediction intervals of 90 %: widths by row and constant ones, beside MAPIE on the same model and quantile pairs.

    GCE_DATA_HOME=FOLDER python benchmarks/intervals.py [--sets NAME ...] [--seeds 0 1 2 3 4] [--methods NAME ...]
    python benchmarks/intervals.py --tables-only

Needs mapie, lightgbm and catboost; one thread. At most 4,000 training and 4,000 test rows of a set, drawn by the seed.
Lines are added to benchmarks/results/intervals.jsonl, one for each set, seed and method: what is there is not run
again. intervals.md is their summary.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from accuracy_models import machine
from data_sets import load
from harness import RESULTS, run_script
from numpy.typing import NDArray

from gce import GCERegressor
from gce.losses import Quantile

Array = NDArray[np.float64]
Row = dict[str, Any]

ROWS = RESULTS / "intervals.jsonl"
COVERAGE = 0.9
#: Training and test rows at most, and the part of the training rows that MAPIE calibrates on.
MOST_ROWS, CALIBRATION = 4000, 0.2
REAL = (
    "diabetes", "boston", "energy", "concrete", "kin8nm", "elevators", "bike_hour", "california", "protein", "diamonds",
)  # fmt: skip
MADE = ("funnel", "regimes")
SETS = (*REAL, *MADE)
SEEDS = (0, 1, 2, 3, 4)


class Split(NamedTuple):
    """Rows to fit and rows to judge by."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    seed: int


def made(name: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """A set whose noise depends on the row: it widens along a column, or has regimes and heavy tails."""
    X = rng.uniform(-1, 1, (2 * MOST_ROWS, 6))
    if name == "funnel":
        return X, np.sin(3 * X[:, 0]) + X[:, 1] + (0.1 + 0.45 * (X[:, 2] + 1)) * rng.normal(size=len(X))
    noise = np.exp(1.2 * X[:, 3]) * np.where(X[:, 4] > 0, 1.0, 0.3) * rng.standard_t(4, len(X))
    return X, 3 * X[:, 0] * X[:, 1] + noise


def split(name: str, seed: int) -> Split:
    """A set in the seed's order, four fifths to fit on."""
    rng = np.random.default_rng(seed)
    X, y = made(name, rng) if name in MADE else (part.astype(np.float64) for part in load(name))
    order = rng.permutation(len(X))
    train, test = np.split(order, [int(0.8 * len(X))])
    train, test = train[:MOST_ROWS], test[:MOST_ROWS]
    if name in MADE:
        test = order[MOST_ROWS : 2 * MOST_ROWS]
    return Split(X[train], y[train], X[test], y[test], seed)


def gce(rows: Split) -> dict[str, Array]:
    """One default fit, and both of its intervals."""
    model = GCERegressor(random_state=rows.seed, n_jobs=1, verbose=False).fit(rows.X, rows.y)
    return {
        "constant": model.predict_interval(rows.X_test, COVERAGE, method="constant"),
        "auto": model.predict_interval(rows.X_test, COVERAGE),
    }


def _held_out(rows: Split) -> tuple[Array, Array, Array, Array]:
    """Rows to fit, and rows to calibrate on."""
    n = int((1 - CALIBRATION) * len(rows.X))
    return rows.X[:n], rows.y[:n], rows.X[n:], rows.y[n:]


def mapie_split(rows: Split) -> dict[str, Array]:
    """MAPIE's split conformal intervals around a default fit."""
    from mapie.regression import SplitConformalRegressor

    X, y, X_calibration, y_calibration = _held_out(rows)
    model = GCERegressor(random_state=rows.seed, n_jobs=1, verbose=False).fit(X, y)
    wrapped = SplitConformalRegressor(model, confidence_level=COVERAGE, prefit=True)
    _, ends = wrapped.conformalize(X_calibration, y_calibration).predict_interval(rows.X_test)
    return {"mapie split": ends[:, :, 0]}


def mapie_quantiles(rows: Split) -> dict[str, Array]:
    """MAPIE's conformalised quantile regression, of default fits to three quantiles."""
    from mapie.regression import ConformalizedQuantileRegressor

    X, y, X_calibration, y_calibration = _held_out(rows)
    levels = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2, 0.5)
    models = [
        GCERegressor(loss=Quantile(level), random_state=rows.seed, n_jobs=1, verbose=False).fit(X, y)
        for level in levels
    ]
    wrapped = ConformalizedQuantileRegressor(models, confidence_level=COVERAGE, prefit=True)
    _, ends = wrapped.conformalize(X_calibration, y_calibration).predict_interval(rows.X_test)
    return {"mapie quantiles": ends[:, :, 0]}


def lightgbm(rows: Split) -> dict[str, Array]:
    """Two quantiles by LightGBM at its defaults."""
    from lightgbm import LGBMRegressor

    return {"lightgbm pair": _pair(rows, lambda a: LGBMRegressor(objective="quantile", alpha=a, n_jobs=1, verbose=-1))}


def catboost(rows: Split) -> dict[str, Array]:
    """Two quantiles by CatBoost at its defaults."""
    from catboost import CatBoostRegressor

    more = {"thread_count": 1, "random_seed": rows.seed, "verbose": False, "allow_writing_files": False}
    return {"catboost pair": _pair(rows, lambda a: CatBoostRegressor(loss_function=f"Quantile:alpha={a}", **more))}


def _pair(rows: Split, model: Callable[[float], Any]) -> Array:
    levels = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
    return np.stack([model(level).fit(rows.X, rows.y).predict(rows.X_test) for level in levels], 1)


METHODS: dict[str, Callable[[Split], dict[str, Array]]] = {
    "gce": gce,
    "mapie split": mapie_split,
    "mapie quantiles": mapie_quantiles,
    "lightgbm pair": lightgbm,
    "catboost pair": catboost,
}


def judged(ends: Array, y: Array) -> Row:
    """Coverage, mean width and mean interval score (Winkler, 1972) of intervals ``(n, 2)``."""
    low, high = ends.T
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "score": float(np.mean(high - low + 2 / (1 - COVERAGE) * missed)),
    }


def known() -> list[Row]:
    """What has been run."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def run(sets: list[str], seeds: list[int], methods: list[str]) -> None:
    """Run what is missing, and keep each line at once."""
    torch.set_num_threads(1)
    done = {(row["set"], row["seed"], row["run"]) for row in known()}
    for seed in seeds:
        for name in sets:
            for method in methods:
                if (name, seed, method) in done:
                    continue
                rows, began = split(name, seed), time.process_time()
                found = METHODS[method](rows)
                about = {"cpu": round(time.process_time() - began, 2), "rows": len(rows.X), "machine": machine()}
                lines = [
                    {"set": name, "seed": seed, "run": method, "method": own, **judged(ends, rows.y_test), **about}
                    for own, ends in found.items()
                ]
                with ROWS.open("a") as out:
                    out.write("".join(json.dumps(line) + "\n" for line in lines))


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    if not given.tables_only:
        run(given.sets, given.seeds, given.methods)
    from intervals_page import page

    (RESULTS / "intervals.md").write_text(page(known(), SETS))


if __name__ == "__main__":
    run_script(main)
