"""Forests grown and trees predicted on a GPU and on the processor, in one run; JSON on standard output.

``python benchmarks/gpu_forest.py`` needs a CUDA device. Results of both are compared to the bit.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from harness import run_script

from gce._utils import cuda, parallel
from gce.bases.trees import TreeArrays
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower_forest import DeviceForest
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets

COLUMNS, CLASSES, BINS = 28, 7, 256
LEAVES, BOOSTED, PREDICTED = 63, 1000, 1_000_000
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--predicted", type=int, default=PREDICTED, help="rows that are predicted")
    options = parser.parse_args()
    device = torch.device("cuda")
    reason = cuda.missing(device) if torch.cuda.is_available() else "there is no GPU here"
    if reason is not None:
        raise SystemExit(f"kernels cannot run: {reason}")
    found = {
        "gpu": torch.cuda.get_device_name(),
        "processor": platform.processor() or platform.machine(),
        "threads": parallel.threads(),
        **vars(options),
        "boosted": boosted(options.predicted, device),
        "regression": forest("regression", options, device),
        "classification": forest("classification", options, device),
    }
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


def seconds(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[list[float], Any]:
    """Seconds of each run, and what the last one returned."""
    took = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = run()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    return took, result


def kernels(run: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds of the kernels of a run that take the longest."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        run()
        torch.cuda.synchronize()
    spent = {event.key[:60]: event.self_device_time_total / 1e3 for event in profile.key_averages()}
    return dict(sorted(spent.items(), key=lambda item: -item[1])[:8])


def forest(task: str, options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.rows, COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=options.rows)
    Y, tries = y[:, None].astype(np.float64), COLUMNS
    if task == "classification":
        Y = np.eye(CLASSES)[np.searchsorted(np.quantile(y, np.linspace(0, 1, CLASSES + 1)[1:-1]), y)]
        tries = round(COLUMNS**0.5)
    binned = BinnedRows.of(torch.from_numpy(X), BINS)
    rows = [np.flatnonzero(rng.random(options.rows) < 0.9).astype(np.uint32) for _ in range(options.members)]
    trees = RandomTrees(binned, tuple((own, WeightedTargets.of(np.ones(len(own)), Y[own])) for own in rows), tries, 1.0)
    seeds = rng.integers(2**62, size=(options.members, options.trees)).tolist()
    DeviceForest(trees, device).grown([own[:1] for own in seeds], torch.float32)  # compiles
    on_gpu, there = seconds(lambda: DeviceForest(trees, device).grown(seeds, torch.float32))
    on_processor, here = seconds(lambda: trees.grown(seeds, torch.float32), repeats=1)
    equal = all(torch.equal(a.cpu(), b) for a, b in zip(there.tensors().values(), here.tensors().values(), strict=True))
    return {
        "nodes": len(here.left),
        "gpu_seconds": on_gpu,
        "processor_seconds": on_processor,
        "equal": equal,
        "gpu_kernels_ms": kernels(lambda: DeviceForest(trees, device).grown(seeds, torch.float32)),
        "prediction": prediction(there, here, options.predicted, options.members, device),
    }


def boosted(n: int, device: torch.device) -> dict[str, Any]:
    """Trees of 63 leaves, of random shape."""
    rng, grown = np.random.default_rng(1), []
    for _ in range(BOOSTED):
        left, ends = np.zeros(2 * LEAVES - 1, np.int32), [0]
        for nodes in range(1, 2 * LEAVES - 1, 2):
            left[ends.pop(int(rng.integers(len(ends))))] = nodes
            ends += [nodes, nodes + 1]
        feature = rng.integers(0, COLUMNS, len(left)).astype(np.int32)
        grown.append((feature, rng.normal(size=len(left)).round(1), left, rng.normal(size=(len(left), 1))))
    here = TreeArrays.of(grown)
    there = TreeArrays(*(part.to(device) for part in here.tensors().values()))
    return prediction(there, here, n, 1, device)


def prediction(there: TreeArrays, here: TreeArrays, n: int, sums: int, device: torch.device) -> dict[str, Any]:
    """Rows through the trees of some sums, as many of each."""
    X = torch.randn(n, COLUMNS, generator=torch.Generator().manual_seed(0))
    weights = torch.full((len(here), here.outputs), 1 / len(here), dtype=torch.float64)
    into, moved = torch.arange(len(here)) // (len(here) // sums), X.to(device)
    there.summed(moved[:1], weights.to(device), into, sums)  # compiles
    on_gpu, found = seconds(lambda: there.summed(moved, weights.to(device), into, sums))
    on_processor, wanted = seconds(lambda: here.summed(X, weights, into, sums), repeats=1)
    return {"gpu_seconds": on_gpu, "processor_seconds": on_processor, "equal": torch.equal(found.cpu(), wanted)}


if __name__ == "__main__":
    run_script(main)
