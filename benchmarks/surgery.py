"""On which rows should the members of an edited ensemble find their weights: those they learned from, those they held
out, or all?

    python benchmarks/surgery.py [--seeds 3]

Fits three ensembles on four small sets, finds the weights of each member anew on each kind of rows, prunes the result
to 20, 10 and 5 atoms, and judges all on test rows by log-loss (at the temperature that held-out rows ask for) or mean
squared error. Writes benchmarks/results/surgery.jsonl and surgery.md. california is looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from data_sets import load
from harness import RESULTS, run_script
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, mean_squared_error
from torch import Tensor

import gce
from gce.estimators._edit_rows import edit_data
from gce.estimators._validation import FitInput
from gce.inspection import editing
from gce.inspection.editing import edit_data as edit_module
from gce.inspection.editing.pruning import choose, prune_together, size_of
from gce.training.problem import Problem

MACHINE = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
SETS: dict[str, Callable[[], tuple[NDArray[Any], NDArray[Any]]]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load("digits"),
    "california": lambda: load("california"),
}
REGRESSION = ("diabetes", "california")
#: Rows that are used of a set, at most.
ROWS = 5000
SIZES = (20, 10, 5)
CONCLUSION = (
    "Edits take the rows that members learned from. Held-out rows are too few to find weights on. All rows are about",
    "as good, but leave none to calibrate answers by, and cost most where that matters (digits). As one simplex",
    "(`model.reweight(X, y).prune(k, X=X, y=y)`) the atoms of all members serve together: better for ten atoms or",
    "fewer of five members on the larger sets, worse on the small ones.",
)


def _all(problem: Problem) -> Tensor:
    count = (problem.train > 0).sum(1, keepdim=True), (problem.held_out > 0).sum(1, keepdim=True)
    return (count[0] * problem.train + count[1] * problem.held_out) / sum(count)


#: None: all rows, and one simplex for the atoms of all members.
KINDS: dict[str, Callable[[Problem], Tensor] | None] = {
    "learned from": lambda problem: problem.train,
    "held out": lambda problem: problem.held_out,
    "all": _all,
    "all, as one": None,
}


def ensembles(name: str, seed: int) -> dict[str, Any]:
    """Unfitted models by name."""
    greedy, at_once = (gce.GCEClassifier, gce.NGCEClassifier)
    if name in REGRESSION:
        greedy, at_once = (gce.GCERegressor, gce.NGCERegressor)
    return {
        "GCE, five folds": greedy(random_state=seed),
        "GCE, one hold-out": greedy(cv=None, random_state=seed),
        "NGCE of 50, five folds": at_once(n_atoms=50, cv=5, random_state=seed),
    }


def test_loss(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """What a model loses on test rows."""
    if hasattr(model, "classes_"):
        return float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return float(mean_squared_error(y, model.predict(X)))


def judged(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """A line a model, kind of rows and size."""
    X, y = SETS[name]()
    order = np.random.RandomState(seed).permutation(len(X))[:ROWS]
    train, test = np.split(order, [int(0.8 * len(order))])
    for title, model in ensembles(name, seed).items():
        model.fit(X[train], y[train])
        line = {"set": name, "seed": seed, "model": title, "machine": MACHINE}
        whole = int((model.ensemble_.origin[:, 1] > 0).sum())
        yield {**line, "rows": None, "goal": None, "size": whole, "loss": test_loss(model, X[test], y[test])}
        for kind in KINDS:
            yield from ({**line, "rows": kind, **found} for found in edited(model, kind, X, y, train, test))


def edited(
    model: Any, kind: str, X: NDArray[Any], y: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp]
) -> Iterator[dict[str, Any]]:
    """A fitted model with weights found anew on a kind of rows, whole and pruned: a line a size."""
    result, given = model.result_, FitInput(X[train], y[train])
    if KINDS[kind] is None:
        result = editing.as_one_simplex(result)
    began = time.perf_counter()
    with torch.no_grad():
        data = edit_data(model, result, given)
        with mock.patch.object(edit_module, "own_rows", _rows_of(kind)):
            problems = edit_module.simplex_problems(result, data)
        path = prune_together(problems)
    seconds = time.perf_counter() - began
    for goal in (None, *SIZES):
        point = path[0] if goal is None else choose(problems, path, goal, None)
        with torch.no_grad():
            found = model._with(edit_module.with_weights(result, data, problems, point))
        loss = test_loss(found, X[test], y[test])
        yield {"goal": goal, "size": size_of(problems, point), "loss": loss, "seconds": seconds}


def _rows_of(kind: str) -> Callable[[Any, Problem], Tensor]:
    """The rows on which weights are found, in place of the library's choice."""
    rows = KINDS[kind]
    return (lambda result, problem: problem.train) if rows is None else (lambda result, problem: rows(problem))


def page(lines: list[dict[str, Any]], seeds: int) -> str:
    """The table: means over seeds of the test loss, relative to the model as it was fitted."""
    text = [
        "# Weights of edited ensembles: found on rows that members learned from, on rows they held out, or on all",
        "",
        f"Mean test loss over seeds 0 to {seeds - 1}, relative to the ensemble as it was fitted (1.00: the same),",
        "after the weights of every member were found anew on one kind of its rows, and after pruning to 20, 10 and 5",
        f"atoms on these. In brackets: atoms with weight. At most {ROWS:,} rows of a set, 80 % to fit on; log-loss or",
        f"mean squared error. Machine: {MACHINE}. Script: `benchmarks/surgery.py`.",
        "",
        *CONCLUSION,
        "",
        "| set | model | rows | solved anew | 20 atoms | 10 atoms | 5 atoms |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        own = [line for line in lines if line["set"] == name]
        for title in dict.fromkeys(line["model"] for line in own):
            for kind in KINDS:
                cells = [_cell([line for line in own if line["model"] == title], kind, goal) for goal in (None, *SIZES)]
                text.append(f"| {name} | {title} | {kind} | {' | '.join(cells)} |")
    ratios = {kind: _summary(lines, kind) for kind in KINDS}
    text += ["", "Geometric means over sets and models:", "", "| rows | solved anew | 20 atoms | 10 atoms | 5 atoms |"]
    text += ["|---|---|---|---|---|", *(f"| {kind} | {' | '.join(cells)} |" for kind, cells in ratios.items())]
    return "\n".join(text) + "\n"


def _ratios(lines: list[dict[str, Any]], kind: str, goal: int | None) -> list[float]:
    before = {(line["set"], line["model"], line["seed"]): line["loss"] for line in lines if line["rows"] is None}
    return [
        line["loss"] / before[line["set"], line["model"], line["seed"]]
        for line in lines
        if line["rows"] == kind and line["goal"] == goal
    ]


def _cell(lines: list[dict[str, Any]], kind: str, goal: int | None) -> str:
    sizes = [line["size"] for line in lines if line["rows"] == kind and line["goal"] == goal]
    first = np.mean([line["size"] for line in lines if line["rows"] is None])
    count = f" ({first:.0f} to {np.mean(sizes):.0f})" if goal is None else ""
    return f"{np.mean(_ratios(lines, kind, goal)):.3f}{count}"


def _summary(lines: list[dict[str, Any]], kind: str) -> list[str]:
    return [f"{np.exp(np.mean(np.log(_ratios(lines, kind, goal)))):.3f}" for goal in (None, *SIZES)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    lines = [line for name in SETS for seed in range(arguments.seeds) for line in judged(name, seed)]
    (RESULTS / "surgery.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (RESULTS / "surgery.md").write_text(page(lines, arguments.seeds))


if __name__ == "__main__":
    run_script(main)
