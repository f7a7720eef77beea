"""XGBoost, searched in the stages of the paper's appendix.

For small sets: 100 random trials over depth and child weight, a 5 x 5 grid around the best, gamma, subsample with
colsample_bytree, lambda with alpha, eta, and 1,000 random trials in the neighbourhood of the best. That makes 1,186
trials where the paper says "about 2298". For large sets the secondary parameters are tried one by one over shorter
lists; the paper says 200 combinations, so 200 less the other stages are left for the neighbourhood.

What the paper leaves open is settled here: parameters not yet tuned have XGBoost's defaults; a stage starts from the
best trial so far; the 5 x 5 grid takes whole steps, and is moved inward where it would leave the range; a neighbour
lies at most one place away along a parameter's list of values, anywhere between them; alpha's values for large sets
are those for small ones. Rounds and settings are chosen by the error that is reported (the authors' code chose
regressions by RMSE and reported MAE).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.budgets import Budget
from paper.ledger import Record
from paper.methods.base import Array, Method, measured, small
from paper.searches import GridStage, RandomStage, Rng, Search, Settings, Stage, Staged

if TYPE_CHECKING:
    from gce.datasets import Dataset

ROUNDS, PATIENCE = 2000, 50
START: Settings = {
    "max_depth": 6,
    "min_child_weight": 1.0,
    "gamma": 0.0,
    "subsample": 1.0,
    "colsample_bytree": 1.0,
    "reg_lambda": 1.0,
    "reg_alpha": 0.0,
    "eta": 0.1,
}
DEPTHS = [3, 5, 7, 9, 11, 13]
CHILD_WEIGHTS = [float(weight) for weight in range(0, 20, 2)]
TENTHS = [0.5, 0.6, 0.7, 0.8, 0.9]
#: Secondary parameters in the order they are tuned: together (small sets) and one by one (large sets).
SMALL_GRIDS: list[dict[str, list[float]]] = [
    {"gamma": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]},
    {"subsample": TENTHS, "colsample_bytree": TENTHS},
    {"reg_lambda": [0.0, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0], "reg_alpha": [0.0, 0.1, 1.0]},
    {"eta": [0.2, 0.15, 0.05, 0.01, 0.005, 0.001]},
]
LARGE_GRIDS: list[dict[str, list[float]]] = [
    {"gamma": [0.0, 0.05, 0.1, 0.2]},
    {"subsample": TENTHS[:4]},
    {"colsample_bytree": TENTHS[:4]},
    {"reg_lambda": [0.0, 0.5, 1.0, 1.5]},
    {"reg_alpha": [0.0, 0.1, 1.0]},
    {"eta": [0.15, 0.05, 0.01]},
]
RANDOM_TRIALS, NEIGHBOURS_SMALL, TRIALS_LARGE = 100, 1000, 200
#: All of a parameter's values in order, the defaults and the reach of the 5 x 5 grid among them: neighbours lie along
#: these lists.
VALUES: dict[str, list[float]] = {
    "max_depth": list(range(1, 16, 2)),
    "min_child_weight": [*CHILD_WEIGHTS, 20.0],
    "gamma": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
    "subsample": [*TENTHS, 1.0],
    "colsample_bytree": [*TENTHS, 1.0],
    "reg_lambda": [0.0, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0],
    "reg_alpha": [0.0, 0.1, 1.0],
    "eta": [0.001, 0.005, 0.01, 0.05, 0.1, 0.15, 0.2],
}


class XGBoost(Method):
    """Rounds and settings chosen by the error that is reported."""

    name, title = "xgb", "XGB"

    def watched(self, classes: int) -> str:
        """What early stopping looks at."""
        return "mae" if classes == 0 else "error" if classes == 2 else "merror"

    def search(self, data: Dataset, budget: Budget) -> Search:
        return Staged(START, stages(small(data), budget), space, budget.label)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        import xgboost

        train = xgboost.DMatrix(data.X_train, data.y_train, nthread=1)
        held_out = xgboost.DMatrix(data.X_val, data.y_val, nthread=1)
        told = {"eval_metric": self.watched(data.classes), "nthread": 1, "seed": seed, "verbosity": 0}
        parameters = {**settings, **objective(data.classes), **told}
        watch = {"evals": [(held_out, "validation")], "early_stopping_rounds": PATIENCE, "verbose_eval": False}
        model, record = measured(
            data,
            lambda: xgboost.train(parameters, train, ROUNDS, **watch),
            lambda model, X: answer(model, xgboost.DMatrix(X, nthread=1), data.classes),
        )
        return {**record, "rounds": model.best_iteration + 1}


class XGBoostByLoss(XGBoost):
    """Rounds chosen by validation loss, as networks choose theirs: an error on 24 rows takes few values.

    For regressions that is RMSE, the appendix's own choice. Settings are chosen by the error that is reported.
    """

    name, title = "xgb_loss", "XGB, rounds by loss"

    def watched(self, classes: int) -> str:
        return "rmse" if classes == 0 else "logloss" if classes == 2 else "mlogloss"


def objective(classes: int) -> Settings:
    """What is minimised."""
    if classes == 0:
        return {"objective": "reg:squarederror"}
    if classes == 2:
        return {"objective": "binary:logistic"}
    return {"objective": "multi:softprob", "num_class": classes}


def answer(model: Any, rows: Any, classes: int) -> Array:
    """Predictions at the best round: numbers, or codes of classes."""
    raw: Array = model.predict(rows, iteration_range=(0, model.best_iteration + 1))
    if classes == 0:
        return raw
    return raw > 0.5 if classes == 2 else raw.argmax(1)


def stages(few_rows: bool, budget: Budget) -> list[Stage]:
    """The paper's stages, as long as the budget allows."""
    grids = SMALL_GRIDS if few_rows else LARGE_GRIDS
    sizes = [RANDOM_TRIALS, 25, *(len(points(grid)) for grid in grids)]
    sizes.append(NEIGHBOURS_SMALL if few_rows else TRIALS_LARGE - sum(sizes))
    first, fine, *middle, last = budget.allot(sizes)
    tuned = [
        GridStage(" x ".join(grid), count, partial(points, grid)) for grid, count in zip(grids, middle, strict=True)
    ]
    chosen = [
        RandomStage("depth x child weight", first, draw_depth),
        GridStage("5 x 5", fine, around),
        *tuned,
        RandomStage("neighbourhood", last, neighbour),
    ]
    return [stage for stage in chosen if stage.trials]


