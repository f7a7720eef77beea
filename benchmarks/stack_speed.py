"""How long optimal weights over a pool take, beside Caruana's selection, a conic solver and plain pairwise steps.

    python benchmarks/stack_speed.py [--only selection conic large] [--members 200] [--rows 100000] ...

All contestants of a table work on the same predictions in one process on two threads; each table is a fresh process.
Writes benchmarks/results/stack_speed.json and stack_speed.md; tables that are not asked for are kept as they are.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import stack_rivals as rivals
import torch
from harness import RESULTS, call, number, peak_mib, processor, reset_peak, run_script, whole
from numpy.typing import NDArray
from stack_pools import numbers, probabilities, true_class
from working_memory import resident_mib

from gce.frank_wolfe.simplex import Outputs, Solution, solve_simplex
from gce.losses import LogMixture, Squared
from gce.losses.risk import Risk

Array = NDArray[np.float64]
Cell = dict[str, Any]

THREADS = 2
#: Rows and members that the conic solver is asked for, smallest first, until it takes too long.
LADDER = ((1_000, 20), (2_000, 50), (5_000, 100), (10_000, 100), (20_000, 100), (20_000, 200), (50_000, 200))
LADDER_TRIAL = ((200, 5), (400, 10))
PACKAGES = ("numpy", "torch", "cvxpy", "clarabel")


def log_mixture(true: Array) -> tuple[Risk, Outputs]:
    """The mixture's log-loss over a pool of true classes' probabilities (members, rows), nothing copied."""
    n = true.shape[1]
    y, weight = torch.ones(n, 1, dtype=torch.float64), torch.full((1, n), 1 / n, dtype=torch.float64)
    risk = Risk(LogMixture(), y, weight, torch.zeros(1, dtype=torch.float64))
    return risk, Outputs([torch.from_numpy(row)[:, None] for row in true])


def squared(answers: Array, y: Array) -> tuple[Risk, Outputs]:
    n = len(y)
    weight = torch.full((1, n), 1 / n, dtype=torch.float64)
    risk = Risk(Squared(), torch.from_numpy(y)[:, None], weight, torch.zeros(1, dtype=torch.float64))
    return risk, Outputs([torch.from_numpy(row)[:, None] for row in answers])


def warm_up() -> None:
    """Load, and compile what is not on disk yet, before anything is timed."""
    solve_simplex(*log_mixture(true_class(4, 50)), tol=1e-4)
    solve_simplex(*squared(*numbers(4, 50)), tol=1e-4)


def timed(risk: Risk, outputs: Outputs, tol: float, repeats: int) -> tuple[Solution, float]:
    """The solution, and the median of so many runs."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        solution = solve_simplex(risk, outputs, tol=tol)
        took.append(time.perf_counter() - began)
    return solution, statistics.median(took)


def _ours(name: str, solution: Solution, seconds: float) -> Cell:
    used = int(np.count_nonzero(solution.weights))
    return {
        "rule": name,
        "seconds": seconds,
        "rounds": len(solution.history),
        "loss": solution.loss,
        "gap": solution.gap,
        "used": used,
        "reached": bool(solution.converged),
    }


def selection(members: int, rows: int, classes: int, rounds: int, repeats: int, tol: float, patience: float) -> Cell:
    """The solver beside Caruana's selection and plain pairwise steps on one pool of probabilities."""
    warm_up()
    answers, y = probabilities(members, rows, classes)
    began = time.perf_counter()
    true = np.ascontiguousarray(answers[:, np.arange(rows), y])
    gathered = time.perf_counter() - began
    risk, outputs = log_mixture(true)
    cells = [_ours(f"convex weights to {tol:g}", *timed(risk, outputs, tol, repeats))]
    contestants: dict[str, tuple[int, Callable[[], rivals.Weights]]] = {
        "Caruana, true class": (repeats, lambda: rivals.caruana_true(true, rounds)),
        "Caruana, true class, blocks, two threads": (repeats, lambda: rivals.caruana_blocked(true, rounds, THREADS)),
        "Caruana, all classes": (1, lambda: rivals.caruana_whole(answers, y, rounds)),
        f"pairwise steps to {tol:g}": (1, lambda: rivals.pairwise(true, tol, patience)),
    }
    for name, (times, run) in contestants.items():
        ran = [run() for _ in range(times)]
        own = {"rule": name, "seconds": statistics.median(one.seconds for one in ran), "rounds": ran[-1].rounds}
        weights = ran[-1].weights
        used = int(np.count_nonzero(weights))
        cells.append({**own, "loss": rivals.log_loss(true, weights), "gap": _gap(true, weights), "used": used})
    alone, average = -np.log(true).mean(1).min(), rivals.log_loss(true, np.full(members, 1 / members))
    size = {"members": members, "rows": rows, "classes": classes, "rounds": rounds, "repeats": repeats}
    return {**size, "gathered": gathered, "best_alone": float(alone), "average": average, "cells": cells}


