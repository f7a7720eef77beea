"""The benchmark of tables: splits, what models are given, rows that are kept, ranks and the page."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import accuracy_models
import accuracy_rows
import tables
import tables_data
import tables_models
from tables_data import About, cut_frame, split_rows
from tables_page import page


def about(task="regression", split="random", key=None, rows=0):
    return About("y", task, split, key, rows)


def frame_of(n, groups=7, seed=0):
    """A made-up table with a number, a category, a date and a key of groups."""
    rng = np.random.default_rng(seed)
    town = pd.Series(rng.choice(["bern", "thun", "biel"], n)).where(rng.random(n) > 0.1)
    date = pd.Timestamp("2020-02-28 13:00") + pd.to_timedelta(rng.permutation(n), unit="D")
    number = rng.standard_normal(n)
    key = rng.integers(groups, size=n).astype(str)
    y = number + town.isin(["bern"])
    return pd.DataFrame({"number": number, "town": town, "date": date, "key": key, "y": y})


@given(st.integers(5, 80), st.integers(0, 2), st.sampled_from(["random", "time", "group"]))
def test_parts_are_disjoint_and_whole(n, seed, split):
    frame = frame_of(n, seed=n)
    key = {"random": None, "time": "date", "group": "key"}[split]
    train, test = split_rows(frame, about(split=split, key=key), seed)
    assert sorted([*train, *test]) == list(range(n))


def test_a_split_by_chance_is_the_seeds_permutation():
    train, test = split_rows(frame_of(23), about(), 2)
    assert [*train, *test] == np.random.RandomState(2).permutation(23).tolist()
    assert len(train) == 18


@given(st.integers(1, 12), st.integers(0, 2))
def test_groups_are_kept_together(groups, seed):
    frame = frame_of(60, groups)
    train, test = split_rows(frame, about(split="group", key="key"), seed)
    fitted, judged = set(frame["key"].iloc[train]), set(frame["key"].iloc[test])
    assert not fitted & judged
    assert len(judged) == frame["key"].nunique() // 5


def test_what_is_judged_by_time_is_later():
    frame = frame_of(50)
    train, test = split_rows(frame, about(split="time", key="date"), 0)
    assert frame["date"].iloc[train].max() < frame["date"].iloc[test].min()
    assert (len(train), len(test)) == (40, 10)
    assert about(split="time").seeds == (0,)


def test_a_key_of_groups_is_no_column_and_a_date_is():
    assert "key" not in cut_frame(frame_of(40), about(split="group", key="key"), 0).X_train
    assert "date" in cut_frame(frame_of(40), about(split="time", key="date"), 0).X_train


def test_classes_are_codes_of_those_fitted_on():
    # the first row, and no other, has its class; seed 0 puts it into one of both parts
    frame = pd.DataFrame({"x": np.arange(10.0), "y": ["b", *["a", "c"] * 4, "a"]})
    for seed in range(10):
        rows = cut_frame(frame, about("classification"), seed)
        alone = 0 in rows.X_test["x"].to_numpy()
        assert set(rows.y_train) == ({0, 1} if alone else {0, 1, 2})
        assert (-1 in rows.y_test) == alone


def test_calendar_parts_are_those_of_the_date():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-02-29 06:00", None]), "x": [1, 2]})
    parts = tables_data.calendar(frame)
    assert list(parts) == [*(f"when_{part}" for part in PARTS), "x"]
    assert parts.iloc[0].tolist() == [2020, 2, 29, 5, 60, 6, 18321.25, 1]
    assert parts.iloc[1, :-1].isna().all()


PARTS = ("year", "month", "day", "weekday", "day_of_year", "hour", "days")


def test_levels_that_were_not_fitted_on_are_missing():
    train, test = tables_data.categories(pd.DataFrame({"a": ["x", "y", None]}), pd.DataFrame({"a": ["y", "z"]}))
    assert train["a"].dtype == test["a"].dtype
    assert train["a"].cat.codes.tolist() == [0, 1, -1]
    assert test["a"].cat.codes.tolist() == [1, -1]


def test_text_is_long_and_mostly_distinct():
    held = {"text": [f"a sentence that is number {i}" for i in range(9)], "short": list("abcdefghi")}
    held["repeated"] = ["a sentence that is always the same"] * 9
    assert tables_data.texts(pd.DataFrame(held)) == ["text"]


@pytest.mark.parametrize("classes", [2, 3])
def test_the_area_is_that_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    y, proba = np.arange(60) % classes, rng.dirichlet(np.ones(classes), 60)
    wanted = roc_auc_score(y, proba[:, 1]) if classes == 2 else roc_auc_score(y, proba, multi_class="ovr")
    assert accuracy_models.area(y, proba, np.arange(classes))["auc"] == pytest.approx(wanted)


def test_classes_without_a_curve_do_not_count():
    proba = np.array([[0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    # class 2 is in no row that is judged, and the class of the last row was not fitted on
    found = accuracy_models.area(np.array([1, 0, -1]), proba, np.arange(3))
    assert found["auc"] == pytest.approx(
        (roc_auc_score([0, 1, 0], proba[:, 0]) + roc_auc_score([1, 0, 0], proba[:, 1])) / 2
    )
    assert accuracy_models.area(np.array([1, 1]), proba[:2], np.arange(3)) == {}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder with two small tables."""
    folder = tmp_path / "data" / "tables"
    folder.mkdir(parents=True)
    held = {"one": about(rows=60), "two": about(split="time", key="date", rows=50)}
    (folder / "tables.json").write_text(json.dumps({name: vars(one) for name, one in held.items()}))
    for name, one in held.items():
        frame_of(one.rows).to_parquet(folder / f"{name}.parquet")
    monkeypatch.setenv("GCE_DATA_HOME", str(folder.parent))
    return tmp_path / "tables"


