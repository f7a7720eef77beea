"""One tree per output, or one tree with a vector in each leaf? Measured with a library that has both.

    python benchmarks/vector_leaves.py

XGBoost's default on the sets of several classes, first split, with each of its two strategies, and twice as many rounds
of the second. Writes benchmarks/results/vector_leaves.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from accuracy_sets import cut
from harness import CORES, processor
from sklearn.metrics import log_loss
from xgboost import XGBClassifier, __version__

RESULTS = Path(__file__).parent / "results"
SETS = ("iris", "wine", "digits", "satimage", "letter")
WAYS = {
    "one tree an output": {"multi_strategy": "one_output_per_tree"},
    "vector leaves": {"multi_strategy": "multi_output_tree"},
    "vector leaves, 300 rounds": {"multi_strategy": "multi_output_tree", "n_estimators": 300},
}


def measured(name: str, **how: object) -> str:
    """Error, log-loss and seconds of one fit."""
    rows = cut(name, 0)
    model = XGBClassifier(random_state=0, tree_method="hist", n_jobs=CORES, **how)
    began = time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    seconds = time.perf_counter() - began
    p = model.predict_proba(rows.X_test)
    error = 100 * np.mean(p.argmax(1) != rows.y_test)
    return f"{error:.3g} %, {log_loss(rows.y_test, p, labels=np.arange(p.shape[1])):.4f}, {seconds:.1f} s"


def main() -> None:
    lines = [
        "# Leaves that say one number, or one for each output",
        "",
        "Error, log-loss and fit seconds on the first split of each set of several classes, by XGBoost's default",
        f"({__version__}, 100 rounds unless told) with each of its strategies. Machine: {processor()}, {CORES} cores.",
        "Script: `benchmarks/vector_leaves.py`.",
        "",
        "| | " + " | ".join(SETS) + " |",
        "|---" * (len(SETS) + 1) + "|",
    ]
    for way, how in WAYS.items():
        lines.append(f"| {way} | " + " | ".join(measured(name, **how) for name in SETS) + " |")
    (RESULTS / "vector_leaves.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