def _gap(true: Array, weights: Array) -> float:
    """The certificate of a mixture's weights, reckoned apart from the solver."""
    inner = true @ (-1 / (true.shape[1] * (weights @ true)))
    return float(weights @ inner - inner.min())


def rung(loss: str, rows: int, members: int, tol: float, limit: float) -> Cell:
    """One size: the solver, then the conic one."""
    warm_up()
    answers, y = (true_class(members, rows), None) if loss == "mixture" else numbers(members, rows)
    risk, outputs = log_mixture(answers) if y is None else squared(answers, y)
    ours, seconds = timed(risk, outputs, tol, 3)
    forms = {"conic": rivals.conic(answers, y, limit)}
    if y is not None:
        forms["gram"] = rivals.conic_gram(answers, y, limit)
    for form in forms.values():
        if "weights" in form:
            pred = outputs.combine(np.array(form.pop("weights")))
            form["loss"] = float(risk.value(pred[None])[0])
            form["ratio"] = form["solver_seconds"] / seconds
    return {"loss": loss, "rows": rows, "members": members, **forms, "ours": _ours("convex", ours, seconds)}


def ladder(loss: str, steps: tuple[tuple[int, int], ...], tol: float, most: float) -> list[Cell]:
    """Sizes in fresh processes, until the conic solver takes more than ``most`` seconds or fails."""
    rungs: list[Cell] = []
    for rows, members in steps:
        answer = call(
            "stack_speed:rung", threads=THREADS, loss=loss, rows=rows, members=members, tol=tol, limit=5 * most
        )
        cell = whole(answer)
        rungs.append(cell)
        if cell.get("conic", {}).get("solver_seconds", np.inf) > most:
            break
    return rungs


def large(members: int, rows: int, tol: float) -> Cell:
    """Hundreds of members by a million rows: seconds, and memory beyond what the predictions themselves take."""
    warm_up()
    true = true_class(members, rows)
    risk, outputs = log_mixture(true)
    reset_peak()
    before = resident_mib()
    solution, seconds = timed(risk, outputs, tol, 1)
    beyond = peak_mib() - before
    own = _ours(f"convex weights to {tol:g}", solution, seconds)
    return {"members": members, "rows": rows, "cache_mib": true.nbytes / 2**20, "beyond_mib": beyond, **own}


def _verdict(holds: bool, words: str) -> str:
    return f"- {'holds' if holds else '**does not hold**'}: {words}"


def _selection_text(cell: Cell) -> list[str]:
    ours, *others = cell["cells"]
    caruana = [other for other in others if other["rule"].startswith("Caruana")]
    quickest = min(caruana, key=lambda other: other["seconds"])
    sizes = f"{cell['members']} members x {cell['rows']:,} rows x {cell['classes']} classes"
    out = [f"## {sizes}, mixture log-loss", ""]
    out += [
        f"Simulated members (`benchmarks/stack_pools.py`): correlated, of varying quality; {cell['rounds']} rounds of"
    ]
    out += [
        f"Caruana's selection, plain numpy. Median of {cell['repeats']} runs (all classes and pairwise steps: one run)."
    ]
    out += [
        f"Taking the true class's probability out of the cache takes {cell['gathered']:.2f} s once and is not counted."
    ]
    out += [f"The best member alone has a loss of {cell['best_alone']:.6f}, the average {cell['average']:.6f}.", ""]
    out += ["| | seconds | rounds | loss | gap | members used |", "|---|---:|---:|---:|---:|---:|"]
    for own in cell["cells"]:
        cells = [
            number(own["seconds"]),
            str(own["rounds"]),
            f"{own['loss']:.7f}",
            f"{own['gap']:.1e}",
            str(own["used"]),
        ]
        out.append(f"| {own['rule']} | {' | '.join(cells)} |")
    words = f"{number(ours['seconds'])} s against {number(quickest['seconds'])} s ({quickest['rule']})"
    out += ["", _verdict(ours["seconds"] <= quickest["seconds"], f"no more time than the quickest selection: {words}")]
    losses = f"{ours['loss']:.7f} against {min(other['loss'] for other in caruana):.7f}"
    out += [_verdict(all(ours["loss"] < other["loss"] for other in caruana), f"a lower loss: {losses}"), ""]
    return out


