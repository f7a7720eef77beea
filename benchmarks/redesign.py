"""Two versions of the package side by side: seconds to import, to fit and to predict, in turns on one machine.

    python benchmarks/redesign.py BEFORE AFTER [--turns 5] [--page PAGE.md]

``BEFORE`` and ``AFTER`` are folders that contain the package ``gce``, such as ``src`` of two checkouts. Every
measurement is a process of its own, and the two take turns, so that whatever else the machine does affects both. The
first turn reads files that are not in memory yet, and does not count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from harness import RESULTS, machine, run_script

START = (
    "import time, numpy as np, sklearn.base, sklearn.model_selection, sklearn.metrics, torch\nt = time.perf_counter()\n"
)
DATA = """
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, 10))
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=len(X))
"""
FIT = """
from gce import GCERegressor, GCEClassifier
model = {model}
t = time.perf_counter()
model.fit(X, {y})
"""
PREDICT = """
new = rng.normal(size=(20_000, 10))
for _ in range(5):
    model.predict(new)
t = time.perf_counter()
for _ in range(20):
    model.predict(new)
"""
END = "\nimport sys\nsys.stdout.write(str(time.perf_counter() - t))\n"


def fit(rows: int, model: str, y: str = "y") -> str:
    """A program that fits a model."""
    return START + DATA.format(rows=rows) + FIT.format(model=model, y=y)


SMALL, BOOSTED = "GCERegressor(random_state=0)", "GCERegressor(basis='tree', random_state=0)"
PROGRAMS = {
    "`import gce`": START + "import gce",
    "`from gce import GCERegressor`": START + "from gce import GCERegressor",
    "default regressor, 1,000 rows": fit(1000, SMALL),
    "default classifier, 600 rows": fit(600, "GCEClassifier(random_state=0)", "y > 0"),
    "boosted trees, 20,000 rows": fit(20_000, BOOSTED),
    "networks, 3,000 rows": fit(3000, "GCERegressor(basis='neural', random_state=0)"),
    "20 predictions of 20,000 rows by the default regressor": fit(1000, SMALL) + PREDICT,
}


def seconds(source: Path, program: str) -> float:
    """What a program reports, run with the package in a folder."""
    given = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", program + END], env=given, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--page", type=Path, default=RESULTS / "redesign.md")
    asked = parser.parse_args()
    lines = ["| seconds, median | before | after | after / before |", "|---|---:|---:|---:|"]
    for name, program in PROGRAMS.items():
        turns = [
            [seconds(source.resolve(), program) for source in (asked.before, asked.after)]
            for _ in range(asked.turns + 1)
        ]
        before, after = (median(column) for column in zip(*turns[1:], strict=True))
        lines.append(f"| {name} | {before:.3f} | {after:.3f} | {after / before:.2f} |")
    found = machine()
    about = (
        f"Medians of {asked.turns} turns, each a process of its own, on {found['cpu']} with {found['cores']} cores. "
        "Imports are beyond those of numpy, scikit-learn and torch. Script: `benchmarks/redesign.py`."
    )
    asked.page.write_text("\n".join(["# Before and after the redesign", "", about, "", *lines, ""]))


if __name__ == "__main__":
    run_script(main)
