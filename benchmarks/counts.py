"""Poisson deviance of counts beside XGBoost and LightGBM: doctor_contacts, and a made-up portfolio with exposure.

    GCE_DATA_HOME=FOLDER python benchmarks/counts.py [--seeds 0 1 2] [--models NAME ...] [--tables-only]

Needs xgboost and lightgbm; one thread. Lines are added to results/counts.jsonl; counts.md is their summary.
"""

from __future__ import annotations

import argparse
import time

import kept_rows
import numpy as np
import pandas as pd
from harness import run_script
from numpy.typing import NDArray
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables_data import described, folder

from gce import GCERegressor

Array = NDArray[np.float64]
SETS = ("doctor_contacts", "portfolio")
ROWS = 12_000


def doctor_contacts() -> tuple[Array, Array, Array]:
    """Visits to a doctor, all observed for equally long."""
    table = pd.read_parquet(folder() / "doctor_contacts.parquet")
    y = table.pop(described()["doctor_contacts"].target)
    numbers = pd.get_dummies(table, dtype=float).to_numpy(dtype=float)
    return numbers, y.to_numpy(dtype=float), np.ones(len(y))


def portfolio() -> tuple[Array, Array, Array]:
    """Claims of cars, insured for a part of the year each: the rate has a wedge, a product and a step."""
    rng = np.random.default_rng(1234)
    age, power, region = rng.uniform(18, 80, ROWS), rng.gamma(6, 15, ROWS), rng.integers(0, 8, ROWS)
    mileage = rng.gamma(2, 6000, ROWS)
    exposure = np.where(rng.random(ROWS) < 0.4, 1.0, rng.uniform(0.02, 1.0, ROWS))
    score = -2.2 + 0.03 * np.abs(age - 45) - 0.4 * (age > 60) + 0.25 * np.sin(region) + 0.4 * np.log1p(mileage / 9000)
    rate = np.exp(score + 0.004 * (power - 90) * (age < 30))
    X = np.column_stack([age, power, region, mileage, rng.normal(size=(ROWS, 3))])
    return X, rng.poisson(rate * exposure).astype(float), exposure


def gce(X: Array, y: Array, exposure: Array, seed: int, rows: Array) -> Array:
    model = GCERegressor(loss="poisson", n_jobs=1, verbose=False, random_state=seed)
    return model.fit(X, y, base_score=np.log(exposure)).predict(rows)


def xgboost(X: Array, y: Array, exposure: Array, seed: int, rows: Array) -> Array:
    from xgboost import XGBRegressor

    model = XGBRegressor(objective="count:poisson", random_state=seed, n_jobs=1)
    return model.fit(X, y, base_margin=np.log(exposure)).predict(rows, base_margin=np.zeros(len(rows)))


def lightgbm(X: Array, y: Array, exposure: Array, seed: int, rows: Array) -> Array:
    from lightgbm import LGBMRegressor

    # init_score switches the start at the mean off: rates, weighted by exposure, are the same loss with it
    model = LGBMRegressor(objective="poisson", random_state=seed, n_jobs=1, verbose=-1)
    return model.fit(X, y / exposure, sample_weight=exposure).predict(rows)


def linear(X: Array, y: Array, exposure: Array, seed: int, rows: Array) -> Array:
    model = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-4, max_iter=1000))
    return model.fit(X, y / exposure, poissonregressor__sample_weight=exposure).predict(rows)


MODELS = {"GCE": gce, "XGBoost": xgboost, "LightGBM": lightgbm, "PoissonRegressor": linear}


def measure(name: str, seed: int, model: str) -> kept_rows.Row:
    X, y, exposure = {"doctor_contacts": doctor_contacts, "portfolio": portfolio}[name]()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    began = time.process_time()
    rate = MODELS[model](X[train], y[train], exposure[train], seed, X[test])
    return {
        "deviance": float(mean_poisson_deviance(y[test], rate * exposure[test])),
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def summarise() -> None:
    rows = kept_rows.read("counts")
    seeds = sorted({row["seed"] for row in rows})
    models = list(dict.fromkeys(row["model"] for row in rows))
    seconds = [np.mean([row["cpu_seconds"] for row in rows if row["model"] == model]) for model in models]
    lines = [
        "# Counts",
        "",
        f"Mean Poisson deviance on a fifth of the rows, seeds {seeds}, every model at its defaults on one thread.",
        f"The portfolio ({ROWS:,} rows) has an exposure per row, doctor_contacts has none. {rows[0]['machine']}, busy:",
        "mean CPU seconds of a fit and its predictions "
        + ", ".join(f"{model} {value:.1f}" for model, value in zip(models, seconds, strict=True))
        + ". GCE was run after its peers.",
        "",
        kept_rows.table(rows, "deviance", digits=5),
        "",
    ]
    kept_rows.write("counts", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tables-only", action="store_true")
    asked = parser.parse_args()
    if not asked.tables_only:
        cases = ((name, seed, model) for seed in asked.seeds for name in SETS for model in asked.models)
        kept_rows.run("counts", cases, measure)
    summarise()


if __name__ == "__main__":
    run_script(main)
