"""Random forests: random search over the paper's ranges, trees added by fifties while they help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from paper.budgets import Budget
from paper.ledger import Record
from paper.methods.base import Method, error, measured, small
from paper.searches import RandomStage, Rng, Search, Settings, Staged

if TYPE_CHECKING:
    from gce.datasets import Dataset

#: The paper's ranges. ``max_features`` as text, for Optuna takes 1 (a feature) and 1.0 (all of them) for the same.
RANGES: dict[str, list[Any]] = {
    "max_features": ["auto", "sqrt", "log2", "1", "3", "5", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"],
    "min_samples_leaf": [1, 2, 5, 10, 20, 30, 50, 80, 120, 170, 230],
    "max_depth": [1, 2, 5, 10, 20, 30, 50, 80, 120],
    "min_samples_split": [2, 4, 6, 8, 10, 12, 14, 16],
    "bootstrap": [False, True],
}
MOST_TREES, MORE_TREES = 2000, 50
TRIALS_SMALL, TRIALS_LARGE = 4000, 200


class Forest(Method):
    name, title = "rf", "RF"

    def search(self, data: Dataset, budget: Budget) -> Search:
        (trials,) = budget.allot([TRIALS_SMALL if small(data) else TRIALS_LARGE])
        return Staged({}, [RandomStage("random", trials, draw)], space, budget.label)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        kind = RandomForestRegressor if data.metric == "mae" else RandomForestClassifier
        features = max_features(settings["max_features"], data.metric == "mae", data.X_train.shape[1])
        forest = kind(**{**settings, "max_features": features}, n_jobs=1, random_state=seed, warm_start=True)
        _, record = measured(data, lambda: grown(forest, data), lambda forest, X: forest.predict(X))
        return {**record, "trees": len(forest.estimators_)}


def draw(best: Settings, rng: Rng) -> Settings:
    return {name: values[rng.integers(len(values))] for name, values in RANGES.items()}


def space() -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution

    return {name: CategoricalDistribution(values) for name, values in RANGES.items()}


def max_features(text: str, regression: bool, columns: int) -> Any:
    """What scikit-learn understands; ``auto`` was all features for regression and their root for classes."""
    if text == "auto":
        return 1.0 if regression else "sqrt"
    if text in ("sqrt", "log2"):
        return text
    return float(text) if "." in text else min(int(text), columns)


def grown(forest: Any, data: Dataset) -> Any:
    """Add trees until 50 more do not improve the validation error, then drop those."""
    least, kept = float("inf"), 0
    for trees in range(MORE_TREES, MOST_TREES + 1, MORE_TREES):
        forest.set_params(n_estimators=trees).fit(data.X_train, data.y_train)
        value = error(data.metric, forest.predict(data.X_val), data.y_val)
        assert value is not None
        if value >= least:
            break
        least, kept = value, trees
    forest.estimators_ = forest.estimators_[:kept]
    return forest
