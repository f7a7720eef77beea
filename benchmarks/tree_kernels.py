"""One tree by the compiled growers, by each instruction set of the processor."""

from __future__ import annotations

import statistics
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from harness import Options, Section, Table, call, left_out, number, repeated

from gce._utils.native import LEVELS, library
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData

ROWS, QUICK_ROWS, COLUMNS, BINS = 100_000, 5_000, 20, 256
REPEATS = 20
LEAST_ROWS = 20
SHAPES = {
    "best-first, 63 leaves": Shape(63, 2**31 - 1, symmetric=False),
    "symmetric, depth 6": Shape(64, 6, symmetric=True),
}


def trees_section(options: Options) -> Section:
    cells, rows = [], []
    n = QUICK_ROWS if options.quick else ROWS
    for level in LEVELS:
        result = call("tree_kernels:tree_times", threads=1, variables={"GCE_CPU": level}, level=level, n=n)
        cells.append({"level": level, "rows": n, "columns": COLUMNS, **result})
        rows.append([level, *_texts(result)])
    head = [f"{name}: {word} ms" for name in SHAPES for word in ("median", "best")]
    text = (
        f"Milliseconds to grow one tree, one thread, {n:,} x {COLUMNS} normal numbers in {BINS} bins, all rows and "
        f"columns, at least {LEAST_ROWS} rows a leaf, the gradients of squared errors: {REPEATS} trees after a first "
        "one. Binning is not counted; finding the leaf of every row is."
    )
    return Section("Trees", text, [Table("instruction set", head, rows)], cells)


def tree_times(level: str, n: int) -> dict[str, Any]:
    """Seconds of each tree, with the kernels that GCE_CPU names."""
    try:
        library()
    except ValueError:
        return {"left_out": "the processor does not have it", "possible": False}
    if find_spec(f"gce._utils._native_{level}") is None:
        return {"left_out": "the kernels are not built for it"}
    torch.set_num_threads(1)
    data = tree_data(n)
    keys = np.arange(1, dtype=np.uint64)
    sampling, scratch = Sampling(keys, np.empty(0, np.uint64), 1.0, COLUMNS), Scratch()
    result: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        took = repeated(
            lambda shape=shape: GrownTrees(data, shape, sampling, Constraints(), scratch), 0.0, least=REPEATS
        )
        nodes = int(GrownTrees(data, shape, sampling, Constraints(), scratch).size[0, 0])
        result[name] = {"median_seconds": statistics.median(took), "best_seconds": min(took), "nodes": nodes}
    return result


def tree_data(n: int) -> TreeData:
    """What one tree learns from on ``n`` made-up rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, COLUMNS))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.3 * rng.standard_normal(n)
    binned = BinnedRows.of(torch.from_numpy(X), BINS)
    gradient = np.ascontiguousarray((y.mean() - y)[None, :, None])
    least, l2 = np.full(1, LEAST_ROWS / n), np.zeros(1)
    return TreeData(binned.codes, binned.bins.widths, gradient, np.ones_like(gradient), least, l2)


def _texts(result: dict[str, Any]) -> list[str]:
    if "left_out" in result:
        return left_out(result, 2 * len(SHAPES))
    return [number(1000 * result[name][key]) for name in SHAPES for key in ("median_seconds", "best_seconds")]
