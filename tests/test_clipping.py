"""Predictions clipped to the range of the training targets: `clip_predictions="range"`."""

from io import BytesIO

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gce
from gce.bases import Tree
from gce.losses import Poisson, Quantiles
from gce.training.targets import NumberTarget
from helpers import LOSSES, in_domain, targets

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 3))
#: Either of two columns is enough: a sum of functions of one column each predicts too much where both are positive.
Y = np.where((X[:, 0] > 0) | (X[:, 1] > 0), 10.0, 0.0) + RNG.uniform(-1, 1, 120)
FAST = {"basis": Tree(max_leaf_nodes=2, learning_rate=1.0), "max_atoms": 8, "n_iter_no_change": None, "cv": 3}
REGRESSIONS = [name for name in LOSSES if name not in ("logistic", "cross_entropy", "multi_label", "ordinal")]


def regressor(**changes):
    return gce.GCERegressor(**{**FAST, "clip_predictions": "range", "random_state": 0, **changes})


def pair(y=Y, weight=None, **changes):
    """The same fit with and without clipping."""
    model = regressor(**changes)
    return model.fit(X, y, weight), clone(model).set_params(clip_predictions=None).fit(X, y, weight)


@settings(deadline=None, max_examples=60)
@given(name=st.sampled_from([name for name in REGRESSIONS if name not in ("cox", "hazards")]), seed=st.integers(0, 999))
def test_no_loss_rises_for_targets_within_the_range(name, seed):
    """The proof of `NumberTarget.means`, for every regression loss: each falls towards its target from either side."""
    loss, rng = LOSSES[name], np.random.default_rng(seed)
    y = in_domain(loss, targets(loss, 30, rng))
    low, high = y.min(0).values, y.max(0).values
    target = NumberTarget(y.shape[1], False, loss.outputs_per_target).clipped(torch.stack([low, high]).numpy())
    scores = torch.from_numpy(rng.normal(0, 3, tuple(y.shape)))
    clipped, free = target.means(loss, scores), NumberTarget(y.shape[1], False).means(loss, scores)
    assert bool(((low <= clipped) & (clipped <= high)).all())
    assert bool(((clipped - y).abs() <= (free - y).abs()).all())
    # raw scores whose prediction is the clipped one
    inverse = (lambda mean: mean.log()) if loss.link == "log" else (lambda mean: mean)
    before, after = loss.value(inverse(free), y), loss.value(inverse(clipped), y)
    assert bool((after <= before + 1e-12 * (1 + before.abs())).all())


def test_the_fit_is_the_same_and_predictions_are_clipped_to_its_targets():
    clipped, free = pair()
    assert torch.equal(clipped.raw_predict(X), free.raw_predict(X))
    assert free.predict(X).max() > Y.max()
    np.testing.assert_array_equal(clipped.predict(X), np.clip(free.predict(X), Y.min(), Y.max()))
    assert np.square(clipped.predict(X) - Y).mean() < np.square(free.predict(X) - Y).mean()


def test_staged_predictions_partial_dependence_and_scores_are_clipped():
    clipped, free = pair()
    for own, other in zip(clipped.staged_predict(X), free.staged_predict(X), strict=True):
        np.testing.assert_array_equal(own, np.clip(other, Y.min(), Y.max()))
    errors = np.square(Y - np.clip(free.predict(X), Y.min(), Y.max())).sum(), np.square(Y - Y.mean()).sum()
    assert clipped.score(X, Y) == pytest.approx(1 - errors[0] / errors[1], rel=1e-12)


def test_the_range_is_that_of_rows_of_positive_weight_and_of_no_validation_row():
    y, weight = Y.copy(), np.ones(len(Y))
    y[:2], weight[:2] = [-500, 500], 0
    model = regressor(cv=None).fit(X, y, weight, X_val=X, y_val=2 * y)
    assert model.predict(X).max() == Y[2:].max()
    assert model.predict(X).min() >= Y[2:].min()


def test_each_target_has_a_range_of_its_own():
    both = np.column_stack([Y, -5 * Y])
    clipped, free = pair(both)
    np.testing.assert_array_equal(clipped.predict(X), np.clip(free.predict(X), both.min(0), both.max(0)))


@pytest.mark.parametrize("loss", [Poisson(), Quantiles((0.1, 0.5, 0.9))], ids=str)
def test_counts_and_quantiles_are_clipped_in_the_units_of_the_targets(loss):
    counts = np.random.default_rng(1).poisson(np.exp(1 + X[:, 0]))
    clipped, free = pair(counts, loss=loss)
    found = clipped.predict(X)
    np.testing.assert_array_equal(found, np.clip(free.predict(X), counts.min(), counts.max()))
    assert found.ndim == 1 or (np.diff(found) >= 0).all()