def points(grid: dict[str, list[float]], best: Settings = START) -> list[Settings]:
    """A grid's points, the same around any setting."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def draw_depth(best: Settings, rng: Rng) -> Settings:
    return {"max_depth": int(rng.choice(DEPTHS)), "min_child_weight": float(rng.choice(CHILD_WEIGHTS))}


def around(best: Settings) -> list[Settings]:
    """The 5 x 5 grid around the best depth and child weight."""
    depth = window(best["max_depth"], "max_depth")
    weight = window(best["min_child_weight"], "min_child_weight")
    return [{"max_depth": int(d), "min_child_weight": float(w)} for d, w in product(depth, weight)]


def window(centre: float, name: str) -> Array:
    """Five values a step apart, moved inward at the range's ends."""
    low, high = VALUES[name][0], VALUES[name][-1]
    middle = min(max(centre, low + 2), high - 2)
    return np.arange(middle - 2, middle + 3)


def neighbour(best: Settings, rng: Rng) -> Settings:
    """A setting whose every value lies at most one place from the best along its list, evenly drawn between."""
    near: Settings = {}
    for name, values in VALUES.items():
        places = np.arange(len(values))
        place = np.interp(best[name], values, places) + rng.uniform(-1, 1)
        near[name] = float(np.interp(place, places, values))
    return {**near, "max_depth": round(near["max_depth"])}


def space() -> dict[str, Any]:
    from optuna.distributions import FloatDistribution, IntDistribution

    floats = {name: FloatDistribution(values[0], values[-1]) for name, values in VALUES.items() if name != "max_depth"}
    depths = VALUES["max_depth"]
    return {**floats, "max_depth": IntDistribution(int(depths[0]), int(depths[-1]))}
