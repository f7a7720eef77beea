"""The accuracy benchmark: categories as such for the peers that take them, and the area under the ROC curve."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import accuracy
import accuracy_models
import accuracy_rows
import data_sets
from accuracy_sets import cut, cut_rows
from accuracy_tables import page


def rows_with_codes(regression):
    """A column of numbers, and one of codes whose order says nothing of the target."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(300), rng.integers(12, size=300)])
    y = np.isin(X[:, 1], [0, 3, 4, 8, 11]) ^ (rng.random(300) < 0.05)
    return replace(cut_rows(X, y.astype(int), 0, regression), categories=(1,))


@pytest.mark.parametrize("regression", [True, False])
@pytest.mark.parametrize("model", accuracy_models.NATIVE)
def test_peers_that_take_categories_are_given_them(model, regression, monkeypatch):
    if not accuracy_models.importable(model):
        pytest.skip(f"{model} is not installed")
    made, given, make, judged = [], [], accuracy_models.make, accuracy_models.judged
    short = accuracy_models.MODELS[model].short

    def kept(*parts, **changes):
        made.append(make(*parts, **{**short, **changes}))
        return made[-1]

    def seen(estimator, rows):
        given.append(rows)
        return judged(estimator, rows)

    monkeypatch.setattr(accuracy_models, "make", kept)
    monkeypatch.setattr(accuracy_models, "judged", seen)
    rows = rows_with_codes(regression)
    figures = accuracy_models.measured(model, rows, 0)
    assert ({"rmse"} if regression else {"error", "log_loss", "auc"}) <= set(figures)
    assert given[0].X_train[1].dtype.name == given[0].X_test[1].dtype.name == "category"
    assert np.array_equal(given[0].X_test[1].astype(float), rows.X_test[:, 1])
    if model == "CatBoost":
        assert made[0].get_cat_feature_indices() == [1]


@pytest.mark.parametrize("model", ["GCE", "RandomForest", "MLP"])
def test_others_are_given_codes_as_numbers(model):
    assert not accuracy_models.native(model, rows_with_codes(True))


def test_sets_without_categories_are_arrays_as_before():
    assert not accuracy_models.native("CatBoost", cut("iris", 0))


def test_categories_are_those_that_the_file_names(tmp_path, monkeypatch):
    monkeypatch.setenv("GCE_DATA_HOME", str(tmp_path))
    np.savez(tmp_path / "adult.npz", X=np.zeros((4, 3)), y=np.arange(4) % 2, cat_cols=np.array([0, 2]))
    np.savez(tmp_path / "boston.npz", X=np.zeros((4, 3)), y=np.arange(4))
    assert cut("adult", 0).categories == (0, 2)
    assert cut("boston", 0).categories == data_sets.categories("iris") == ()


def test_rows_of_codes_as_numbers_are_fitted_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GCE_DATA_HOME", str(tmp_path))
    np.savez(tmp_path / "adult.npz", X=np.zeros((4, 3)), y=np.arange(4) % 2, cat_cols=np.array([0]))
    fits = []

    def measured(model, rows, seed):
        fits.append(model)
        return {"error": 2.0, "log_loss": 2.0, "fit_seconds": 1.0, "cpu_seconds": 1.0, "predict_seconds": 1.0}

    monkeypatch.setattr(accuracy_models, "measured", measured)
    monkeypatch.setattr(accuracy_models, "warm_up", lambda *parts: None)
    old = {"set": "adult", "seed": 0, "error": 1.0, "log_loss": 1.0, "threads": 2, "version": "1", "machine": "one"}
    models = ["HistGradientBoosting", "RandomForest"]
    for model in models:
        accuracy_rows.append(tmp_path / "accuracy", model, {**old, "model": model})
    for _ in range(2):
        accuracy.fill(models, ["adult"], [0], tmp_path / "accuracy")
    assert fits == ["HistGradientBoosting"]
    held = accuracy_rows.read(tmp_path / "accuracy", "HistGradientBoosting")["adult", 0]
    assert (held["error"], held["categories"]) == (2, "native")


def row(model, seed, **figures):
    origin = {"threads": 2, "version": "1", "machine": "one"}
    return {"set": "iris", "seed": seed, "model": model, "error": 1.0, "log_loss": 1.0, **figures, **origin}


def test_rows_without_an_area_have_an_empty_cell():
    rows = {model: {} for model in accuracy_models.MODELS}
    rows["GCE"] = {("iris", seed): row("GCE", seed, auc=0.9 + seed / 100) for seed in range(5)}
    rows["CatBoost"] = {("iris", seed): row("CatBoost", seed) for seed in range(5)}
    rows["MLP"] = {("iris", seed): row("MLP", seed, auc=0.8) for seed in range(5)}
    text = page(rows)
    assert "| iris | **0.9200** |  | 0.8000 |" in text
    assert "| ROC AUC | won | tied | lost | win rate | sets won |\n|---|---:|---:|---:|---:|---:|\n| MLP | 5 " in text
    assert "ROC AUC, " not in text.split("## GCE against")[0]