def counted(monkeypatch, fits, **figures):
    """Fits that are counted in place of processes."""

    def fit(model, table, seed, python):
        fits.append((model, table, seed))
        seconds = {"fit_seconds": 1.0, "cpu_seconds": 2.0, "predict_seconds": 3.0}
        return {**(figures or {"rmse": 1.0, "mae": 1.0, **seconds}), "threads": 2, "version": "1", "machine": "one"}

    monkeypatch.setattr(tables, "fit", fit)


def test_what_is_there_is_not_fitted_again(home, monkeypatch):
    fits = []
    counted(monkeypatch, fits)
    for _ in range(2):
        tables.fill(["RandomForest"], ["one", "two"], [0, 1], home, None)
    assert fits == [("RandomForest", "one", 0), ("RandomForest", "two", 0), ("RandomForest", "one", 1)]
    assert "| one | **1.000** |" in home.with_suffix(".md").read_text()


def test_a_failure_is_tried_again(home, monkeypatch):
    fits = []
    counted(monkeypatch, fits, failed="ValueError: no")
    with pytest.raises(SystemExit, match="RandomForest on one, seed 0: ValueError: no"):
        tables.fill(["RandomForest"], ["one"], [0], home, None)
    assert not accuracy_rows.file_of(home, "RandomForest").exists()
    counted(monkeypatch, fits)
    tables.fill(["RandomForest"], ["one"], [0], home, None)
    assert len(fits) == 2
    assert len(accuracy_rows.file_of(home, "RandomForest").read_text().splitlines()) == 1


@pytest.mark.parametrize(("model", "rmse"), [("RandomForest", 1.0), ("AutoGluon", 9.0)])
def test_a_retimed_row_keeps_figures_that_do_not_depend_on_time(model, rmse, home, monkeypatch):
    counted(monkeypatch, [])
    tables.fill([model], ["one"], [0], home, "python")
    again = {"rmse": 9.0, "fit_seconds": 5.0, "cpu_seconds": 5.0, "predict_seconds": 5.0}
    counted(monkeypatch, [], **again)
    tables.retime([model], ["one"], home, "python")
    held = accuracy_rows.read(home, model)["one", 0]
    assert (held["rmse"], held["fit_seconds"], held["quiet"]) == (rmse, 5, True)


