"""How well a fit keeps to ``time_limit``, and what the limit costs.

    python benchmarks/time_limits.py sets [--limits 3 8 20]
    python benchmarks/time_limits.py large [--busy 2] [--share 0.67] [--only 300000-10 ...] [--tasks regression]

``sets``: the first split of four sets of the accuracy benchmark, the default model. Leave the machine alone meanwhile:
a limit is kept by the clock. ``large``: made-up tables of 30 columns in float32. ``--busy`` keeps so many cores busy
with loops that do nothing. ``--share`` measures limits by a clock that does not depend on what else a machine does: CPU
seconds of the fit, divided by the share of one core that it is supposed to get (two thirds: two busy loops beside one
thread on two cores).

Replaces what it measured in benchmarks/results/time_limits.json, and writes time_limits.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from accuracy_models import warm_up
from accuracy_sets import cut
from data_sets import made_up
from harness import CORES, RESULTS, processor, run_script

import gce

SETS = ("digits", "california", "protein", "adult")
LARGE = ("300000-10", "300000-30", "1000000-60")
TIMED = (
    "_utils.clock",
    "bases.trees.forest",
    "frank_wolfe.algorithm",
    "training.callbacks",
    "training.finish",
    "training.time_shares",
)
Clock = Callable[[], float]


def fitted(model: Any, X: Any, y: Any, clock: Clock) -> dict[str, Any]:
    """One fit: its seconds, its rounds by family, and what it said."""
    began = clock()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    seconds = clock() - began
    families = [entry["family"] for entry in model.history_ if entry["family"] != "all"]
    return {
        "seconds": seconds,
        "rounds": len(model.history_),
        "families": {name: families.count(name) for name in dict.fromkeys(families)},
        "told": [str(warning.message) for warning in told],
        "machine": f"{processor()}, {CORES} cores",
    }


def off_by(model: Any, X: Any, y: Any, regression: bool) -> float:
    """RMSE, or errors in percent."""
    wrong = model.predict(X) - y
    return float(np.sqrt(np.mean(wrong**2)) if regression else 100 * np.mean(wrong != 0))


def of_set(name: str, limit: float | None) -> dict[str, Any]:
    rows = cut(name, 0)
    warm_up("GCE", rows.X_train.shape[1], rows.regression)
    kind = gce.GCERegressor if rows.regression else gce.GCEClassifier
    model = kind(random_state=0, time_limit=limit, verbose=False)
    found = fitted(model, rows.X_train, rows.y_train, time.perf_counter)
    error = off_by(model, rows.X_test, rows.y_test, rows.regression)
    return {"set": name, "limit": limit, "clock": "wall", **found, "error": error}


@contextmanager
def measured_by(clock: Clock) -> Iterator[None]:
    """Let limits of time look at this clock."""
    modules = [importlib.import_module(f"gce.{name}") for name in TIMED]
    for module in modules:
        module.time = SimpleNamespace(monotonic=clock, perf_counter=clock)  # type: ignore[attr-defined]
    yield
    for module in modules:
        module.time = time  # type: ignore[attr-defined]


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Other processes that keep so many cores busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def of_size(case: str, task: str, loops: int, share: float | None) -> dict[str, Any]:
    n, limit = map(int, case.split("-"))
    regression = task == "regression"
    kind = gce.GCERegressor if regression else gce.GCEClassifier
    # all loops are compiled, those for small tables and for large ones
    for rows in (1000, 6000):
        kind(max_iter=2, verbose=False, random_state=0).fit(*made_up(rows, regression))
    (X, y), (X_test, y_test) = made_up(n, regression), made_up(50_000, regression)
    model = kind(random_state=0, time_limit=limit, verbose=False)
    clock = time.monotonic if share is None else lambda: time.process_time() / share
    with busy(loops), measured_by(clock):
        found = fitted(model, X, y, clock)
    told = "wall" if share is None else f"CPU seconds / {share:g}"
    load = None if share is not None else round(os.getloadavg()[0], 1)
    about = {"set": f"{n:,} x 30, {task}", "limit": limit, "clock": told, "busy": loops, "load": load}
    return {**about, **found, "error": off_by(model, X_test, y_test, regression)}


def beyond(row: dict[str, Any]) -> str:
    return "" if row["limit"] is None else f"{max(0.0, 100 * (row['seconds'] / row['limit'] - 1)):.1f} %"


def page(rows: list[dict[str, Any]]) -> str:
    small, large = ([row for row in rows if ("x 30" in row["set"]) == wide] for wide in (False, True))
    lines = [
        "# Limits of time",
        "",
        "Seconds of a default fit beside its `time_limit`, the rounds of all families together, and RMSE or error % on",
        "test rows. A fit that ends by itself takes less than it may. Script: `benchmarks/time_limits.py`.",
        "",
        f"First split of each set ({', '.join(sorted({row['machine'] for row in small}))}):",
        "",
        "| set | limit | seconds | beyond the limit | rounds | error |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in small:
        limit = "none" if row["limit"] is None else f"{row['limit']:g}"
        lines.append(
            f"| {row['set']} | {limit} | {row['seconds']:.2f} | {beyond(row)} | {row['rounds']} | {row['error']:.4g} |"
        )
    lines += [
        "",
        f"Large tables in float32 ({', '.join(sorted({row['machine'] for row in large}))}).",
        "Load: processes that wanted a core in the last minute, this fit's own among them; busy: loops started beside",
        "the fit on purpose. Where the clock counts CPU seconds, what else the machine did does not matter: divided by",
        "0.67 they are the seconds of one thread beside two busy loops on two cores.",
        "",
        "| table | clock | busy | load | limit | seconds | beyond the limit | rounds by family | error |",
        "|---|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in large:
        families = ", ".join(f"{name} {count}" for name, count in row["families"].items())
        load = "" if row["load"] is None else f"{row['load']:g}"
        lines.append(
            f"| {row['set']} | {row['clock']} | {row['busy']} | {load} | {row['limit']} | {row['seconds']:.1f} | "
            f"{beyond(row)} | {families} | {row['error']:.4g} |"
        )
    return "\n".join(lines) + "\n"


def keep(row: dict[str, Any]) -> None:
    """Put a row in the place of what was measured of the same before."""
    path = RESULTS / "time_limits.json"
    same = ("set", "limit", "clock", "busy")
    held = json.loads(path.read_text()) if path.exists() else []
    rows = [old for old in held if any(old.get(name) != row.get(name) for name in same)]
    path.write_text(json.dumps([*rows, row], indent=1) + "\n")
    (RESULTS / "time_limits.md").write_text(page([*rows, row]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sets", "large"])
    parser.add_argument("--limits", nargs="+", type=float, default=[3.0, 8.0, 20.0])
    parser.add_argument("--only", nargs="+", choices=LARGE, default=LARGE)
    parser.add_argument("--tasks", nargs="+", choices=["regression", "classification"])
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--share", type=float)
    given = parser.parse_args()
    if given.what == "sets":
        for name in SETS:
            for limit in (*given.limits, None):
                keep(of_set(name, limit))
        return
    for task in given.tasks or ["regression", "classification"]:
        for case in given.only:
            keep(of_size(case, task, given.busy, given.share))


if __name__ == "__main__":
    run_script(main)
