"""How many double-precision numbers a round holds for each member, row and output: what ``gce._utils.memory`` uses.

    python benchmarks/working_memory.py        (Linux)

Prints one line a problem: the peak of a fit without a cache above what it held when its rows and targets were in place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from harness import peak_mib, reset_peak, run_script

import gce
from gce.training import family_fit

PROBLEMS = ((400_000, 8, 1), (200_000, 3, 4), (400_000, 1, 4))


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def working(n: int, outputs: int, members: int) -> float:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = X[:, 0] if outputs == 1 else rng.integers(0, outputs, n)
    before: list[float] = []

    def no_cache(*_: Any) -> int:
        reset_peak()
        before.append(resident_mib())
        return 1

    kind = gce.GCERegressor if outputs == 1 else gce.GCEClassifier
    basis = gce.bases.Neural(hidden=5, max_epochs=1)
    model = kind(basis=basis, max_atoms=2, cv=members if members > 1 else None, n_iter_no_change=None, verbose=False)
    with mock.patch.object(family_fit, "cache_budget", no_cache):
        model.fit(X, y)
    return (peak_mib() - before[0]) * 2**20 / (8 * n * outputs * members)


def main() -> None:
    for n, outputs, members in PROBLEMS:
        line = f"{n:,} rows, {outputs} output(s), {members} member(s): {working(n, outputs, members):.1f}"
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    run_script(main)