def test_autogluon_is_left_out_without_its_environment():
    found, lacking = tables.possible(["RandomForest", "AutoGluon"], None)
    assert found == ["RandomForest"]
    assert lacking == ["AutoGluon is not installed, or --autogluon-python is not given"]
    assert tables.possible(["AutoGluon"], "python") == (["AutoGluon"], [])


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("model", [name for name in tables_models.PREPARED if name != "GCE"])
def test_each_peer_takes_categories_dates_and_gaps(model, task):
    if not tables_models.importable(model):
        pytest.skip(f"{model} is not installed")
    frame = frame_of(80).drop(columns="key")
    if task == "classification":
        frame["y"] = np.where(frame["y"] > 0.5, "high", "low")
    rows = cut_frame(frame, about(task), 0)
    estimator, prepared = tables_models.PREPARED[model](model, rows, 0)
    short = accuracy_models.MODELS[model].short
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    last.set_params(**short)
    with accuracy_models.quietly():
        figures = accuracy_models.judged(estimator, prepared)
    wanted = {"rmse", "mae"} if task == "regression" else {"error", "log_loss", "auc"}
    assert wanted < set(figures)
    assert len(prepared.X_test) == 16


def row(model, name, seed, loss, task="regression", **more):
    figures = (
        {"rmse": loss, "mae": loss} if task == "regression" else {"error": loss, "log_loss": loss, "auc": 1 - loss}
    )
    seconds = {"fit_seconds": loss, "cpu_seconds": loss, "predict_seconds": loss}
    origin = {"threads": 2, "version": "1", "machine": "one"}
    return {"set": name, "seed": seed, "model": model, "task": task, **figures, **seconds, **origin, **more}


def rows_of(model, losses):
    tasks = {"a": "regression", "b": "classification"}
    return {(name, seed): row(model, name, seed, loss, tasks[name]) for (name, seed), loss in losses.items()}


def test_the_page_ranks_all_but_autogluon_and_then_all():
    pairs = [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
    rows = {model: {} for model in tables_models.MODELS}
    rows["GCE"] = rows_of("GCE", dict(zip(pairs, [0.1, 0.5, 0.1, 0.4], strict=True)))
    rows["CatBoost"] = rows_of("CatBoost", dict.fromkeys(pairs, 0.2))
    rows["AutoGluon"] = rows_of("AutoGluon", {("a", 0): 0.3, ("b", 0): 0.1})
    text = page(rows)
    assert "| RMSE or log-loss, 4 pairs | **1.50** | **1.50** |" in text
    assert "| RMSE or log-loss, 2 tables | 1.67 | **1.33** |" in text
    assert "| RMSE or log-loss, 2 pairs | **2.00** | **2.00** | **2.00** |" in text
    assert "| ROC AUC, 1 pairs | 3.00 | 2.00 | **1.00** |" in text
    assert "| CatBoost | 2 | 0 | 2 | 50.0 % | 0 of 2, 0 tied |" in text
    assert "| a | 0.2333 | **0.2000** | 0.3000 (1) |" in text
    assert "| b | 0.6000 | 0.8000 | **0.9000** |" in text
    assert "Not run yet: LightGBM" in text


def test_a_failure_ranks_last_and_is_named():
    rows = {model: {} for model in tables_models.MODELS}
    rows["GCE"] = {("a", 0): {**rows_of("GCE", {("a", 0): 1.0})["a", 0], "failed": "ValueError: dates"}}
    for key in ("rmse", "mae", "fit_seconds"):
        del rows["GCE"]["a", 0][key]
    rows["CatBoost"] = rows_of("CatBoost", {("a", 0): 9.0})
    text = page(rows)
    assert "| RMSE or log-loss, 1 pairs | 2.00 | **1.00** |" in text
    assert "| GCE | a | 0 | ValueError: dates |" in text
    assert "| a | failed | **9.000** |" in text
