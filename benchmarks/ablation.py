"""What each part of the default is worth: the default, and the default with one thing changed.

    python benchmarks/ablation.py [--sets NAME ...] [--only VARIANT ...] [--jobs 1] [--tables-only]

Seed 0 of the accuracy benchmark's split, at most 8,000 rows to fit on. Every fit is a line of JSON in
benchmarks/results/ablation.jsonl and is not repeated; the table beside it is made of what is there. With several jobs
each fit runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ablation_columns import Piecewise
from accuracy_sets import SETS, cut
from harness import RESULTS, processor, run_script
from joblib import Parallel, delayed
from sklearn.metrics import log_loss

import gce
from gce.bases import Basis, Union
from gce.bases.base import FitDefaults
from gce.training.families import default_bases

ROWS = 8000

Families = dict[str, Basis]


class Corrective(gce.bases.Neural):
    """Networks with corrective steps among the atoms in use between oracle calls."""

    @property
    def fit_defaults(self) -> FitDefaults:
        return super().fit_defaults._replace(algorithm="blended")


class Toward(gce.bases.Neural):
    """Networks by plain Frank-Wolfe steps."""

    @property
    def fit_defaults(self) -> FitDefaults:
        return super().fit_defaults._replace(algorithm="frank-wolfe")


def without(name: str) -> Callable[[Families], dict[str, Any]]:
    return lambda families: {"basis": {key: own for key, own in families.items() if key != name}}


def alone(name: str) -> Callable[[Families], dict[str, Any]]:
    return lambda families: {"basis": families[name]}


def changed(*names: str, **parameters: Any) -> Callable[[Families], dict[str, Any]]:
    """Families with other parameters."""

    def apply(families: Families) -> dict[str, Any]:
        own = {name: basis.set_params(**parameters) if name in names else basis for name, basis in families.items()}
        return {"basis": own}

    return apply


def nets(kind: type[gce.bases.Neural]) -> Callable[[Families], dict[str, Any]]:
    return lambda families: {"basis": {**families, "neural": kind(**families["neural"].get_params())}}


def proposing(families: Families) -> dict[str, Any]:
    """All bases but the forest propose in each round of one fit."""
    return {"basis": Union([families["tree"], families["neural"]]), "algorithm": "pairwise"}


VARIANTS: dict[str, Callable[[Families], dict[str, Any]]] = {
    "default": lambda families: {},
    "no trees, best leaf first": without("tree"),
    "no symmetric trees": without("symmetric"),
    "no forest": without("forest"),
    "no networks": without("neural"),
    "trees alone": alone("tree"),
    "symmetric trees alone": alone("symmetric"),
    "forest alone": alone("forest"),
    "networks alone": alone("neural"),
    "networks alone, piecewise-linear columns": lambda own: {"basis": nets(Piecewise)(own)["basis"]["neural"]},
    "piecewise-linear columns for networks": nets(Piecewise),
    "trees and networks propose in each round": proposing,
    "5 folds": lambda families: {"cv": 5},
    "10 folds": lambda families: {"cv": 10},
    "all columns": changed("tree", max_features=1.0),
    "all rows": changed("tree", subsample=1.0),
    "four fifths of the rows": changed("tree", subsample=0.8),
    "steps of 0.05": changed("tree", "symmetric", learning_rate=0.05),
    "steps of 0.2": changed("tree", "symmetric", learning_rate=0.2),
    "trees of 31 leaves": changed("tree", max_leaf_nodes=31),
    "forests of 50 trees": changed("forest", n_estimators=50),
    "64 codes for symmetric trees": changed("symmetric", max_bins=64),
    "two restarts of each network": changed("neural", restarts=2),
    "corrective steps of networks": nets(Corrective),
    "plain Frank-Wolfe for networks": nets(Toward),
}


def measured(name: str, variant: str) -> dict[str, Any]:
    """One fit, judged on the test rows."""
    rows = cut(name, 0)
    X, y = rows.X_train[:ROWS], rows.y_train[:ROWS]
    families = default_bases(len(X), X.shape[1])
    kind = gce.GCERegressor if rows.regression else gce.GCEClassifier
    model: Any = kind(random_state=0, verbose=False, **VARIANTS[variant](families))
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    answer = model.predict(rows.X_test)
    if rows.regression:
        figures = {"error": float(np.sqrt(np.mean((answer - rows.y_test) ** 2)))}
    else:
        p = model.predict_proba(rows.X_test)
        figures = {
            "error": 100 * float(np.mean(answer != rows.y_test)),
            "log_loss": float(log_loss(rows.y_test, p, labels=np.unique(y))),
        }
    return {"set": name, "variant": variant, **figures, "fit_seconds": seconds, "machine": processor()}


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fit(name: str, variant: str, path: Path) -> None:
    row = measured(name, variant)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def ratio(rows: dict[tuple[str, str], dict[str, Any]], variant: str, figure: str) -> str:
    """The geometric mean, over the sets of both, of a variant's figure to the default's; no set counts for more than
    a factor of two, so that an error of 0 does not settle it.
    """
    logs = []
    for (name, own), row in rows.items():
        first = rows.get((name, "default"), {})
        if own == variant and figure in row and figure in first:
            a, b = (max(value, 1e-3) for value in (row[figure], first[figure]))
            logs.append(np.clip(np.log(a / b), -np.log(2), np.log(2)))
    return f"{np.exp(np.mean(logs)):.3f} ({len(logs)})" if logs else ""


def page(rows: list[dict[str, Any]]) -> str:
    by = {(row["set"], row["variant"]): row for row in rows}
    sets = [name for name in SETS if (name, "default") in by]
    machines = " and ".join(sorted({row["machine"] for row in rows}))
    lines = [
        "# Ablation",
        "",
        "The default with one thing changed: seed 0, at most 8,000 rows to fit on, one thread a fit "
        f"({machines}). Ratios to the default (above 1: worse than the default), geometric means over the sets in "
        "brackets; seconds are sums over the sets of both. Made by benchmarks/ablation.py.",
        "",
        "| variant | RMSE or error | log-loss | seconds |",
        "|---|---|---|---|",
    ]
    for variant in VARIANTS:
        both = [name for name in sets if (name, variant) in by]
        if both:
            own, first = (sum(by[name, v]["fit_seconds"] for name in both) for v in (variant, "default"))
            lines.append(
                f"| {variant} | {ratio(by, variant, 'error')} | {ratio(by, variant, 'log_loss')} | {own / first:.2f} |"
            )
    lines += [
        "",
        "RMSE or error %, set by set:",
        "",
        "| variant | " + " | ".join(sets) + " |",
        "|---" * (len(sets) + 1) + "|",
    ]
    for variant in VARIANTS:
        cells = [f"{by[name, variant]['error']:.4g}" if (name, variant) in by else "" for name in sets]
        if any(cells):
            lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    path = RESULTS / "ablation.jsonl"
    if not given.tables_only:
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
        there = {(row["set"], row["variant"]) for row in kept(path)}
        todo = [(name, variant) for name in given.sets for variant in given.only if (name, variant) not in there]
        Parallel(given.jobs, batch_size=1)(delayed(fit)(*one, path) for one in todo)
    path.with_suffix(".md").write_text(page(kept(path)))


if __name__ == "__main__":
    run_script(main)
