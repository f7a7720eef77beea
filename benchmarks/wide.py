"""Tables with more columns than rows: bins and columns of trees, and seconds of default fits of 10,000 columns.

    python benchmarks/wide.py bins
    python benchmarks/wide.py fits

Prints a table of results/wide.md. Tables are made up; CPU seconds are those of one thread.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from harness import run_script

import gce
from gce.bases import Forest, SymmetricTree, Tree

ROWS, TEST_ROWS, COLUMNS, MANY = 300, 1500, 2000, 10_000
SEED = 11


def few(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Three columns that matter, linearly."""
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] - X[:, 2] + 0.3 * rng.normal(size=n)


def steps(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Three columns that matter, by steps."""
    X = rng.normal(size=(n, d))
    return X, 2.0 * (X[:, 0] > 0) * (X[:, 1] > 0) + (X[:, 2] > 0.5) + 0.3 * rng.normal(size=n)


def factors(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty hidden factors, each in a tenth of the columns, of which four matter."""
    hidden = rng.normal(size=(n, 20))
    loadings = rng.normal(size=(20, d)) * (rng.random((20, d)) < 0.1)
    y = hidden[:, 0] * (hidden[:, 1] > 0) + hidden[:, 2] + np.abs(hidden[:, 3]) + 0.3 * rng.normal(size=n)
    return hidden @ loadings + rng.normal(size=(n, d)), y


def with_gaps(X: np.ndarray) -> np.ndarray:
    """A fifth of the values missing in every other column."""
    X = X.copy()
    X[:, ::2][np.random.default_rng(1).random(X[:, ::2].shape) < 0.2] = np.nan
    return X


def messy(X: np.ndarray) -> pd.DataFrame:
    """Half numbers with gaps, a quarter text, an eighth constant and an eighth without values."""
    rng, (n, d) = np.random.default_rng(2), X.shape
    numbers = pd.DataFrame(with_gaps(X[:, : d // 2]), columns=[f"number {j}" for j in range(d // 2)])
    text = pd.DataFrame({f"text {j}": rng.choice(["a", "b", "c"], n) for j in range(d // 4)})
    constant = pd.DataFrame({f"constant {j}": np.ones(n) for j in range(d // 8)})
    empty = pd.DataFrame({f"empty {j}": [None] * n for j in range(d // 8)})
    return pd.concat([numbers, text, constant, empty], axis=1)


def variants() -> dict[str, Any]:
    """The default families of few rows, with their usual bins, fewer bins, and fewer columns for each tree."""

    def tree(**changed: Any) -> Tree:
        return Tree(max_leaf_nodes=16, min_samples_leaf=1, subsample=0.8, learning_rate=0.15, **changed)

    return {
        "Tree, 256 bins": tree(),
        "Tree, 64 bins": tree(max_bins=64),
        "Tree, 16 bins": tree(max_bins=16),
        "Tree, 256 bins, a quarter of the columns": tree(max_features=0.25),
        "SymmetricTree, 128 bins": SymmetricTree(learning_rate=0.15),
        "SymmetricTree, 64 bins": SymmetricTree(learning_rate=0.15, max_bins=64),
        "SymmetricTree, 16 bins": SymmetricTree(learning_rate=0.15, max_bins=16),
        "SymmetricTree, 128 bins, a quarter of the columns": SymmetricTree(learning_rate=0.15, max_features=0.25),
        "Forest, 256 bins": Forest(n_estimators=20),
        "Forest, 16 bins": Forest(n_estimators=20, max_bins=16),
    }


def say(*cells: Any) -> None:
    """Print a row of a Markdown table."""
    sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
    sys.stdout.flush()


def compare_bins() -> None:
    """R2 on other rows and CPU seconds of each variant, on three tables."""
    tables = {"few": few, "steps": steps, "factors": factors}
    say("", *(f"{name}: R2 (s)" for name in tables))
    say("---", *("---:" for _ in tables))
    for name, basis in variants().items():
        cells = []
        for make in tables.values():
            X, y = make(np.random.default_rng(SEED), ROWS + TEST_ROWS, COLUMNS)
            start = time.process_time()
            model = gce.GCERegressor(basis=basis, cv=3, random_state=0, verbose=False).fit(X[:ROWS], y[:ROWS])
            seconds = time.process_time() - start
            cells.append(f"{model.score(X[ROWS:], y[ROWS:]):.3f} ({seconds:.1f})")
        say(name, *cells)


def time_fits() -> None:
    """Seconds and peak memory of default fits of 10,000 columns."""
    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        "numbers": lambda X: X,
        "numbers, gaps in half of the columns": with_gaps,
        "numbers, text, constant and empty columns": messy,
    }
    say(f"{ROWS} x {MANY:,}", "fit, CPU s", "predict, ms", "peak memory so far, GB")
    say("---", "---:", "---:", "---:")
    X, y = few(np.random.default_rng(SEED), ROWS, MANY)
    for name, change in kinds.items():
        rows = change(X)
        start = time.process_time()
        model = gce.GCERegressor(random_state=0, verbose=False).fit(rows, y)
        fitted = time.process_time()
        model.predict(rows)
        predicted = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        say(name, f"{fitted - start:.1f}", f"{1000 * (predicted - fitted):.0f}", f"{memory:.1f}")


def main() -> None:
    torch.set_num_threads(1)
    {"bins": compare_bins, "fits": time_fits}[sys.argv[1]]()


if __name__ == "__main__":
    run_script(main)
