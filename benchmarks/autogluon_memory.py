"""What default fits need of the memory that ``gce.integrations.autogluon`` estimates for them.

    build/autogluon/bin/python benchmarks/autogluon_memory.py        (Linux, after `make autogluon`)

Prints one line a problem, each fitted in a process of its own: the peak of its resident memory beside the estimate.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
from harness import peak_mib, run_script

#: Rows, columns of numbers, columns of 200 categories, classes (1: numbers), and 1 where a fifth is given as X_val.
PROBLEMS = (
    (20_000, 10, 0, 1, 0), (20_000, 10, 0, 5, 0), (5_000, 300, 0, 1, 0), (150_000, 20, 0, 1, 0), (60_000, 20, 0, 5, 0),
    (40_000, 5, 3, 1, 0), (25_000, 10, 0, 1, 1), (25_000, 10, 0, 5, 1), (250_000, 20, 0, 1, 1), (100_000, 20, 0, 5, 1),
    (100_000, 200, 0, 1, 1), (50_000, 5, 3, 1, 1),
)  # fmt: skip


def table(rows: int, numbers: int, categories: int, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, numbers))).add_prefix("x")
    score = X.x0 + X.x1**2 + np.sin(3 * X.x2) + rng.normal(size=rows)
    levels = pd.DataFrame(rng.integers(0, 200, (rows, categories))).add_prefix("c").astype("category")
    return X.join(levels), score if classes == 1 else pd.qcut(score, classes, labels=False)


def measure(rows: int, numbers: int, categories: int, classes: int, held_out: int) -> str:
    from gce.integrations.autogluon import GCEModel

    X, y = table(rows, numbers, categories, classes)
    given: dict[str, Any] = {"X": X, "y": y}
    if held_out:
        h = rows // 5
        given = {"X": X[h:], "y": y[h:], "X_val": X[:h], "y_val": y[:h]}
    model = GCEModel(problem_type="regression" if classes == 1 else "multiclass")
    model.fit(**given, num_cpus=1)
    estimate = model.estimate_memory_usage(**given) / 2**20
    shape = f"{len(given['X']):,} rows, {numbers} numbers, {categories} categories, {classes} output(s)"
    return f"{shape}{', X_val' * held_out}: {peak_mib():.0f} of {estimate:.0f} MiB, {peak_mib() / estimate:.2f}"


def main() -> None:
    if len(sys.argv) > 1:
        sys.stdout.write(measure(*map(int, sys.argv[1:])) + "\n")
    else:
        for problem in PROBLEMS:
            subprocess.run([sys.executable, __file__, *map(str, problem)], check=True)


if __name__ == "__main__":
    run_script(main)
