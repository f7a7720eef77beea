"""The methods of Table 1 on tiny data: what they report is what the fitted model does."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import gce
from gce.datasets import Dataset
from paper.budgets import SimplexProblem, Trials
from paper.methods import METHODS, forest, greedy, nongreedy, xgboost
from paper.methods.base import batch_size, error, most_epochs, watched
from paper.methods.greedy import atoms

ROWS = {"train": slice(0, 60), "val": slice(60, 80), "test": slice(80, 100)}


def made_up(classes):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(100, 3))
    score = X[:, 0] - X[:, 1] ** 2 + 0.3 * rng.normal(size=100)
    y = score if classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    rows = {f"{kind}_{part}": values[cut] for part, cut in ROWS.items() for kind, values in (("X", X), ("y", y))}
    task, metric = ("regression", "mae") if classes == 0 else ("classification", "error")
    return Dataset(name="made up", task=task, metric=metric, classes=classes, note="", **rows)


def test_errors_are_the_papers():
    assert error("mae", np.array([1.0, 3.0]), np.array([0.0, 1.0])) == 1.5
    assert error("error", np.array([1, 2, 2, 0]), np.array([1, 2, 0, 0])) == 25.0
    assert error("mae", np.array([np.nan, 1.0]), np.zeros(2)) is None


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_xgboost_reports_its_best_round(classes):
    xgb = pytest.importorskip("xgboost")
    data = made_up(classes)
    settings = {**xgboost.START, "max_depth": 3}
    record = METHODS["xgb"].fit(data, settings, seed=1, device="cpu")
    watched_error = {}
    parts = [xgb.DMatrix(X, y) for X, y in ((data.X_train, data.y_train), (data.X_val, data.y_val))]
    metric = METHODS["xgb"].watched(classes)
    told = {**settings, **xgboost.objective(classes), "eval_metric": metric, "seed": 1, "nthread": 1}
    watch = {"evals": [(parts[1], "v")], "evals_result": watched_error, "verbose_eval": False}
    xgb.train(told, parts[0], record["rounds"] + 60, **watch)
    [values] = watched_error["v"].values()
    scale = 1 if classes == 0 else 100
    assert record["validation"] == pytest.approx(scale * values[record["rounds"] - 1], rel=1e-5)
    assert values[record["rounds"] - 1] == min(values[: record["rounds"] + 50])


@pytest.mark.parametrize(("classes", "kind"), [(0, RandomForestRegressor), (3, RandomForestClassifier)])
def test_a_forest_stops_growing_when_fifty_trees_do_not_help(classes, kind):
    data = made_up(classes)
    settings = {name: values[0] for name, values in forest.RANGES.items()}
    settings |= {"max_depth": 5, "max_features": "1", "bootstrap": True}
    record = METHODS["rf"].fit(data, settings, seed=4, device="cpu")
    told = {**settings, "max_features": 1, "random_state": 4}

    def errors(trees):
        model = kind(n_estimators=trees, **told).fit(data.X_train, data.y_train)
        parts = ((data.X_val, data.y_val), (data.X_test, data.y_test))
        return [error(data.metric, model.predict(X), y) for X, y in parts]

    trees = record["trees"]
    assert trees % 50 == 0
    assert [record["validation"], record["test"]] == pytest.approx(errors(trees))
    assert errors(trees + 50)[0] >= record["validation"]
    assert all(errors(fewer)[0] > record["validation"] for fewer in range(50, trees, 50))


def test_forests_features_have_their_present_names():
    assert forest.max_features("auto", regression=True, columns=4) == 1.0
    assert forest.max_features("auto", regression=False, columns=4) == "sqrt"
    assert forest.max_features("0.3", regression=True, columns=4) == 0.3
    one = forest.max_features("1", regression=True, columns=4)
    assert (one, type(one)) == (1, int)
    assert forest.max_features("5", regression=True, columns=4) == 4


@pytest.mark.parametrize("classes", [0, 3])
def test_gce_at_the_papers_settings(classes, monkeypatch):
    monkeypatch.setattr(greedy, "EPOCHS_SMALL", 30)
    data = made_up(classes)
    search = METHODS["gce_paper"].search(data, SimplexProblem(0.05))
    assert len(search.settings) == search.count == (6 if classes == 0 else 2)
    record = METHODS["gce_paper"].fit(data, search.settings[-1], seed=0, device="cpu")
    constant = data.y_train.mean() if classes == 0 else np.bincount(data.y_train).argmax()
    assert record["test"] < error(data.metric, np.full(20, constant), data.y_test)
    assert 1 <= record["atoms"] <= record["iterations"] + 1


def test_atoms_are_the_papers():
    basis = atoms(made_up(0), 10)
    told = basis.get_params()
    assert (told["learning_rate"], told["min_learning_rate"], told["patience"], told["last_epochs"]) == (
        1e-3,
        1e-5,
        10,
        10,
    )
    assert (told["batch_size"], told["max_epochs"], told["inherit"], told["gain"]) == (20, 20_000, 0.0, 1.0)


def test_gce_at_its_defaults_sees_validation_rows_too():
    data = made_up(2)
    record = METHODS["gce"].fit(data, {}, seed=0, device="cpu")
    assert record["validation"] is None
    other = replace(data, y_val=1 - data.y_val)
    assert METHODS["gce"].fit(other, {}, seed=0, device="cpu")["test"] != record["test"]


def test_gce_held_out_trains_on_the_training_rows_alone():
    data = made_up(3)
    record = METHODS["gce_holdout"].fit(data, {}, seed=2, device="cpu")
    model = gce.GCEClassifier(random_state=2, n_jobs=1)
    model.fit(data.X_train, data.y_train, X_val=data.X_val, y_val=data.y_val)
    assert record["test"] == pytest.approx(100 * (1 - model.score(data.X_test, data.y_test)))
    assert record["atoms"] == len(model.ensemble_.weights)


@pytest.mark.parametrize("name", ["nn", "ngce"])
@pytest.mark.parametrize("classes", [0, 3])
def test_networks_learn(name, classes, monkeypatch):
    monkeypatch.setattr(nongreedy, "EPOCHS_SMALL", 40)
    data = made_up(classes)
    settings = {"learning_rate": 0.01, "weight_decay": 1e-4}
    record = METHODS[name].fit(data, settings, seed=0, device="cpu")
    constant = data.y_train.mean() if classes == 0 else np.bincount(data.y_train).argmax()
    assert record["test"] < error(data.metric, np.full(20, constant), data.y_test)
    assert 1 <= record["iterations"] <= 40
    assert METHODS[name].fit(data, settings, seed=0, device="cpu") | {"seconds": 0} == record | {"seconds": 0}


def test_classes_that_are_not_trained_on_are_not_watched():
    data = made_up(3)
    few = data.y_train != 2
    lacking = replace(data, X_train=data.X_train[few], y_train=data.y_train[few])
    assert set(watched(lacking)["y_val"]) == {0, 1}
    assert len(watched(lacking)["X_val"]) == (data.y_val != 2).sum()
    assert len(watched(data)["y_val"]) == 20


def test_batches_are_a_third_and_ten_thousand_at_most():
    data = made_up(0)
    assert batch_size(data) == 20
    large = replace(data, X_train=np.zeros((40_000, 1)))
    assert batch_size(large) == 10_000
    # 3,000 steps of four an epoch
    assert (most_epochs(data, 7), most_epochs(large, 7)) == (7, 750)


def test_networks_are_tried_at_fourteen_settings():
    data = made_up(0)
    for name in ("nn", "ngce"):
        assert METHODS[name].search(data, SimplexProblem(0.05)).count == 14
        search = METHODS[name].search(data, Trials(20))
        assert len({tuple(settings.values()) for settings in search.settings}) == search.count == 14
