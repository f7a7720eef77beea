"""gce inside AutoGluon: run by ``make autogluon``, in an environment that has autogluon.tabular."""

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("autogluon.tabular", exc_type=ImportError)

from autogluon.core.utils.exceptions import TimeLimitExceeded
from autogluon.features.generators import AutoMLPipelineFeatureGenerator, IdentityFeatureGenerator
from autogluon.tabular import TabularPredictor
from autogluon.tabular.registry import ag_model_registry

import gce
from gce.integrations import autogluon
from gce.integrations.autogluon import FILE, GCEModel

# AutoGluon's own warnings are not ours to fix
pytestmark = pytest.mark.filterwarnings("default")
SMALL = {"basis": "tree", "max_atoms": 10}


def table(n=240, seed=0):
    """Numbers, a category that decides, booleans, missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 9, n),
            "town": rng.choice(["Rom", "Bern", "Wien"], n),
            "open": rng.choice([True, False], n),
        }
    )
    frame.loc[::7, "a"] = np.nan
    score = frame.a.fillna(0) + 3 * (frame.town == "Rom") + 0.1 * rng.normal(size=n)
    return frame, score


def labelled(task, n=240):
    frame, score = table(n)
    if task == "binary":
        return frame.assign(y=np.where(score > 1, "yes", "no").astype(object))
    if task == "multiclass":
        return frame.assign(y=pd.cut(score, [-np.inf, 0, 2, np.inf], labels=["low", "mid", "high"]).astype(object))
    return frame.assign(y=score)


def predictor(path, rows, given=SMALL, weight=None, **arguments):
    made = TabularPredictor(
        "y", path=str(path), verbosity=0, sample_weight=weight, weight_evaluation=weight is not None
    )
    fixed = {
        "hyperparameters": {GCEModel: given},
        "fit_weighted_ensemble": False,
        "num_cpus": 1,
        "raise_on_model_failure": True,
    }
    return made.fit(rows, **fixed | arguments)


def only_model(fitted):
    (name,) = fitted.model_names()
    return fitted._trainer.load_model(name)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_predictions_are_those_of_gce_and_survive_loading(task, tmp_path):
    rows = labelled(task)
    fitted = predictor(tmp_path / "p", rows)
    assert fitted.problem_type == task
    loaded = TabularPredictor.load(str(tmp_path / "p"))
    model, inputs = only_model(loaded), loaded.transform_features(rows)
    pd.testing.assert_series_equal(loaded.predict(rows), fitted.predict(rows))
    if task == "regression":
        expected = model.model.predict(inputs)
        assert np.abs(fitted.predict(rows) - rows.y).mean() < 0.5 * np.abs(rows.y - rows.y.mean()).mean()
        np.testing.assert_array_equal(loaded.predict(rows), expected.astype(np.float32))
        return
    labels, proba = loaded.class_labels, loaded.predict_proba(rows)
    pd.testing.assert_frame_equal(proba, fitted.predict_proba(rows))
    assert proba.columns.tolist() == labels
    np.testing.assert_allclose(proba, model.model.predict_proba(inputs), atol=1e-6)
    assert (fitted.predict(rows) == rows.y).mean() > 0.85


def test_what_is_on_disk_is_a_model_file_of_gce(tmp_path):
    rows = labelled("regression")
    fitted = predictor(tmp_path / "p", rows)
    folder = tmp_path / "p" / "models" / "GCE"
    alone = gce.load(folder / FILE)
    expected = alone.predict(fitted.transform_features(rows)).astype(np.float32)
    np.testing.assert_array_equal(fitted.predict(rows), expected)
    # AutoGluon pickles its own part, in which there is no estimator
    assert pickle.loads((folder / GCEModel.model_file_name).read_bytes()).model == FILE


def test_a_model_that_cannot_be_written_is_still_there(tmp_path, monkeypatch):
    X, y = table()
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression", hyperparameters=SMALL)
    model.save(verbose=False)
    assert GCEModel.load(model.path).model is None
    fitted = model.fit(X=X, y=y, num_cpus=1).model

    def failing(**_):
        raise OSError("the disk is full")

    monkeypatch.setattr("autogluon.core.models.abstract.abstract_model.save_pkl.save", failing)
    with pytest.raises(OSError, match="full"):
        model.save()
    assert model.model is fitted


class RecordedError(Exception):
    """Raised in place of a fit."""


def recorded(monkeypatch, kind=gce.GCERegressor):
    """What a fit is called with, and the parameters of its model."""
    seen = {}

    def fit(self, X, y, sample_weight=None, **given):
        seen.update(given, X=X, y=y, sample_weight=sample_weight, parameters=self.get_params())
        raise RecordedError

    monkeypatch.setattr(kind, "fit", fit)
    return seen


def test_a_fit_gets_the_rows_held_out_weights_threads_and_parameters(tmp_path, monkeypatch):
    rows, seen = labelled("regression").assign(w=np.linspace(1, 2, 240)), recorded(monkeypatch)
    given = {"max_iter": 7, "basis": ["tree", "forest"], "random_state": 3}
    with pytest.raises(RecordedError):
        predictor(tmp_path / "p", rows, given, weight="w", num_cpus=2)
    assert len(seen["X"]) + len(seen["X_val"]) == 240
    for X, y, weight in [("X", "y", "sample_weight"), ("X_val", "y_val", "sample_weight_val")]:
        at = seen[X].index
        np.testing.assert_array_equal(seen[y], rows.y[at])
        # AutoGluon divides weights by their mean
        ratio = np.asarray(seen[weight]) / rows.w[at].to_numpy()
        np.testing.assert_allclose(ratio, ratio[0])
    assert {name: seen["parameters"][name] for name in given} == given
    assert seen["parameters"]["n_jobs"] == 2
    assert seen["parameters"]["device"] == "cpu"
    assert str(seen["X"].town.dtype) == "category"


def test_weights_change_the_model(tmp_path):
    # half of the rows say the opposite, and only their weights tell which half counts
    rows = pd.DataFrame({"a": np.tile(np.linspace(-1, 1, 120), 2), "w": np.repeat([1.0, 1e-3], 120)})
    rows["y"] = np.where(rows.w == 1, rows.a, -rows.a)
    fitted = predictor(tmp_path / "p", rows, {"basis": "tree", "max_atoms": 40}, weight="w")
    assert np.corrcoef(fitted.predict(rows[:120]), rows.a[:120])[0, 1] > 0.9


def test_seeds_are_those_of_autogluon(tmp_path):
    X, y = table()
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression", hyperparameters=SMALL)
    assert model.fit(X=X, y=y, num_cpus=1, random_seed=5).model.random_state == 5


@pytest.mark.parametrize(("own", "limit", "expected"), [(None, 30, 30), (7, 30, 7), (50, 30, 30), (7, None, 7)])
def test_the_shorter_limit_of_time_is_kept(own, limit, expected, tmp_path, monkeypatch):
    (X, y), seen = table(), recorded(monkeypatch)
    given = SMALL if own is None else SMALL | {"time_limit": own}
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression", hyperparameters=given)
    with pytest.raises(RecordedError):
        model.fit(X=X, y=y, num_cpus=1, time_limit=limit)
    kept = seen["parameters"]["time_limit"]
    assert kept <= expected
    # seconds that AutoGluon and the preparation of the rows took are gone
    assert kept == expected or kept > expected - 20
    # a refit, which AutoGluon does not limit, has the same
    assert model.get_trained_params().get("time_limit") == (kept if limit or own else None)


def test_without_time_left_autogluon_is_told_so(tmp_path, monkeypatch):
    (X, y), seen = table(), recorded(monkeypatch)
    now = iter([0.0, 100.0])
    monkeypatch.setattr(autogluon.time, "monotonic", lambda: next(now))
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression")
    with pytest.raises(TimeLimitExceeded):
        model.fit(X=X, y=y, num_cpus=1, time_limit=60)
    assert not seen


def test_a_limit_of_time_ends_a_fit_with_a_model(tmp_path):
    rows = labelled("multiclass", 1_000)
    fitted = predictor(tmp_path / "p", rows, {}, time_limit=1)
    assert fitted.predict_proba(rows).shape == (1_000, 3)


def test_a_label_that_a_fold_lacks_has_no_probability(tmp_path):
    X, _ = table()
    y = pd.Series(np.arange(240) % 3).replace(2, 3)
    model = GCEModel(path=str(tmp_path), name="m", problem_type="multiclass", hyperparameters=SMALL)
    proba = model.fit(X=X, y=y, num_classes=4, num_cpus=1).predict_proba(X)
    assert proba.shape == (240, 4)
    assert not proba[:, 2].any()
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)


def test_bags_stacks_and_refits(tmp_path):
    rows = labelled("binary")
    local = {"fold_fitting_strategy": "sequential_local"}
    fitted = predictor(
        tmp_path / "p", rows, num_bag_folds=2, num_stack_levels=1, ag_args_ensemble=local, time_limit=60,
        fit_weighted_ensemble=True,
    )  # fmt: skip
    assert {"GCE_BAG_L1", "GCE_BAG_L2"} <= set(fitted.model_names())
    full = fitted.refit_full()
    loaded = TabularPredictor.load(str(tmp_path / "p"))
    for name in ["GCE_BAG_L1", full["GCE_BAG_L1"], full["GCE_BAG_L2"]]:
        pd.testing.assert_frame_equal(loaded.predict_proba(rows, model=name), fitted.predict_proba(rows, model=name))
    # fitted again, on all rows, with members that hold out rows of their own
    child = loaded._trainer.load_model(full["GCE_BAG_L1"])
    again = child.load_child(child.models[0]).model
    assert again.n_samples_fit_ == 240
    assert len(again.result_.folds) > 1


def text_and_dates(n=60):
    frame, score = table(n)
    words = ["a small house near the lake", "a flat with a view of the hills", "rooms above an old bakery in town"]
    frame["words"] = [f"{words[i % 3]}, built in {1900 + i}" for i in range(n)]
    frame["day"] = pd.date_range("2024-01-01", periods=n, freq="D")
    frame["town"] = frame.town.astype("category")
    return frame, score


def test_columns_reach_gce_as_they_are(tmp_path):
    X, y = text_and_dates()
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression")
    model.initialize(X=X, y=y)
    pd.testing.assert_frame_equal(model.preprocess(X), X)


def test_text_comes_as_ngrams_or_as_it_is_but_not_as_both(tmp_path):
    X, y = text_and_dates()
    for raw in [False, True]:
        generator = AutoMLPipelineFeatureGenerator(enable_raw_text_features=raw, verbosity=0)
        inputs = generator.fit_transform(X=X, y=y)
        model = GCEModel(path=str(tmp_path), name="m", problem_type="regression")
        model.initialize(X=inputs, y=y, feature_metadata=generator.feature_metadata)
        columns = list(model.preprocess(inputs))
        assert ("words_raw_text" in columns) == raw
        assert any(name.startswith("__nlp__.") for name in columns) != raw


def test_a_table_may_be_left_to_gce(tmp_path):
    rows = labelled("regression")
    fitted = predictor(tmp_path / "p", rows, feature_generator=IdentityFeatureGenerator())
    assert list(only_model(fitted).model.feature_names_in_) == ["a", "b", "town", "open"]
    assert len(fitted.predict(rows.replace("Rom", "Paris"))) == 240


def test_the_key_may_be_registered(tmp_path):
    ag_model_registry.add(GCEModel)
    try:
        fitted = predictor(tmp_path / "p", labelled("binary"), hyperparameters={"GCE": SMALL})
    finally:
        ag_model_registry.remove(GCEModel)
    assert fitted.model_names() == ["GCE"]


def test_quantiles_are_not_offered(tmp_path):
    made = TabularPredictor("y", path=str(tmp_path / "p"), problem_type="quantile", quantile_levels=[0.5], verbosity=0)
    with pytest.raises(RuntimeError):
        made.fit(labelled("regression"), hyperparameters={GCEModel: SMALL}, fit_weighted_ensemble=False)


def test_memory_is_estimated_from_rows_inputs_outputs_and_members(tmp_path):
    (X, y), mib = table(3_000), 2**20

    def estimate(X, **given):
        return GCEModel.estimate_memory_usage_static(X=X, y=y, problem_type="regression", **given)

    # three numbers and three flags for towns
    assert estimate(X) == 700 * mib + 8 * 3_000 * (6 * 6 + 200 + 30 * 5)
    assert estimate(X, X_val=X) == 700 * mib + 8 * 3_000 * (6 * 6 + 200 + 30)
    assert estimate(X, num_classes=4, X_val=X) == 700 * mib + 8 * 3_000 * (6 * 6 + 200 + 30 * 4)
    model = GCEModel(path=str(tmp_path), name="m", problem_type="regression")
    model.initialize(X=X, y=y)
    assert model.estimate_memory_usage(X=X, y=y) == estimate(X)