def test_intervals_are_around_the_clipped_prediction():
    clipped, free = pair()
    low, high = clipped.predict_interval(X, 0.5, "constant").T
    assert ((low <= clipped.predict(X)) & (clipped.predict(X) <= high)).all()
    # residuals of clipped held-out predictions are nearer to 0, and sorted as the others are
    assert (np.abs(clipped.residuals_).sum(0) < np.abs(free.residuals_).sum(0)).all()
    width = np.ptp(clipped.predict_interval(X, 0.9, "constant"), axis=1)
    assert (width <= np.ptp(free.predict_interval(X, 0.9, "constant"), axis=1)).all()


@pytest.mark.parametrize("resumable", [True, False])
def test_files_keep_the_range(resumable, tmp_path):
    model, _ = pair()
    model.save(tmp_path / "m.safetensors", resumable=resumable)
    loaded = gce.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    assert loaded.clip_predictions == "range"


@pytest.mark.parametrize("loss", ["squared_error", Poisson(), Quantiles((0.1, 0.5, 0.9))], ids=str)
def test_onnx_graphs_clip_as_the_model_does(loss):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, free = pair(np.round(np.abs(Y)), loss=loss)
    file = BytesIO()
    model.to_onnx(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    wanted = model.predict(X)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-9)
    assert not np.allclose(free.predict(X), wanted)


def test_rows_in_files_are_clipped_to_the_targets_of_all_of_them(tmp_path):
    pytest.importorskip("pyarrow")
    y = Y.copy()
    y[[5, 50]] = [-40, 40]
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=30)
    shards = gce.Shards(str(tmp_path / "rows.parquet"), target="y")
    clipped = regressor(cv="auto").fit(shards)
    free = regressor(cv="auto", clip_predictions=None).fit(shards)
    rows = pd.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_array_equal(clipped.result_.target.limits, [[-40], [40]])
    np.testing.assert_array_equal(clipped.predict(rows), np.clip(free.predict(rows), -40, 40))
    (part, *_) = clipped.predict_shards(shards, tmp_path / "parts")
    np.testing.assert_array_equal(pd.read_parquet(part)["prediction"], clipped.predict(rows)[:30])


def test_a_continued_fit_knows_the_targets_of_both_fits_and_edits_keep_the_range():
    model = regressor(warm_start=True).fit(X, Y)
    model.set_params(max_atoms=10).fit(X, Y / 2 + 20)
    assert model.result_.target.limits.tolist() == [[Y.min()], [(Y / 2 + 20).max()]]
    edited = regressor().fit(X, Y).reweight(X, Y)
    assert edited.raw_predict(X).max() > Y.max() == edited.predict(X).max()
    model.set_params(clip_predictions=None, max_atoms=11).fit(X, Y)
    assert model.result_.target.limits is None


def test_an_interrupted_fit_may_be_continued_with_clipping(tmp_path):
    regressor(clip_predictions=None, max_atoms=3).fit(X, Y, checkpoint=tmp_path)
    model = regressor().fit(X, Y, checkpoint=tmp_path)
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))


def test_base_scores_are_refused():
    exposure = np.zeros(len(X))
    with pytest.raises(ValueError, match="'range' cannot be used with base_score"):
        regressor().fit(X, Y, base_score=exposure)
    model, _ = pair()
    with pytest.raises(ValueError, match="'range' cannot be used with base_score"):
        model.predict(X, base_score=exposure)


def test_another_value_is_refused():
    with pytest.raises(ValueError, match="clip_predictions must be 'range' or None, got 'hull'"):
        regressor(clip_predictions="hull").fit(X, Y)


def test_metrics_of_held_out_rows_are_those_of_clipped_predictions():
    clipped, free = (
        regressor(cv=None, clip_predictions=clip).fit(X[:80], Y[:80], X_val=X[80:], y_val=Y[80:])
        for clip in ("range", None)
    )
    for model in (clipped, free):
        error = model.predict(X[80:]) - Y[80:]
        assert model.result_.held_out["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
        assert model.result_.held_out["mae"] == pytest.approx(np.mean(np.abs(error)), rel=1e-12)
    assert clipped.result_.held_out["rmse"] < free.result_.held_out["rmse"]
