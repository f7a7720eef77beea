"""Rounds of boosted trees on a GPU: milliseconds of a round and of its parts, as JSON on standard output.

``python benchmarks/gpu_trees.py --rows 10000000``; ``--device cpu --rows 20000`` shows that it runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from harness import run_script
from torch import Tensor

from gce import GCERegressor
from gce._utils.devices import on_cpu
from gce._utils.random import Streams
from gce.bases import FitContext, SymmetricTree, Tree
from gce.bases.trees.growth import tree_grower
from gce.bases.trees.tree_data import Shape
from gce.frank_wolfe import Boosting, Exact
from gce.frank_wolfe.active_set import ActiveSet
from gce.losses import Squared
from gce.losses.risk import Risk

COLUMNS = 28
KINDS = {
    "symmetric, depth 6": SymmetricTree(max_depth=6, max_bins=256),
    "best-first, 63 leaves": Tree(max_leaf_nodes=63, max_bins=256),
}


def made_up(rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows ``(n, 28)`` in float32 and a noisy nonlinear target ``(n, 1)``, made on the device."""
    dice = torch.Generator(device).manual_seed(0)
    X = torch.randn(rows, COLUMNS, generator=dice, device=device)
    y = torch.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3].abs() + (X[:, 4] > 0.5) * X[:, 5]
    return X, (y + torch.randn(rows, generator=dice, device=device)).double()[:, None]


class Stopwatch:
    """Times between marks, by the device's own clock where it has one."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        if self._on_gpu:
            self._marks.append(torch.cuda.Event(enable_timing=True))
            self._marks[-1].record()
        else:
            self._marks.append(time.perf_counter())

    def milliseconds(self) -> list[float]:
        if self._on_gpu:
            torch.cuda.synchronize()
            return [one.elapsed_time(two) for one, two in zip(self._marks, self._marks[1:], strict=False)]
        return [1000 * (two - one) for one, two in zip(self._marks, self._marks[1:], strict=False)]


def summary(took: list[float]) -> dict[str, float]:
    return {"median_ms": statistics.median(took), "best_ms": min(took), "worst_ms": max(took)}


def timed(device: torch.device, work: Callable[[], Any], repeats: int) -> dict[str, float]:
    watch = Stopwatch(device)
    work()
    watch.mark()
    for _ in range(repeats):
        work()
        watch.mark()
    return summary(watch.milliseconds())


class Noted:
    """A basis that keeps what it was asked last."""

    def __init__(self, basis: Tree) -> None:
        self.basis, self.asked = basis, None
        self.fits_quadratics = basis.fits_quadratics

    def booster(self, *_: Any) -> None:
        return None

    def minimize(self, objective: Any, X: Tensor, **given: Any) -> Any:
        self.asked = (objective, X, given)
        return self.basis.minimize(objective, X, **given)


def rounds_of(noted: Noted, X: Tensor, y: Tensor, context: FitContext) -> Iterator[list[float]]:
    """Training risks, round by round, with the one transfer that a fit makes."""
    n = len(X)
    offset = y.mean(0)
    weight = torch.full((1, n), 1 / n, dtype=torch.float64, device=X.device)
    risk = Risk(Squared(), y, weight, offset, torch.full((1,), float(n), dtype=torch.float64, device=X.device))
    active, bound = ActiveSet(X, n, 1, 1, cache_bytes=0), 100 * (y - offset).abs().amax(0)
    steps = Boosting().iterate(risk, active, noted, Exact(), bound, Streams(0, (0,)), context)  # type: ignore[arg-type]
    for step in steps:
        yield on_cpu([step.risk, step.gap, step.step_size, active.weights])[0].tolist()


def kind_times(name: str, X: Tensor, y: Tensor, rounds: int, context: FitContext) -> dict[str, Any]:
    noted, watch, risks = Noted(KINDS[name]), Stopwatch(X.device), []
    began = time.perf_counter()
    steps = rounds_of(noted, X, y, context)
    risks += next(steps)
    first = time.perf_counter() - began
    watch.mark()
    for _ in range(rounds):
        risks += next(steps)
        watch.mark()
    assert noted.asked is not None
    objective, _, given = noted.asked
    minimize = timed(X.device, lambda: noted.basis.minimize(objective, X, **given), rounds)
    return {
        "first_round_seconds": first,
        "round": summary(watch.milliseconds()),
        "oracle": minimize,
        "risks": [risks[0], risks[-1]],
    }


def equal_trees(name: str, rows: int, device: torch.device) -> bool:
    """Whether the device's trees are the processor's, to the bit, on the same gradients."""
    X, y = made_up(rows, device)
    noted, found = Noted(KINDS[name]), []
    next(rounds_of(noted, X.double(), y, FitContext()))
    objective, _, given = noted.asked  # type: ignore[misc]
    for where in (device, torch.device("cpu")):
        objective.gradient, objective.bound = objective.gradient.to(where), objective.bound.to(where)
        objective._hessian, objective._unit = objective._hessian.to(where), objective._unit.to(where)
        own = {**given, "context": FitContext()}
        proposal = noted.basis.minimize(objective, X.double().to(where), **own)
        trees = proposal.atoms.trees.tensors().values()
        found.append([part.cpu().numpy() for part in (*trees, proposal.outputs, proposal.step_length)])
    return all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


def fit_seconds(rows: int, device: torch.device) -> list[dict[str, Any]]:
    """Seconds of two default fits, and of the families in them."""
    X, y = (part.cpu().numpy() for part in made_up(rows, device))
    found = []
    for _ in range(2):
        began = time.perf_counter()
        model = GCERegressor(device=device.type, random_state=0, verbose=False).fit(X, y[:, 0])
        families = {family.name: (family.seconds, len(family.rounds)) for family in model.result_.families}
        found.append({"seconds": time.perf_counter() - began, "families": families})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compared-rows", type=int, default=300_000, help="rows on which trees are compared")
    parser.add_argument("--fit-rows", type=int, default=0, help="rows of default fits, the first of which compiles")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    device = torch.device(given.device)
    X, y = made_up(given.rows, device)
    X, context = X.double(), FitContext()
    began = time.perf_counter()
    binned = Tree().binned(X, context)
    tree_grower(binned, context, Shape(31, 64, symmetric=False))
    int(binned.tensor[0, 0, 0])
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "rows": given.rows,
        "columns": COLUMNS,
        "binning_seconds": time.perf_counter() - began,
    }
    if given.fit_rows:
        result["default_fits"] = fit_seconds(given.fit_rows, device)
    for name in KINDS:
        result[name] = kind_times(name, X, y, given.rounds, context)
        result[name]["equal_to_the_processor"] = equal_trees(name, given.compared_rows, device)
    if device.type == "cuda":
        result["peak_gib"] = torch.cuda.max_memory_allocated(device) / 2**30
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    run_script(main)
