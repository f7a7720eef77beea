"""Ten random 80/20 splits of scikit-learn's five small data sets: default GCE beside a random forest, and the defaults'
alternatives beside the defaults.

    python benchmarks/small_sets.py [--only NAME ...] [--sets NAME ...] [--splits 10] [--jobs 1] [--folder FOLDER]

Writes one JSON a variant and data set under benchmarks/results/small_sets/ and skips what is already there, then a
Markdown table beside that folder. With several jobs each fit runs on one thread, and its seconds mean little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from harness import RESULTS, run_script
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import gce

MACHINE = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
SETS = {
    "diabetes": load_diabetes,
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}


def ensemble(**changes: Any) -> Callable[[str, int], Any]:
    """A maker of GCE models that differ from the default by ``changes`` (``basis__*`` go to the networks)."""

    def make(name: str, seed: int) -> Any:
        inner = {key.removeprefix("basis__"): value for key, value in changes.items() if key.startswith("basis__")}
        outer = {key: value for key, value in changes.items() if not key.startswith("basis__")}
        if inner:
            outer["basis"] = gce.bases.Neural(**inner)
        kind = gce.GCERegressor if name == "diabetes" else gce.GCEClassifier
        return kind(random_state=seed, **outer)

    return make


def forest(name: str, seed: int) -> Any:
    kind = RandomForestRegressor if name == "diabetes" else RandomForestClassifier
    return kind(500, random_state=seed, n_jobs=-1)


VARIANTS: dict[str, Callable[[str, int], Any]] = {
    "RandomForest(500)": forest,
    "GCE default": ensemble(),
    "cv=None (hold-out)": ensemble(cv=None),
    "cv=3": ensemble(cv=3),
    "cv=10": ensemble(cv=10),
    "scale='each'": ensemble(scale="each"),
    "scale='common'": ensemble(scale="common"),
    "clip=None": ensemble(clip=None),
    "hidden=5": ensemble(basis__hidden=5),
    "hidden=20": ensemble(basis__hidden=20),
    "max_epochs=20": ensemble(basis__max_epochs=20),
    "max_epochs=80": ensemble(basis__max_epochs=80),
    "learning_rate=3e-3": ensemble(basis__learning_rate=3e-3),
    "learning_rate=3e-2": ensemble(basis__learning_rate=3e-2),
    "n_iter_no_change=10": ensemble(n_iter_no_change=10),
    "output='tanh'": ensemble(basis__output="tanh"),
    "frank-wolfe": ensemble(algorithm="frank-wolfe"),
    "away": ensemble(algorithm="away"),
    "nonlinear": ensemble(algorithm="nonlinear"),
    "blended": ensemble(algorithm="blended"),
}


def one_split(make: Callable[[str, int], Any], name: str, seed: int) -> dict[str, float]:
    X, y = SETS[name](return_X_y=True)
    order = np.random.RandomState(seed).permutation(len(X))
    train, test = np.split(order, [int(0.8 * len(X))])
    model = make(name, seed)
    began = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - began
    answer = model.predict(X[test])
    result = {"seed": seed, "seconds": seconds}
    if name == "diabetes":
        error = answer - y[test]
        return {**result, "error": float(np.abs(error).mean()), "rmse": float(np.sqrt(np.square(error).mean()))}
    return {**result, "error": 100 * float((answer != y[test]).mean())}


def run(variant: str, name: str, splits: int, folder: Path) -> dict[str, Any]:
    slug = "".join(c if c.isalnum() else "_" for c in variant)
    path = folder / f"{slug}--{name}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    rows = [one_split(VARIANTS[variant], name, seed) for seed in range(splits)]
    result = {
        "variant": variant,
        "set": name,
        "splits": rows,
        "machine": f"{MACHINE}, {torch.get_num_threads()} threads",
        "versions": {"gce": gce.__version__, "scikit-learn": sklearn.__version__, "torch": torch.__version__},
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    return result


def cell(result: dict[str, Any]) -> str:
    errors = np.array([row["error"] for row in result["splits"]])
    seconds = np.mean([row["seconds"] for row in result["splits"]])
    text = f"{errors.mean():.2f} ± {errors.std(ddof=1) / np.sqrt(len(errors)):.2f}"
    if "rmse" in result["splits"][0]:
        text += f" (RMSE {np.mean([row['rmse'] for row in result['splits']]):.1f})"
    return f"{text}, {seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS))
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=RESULTS / "small_sets")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    pairs = [(variant, name) for name in reversed(arguments.sets) for variant in arguments.only]
    Parallel(arguments.jobs)(delayed(run)(*pair, arguments.splits, arguments.folder) for pair in pairs)
    lines = [
        f"# Small sets: mean over {arguments.splits} random 80/20 splits ± one standard error, and fit seconds",
        "",
        "diabetes: MAE; the others: test error in %. Each row differs from the default in what its name says.",
        f"Machine: {MACHINE}, {arguments.jobs} fits at a time. Script: `benchmarks/small_sets.py`.",
        "",
        "| | " + " | ".join(arguments.sets) + " |",
        "|---" * (len(arguments.sets) + 1) + "|",
    ]
    for variant in arguments.only:
        results = [run(variant, name, arguments.splits, arguments.folder) for name in arguments.sets]
        lines.append(f"| {variant} | " + " | ".join(map(cell, results)) + " |")
    arguments.folder.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    run_script(main)
