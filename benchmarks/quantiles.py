"""Nine quantiles at once beside LightGBM, CatBoost and NGBoost, all at their defaults.

    GCE_DATA_HOME=FOLDER python benchmarks/quantiles.py [--seeds 0 1 2] [--models NAME ...] [--tables-only]

Needs lightgbm, catboost and ngboost; one thread. At most 4,000 training rows of a set. Lines are added to
results/quantiles.jsonl, one for each set, seed and model; quantiles.md is their summary.
"""

from __future__ import annotations

import argparse
import time

import kept_rows
import numpy as np
from data_sets import load
from harness import run_script
from numpy.typing import NDArray

from gce import GCERegressor
from gce.losses import Quantiles

Array = NDArray[np.float64]
SETS = ("boston", "concrete", "energy", "kin8nm", "california", "bike_hour")
LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MOST_ROWS = 4000
#: Random rows, in a box around the training rows, among which predictions are looked at for crossings.
RANDOM_ROWS = 200_000


def gce(X: Array, y: Array, seed: int, given: list[Array]) -> list[Array]:
    model = GCERegressor(loss=Quantiles(LEVELS), n_jobs=1, verbose=False, random_state=seed).fit(X, y)
    return [model.predict(rows) for rows in given]


def lightgbm(X: Array, y: Array, seed: int, given: list[Array]) -> list[Array]:
    from lightgbm import LGBMRegressor

    settings = {"objective": "quantile", "random_state": seed, "n_jobs": 1, "verbose": -1}
    models = [LGBMRegressor(alpha=level, **settings).fit(X, y) for level in LEVELS]
    return [np.column_stack([model.predict(rows) for model in models]) for rows in given]


def catboost(X: Array, y: Array, seed: int, given: list[Array]) -> list[Array]:
    from catboost import CatBoostRegressor

    loss = "MultiQuantile:alpha=" + ",".join(map(str, LEVELS))
    model = CatBoostRegressor(
        loss_function=loss, random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False
    )
    model.fit(X, y)
    return [model.predict(rows) for rows in given]


def ngboost(X: Array, y: Array, seed: int, given: list[Array]) -> list[Array]:
    from ngboost import NGBRegressor
    from scipy.stats import norm

    model = NGBRegressor(random_state=seed, verbose=False).fit(X, y)
    return [
        norm.ppf(np.array(LEVELS)[None], *(model.pred_dist(rows).params[name][:, None] for name in ("loc", "scale")))
        for rows in given
    ]


MODELS = {"GCE": gce, "LightGBM": lightgbm, "CatBoost": catboost, "NGBoost": ngboost}


def measure(name: str, seed: int, model: str) -> kept_rows.Row:
    X, y = (np.asarray(part, dtype=np.float64) for part in load(name))
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    train = train[:MOST_ROWS]
    box = np.random.default_rng(seed).uniform(X[train].min(0), X[train].max(0), (RANDOM_ROWS, X.shape[1]))
    began = time.process_time()
    pred, at_random = MODELS[model](X[train], y[train], seed, [X[test], box])
    above = y[test][:, None] - pred
    pinball = np.maximum(np.array(LEVELS) * above, (np.array(LEVELS) - 1) * above)
    # twice the mean pinball loss over a grid of levels: the CRPS of the quantiles between the outermost two
    return {
        "pinball": float(pinball.mean()),
        "crps": float(2 * pinball.mean()),
        "coverage": float(((above[:, 0] >= 0) & (above[:, -1] <= 0)).mean()),
        "crossings": int((np.diff(at_random, axis=1) < 0).any(1).sum()),
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def summarise() -> None:
    rows = kept_rows.read("quantiles")
    models = list(dict.fromkeys(row["model"] for row in rows))

    def by_model(key: str) -> list[float]:
        return [float(np.mean([row[key] for row in rows if row["model"] == model])) for model in models]

    cells = [
        ("covered by the outermost two (80 % wanted)", [f"{100 * v:.1f} %" for v in by_model("coverage")]),
        (f"random rows with a crossing, of {RANDOM_ROWS:,}", [f"{v:.0f}" for v in by_model("crossings")]),
        ("CPU seconds, predicting these rows included", [f"{v:.1f}" for v in by_model("cpu_seconds")]),
    ]
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        "# Nine quantiles, 0.1 to 0.9",
        "",
        f"Mean pinball loss on a fifth of the rows, seeds {seeds}; at most {MOST_ROWS:,} training rows, every model at",
        "its defaults on one thread. Half the CRPS over these levels. LightGBM has one model per level;",
        f"NGBoost predicts a normal distribution. {rows[0]['machine']}, busy: CPU seconds.",
        "Losses do not depend on the machine; GCE was run after its peers.",
        "",
        kept_rows.table(rows, "pinball"),
        "",
        "| mean over all | " + " | ".join(models) + " |",
        "|---|" + "---:|" * len(models),
        *(f"| {words} | " + " | ".join(values) + " |" for words, values in cells),
        "",
    ]
    kept_rows.write("quantiles", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--tables-only", action="store_true")
    asked = parser.parse_args()
    if not asked.tables_only:
        cases = ((name, seed, model) for seed in asked.seeds for name in asked.sets for model in asked.models)
        kept_rows.run("quantiles", cases, measure)
    summarise()


if __name__ == "__main__":
    run_script(main)
