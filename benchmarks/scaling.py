"""How a fit's time grows with rows, columns, classes, atoms and members, at fixed rounds and fixed epochs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import data_sets
import numpy as np
from harness import CORES, Options, Section, Table, call, left_out

import gce

BATCH, EPOCHS, HIDDEN = 1000, 10, 10
#: A point that took longer is not measured again.
SHORT_SECONDS = 8.0


@dataclass(frozen=True)
class Point:
    """One fit: training rows, columns, classes, rounds (one atom each) and members."""

    rows: int = 16_000
    columns: int = 16
    classes: int = 3
    atoms: int = 10
    members: int = 1


SWEEPS: dict[str, list[int]] = {
    "rows": [1_000, 4_000, 16_000, 64_000, 256_000],
    "columns": [8, 16, 32, 64, 128],
    "classes": [3, 4, 8, 16, 32],
    "atoms": [10, 20, 40, 80, 160],
    "members": [1, 2, 4, 8],
}
QUICK_BASE = Point(rows=2_000, atoms=2)
QUICK_SWEEPS: dict[str, list[int]] = {
    "rows": [1_000, 2_000, 4_000],
    "columns": [8, 16],
    "classes": [3, 8],
    "atoms": [2, 4],
    "members": [1, 2],
}


def scaling_section(options: Options) -> Section:
    base, sweeps = (QUICK_BASE, QUICK_SWEEPS) if options.quick else (Point(), SWEEPS)
    answer = call("scaling:measure", sweeps=sweeps, base=asdict(base), device=options.device)
    rows = [["all", *left_out(answer, 4)]] if "left_out" in answer else []
    cells = answer.get("sweeps", [answer])
    for result in answer.get("sweeps", []):
        axis, values = result["axis"], result["values"]
        span = f"{values[0]:,} to {values[-1]:,}"
        seconds = ", ".join(f"{s:.2f}" for s in result["seconds"])
        rows.append([axis, ", ".join(f"{v:,}" for v in values), seconds])
        rows[-1] += [f"{result['exponent']:.2f} ({span})", f"{result['last_exponent']:.2f}"]
    text = (
        f"Seconds of a whole fit, {CORES} threads, device {options.device}, best of two, when one number grows and the "
        f"others stay at {base.rows:,} rows, {base.columns} columns, {base.classes} classes, {base.atoms} atoms and "
        f"{base.members} member. Fixed work: {EPOCHS} epochs an atom, {HIDDEN} hidden units, batches of {BATCH:,} "
        "rows, no early stopping, synthetic data. One member holds nothing out, several are folds of `cv`. The "
        "exponent is the least-squares slope of log seconds over log size over the whole range, and between the last "
        "two points, where fixed costs weigh least."
    )
    head = ["sizes", "fit s", "exponent (range)", "last two points"]
    return Section("Growth", text, [Table("what grows", head, rows)], cells)


def measure(sweeps: dict[str, list[int]], base: dict[str, int], device: str) -> dict[str, Any]:
    """All sweeps in one process, after a fit that warms it up."""
    centre = Point(**base)
    seconds_of_fit(replace(centre, atoms=2), device)
    return {"sweeps": [_sweep(axis, values, centre, device) for axis, values in sweeps.items()]}


def _sweep(axis: str, values: list[int], centre: Point, device: str) -> dict[str, Any]:
    """Seconds at each value of one of the sizes."""
    took = [_best(replace(centre, **{axis: value}), device) for value in values]
    slopes = [np.polyfit(np.log(values[at:]), np.log(took[at:]), 1)[0] for at in (0, -2)]
    return {
        "axis": axis,
        "values": values,
        "seconds": took,
        "exponent": float(slopes[0]),
        "last_exponent": float(slopes[1]),
    }


def _best(point: Point, device: str) -> float:
    first = seconds_of_fit(point, device)
    return first if first > SHORT_SECONDS else min(first, seconds_of_fit(point, device))


def seconds_of_fit(point: Point, device: str) -> float:
    X, y = data_sets.synthetic(point.rows, point.columns, point.classes)
    model = gce.GCEClassifier(
        basis=gce.bases.Neural(hidden=HIDDEN, max_epochs=EPOCHS, patience=10**9, batch_size=BATCH),
        cv=None if point.members == 1 else point.members,
        validation_fraction=None,
        max_atoms=point.atoms,
        n_iter_no_change=None,
        tol=0.0,
        device=device,
        verbose=False,
        random_state=0,
    )
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    if model.n_iter_ != point.atoms:
        raise RuntimeError(f"{point} stopped after {model.n_iter_} rounds: the work is not what the table says")
    return seconds
