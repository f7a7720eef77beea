"""Prediction speed, one-row latency and file sizes of default models on every development set, beside peers.

    GCE_DATA_HOME=FOLDER python benchmarks/small_models.py [--without NAME ...]

First split of each set that is there, two threads, all in one process. Rows per second: the best of several calls on
the test rows, repeated to 20,000. One row: the median of 200 calls. Files: `save` of GCE, cbm of CatBoost. Writes
benchmarks/results/small_models.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import accuracy_models as peers
import numpy as np
from accuracy_sets import SETS, cut
from harness import CORES, RESULTS, processor, run_script
from numpy.typing import NDArray

ROWS, CALLS = 20_000, 200


def rows_per_second(model: Any, X: NDArray[np.float64]) -> float:
    """Of predictions of many rows."""
    many = np.resize(X, (ROWS, X.shape[1]))
    took = []
    for _ in range(5):
        began = time.perf_counter()
        model.predict(many)
        took.append(time.perf_counter() - began)
    return len(many) / min(took)


def one_row(model: Any, X: NDArray[np.float64]) -> float:
    """Milliseconds of predictions of one row."""
    took = []
    for i in range(CALLS):
        row = X[i % len(X) : i % len(X) + 1]
        began = time.perf_counter()
        model.predict(row)
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)


def file_size(model: Any, save: str) -> float:
    """Megabytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        getattr(model, save)(str(path))
        return sum(part.stat().st_size for part in Path(folder).iterdir()) / 1e6


def measured(name: str) -> str:
    """One line of the table."""
    rows = cut(name, 0)
    models = {kind: peers.make(kind, rows.regression, 0) for kind in ("GCE", "CatBoost", "XGBoost")}
    for model in models.values():
        model.fit(rows.X_train, rows.y_train)
    ours, theirs = (rows_per_second(models[kind], rows.X_test) for kind in ("GCE", "XGBoost"))
    sizes = file_size(models["GCE"], "save"), file_size(models["CatBoost"], "save_model")
    return (
        f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | {one_row(models['GCE'], rows.X_test):.2f} "
        f"| {sizes[0]:.2f} | {sizes[1]:.2f} | {sizes[0] / sizes[1]:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", nargs="*", default=[], choices=SETS)
    given = parser.parse_args()
    lines = [
        "# Default models: prediction speed, latency, files",
        "",
        *(__doc__ or "").splitlines()[4:7],
        f"Machine: {processor()}, {CORES} cores.",
        "Goals: at least half of XGBoost's rows, 0.3 ms, at most five times CatBoost's file.",
        "",
        "| | GCE rows/s | XGBoost rows/s | ratio | GCE, one row ms | GCE file MB | CatBoost file MB | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in SETS:
        if name in given.without:
            continue
        lines.append(measured(name))
    (RESULTS / "small_models.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    run_script(main)
