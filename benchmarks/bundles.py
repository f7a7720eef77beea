"""Bundles of exclusive columns: a round of trees, binning and bytes, with bundles and without.

    python benchmarks/bundles.py

Writes results/bundles.md. Three made-up tables: numbers beside the flags of categories, dense; the counts of words,
sparse; and numbers alone, where nothing can be bundled. Trees with and without bundles are compared bit by bit.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from harness import RESULTS, run_script
from scipy.sparse import csr_array

from gce.bases.trees import bundles
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData
from gce.preprocessing.sparse import SparseRows

REPEATS, LEAST_ROWS = 9, 20
SHAPES = {
    "Tree, 31 leaves": Shape(31, 2**31 - 1, symmetric=False),
    "SymmetricTree, depth 6": Shape(64, 6, symmetric=True),
}

ABOUT = """# Bundles of exclusive columns

Made by `python benchmarks/bundles.py` on {machine}, {threads} thread(s), with other work beside it: times are a guide.
Milliseconds of one round, one tree of one output with all rows and columns and at least {least} rows a leaf, the
gradients of squared errors: the median of {repeats} after a first one, with and without bundles in turn. "Codes" are
what growers read, in MB. Binning "without" does not look for bundles; of sparse rows, both read stored entries only.
Trees with and without bundles were equal to the bit in every cell.
"""


def flags() -> tuple[torch.Tensor, np.ndarray]:
    """50,000 rows of 10 numbers and of 200 flags of five categories of 40 levels, and a target."""
    rng = np.random.default_rng(0)
    numbers, level = rng.standard_normal((50_000, 10)), rng.integers(0, 40, (50_000, 5))
    effect = rng.normal(size=(5, 40))
    y = np.sin(3 * numbers[:, 0]) + effect[np.arange(5), level].sum(1) + 0.3 * rng.standard_normal(len(level))
    on = (level[:, :, None] == np.arange(40)).reshape(len(level), 200)
    return torch.from_numpy(np.concatenate([numbers, on], axis=1)), y


def words() -> tuple[SparseRows, np.ndarray]:
    """10,000 rows of the counts of 2,000 words, about 40 in a row, by Zipf's law, and a target."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 2001)
    drawn = rng.choice(2000, (10_000, 40), p=share / share.sum())
    rows = np.repeat(np.arange(10_000), 40)
    X = csr_array((np.ones(drawn.size), (rows, drawn.reshape(-1))), shape=(10_000, 2000))
    X.sum_duplicates()
    return SparseRows.from_matrix(X), X @ rng.normal(size=2000) + rng.standard_normal(10_000)


def numbers() -> tuple[torch.Tensor, np.ndarray]:
    """50,000 rows of 20 numbers, and a target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 20))
    return torch.from_numpy(X), np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X))


TABLES: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "flags, dense, 50,000 x 210": flags,
    "words, sparse, 10,000 x 2,000": words,
    "numbers, dense, 50,000 x 20": numbers,
}


def binned(X: Any, most_bins: int) -> tuple[BinnedRows, float]:
    """Rows, binned, and the least seconds of three; without bundles where no column has few enough bins."""
    kept, bundles.MOST_BINS, took = bundles.MOST_BINS, most_bins, []
    try:
        for _ in range(3):
            began = time.perf_counter()
            out = BinnedRows.of(X, 256)
            took.append(time.perf_counter() - began)
    finally:
        bundles.MOST_BINS = kept
    return out, min(took)


def grown(rows: BinnedRows, y: np.ndarray, shape: Shape, scratch: Scratch) -> GrownTrees:
    """One tree."""
    n, d = len(y), len(rows.bins.widths)
    gradient = np.ascontiguousarray((y.mean() - y)[None, :, None])
    given = gradient, np.ones_like(gradient), np.full(1, LEAST_ROWS / n), np.full(1, 1 / n)
    data = TreeData(rows.stored_codes, rows.bins.widths, *given, bundles=rows.bundles)
    sampling = Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, d)
    return GrownTrees(data, shape, sampling, Constraints(), scratch)


def measured(X: Any, y: np.ndarray) -> list[str]:
    """Rows of a table: what is measured, without bundles, with them, and the ratio."""
    (plain, plain_seconds), (own, own_seconds) = binned(X, 0), binned(X, bundles.MOST_BINS)
    assert plain.bundles is None
    columns = [len(plain.bins.widths), len(plain.bins.widths if own.bundles is None else own.bundles.widths)]
    lines = [
        line("columns of codes", *columns),
        line("codes, MB", plain.stored.numel() / 1e6, own.stored.numel() / 1e6),
    ]
    lines.append(line("binning, ms", 1000 * plain_seconds, 1000 * own_seconds))
    for name, shape in SHAPES.items():
        scratch, took = Scratch(), ([], [])
        for repeat in range(REPEATS + 1):
            trees = []
            for rows, times in zip((plain, own), took, strict=True):
                began = time.perf_counter()
                trees.append(grown(rows, y, shape, scratch))
                if repeat:
                    times.append(time.perf_counter() - began)
            assert all(np.array_equal(a, b) for a, b in zip(*(tree.nodes() for tree in trees), strict=True))
            assert np.array_equal(trees[0].leaf, trees[1].leaf)
        lines.append(line(f"{name}, ms", *(1000 * statistics.median(times) for times in took)))
    return lines


def line(name: str, plain: float, own: float) -> str:
    """A row of a table."""
    return f"| {name} | {plain:,.4g} | {own:,.4g} | {own / plain:.2f} |"


def main() -> None:
    """Measure and write."""
    threads = torch.get_num_threads()
    machine = f"{os.cpu_count()} cores ({platform.machine()})"
    parts = [ABOUT.format(machine=machine, threads=threads, least=LEAST_ROWS, repeats=REPEATS)]
    for name, table in TABLES.items():
        lines = measured(*table())
        parts.append("\n".join([f"## {name}\n\n| | without | with | ratio |\n|---|---:|---:|---:|", *lines]))
    (RESULTS / "bundles.md").write_text("\n".join(parts[:1]) + "\n" + "\n\n".join(parts[1:]) + "\n")


if __name__ == "__main__":
    run_script(main)
