"""The accuracy benchmark's own arithmetic: splits, figures, ranks, win rates, rows that are kept, and the page."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss, mean_absolute_error, root_mean_squared_error

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import accuracy
import accuracy_models
import accuracy_rows
from accuracy_ranks import alike, critical_difference, ranks, set_ranks, wins
from accuracy_sets import REGRESSION, SETS, cut, cut_rows
from accuracy_tables import page, ranked
from accuracy_times import timed

#: Few values, so that ties and failures happen.
LOSSES = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.sampled_from([0, 1, 2, np.nan])
)


@pytest.mark.parametrize("regression", [True, False])
def test_a_split_is_the_seeds_permutation(regression):
    X, y = np.arange(46, dtype=np.float32).reshape(23, 2), np.arange(23) % 3 + 5
    rows = cut_rows(X, y, 3, regression)
    order = np.random.RandomState(3).permutation(23)
    assert np.array_equal(rows.X_train, X[order[:18]])
    assert np.array_equal(rows.X_test, X[order[18:]])
    assert rows.X_train.dtype == np.float64
    codes = y if regression else y - 5
    assert np.array_equal(np.concatenate([rows.y_train, rows.y_test]), codes[order])


def test_every_set_is_named_once():
    assert len(set(SETS)) == len(SETS) == 19
    assert set(SETS) > REGRESSION


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, answer = rng.normal(size=50), rng.normal(size=50)
    figures = accuracy_models.errors(y, answer)
    assert figures["rmse"] == pytest.approx(root_mean_squared_error(y, answer))
    assert figures["mae"] == pytest.approx(mean_absolute_error(y, answer))
    codes, proba = np.arange(50) % 3, rng.dirichlet(np.ones(3), size=50)
    figures = accuracy_models.mistakes(codes, proba.argmax(1), proba, np.arange(3))
    assert figures["log_loss"] == pytest.approx(log_loss(codes, proba))
    assert figures["error"] == pytest.approx(100 * np.mean(proba.argmax(1) != codes))


def test_a_class_that_was_not_fitted_on_has_the_least_probability():
    proba = np.array([[0.5, 0.5], [1.0, 0.0]])
    figures = accuracy_models.mistakes(np.array([2, 1]), np.array([0, 0]), proba, np.array([0, 2]))
    assert figures["log_loss"] == pytest.approx(-(np.log(0.5) + np.log(1e-15)) / 2)
    assert figures["error"] == 100


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_no_numbers_are_a_failure(bad):
    with pytest.raises(ValueError, match="not finite"):
        accuracy_models.errors(np.zeros(2), np.array([0.0, bad]))


@given(LOSSES)
def test_a_rank_counts_those_before_and_half_of_those_beside(losses):
    filled = np.where(np.isnan(losses), 9.0, losses)
    before = (filled[:, :, None] > filled[:, None, :]).sum(2)
    beside = (filled[:, :, None] == filled[:, None, :]).sum(2)
    assert np.array_equal(ranks(losses), before + (beside + 1) / 2)


def test_ranks_of_a_set_are_averaged_over_its_seeds_first():
    losses = np.array([[1.0, 2], [2, 1], [1, 2], [1, 2]])
    assert set_ranks(losses, ["a", "a", "b", "b"]).tolist() == [[1.5, 1.5], [1, 2]]


@given(LOSSES)
def test_what_one_wins_the_other_loses(losses):
    one, two = wins(losses[:, 0], losses[:, 1]), wins(losses[:, 1], losses[:, 0])
    assert (one.won, one.tied, one.lost) == (two.lost, two.tied, two.won)
    assert one.won + one.tied + one.lost == len(losses)
    assert one.rate + two.rate == pytest.approx(1)


def test_a_tie_counts_half_and_a_failure_loses():
    found = wins(np.array([1.0, 1, 3, np.nan]), np.array([2.0, 1, np.nan, 5]))
    assert (found.won, found.tied, found.lost, found.rate) == (2, 1, 1, 0.625)


@pytest.mark.parametrize(("models", "q"), [(2, 1.960), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_the_critical_difference_is_that_of_the_printed_table(models, q):
    # Demšar (2006), table 5a, two-tailed Nemenyi test at 0.05
    assert critical_difference(models, 19) == pytest.approx(q * np.sqrt(models * (models + 1) / (6 * 19)), rel=5e-4)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=7).map(sorted), st.integers(0, 8))
def test_runs_are_the_longest_within_the_difference(means, difference):
    places = range(len(means))
    within = {(a, b) for a in places for b in places if a < b and means[b] - means[a] <= difference}
    longest = {(a, b) for a, b in within if not any((c <= a and b <= d) and (c, d) != (a, b) for c, d in within)}
    assert set(alike(np.array(means, dtype=float), difference)) == longest


class Constant:
    """Answers the mean, and counts its fits."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        self.mean = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)


@pytest.fixture
def constant(monkeypatch):
    monkeypatch.setattr(Constant, "fits", 0)
    monkeypatch.setattr(accuracy_models, "make", lambda *args, **changes: Constant())
    return Constant


def fill(folder, seeds):
    accuracy.fill(["RandomForest"], ["diabetes"], seeds, folder)


def test_what_is_there_is_not_fitted_again(constant, tmp_path):
    folder = tmp_path / "accuracy"
    fill(folder, [0])
    assert constant.fits == 2  # one to warm up
    fill(folder, [0])
    assert constant.fits == 2
    fill(folder, [0, 1])
    assert constant.fits == 4
    rows = accuracy_rows.read(folder, "RandomForest")
    split = cut("diabetes", 1)
    assert list(rows) == [("diabetes", 0), ("diabetes", 1)]
    assert rows["diabetes", 1]["mae"] == pytest.approx(np.abs(split.y_test - split.y_train.mean()).mean())
    assert "diabetes" in folder.with_suffix(".md").read_text()


