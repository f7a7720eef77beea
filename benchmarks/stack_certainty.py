"""How sure a member may be in a stack of scores: test log-loss by the least probability that has a score.

    python benchmarks/stack_certainty.py [--answers out/stack_answers]

On scikit-learn's small sets members that call things impossible (a forest, neighbours, naive Bayes) stand beside
logistic regression and boosting, over eight splits; on adult and digits the members of benchmarks/stack_accuracy.py,
whose answers must be there. Writes benchmarks/results/stack_certainty.md in a minute.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import RESULTS, refuse_gaps, run_script
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stack_answers import held

from gce.frank_wolfe.simplex import Outputs, solve_simplex
from gce.losses import CrossEntropy, LogMixture
from gce.losses.risk import Risk

Array = NDArray[np.float64]
Pool = tuple[Array, Array, NDArray[Any], NDArray[Any]]

LEAST = (2.2e-16, 1e-6, 1e-5, 1e-4, 1e-3)
SMALL = {"breast_cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}
SPLITS = 8


def members() -> list[Any]:
    return [
        RandomForestClassifier(100, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        GaussianNB(),
        make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
        HistGradientBoostingClassifier(max_iter=40, random_state=0),
    ]


def small(name: str) -> Iterator[Pool]:
    """Out-of-fold and test probabilities ``(P, n, k)`` with the classes they are for, a split each."""
    X, y = SMALL[name](return_X_y=True)
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        held_out = [cross_val_predict(own, X_train, y_train, cv=folds, method="predict_proba") for own in members()]
        test = [own.fit(X_train, y_train).predict_proba(X_test) for own in members()]
        yield np.array(held_out), np.array(test), y_train, y_test


def cached(name: str, folder: Path) -> Iterator[Pool]:
    for found, _, arrays in held(folder):
        if found == name:
            yield arrays["held_out"], arrays["test"], arrays["y_train"], arrays["y_test"]


def log_loss(p: Array, y: NDArray[Any]) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], LEAST[0])).mean())


def mixture(held_out: Array, test: Array, y: NDArray[Any], y_test: NDArray[Any]) -> float:
    n = len(y)
    answers = Outputs([torch.from_numpy(one[np.arange(n), y][:, None].copy()) for one in held_out])
    risk = Risk(LogMixture(), torch.ones(n, 1).double(), torch.full((1, n), 1 / n).double(), torch.zeros(1).double())
    return log_loss(np.tensordot(solve_simplex(risk, answers).weights, test, 1), y_test)


def scores(held_out: Array, test: Array, y: NDArray[Any], y_test: NDArray[Any], least: float) -> float:
    n, k = len(y), held_out.shape[2]
    answers = Outputs([torch.from_numpy(np.log(np.maximum(one, least))) for one in held_out])
    target, weight = torch.from_numpy(np.eye(k)[y]), torch.full((1, n), 1 / n).double()
    found = solve_simplex(Risk(CrossEntropy(), target, weight, torch.zeros(k).double()), answers)
    return log_loss(softmax(np.tensordot(found.weights, np.log(np.maximum(test, least)), 1), 1), y_test)


def row(name: str, pools: Iterable[Pool]) -> str:
    # of a set without answers there is nothing to show
    pools = list(pools)
    refuse_gaps([] if pools else [f"no answers of {name}: stack_accuracy.py answers makes them"])
    figures = [[mixture(*pool), *(scores(*pool, least) for least in LEAST)] for pool in pools]
    means, splits = np.mean(figures, 0), len(figures)
    return f"| {name}, {splits} splits | " + " | ".join(f"{one:.4f}" for one in means) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, default=Path("out/stack_answers"))
    given = parser.parse_args()
    lines = ["# How sure a member may be in a stack of scores", "", "Mean test log-loss of the convex stack.", ""]
    lines += ["| | mixed probabilities | " + " | ".join(f"scores, from {least:g}" for least in LEAST) + " |"]
    lines += ["|---|" + "---:|" * (1 + len(LEAST))]
    lines += [row(name, small(name)) for name in SMALL]
    lines += [row(name, cached(name, given.answers)) for name in ("adult", "digits")]
    lines += [
        "",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores. Script: `benchmarks/stack_certainty.py`.",
        "",
    ]
    (RESULTS / "stack_certainty.md").write_text("\n".join(lines))


if __name__ == "__main__":
    run_script(main)