def _ladder_text(loss: str, rungs: list[Cell]) -> list[str]:
    out = [f"## Beside cvxpy with Clarabel: {loss}", ""]
    out += ["Clarabel's own seconds at its default tolerances, without cvxpy's; ours to the gap of the last column."]
    out += ["", "| rows x members | Clarabel s | ours s | ratio | Clarabel's loss | ours minus it | our gap |"]
    out += ["|---|---:|---:|---:|---:|---:|---:|"]
    forms = [("conic", ""), ("gram", ", as a quadratic in the weights")]
    for cell, (form, suffix) in ((cell, form) for cell in rungs for form in forms):
        if "left_out" in cell or form in cell:
            out.append(_rung_text(cell, form, suffix))
    solved = [cell for cell in rungs if cell.get("conic", {}).get("status") == "optimal"]
    if solved:
        last = solved[-1]
        words = f"{last['conic']['ratio']:.0f} times faster at {last['rows']:,} x {last['members']}"
        out += ["", _verdict(last["conic"]["ratio"] >= 10, f"{words}, the largest size that was solved")]
    return [*out, ""]


def _rung_text(cell: Cell, form: str, suffix: str) -> str:
    if "left_out" in cell:
        return f"| left out: {cell['left_out']} | | | | | | |"
    theirs, ours = cell[form], cell["ours"]
    size = f"{cell['rows']:,} x {cell['members']}{suffix}"
    if "loss" not in theirs:
        return f"| {size} | {theirs['status']} | {number(ours['seconds'])} | | | | {ours['gap']:.1e} |"
    note = "" if theirs["status"] == "optimal" else f" ({theirs['status']})"
    cells = [number(theirs["solver_seconds"]) + note, number(ours["seconds"]), number(theirs["ratio"])]
    cells += [f"{theirs['loss']:.9f}", f"{ours['loss'] - theirs['loss']:+.1e}", f"{ours['gap']:.1e}"]
    return f"| {size} | {' | '.join(cells)} |"


def _large_text(cell: Cell) -> list[str]:
    out = [f"## {cell['members']} members x {cell['rows']:,} rows, mixture log-loss", ""]
    out += ["| | seconds | rounds | loss | gap | members used | predictions MiB | memory beyond them MiB |"]
    out += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    cells = [number(cell["seconds"]), str(cell["rounds"]), f"{cell['loss']:.7f}", f"{cell['gap']:.1e}"]
    cells += [str(cell["used"]), number(cell["cache_mib"]), number(cell["beyond_mib"])]
    return [*out, f"| {cell['rule']} | {' | '.join(cells)} |", ""]


def report(held: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {which}" for name, which in held["versions"].items())
    out = ["# Speed of convex weights", "", __doc__.split("\n\n")[2].split("\n")[0], ""]
    out += [f"Machine: {held['machine']}, {THREADS} threads, load before {held['load']:.1f}. Versions: {versions}."]
    out += ["Script: `benchmarks/stack_speed.py`.", ""]
    out += _selection_text(held["selection"]) if "selection" in held else []
    for loss in ("mixture", "squared"):
        name = {"mixture": "mixture log-loss", "squared": "squared loss"}[loss]
        out += _ladder_text(name, held[loss]) if loss in held else []
    return "\n".join(out + (_large_text(held["large"]) if "large" in held else []))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", choices=("selection", "conic", "large"), default=["selection", "conic", "large"]
    )
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that pairwise steps may take")
    parser.add_argument("--conic-seconds", type=float, default=120.0, help="go to no larger size after so long a one")
    parser.add_argument("--short-ladder", action="store_true", help="a trial of two small sizes")
    parser.add_argument("--large-members", type=int, default=300)
    parser.add_argument("--large-rows", type=int, default=1_000_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    path = given.results / "stack_speed.json"
    held: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    held["machine"], held["load"] = processor(), os.getloadavg()[0]
    held["versions"] = {name: version(name) for name in PACKAGES}
    sizes = {key: getattr(given, key) for key in ("members", "rows", "classes", "rounds", "repeats", "patience")}
    steps = LADDER_TRIAL if given.short_ladder else LADDER
    work: list[tuple[str, str, Callable[[], Any]]] = [
        ("selection", "selection", lambda: whole(call("stack_speed:selection", threads=THREADS, tol=1e-4, **sizes))),
        ("conic", "mixture", lambda: ladder("mixture", steps, 1e-8, given.conic_seconds)),
        ("conic", "squared", lambda: ladder("squared", steps, 1e-8, given.conic_seconds)),
        ("large", "large", lambda: whole(call("stack_speed:large", threads=THREADS, tol=1e-4, **_large_sizes(given)))),
    ]
    for part, key, run in work:
        if part in given.only:
            held[key] = run()
            path.write_text(json.dumps(held, indent=1) + "\n")
            (given.results / "stack_speed.md").write_text(report(held))


def _large_sizes(given: argparse.Namespace) -> dict[str, int]:
    return {"members": given.large_members, "rows": given.large_rows}


if __name__ == "__main__":
    run_script(main)
