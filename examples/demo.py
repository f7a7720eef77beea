"""The four greedy algorithms and models of scikit-learn at their defaults, on two data sets of scikit-learn.

    python examples/demo.py [--out out]

Prints a table and writes it, with a plot of every fit, to the folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gce import GCEClassifier, GCERegressor

mpl.use("Agg")
import matplotlib.pyplot as plt

# Frank-Wolfe is dashed: it coincides with the away-step variant until the first away step.
ALGORITHMS = {
    "pairwise": {"color": "#0072B2", "lw": 1.8},
    "away": {"color": "#D55E00", "lw": 2.6, "alpha": 0.8},
    "frank-wolfe": {"color": "#009E73", "lw": 1.6, "ls": "--"},
    "nonlinear": {"color": "#CC79A7", "lw": 1.8},
}
SETS = {
    "diabetes": (
        load_diabetes,
        GCERegressor,
        "MAE",
        (HistGradientBoostingRegressor, RandomForestRegressor, MLPRegressor),
    ),
    "digits": (
        load_digits,
        GCEClassifier,
        "error %",
        (HistGradientBoostingClassifier, RandomForestClassifier, MLPClassifier),
    ),
}


def models(name: str) -> dict[str, Any]:
    _, kind, _, (boosting, forest, network) = SETS[name]
    ours = {f"GCE {algorithm}": kind(algorithm=algorithm, random_state=0) for algorithm in ALGORITHMS}
    return {
        **ours,
        "HistGradientBoosting": boosting(random_state=0),
        "RandomForest": forest(random_state=0, n_jobs=-1),
        "MLP (standardised)": make_pipeline(StandardScaler(), network(random_state=0)),
    }


def compare(name: str, console: Console) -> tuple[list[tuple[str, float, float, str]], dict[str, Any]]:
    """Fit every model on 80 % of a data set: rows of (model, test error, seconds, atoms), and the fitted models."""
    load, *_ = SETS[name]
    X, y = load(return_X_y=True)
    train, test = np.split(np.random.RandomState(0).permutation(len(X)), [int(0.8 * len(X))])
    rows, fitted = [], {}
    for label, model in models(name).items():
        if console.is_terminal:
            console.print(f"[dim]{name}: {label}[/dim]", end="\r")
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[train], y[train])
        seconds = time.perf_counter() - began
        answer = model.predict(X[test])
        error = np.abs(answer - y[test]).mean() if name == "diabetes" else 100 * (answer != y[test]).mean()
        atoms = str(len(model.ensemble_)) if hasattr(model, "ensemble_") else ""
        rows.append((label, float(error), seconds, atoms))
        fitted[label] = model
    return rows, fitted


def show(name: str, rows: list[tuple[str, float, float, str]], console: Console) -> str:
    """Print a table, and return it as Markdown."""
    metric = SETS[name][2]
    table = Table(title=f"{name}: 20 % held out, split seed 0", title_justify="left")
    for head in ("model", f"test {metric}", "fit s", "atoms"):
        table.add_column(head, justify="left" if head == "model" else "right")
    best = min(error for _, error, _, _ in rows)
    lines = [f"| {name} | test {metric} | fit s | atoms |", "|---|---:|---:|---:|"]
    for label, error, seconds, atoms in rows:
        mark = ("[bold]", "[/bold]") if error == best else ("", "")
        table.add_row(label, f"{mark[0]}{error:.2f}{mark[1]}", f"{seconds:.2f}", atoms)
        lines.append(f"| {label} | {error:.2f} | {seconds:.2f} | {atoms} |")
    console.print(table)
    return "\n".join(lines)


def draw(everything: dict[str, dict[str, Any]], path: Path) -> None:
    """Risk, validation and gap against the number of atoms, one row per data set."""
    columns = {"risk": "training risk", "validation": "validation risk", "gap_lower": "gap (lower estimate)"}
    figure, axes = plt.subplots(len(everything), len(columns), figsize=(11, 5.6), squeeze=False, layout="constrained")
    for row, (name, fitted) in zip(axes, everything.items(), strict=True):
        for axis, (column, title) in zip(row, columns.items(), strict=True):
            for algorithm, style in ALGORITHMS.items():
                history = fitted[f"GCE {algorithm}"].history_
                axis.plot([e["t"] for e in history], [e[column] for e in history], label=algorithm, **style)
            low, high = axis.get_ylim()
            axis.set(title=f"{name}: {title}", xlabel="atoms added to each member")
            axis.set_yscale("log" if low <= 0 or high > 10 * low else "linear")
            axis.grid(alpha=0.25, which="both", lw=0.5)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=9)
    figure.suptitle("Four greedy algorithms, mean of cross-fitted members (curves of finished members stay constant)")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(file=sys.stdout)
    began = time.perf_counter()
    parts, everything = [], {}
    for name in SETS:
        rows, everything[name] = compare(name, console)
        parts.append(show(name, rows, console))
    draw(everything, folder / "demo.png")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    title = "# Four greedy algorithms on small data sets"
    (folder / "demo.md").write_text("\n\n".join([title, *parts, f"Machine: {machine}."]) + "\n")
    console.print(
        f"{time.perf_counter() - began:.0f} s in all. Picture: {folder / 'demo.png'}, table: {folder / 'demo.md'}.\n"
        "One split of 89 and 360 test rows separates little: benchmarks/results/small_sets.md has ten."
    )


if __name__ == "__main__":
    main()
