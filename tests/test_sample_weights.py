"""A row of weight 2 is two rows: every family and task, on tables of numbers and of everything."""

import numpy as np
import pandas as pd
import pytest

from gce import GCEClassifier, GCERegressor, GCESurvival
from gce.bases import Forest, Neural
from gce.losses import Quantiles

N = 120
FAMILIES = {
    "tree": "tree",
    "symmetric": "symmetric",
    "forest": Forest(n_estimators=4),
    "neural": Neural(hidden=4, max_epochs=15),
}
TASKS = {
    "numbers": (GCERegressor, {}),
    "quantiles": (GCERegressor, {"loss": Quantiles((0.1, 0.5, 0.9))}),
    "two classes": (GCEClassifier, {}),
    "classes": (GCEClassifier, {}),
    "ordinal": (GCEClassifier, {"loss": "ordinal"}),
    "cox": (GCESurvival, {"loss": "cox"}),
    "hazards": (GCESurvival, {"loss": "hazards"}),
}
WORDS = ["red wine", "green tea", "apple juice", "old cheese", "sweet rice pudding", "cold soup"]

everything = pytest.mark.parametrize("mixed", [False, True], ids=["numbers", "mixed"])
each_task = pytest.mark.parametrize("task", TASKS)
each_family = pytest.mark.parametrize("family", FAMILIES)


def table(mixed):
    """Rows, and a signal in every column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    if not mixed:
        return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=N)
    X[rng.random(X.shape) < 0.1] = np.nan
    colour, customer = rng.choice(["red", "green", "blue"], N), rng.integers(0, 30, N)
    day = rng.integers(0, 600, N)
    text = [" and ".join(rng.choice(WORDS, 3)) for _ in range(N)]
    frame = pd.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "colour": colour,
            "customer": [f"c{i}" for i in customer],
            "on": pd.Timestamp("2023-01-01") + pd.to_timedelta(day, unit="D"),
            "text": text,
        }
    )
    effects = rng.normal(size=30)[customer] + (colour == "red") + np.sin(day / 58) + ["tea" in words for words in text]
    return frame, np.nan_to_num(X[:, 0]) + effects + 0.3 * rng.normal(size=N)


def targets(task, signal):
    if task in ("numbers", "quantiles"):
        return signal
    if task in ("cox", "hazards"):
        return np.column_stack([np.random.default_rng(1).random(N) < 0.6, np.exp(np.round(signal, 1))])
    return np.digitize(signal, np.quantile(signal, [0.5] if task == "two classes" else [0.3, 0.7]))


def taken(X, rows):
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def folds(fold):
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]


def rounds(family, task):
    """Rounds within which rounding stays rounding: networks amplify it.

    A line search on a kinked risk ends where a residual is 0 but for rounding, and its sign is the next gradient.
    """
    if family != "neural":
        return 8
    return 1 if task == "quantiles" else 3


@everything
@each_task
@each_family
def test_weighted_rows_are_repeated_rows(family, task, mixed):
    if (family, task) == ("forest", "hazards"):
        pytest.skip("hazards that change with time have no forest")
    (X, signal), (kind, more) = table(mixed), TASKS[task]
    y, weight, fold = targets(task, signal), np.random.default_rng(2).integers(0, 4, N), np.arange(N) % 3
    # in another order than the weighted ones
    rows = np.random.default_rng(3).permutation(np.repeat(np.arange(N), weight))
    fast = {"basis": FAMILIES[family], "max_atoms": rounds(family, task), "random_state": 0, **more}
    weighted = kind(cv=folds(fold), **fast).fit(X, y, sample_weight=weight)
    repeated = kind(cv=folds(fold[rows]), **fast).fit(taken(X, rows), y[rows])
    assert weighted.table_.columns == repeated.table_.columns
    assert len(weighted.history_) == len(repeated.history_)
    # hulls of networks and forests have weights by line searches and solvers, which end within their tolerance
    close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(weighted.raw_predict(X), repeated.raw_predict(X), **close)
    if kind is GCESurvival:
        np.testing.assert_array_equal(weighted.event_times_, repeated.event_times_)
        np.testing.assert_allclose(
            weighted.predict_survival_function(X), repeated.predict_survival_function(X), **close
        )
    if kind is GCEClassifier:
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), **close)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "quantiles"])
def test_the_weights_of_several_families_count_rows_by_their_weights(task):
    (X, signal), (kind, more) = table(True), TASKS[task]
    y, weight, fold = targets(task, signal), np.random.default_rng(4).integers(1, 4, N), np.arange(N) % 3
    rows = np.repeat(np.arange(N), weight)
    families = {name: FAMILIES[name] for name in ("tree", "symmetric", "forest")[: 2 if task == "hazards" else 3]}
    fast = {"basis": families, "max_atoms": 8, "random_state": 0, **more}
    weighted = kind(cv=folds(fold), **fast).fit(X, y, sample_weight=weight)
    repeated = kind(cv=folds(fold[rows]), **fast).fit(taken(X, rows), y[rows])
    np.testing.assert_allclose(weighted.result_.family_weights, repeated.result_.family_weights, atol=1e-5)
    np.testing.assert_allclose(weighted.raw_predict(X), repeated.raw_predict(X), rtol=1e-4, atol=1e-4)


@each_task
@each_family
def test_rows_of_weight_zero_are_absent(family, task):
    if (family, task) == ("forest", "hazards"):
        pytest.skip("hazards that change with time have no forest")
    (X, signal), (kind, more) = table(True), TASKS[task]
    y, weight = targets(task, signal), np.ones(N)
    weight[[0, 7, 50, 51, 119]] = 0
    some = np.flatnonzero(weight)
    model, other = (kind(basis=FAMILIES[family], max_atoms=3, cv=3, random_state=0, **more) for _ in range(2))
    model.fit(X, y, sample_weight=weight)
    other.fit(taken(X, some), y[some])
    np.testing.assert_array_equal(model.raw_predict(X), other.raw_predict(X))
    if kind is GCESurvival:
        np.testing.assert_array_equal(model.predict_survival_function(X), other.predict_survival_function(X))
