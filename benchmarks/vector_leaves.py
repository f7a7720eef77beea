"""One tree per output, or one tree with a vector in each leaf?

    python benchmarks/vector_leaves.py

Both settings of ``outputs_per_tree`` on the sets of several classes, for boosted trees and symmetric trees with the
default parameters, on three development splits of each set. Writes benchmarks/results/vector_leaves.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import mean

import numpy as np
from accuracy_sets import cut_rows
from data_sets import load
from harness import CORES, RESULTS, processor, run_script
from sklearn.metrics import log_loss

from gce import GCEClassifier
from gce.bases import SymmetricTree, Tree

SETS = ("iris", "wine", "digits", "satimage", "letter")
SEEDS = (10, 11, 12)
#: Larger sets are cut to so many rows, before they are split.
MOST_ROWS = {"letter": 4_000}
FAMILIES = {"tree": Tree, "symmetric": SymmetricTree}
SETTINGS = {"one": "one tree per output", "all": "vector leaves"}


@dataclass(frozen=True)
class Score:
    """Test error and log-loss of a fit, its CPU seconds and its rounds."""

    error: float
    loss: float
    seconds: float
    rounds: float

    @staticmethod
    def average(scores: list[Score]) -> Score:
        """The mean of each."""
        fields = ((s.error, s.loss, s.seconds, s.rounds) for s in scores)
        return Score(*(mean(some) for some in zip(*fields, strict=True)))

    @property
    def cell(self) -> str:
        return f"{100 * self.error:.2f} %, {self.loss:.4f}, {self.seconds:.1f} s, {self.rounds:.0f}"


def measured(name: str, family: str, setting: str, seed: int) -> Score:
    """One fit."""
    X, y = load(name)
    some = np.random.RandomState(seed).permutation(len(X))[: MOST_ROWS.get(name)]
    rows = cut_rows(X[some], y[some], seed, regression=False)
    model = GCEClassifier(basis=FAMILIES[family](outputs_per_tree=setting), random_state=seed)
    began = time.process_time()
    model.fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - began
    p = model.predict_proba(rows.X_test)
    error = float(np.mean(model.classes_[p.argmax(1)] != rows.y_test))
    return Score(error, float(log_loss(rows.y_test, p, labels=model.classes_)), seconds, model.n_iter_)


def report(found: dict[str, dict[str, list[Score]]], sets: list[str]) -> str:
    """What was measured on some sets, by way and set."""
    lines = [
        "# Leaves that say one number, or one for each output",
        "",
        "Test error, log-loss, CPU seconds of the fit and rounds, means over development seeds "
        f"{SEEDS[0]} to {SEEDS[-1]}: `GCEClassifier`",
        "with `gce.bases.Tree` or `SymmetricTree`, `outputs_per_tree` as in the table, all else as by default. Letter: "
        f"{MOST_ROWS['letter']:,} rows.",
        f"Machine: {processor()}, {CORES} cores, which other work shared. Script: `benchmarks/vector_leaves.py`.",
        "",
        "| | " + " | ".join(sets) + " |",
        "|---" * (len(sets) + 1) + "|",
    ]
    lines += [
        f"| {way} | " + " | ".join(Score.average(own[name]).cell for name in sets) + " |" for way, own in found.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    found: dict[str, dict[str, list[Score]]] = {}
    for name in SETS:
        for family in FAMILIES:
            for setting, words in SETTINGS.items():
                scores = [measured(name, family, setting, seed) for seed in SEEDS]
                found.setdefault(f"{family}, {words}", {})[name] = scores
    (RESULTS / "vector_leaves.md").write_text(report(found, list(SETS)))


if __name__ == "__main__":
    run_script(main)