def test_a_retimed_row_keeps_its_figures(constant, tmp_path):
    folder = tmp_path / "accuracy"
    fill(folder, [0, 1])
    before = accuracy_rows.read(folder, "RandomForest")
    before["diabetes", 0] |= {"mae": -1.0, "fit_seconds": 1e9}
    accuracy_rows.replace(folder, "RandomForest", before)
    accuracy.retime(["RandomForest"], ["diabetes"], folder)
    after = accuracy_rows.read(folder, "RandomForest")
    assert after["diabetes", 1] == before["diabetes", 1]
    row = after["diabetes", 0]
    assert row["mae"] == -1
    assert row["fit_seconds"] < 1e9
    assert row["quiet"] is True
    assert timed(after, "diabetes") == [row]


def test_a_failure_is_a_row_without_this_machines_folders(monkeypatch):
    class Broken:
        def fit(self, X, y):
            raise OSError("no room in /somewhere/of/mine/file.txt\nand more")

    monkeypatch.setattr(accuracy_models, "make", lambda *args, **changes: Broken())
    assert accuracy_models.measured("XGBoost", cut("iris", 0), 0) == {"failed": "OSError: no room in file.txt"}


def test_a_slow_model_is_given_up(monkeypatch):
    class Endless:
        def fit(self, X, y):
            while True:
                pass

    monkeypatch.setattr(accuracy_models, "make", lambda *args, **changes: Endless())
    monkeypatch.setattr(accuracy_models, "SLOW_SECONDS", 0.05)
    assert accuracy_models.measured("TabM", cut("iris", 0), 0)["failed"].startswith("not run")


def test_a_line_cut_off_by_a_kill_is_no_row(tmp_path):
    accuracy_rows.append(tmp_path, "GCE", {"set": "iris", "seed": 0, "error": 1.0})
    with accuracy_rows.file_of(tmp_path, "GCE").open("a") as out:
        out.write('{"set": "iris", "se')
    accuracy_rows.append(tmp_path, "GCE", {"set": "iris", "seed": 1, "error": 2.0})
    assert [row["error"] for row in accuracy_rows.read(tmp_path, "GCE").values()] == [1, 2]


def row(model, name, seed, loss, **more):
    figures = {"rmse": loss, "mae": loss} if name in REGRESSION else {"error": loss, "log_loss": loss}
    seconds = {"fit_seconds": loss, "cpu_seconds": loss, "predict_seconds": loss}
    origin = {"threads": 2, "version": "1", "machine": "one"}
    return {"set": name, "seed": seed, "model": model, **figures, **seconds, **origin, **more}


def rows_of(model, losses, **more):
    return {(name, seed): row(model, name, seed, loss, **more) for (name, seed), loss in losses.items()}


def test_the_page_says_who_is_best_and_what_failed():
    pairs = [(name, seed) for name in ("iris", "boston", "energy") for seed in range(5)]
    rows = {model: {} for model in accuracy_models.MODELS}
    rows["GCE"] = rows_of("GCE", dict.fromkeys(pairs, 6.0), quiet=True, timed_on="one", timed_version="2")
    rows["CatBoost"] = rows_of("CatBoost", dict.fromkeys(pairs, 2.0))
    rows["MLP"] = rows_of("MLP", dict.fromkeys(pairs, 7.0))
    rows["MLP"]["iris", 0] = {**row("MLP", "iris", 0, 0), "failed": "ValueError: no"}
    for key in ("error", "log_loss", "fit_seconds"):
        del rows["MLP"]["iris", 0][key]
    rows["TabM"] = {("iris", 0): {**rows["MLP"]["iris", 0], "model": "TabM", "failed": "not run: too long"}}
    text = page(rows)
    assert "| iris (error) | 6.000 | **2.000** | 7.000 (4) |" in text
    assert "| RMSE or error, 15 pairs of 3 sets | 2.00 | **1.00** | 3.00 |" in text
    assert "| CatBoost | 0 | 0 | 15 | 0.0 % | 0 of 3, 0 tied |" in text
    assert "| MLP | 15 | 0 | 0 | 100.0 % | 3 of 3, 0 tied |" in text
    assert "| iris | 6 | ~2 | ~7 | ~3.00 | ~3.00 |" in text
    assert "| iris (error) | not run | 6.000 | **2.000** | failed |" in text
    assert "| MLP | iris | 0 | ValueError: no |" in text
    assert "Not run yet: LightGBM" in text


def test_only_pairs_that_all_have_are_ranked():
    rows = {model: {} for model in accuracy_models.MODELS}
    rows["GCE"] = rows_of("GCE", {("iris", 0): 1, ("boston", 0): 1, ("iris", 1): 1})
    rows["MLP"] = rows_of("MLP", {("iris", 1): 2, ("boston", 0): 2})
    held = ranked(rows)
    assert held["RMSE or error"].pairs == [("iris", 1), ("boston", 0)]
    assert held["log-loss"].pairs == [("iris", 1)]


def test_committed_rows_are_whole():
    """Each line of the results has its pair once, and either figures or a reason."""
    for path in (accuracy.RESULTS / "accuracy").glob("*.jsonl"):
        held = [json.loads(line) for line in path.read_text().splitlines()]
        assert len({(one["set"], one["seed"]) for one in held}) == len(held)
        for one in held:
            wanted = {"rmse", "mae"} if one["set"] in REGRESSION else {"error", "log_loss"}
            assert "failed" in one or wanted < set(one)
            assert {"threads", "version", "machine"} < set(one)
