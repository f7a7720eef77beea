"""Objectives of a tree, compared: the linear oracle, least squares on the gradients, the quadratic model, the risk.

    GCE_DATA_HOME=... python benchmarks/tree_oracles.py

A quarter of an hour on one core. Every method has the same number of trees of the same size, one member that holds out
a fifth of its rows, and is judged on the test rows at its best round; the training risk is that after the last round,
relative to the offset's. A last table compares the two ways to put networks and trees into one hull. Writes
benchmarks/results/tree_oracles.md; the derivations are in docs/trees.md.
"""

from __future__ import annotations

import platform
import time
from typing import Any

import numpy as np
from accuracy_sets import cut
from data_sets import Split
from harness import RESULTS, run_script
from scipy.stats import rankdata
from torch import Tensor

from gce import GCEClassifier, GCERegressor
from gce.bases import Neural, SignTree, Tree, Union
from gce.bases.objectives import Objective
from gce.frank_wolfe import Boosting
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.algorithms import Algorithm
from gce.frank_wolfe.step import Direction
from gce.losses.line_search import LineSearch
from gce.losses.risk import Risk

SETS = ("boston", "concrete", "energy", "kin8nm", "breast_cancer", "digits", "satimage")
SEEDS = (0, 1, 2)
#: Short steps need more trees.
TREES = (100, 300)
#: Atoms where networks and trees compete: networks take their time.
BOTH = 50
#: Training rows at most.
ROWS = 2000
SIZE = {"max_leaf_nodes": 15, "min_samples_leaf": 10}


class GradientBoosting(Boosting):
    """Boosting on the linear objective: a step is a fraction of the best one by line search."""

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        return Algorithm.objective(self, risk, active, gradient, bound)

    def search(
        self, risk: Risk, active: ActiveSet, line_search: LineSearch, go: Direction, t: int
    ) -> tuple[Tensor, Tensor]:
        size, limit = Algorithm.search(self, risk, active, line_search, go, t)
        return self.learning_rate * size, limit


ORACLES: dict[str, dict[str, Any]] = {
    "linear oracle, pairwise": {"basis": SignTree(**SIZE), "algorithm": "pairwise"},
    "linear oracle, Frank-Wolfe": {"basis": SignTree(**SIZE), "algorithm": "frank-wolfe"},
    "linear oracle, short steps": {"basis": SignTree(**SIZE), "algorithm": GradientBoosting()},
    "least squares on -D, pairwise": {"basis": Tree(**SIZE), "algorithm": "pairwise"},
    "least squares on -D, short steps": {"basis": Tree(**SIZE), "algorithm": GradientBoosting()},
    "quadratic model, short steps": {"basis": Tree(**SIZE), "algorithm": "boosting"},
    "risk itself, steps 1/(t+1)": {"basis": Tree(**SIZE), "algorithm": "nonlinear", "line_search": "1/(t+1)"},
}
MIXED: dict[str, dict[str, Any]] = {
    "trees alone, short steps": {"basis": Tree(**SIZE), "algorithm": "boosting"},
    "networks alone, pairwise": {"basis": Neural(), "algorithm": "pairwise"},
    "union by <D, g>, pairwise": {"basis": Union([Tree(**SIZE), Neural()], "linear"), "algorithm": "pairwise"},
    "union by risk, pairwise": {"basis": Union([Tree(**SIZE), Neural()], "risk"), "algorithm": "pairwise"},
    "union by <D, g>, short steps": {"basis": Union([Tree(**SIZE), Neural()], "linear"), "algorithm": "boosting"},
    "union by risk, short steps": {"basis": Union([Tree(**SIZE), Neural()], "risk"), "algorithm": "boosting"},
    "a hull each, mixed on held-out rows": {"basis": [Tree(**SIZE), Neural()]},
}


def measured(split: Split, given: dict[str, Any], atoms: int) -> tuple[float, float]:
    """RMSE or error in percent on the test rows, and the last training risk relative to the offset's."""
    kind = GCERegressor if split.regression else GCEClassifier
    model = kind(max_atoms=atoms, n_iter_no_change=None, cv=None, tol=0, random_state=0, verbose=False, **given)
    model.fit(split.X_train[:ROWS], split.y_train[:ROWS])
    answer = model.predict(split.X_test)
    if split.regression:
        error = float(np.sqrt(np.mean((answer - split.y_test) ** 2)))
        alone = float(np.var(split.y_train[:ROWS]))
    else:
        error = 100 * float(np.mean(answer != split.y_test))
        share = np.bincount(split.y_train[:ROWS]) / len(split.y_train[:ROWS])
        alone = -float((share[share > 0] * np.log(share[share > 0])).sum())
    return error, model.history_[-1]["risk"] / alone


def table(title: str, methods: list[str], rows: dict[str, np.ndarray[Any, Any]], digits: int) -> list[str]:
    """A Markdown table of means over seeds, ``rows`` of shape ``(methods,)`` each, with mean ranks below."""
    lines = [f"## {title}", "", "| | " + " | ".join(methods) + " |", "|---|" + "---:|" * len(methods)]
    for name, row in rows.items():
        best = row.round(digits).min()
        cells = [f"**{v:.{digits}f}**" if round(v, digits) == best else f"{v:.{digits}f}" for v in row]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    ranks = np.mean([rankdata(row) for row in rows.values()], axis=0)
    lines.append("| mean rank | " + " | ".join(f"{rank:.2f}" for rank in ranks) + " |")
    return [*lines, ""]


def spent(seconds: dict[str, float]) -> str:
    return "Seconds in all: " + "; ".join(f"{name} {value:.0f}" for name, value in seconds.items()) + "."


def compared(methods: dict[str, dict[str, Any]], atoms: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, float]]:
    """Test errors and training risks of each set, ``(methods,)``, and seconds of each method."""
    errors, risks, seconds = {}, {}, dict.fromkeys(methods, 0.0)
    for name in SETS:
        splits = [cut(name, seed) for seed in SEEDS]
        found = []
        for label, given in methods.items():
            began = time.perf_counter()
            found.append(np.mean([measured(split, given, atoms) for split in splits], axis=0))
            seconds[label] += time.perf_counter() - began
        errors[name], risks[name] = np.transpose(found)
    return errors, risks, seconds


def main() -> None:
    lines = ["# What a tree is asked for", ""]
    lines += [
        f"Means over {len(SEEDS)} splits (80 % to fit on, at most {ROWS:,} rows of it). Trees (one an output) have",
        f"at most {SIZE['max_leaf_nodes']} leaves with at least {SIZE['min_samples_leaf']} rows each; RMSE or error in",
        "percent at the best round by a fifth of the rows that is held out. Short steps are a tenth of the best one.",
        "Derivations: docs/trees.md.",
        "",
    ]
    for atoms in TREES:
        errors, risks, seconds = compared(ORACLES, atoms)
        lines += table(f"{atoms} trees: test error", list(ORACLES), errors, 3)
        lines += table(f"{atoms} trees: training risk after the last, by the offset's", list(ORACLES), risks, 4)
        lines += [spent(seconds), ""]
    errors, _, seconds = compared(MIXED, BOTH)
    lines += table(f"Networks and trees in one hull, {BOTH} atoms: test error", list(MIXED), errors, 3)
    lines += [spent(seconds), ""]
    lines += [f"Machine: {platform.machine()}, one thread. Script: `benchmarks/tree_oracles.py`."]
    (RESULTS / "tree_oracles.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    run_script(main)
