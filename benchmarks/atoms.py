"""Fewer epochs for the same atom? Training risk at equal rounds beside the paper's oracle, and the large-data defaults
beside what they replaced.

    python benchmarks/atoms.py [--plain] [--seeds 3]

Writes benchmarks/results/atoms.md and .json. One thread a fit. ``--plain`` adds the paper's oracle as plain automatic
differentiation (slow): the compiled loops train the same networks, to rounding, which the tests show.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import data_sets
import numpy as np
import torch
from harness import RESULTS, machine, run_script
from joblib import Parallel, delayed
from plain import PlainNeural
from sklearn.datasets import load_breast_cancer, load_diabetes

import gce

ROUNDS = (5, 10, 20)
SMALL = ("diabetes", "boston", "breast_cancer", "digits")
REGRESSION = ("diabetes", "boston", "california", "kin8nm", "bike_hour", "protein", "diamonds")
#: Development sets for the defaults of large data, at most this many rows of each.
LARGE = ("california", "kin8nm", "bike_hour", "protein", "diamonds", "electricity6", "letter", "covertype")
MOST_ROWS = 20_000

OURS = {"diabetes": load_diabetes, "breast_cancer": load_breast_cancer}

EQUAL_ROUNDS: dict[str, dict[str, Any]] = {
    "paper: rate 1e-3, batches of n/3, to the plateau": {"learning_rate": 1e-3, "batch_size": 3, "max_epochs": 20_000},
    "full batches, rate 1e-2, to the plateau": {"max_epochs": 20_000},
    "full batches, rate 2e-2, gain 0.5, at most 200 epochs": {"learning_rate": 2e-2, "gain": 0.5, "max_epochs": 200},
    "full batches, rate 2e-2, gain 0.5, at most 600 epochs": {"learning_rate": 2e-2, "gain": 0.5, "max_epochs": 600},
    "default: full batches, rate 1e-2, at most 40 epochs": {},
}
LARGE_DATA: dict[str, dict[str, Any]] = {
    "default": {},
    "inherit=0": {"inherit": 0.0},
    "gain=1": {"gain": 1.0},
    "inherit=0, gain=1": {"inherit": 0.0, "gain": 1.0},
    "hidden=10": {"hidden": 10},
    "hidden=100": {"hidden": 100},
    "max_epochs=15": {"max_epochs": 15},
    "max_epochs=60": {"max_epochs": 60},
}


def load(name: str) -> tuple[Any, Any]:
    X, y = OURS[name](return_X_y=True) if name in OURS else data_sets.load(name)
    order = np.random.RandomState(0).permutation(len(X))[:MOST_ROWS]
    return X[order].astype(np.float64), y[order]


def model(name: str, basis: gce.bases.Neural, **settings: Any) -> Any:
    kind = gce.GCERegressor if name in REGRESSION else gce.GCEClassifier
    return kind(basis=basis, verbose=False, **settings)


def equal_rounds(name: str, kind: type[gce.bases.Neural], seed: int, **settings: Any) -> dict[str, Any]:
    """Training risk after some rounds with nothing held out."""
    torch.set_num_threads(1)
    X, y = load(name)
    if "batch_size" in settings:
        settings["batch_size"] = math.ceil(len(X) / settings["batch_size"])
    basis = kind(hidden=10, **settings)
    fit = model(name, basis, cv=None, validation_fraction=None, max_atoms=20, n_iter_no_change=None, tol=0)
    began = time.process_time()
    fit.set_params(random_state=seed).fit(X, y)
    risks = [fit.history_[min(t, len(fit.history_)) - 1]["risk"] for t in ROUNDS]
    return {"risks": risks, "cpu_seconds": time.process_time() - began}


def held_out(name: str, seed: int, **settings: Any) -> dict[str, Any]:
    """Test error of one hold-out fit of at most 60 atoms."""
    torch.set_num_threads(1)
    X, y = load(name)
    n = int(0.8 * len(X))
    fit = model(name, gce.bases.Neural(**settings), cv=None, max_atoms=60, random_state=seed)
    began = time.process_time()
    answer = fit.fit(X[:n], y[:n]).predict(X[n:])
    seconds = time.process_time() - began
    error = np.abs(answer - y[n:]).mean() if name in REGRESSION else 100 * (answer != y[n:]).mean()
    return {"error": float(error), "cpu_seconds": seconds, "risk20": fit.history_[min(20, fit.n_iter_) - 1]["risk"]}


def mean(rows: list[dict[str, Any]], key: str) -> Any:
    return np.mean([row[key] for row in rows], axis=0)


def first_table(seeds: int, plain: bool) -> tuple[list[str], dict[str, Any]]:
    kinds = {name: (gce.bases.Neural, settings) for name, settings in EQUAL_ROUNDS.items()}
    if plain:
        kinds["paper, by plain autograd"] = (PlainNeural, next(iter(EQUAL_ROUNDS.values())))
    lines = ["| | " + " | ".join(SMALL) + " |", "|---|" + "---|" * len(SMALL)]
    cells: dict[str, Any] = {}
    for label, (kind, settings) in kinds.items():
        row = []
        for name in SMALL:
            jobs = (delayed(equal_rounds)(name, kind, seed, **settings) for seed in range(seeds))
            results = list(Parallel(2)(jobs))
            cells[f"{label} / {name}"] = results
            risks = " / ".join(f"{risk:.3g}" for risk in mean(results, "risks"))
            row.append(f"{risks}, {mean(results, 'cpu_seconds'):.1f} s")
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    return lines, cells


def second_table(seeds: int) -> tuple[list[str], dict[str, Any]]:
    lines = ["| | " + " | ".join(LARGE) + " |", "|---|" + "---|" * len(LARGE)]
    cells: dict[str, Any] = {}
    for label, settings in LARGE_DATA.items():
        row = []
        for name in LARGE:
            results = list(Parallel(2)(delayed(held_out)(name, seed, **settings) for seed in range(seeds)))
            cells[f"{label} / {name}"] = results
            row.append(f"{mean(results, 'error'):.4g}, {mean(results, 'cpu_seconds'):.1f} s")
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    return lines, cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    here = machine()
    small, small_cells = first_table(arguments.seeds, arguments.plain)
    large, large_cells = second_table(2)
    text = [
        "# Atoms: epochs, starts and sizes",
        "",
        f"Machine: {here['cpu']}, {here['cores']} cores, two fits at a time on a thread each. Script: "
        "`benchmarks/atoms.py`.",
        "",
        f"## Training risk after 5 / 10 / 20 rounds, and CPU seconds of the fit (mean of {arguments.seeds} seeds)",
        "",
        "Ten hidden units, all rows trained on, nothing held out.",
        "",
        *small,
        "",
        f"## Test error and CPU seconds on up to {MOST_ROWS:,} rows (mean of 2 seeds)",
        "",
        "80 % to fit, of which a fifth is held out (`cv=None`, at most 60 atoms); MAE for regression, % for classes.",
        "Every row differs from the default for large data in what its name says.",
        "",
        *large,
    ]
    (RESULTS / "atoms.md").write_text("\n".join(text) + "\n")
    (RESULTS / "atoms.json").write_text(
        json.dumps({"machine": here, "small": small_cells, "large": large_cells}) + "\n"
    )


if __name__ == "__main__":
    run_script(main)
