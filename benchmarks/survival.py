"""Survival analysis beside scikit-survival's forest and boosting, on the data sets that it ships.

    python benchmarks/survival.py [--seeds 5] [--first 0]

Needs scikit-survival. Each set is split at random, 30 % of the rows to judge by; all models have their defaults. Writes
benchmarks/results/survival.json and survival.md. Our settings were chosen on split seeds 100 to 104 (``--first 100``,
which writes nothing).
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import sksurv.datasets
from harness import RESULTS, machine, run_script
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.metrics import integrated_brier_score
from sksurv.nonparametric import kaplan_meier_estimator
from sksurv.util import Surv

from gce import GCESurvival
from gce.inspection import concordance_index

SETS = ("whas500", "gbsg2", "veterans_lung_cancer", "aids", "breast_cancer", "flchain")
#: Rows that are drawn of larger sets.
MOST_ROWS = 2000
KAPLAN_MEIER = "Kaplan-Meier"


def load(name: str) -> tuple[pd.DataFrame, Any]:
    """Rows and their events and times, which must be positive."""
    X, y = getattr(sksurv.datasets, f"load_{name}")()
    if name == "flchain":
        # the chapter of the cause of death is known of the dead only
        X = X.drop(columns="chapter")
    event, time_ = (np.asarray(y[field]) for field in y.dtype.names)
    kept = np.flatnonzero(time_ > 0)
    if len(kept) > MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(kept, MOST_ROWS, replace=False))
    return X.iloc[kept].reset_index(drop=True), Surv.from_arrays(event[kept], time_[kept])


def encoded() -> Any:
    """scikit-survival takes numbers without missing values."""
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0,
    )


def models(seed: int) -> dict[str, Any]:
    return {
        "GCESurvival()": GCESurvival(random_state=seed, n_jobs=1),
        'GCESurvival(loss="hazards")': GCESurvival(loss="hazards", random_state=seed, n_jobs=1),
        "RandomSurvivalForest()": make_pipeline(encoded(), RandomSurvivalForest(random_state=seed)),
        "GradientBoostingSurvivalAnalysis()": make_pipeline(
            encoded(), GradientBoostingSurvivalAnalysis(random_state=seed)
        ),
    }


def survival_at(model: Any, X: pd.DataFrame, times: np.ndarray) -> np.ndarray:
    """Probabilities of no event until some times, ``(n, t)``."""
    if isinstance(model, GCESurvival):
        return model.predict_survival_function(X, times)
    return np.vstack([each(times) for each in model.predict_survival_function(X)])


def judged(name: str, seed: int, contenders: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A line a model."""
    X, y = load(name)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y["event"])
    # the Brier score weighs rows by how likely they are not yet censored, which is unknown beyond the training times
    test = test[y["time"][test] < y["time"][train].max()]
    low, high = np.quantile(y["time"][test][y["event"][test]], [0.05, 0.95])
    times = np.linspace(low, high, 50)
    line = {"set": name, "seed": seed, "rows": len(y), "columns": X.shape[1], "events": int(y["event"].sum())}
    at, alone = kaplan_meier_estimator(y["event"][train], y["time"][train])
    flat = np.append(1.0, alone)[np.searchsorted(at, times, side="right")]
    same = np.broadcast_to(flat, (len(test), len(times)))
    alike = brier(y, train, test, same, times)
    yield line | {"model": KAPLAN_MEIER, "concordance": 0.5, "brier": alike, "seconds": 0.0}
    for label, model in contenders.items():
        began = time.perf_counter()
        model.fit(X.iloc[train], y[train])
        took = time.perf_counter() - began
        yield line | {
            "model": label,
            "concordance": concordance_index(y[test], model.predict(X.iloc[test])),
            "brier": brier(y, train, test, survival_at(model, X.iloc[test], times), times),
            "seconds": took,
        }


def brier(y: Any, train: np.ndarray, test: np.ndarray, survival: np.ndarray, times: np.ndarray) -> float:
    return float(integrated_brier_score(y[train], y[test], survival, times))


def page(found: dict[str, Any]) -> str:
    """Means over seeds."""
    frame, host = pd.DataFrame(found["lines"]), found["machine"]
    seeds = sorted(frame["seed"].unique())
    text = [
        "# Survival analysis beside scikit-survival",
        "",
        f"Means over split seeds {seeds[0]} to {seeds[-1]}, 30 % of the rows to judge by; all models with their",
        "defaults. Concordance: Harrell's, higher is better. Brier: the Brier score of survival probabilities,",
        "weighted for censoring and integrated from the 5 % to the 95 % quantile of event times (scikit-survival's),",
        f"lower is better. Of flchain {MOST_ROWS:,} rows were drawn, without the cause of death. Seconds are of a fit",
        "on a machine with other work, and tell the order of magnitude only. Our settings were chosen on split",
        "seeds 100 to 104.",
        f"Machine: {host['cpu']}, {host['cores']} cores, one thread; scikit-survival {found['version']}. Script:",
        "`benchmarks/survival.py`.",
        "",
    ]
    order = [KAPLAN_MEIER, *models(0)]
    for what, better in (("concordance", max), ("brier", min)):
        means = frame.groupby(["set", "model"])[what].mean().unstack()
        shown = [model for model in order if what == "brier" or model != KAPLAN_MEIER]
        text += ["", f"## {what.capitalize()}", "", f"| set | rows | events | {' | '.join(f'`{m}`' for m in shown)} |"]
        text.append("|---|" + "---:|" * (2 + len(shown)))
        for name in SETS:
            own = frame[frame["set"] == name].iloc[0]
            values = [means.loc[name, model] for model in shown]
            cells = [f"**{v:.4f}**" if v == better(values) else f"{v:.4f}" for v in values]
            text.append(f"| {name} | {own['rows']:,} | {own['events']:,} | {' | '.join(cells)} |")
        text.append(f"| mean | | | {' | '.join(f'{means[model].mean():.4f}' for model in shown)} |")
    seconds = frame.groupby("model")["seconds"].mean()
    text += ["", "Seconds per fit: " + ", ".join(f"`{model}` {seconds[model]:.1f}" for model in models(0)) + "."]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    lines = []
    for name in SETS:
        for seed in range(given.first, given.first + given.seeds):
            lines += judged(name, seed, models(seed))
    frame = pd.DataFrame(lines).groupby(["set", "model"])[["concordance", "brier", "seconds"]].mean()
    logging.info(frame.unstack().round(4).to_string())
    if given.first == 0:
        found = {"machine": machine(), "version": sksurv.__version__, "lines": lines}
        (RESULTS / "survival.json").write_text(json.dumps(found, indent=1) + "\n")
        (RESULTS / "survival.md").write_text(page(found))


if __name__ == "__main__":
    run_script(main)
