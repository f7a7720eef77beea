"""One stack of scikit-learn's models, XGBoost, LightGBM and a greedy convex ensemble, on scikit-learn's digits.

    pip install "greedy-convex-ensemble[plot,rich,bench]"
    python examples/stacking.py [--out out] [--pictures out]

Compares the stack with its members and Caruana's selection, explains the weights and prints the pruning path; writes a
report (``stacking.html``) and two plots. XGBoost and LightGBM come with the ``bench`` extra; without them the stack has
the other members.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gce import ConvexStackingClassifier, GCEClassifier, GreedySelectionClassifier

mpl.use("Agg")

#: Iterations of Caruana's selection, and the accepted relative increase of the loss of a smaller stack.
ITERATIONS, ACCEPTED = 20, 0.01


def members() -> list[tuple[str, Any]]:
    """Models of several libraries."""
    found: list[tuple[str, Any]] = [
        ("bayes", GaussianNB()),
        ("discriminant", LinearDiscriminantAnalysis()),
        *((f"logistic, C={C}", make_pipeline(StandardScaler(), LogisticRegression(C=C))) for C in (0.1, 1.0)),
        *((f"{k} neighbours", KNeighborsClassifier(k, weights="distance")) for k in (3, 10, 30)),
        ("network", MLPClassifier((100,), max_iter=400, random_state=0)),
        ("forest", RandomForestClassifier(100, random_state=0)),
        ("extra trees", ExtraTreesClassifier(100, random_state=0)),
        ("boosting", HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=7, random_state=0)),
        ("gce", GCEClassifier(max_atoms=30, cv=2, random_state=0)),
    ]
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        found.append(("xgboost", XGBClassifier(n_estimators=80, max_depth=4, learning_rate=0.2, n_jobs=1)))
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        found.append(("lightgbm", LGBMClassifier(n_estimators=30, num_leaves=7, n_jobs=1, verbose=-1)))
    return found


def compare(stack: Any, greedy: Any, X: Any, y: Any) -> Table:
    """Test metrics of the stack, of Caruana's selection, of the average and of each member."""
    alone = {name: model.predict_proba(X) for name, model in stack.named_estimators_.items()}
    rows = {
        "convex stack": (stack.predict_proba(X), f"{stack.risk_:.5f}", f"{stack.gap_:.1e}"),
        f"Caruana, {ITERATIONS} iterations": (greedy.predict_proba(X), f"{greedy.risk_:.5f}", f"{greedy.gap_:.1e}"),
        "mean probabilities": (np.mean(list(alone.values()), 0), "", ""),
        **{name: (answer, "", "") for name, answer in alone.items()},
    }
    table = Table(title=f"{len(y)} test rows of digits", title_justify="left")
    for head in ("model", "test log-loss", "test error %", "out of fold", "proven within"):
        table.add_column(head, justify="left" if head == "model" else "right")
    for name, (answer, loss, gap) in rows.items():
        error = 100 * np.mean(stack.classes_[answer.argmax(1)] != y)
        table.add_row(name, f"{log_loss(y, answer / answer.sum(1, keepdims=True)):.4f}", f"{error:.2f}", loss, gap)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    pictures = given.pictures or given.out
    for folder in (given.out, pictures):
        folder.mkdir(parents=True, exist_ok=True)
    console, start = Console(file=sys.stdout), time.perf_counter()
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    shared: dict[str, Any] = {"cv": 3, "random_state": 0}
    # on data this small threads mostly wait for each other
    with threadpool_limits(1):
        stack = ConvexStackingClassifier(members(), **shared).fit(X_train, y_train)
        greedy = GreedySelectionClassifier(members(), max_iter=ITERATIONS, **shared).fit(X_train, y_train)
    console.print(compare(stack, greedy, X_test, y_test))
    explanation, path, small = stack.explain(), stack.pruning_path(), stack.prune(tol=ACCEPTED)
    console.print(f"\n{explanation}\n\n{path}", highlight=False, markup=False, soft_wrap=True)
    explanation.plot().figure_.savefig(pictures / "stack_explain.png", dpi=120)
    path.plot(size=len(small.estimators_)).figure_.savefig(pictures / "stack_prune.png", dpi=120)
    stack.report(given.out / "stacking.html", X_test, y_test)
    console.print(
        f"\nOne split with {len(y_test)} test rows distinguishes little: see benchmarks/results/stack_accuracy.md.\n"
        f"{time.perf_counter() - start:.0f} s in total. Plots: {pictures / 'stack_explain.png'}, "
        f"{pictures / 'stack_prune.png'}; report: {given.out / 'stacking.html'}.",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
