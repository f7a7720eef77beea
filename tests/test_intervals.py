"""Intervals whose width depends on the row: coverage, scales, and where a model has none."""

import math
from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

import gce
from gce import GCEClassifier, GCERegressor, NNRegressor
from gce.io import container
from gce.training.calibration import residual_range

FAST = {"basis": "symmetric", "max_atoms": 25, "random_state": 0, "verbose": False}


def noise(X):
    return 0.2 + 1.8 * (X[:, 1] > 0)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + noise(X) * rng.normal(size=n)


X, Y = rows(600)
NEW, NEW_Y = rows(4000, 1)


@pytest.fixture(scope="module")
def model():
    return GCERegressor(**FAST).fit(X, Y)


def covered(ends, y):
    low, high = np.moveaxis(ends, -1, 0)
    return np.mean((low <= y) & (y <= high), 0)


def widths(ends):
    return ends[..., 1] - ends[..., 0]


def test_scaled_intervals_follow_the_noise_and_cover(model):
    scaled, constant = (model.predict_interval(NEW, method=method) for method in ("scaled", "constant"))
    np.testing.assert_array_equal(model.predict_interval(NEW), scaled)
    assert np.ptp(widths(constant)) < 1e-12
    quiet, loud = (np.median(widths(scaled)[noise(NEW) == size]) for size in (0.2, 2.0))
    assert loud > 4 * quiet
    assert widths(scaled).mean() < widths(constant).mean()
    for coverage in (0.5, 0.8, 0.9):
        error = 4 * math.sqrt(coverage * (1 - coverage) * (1 / len(X) + 1 / len(NEW)))
        assert abs(covered(model.predict_interval(NEW, coverage), NEW_Y) - coverage) <= error


def test_one_held_out_part_covers_as_split_conformal_prediction_does():
    """The mean over many fits: each has an error of its own rows, which the mean has not."""
    found = []
    for seed in range(20):
        own, y = rows(700, 100 + seed)
        fitted = GCERegressor(cv=None, validation_fraction=0.5, **FAST).fit(own, y)
        assert fitted.result_.calibration.scale is not None
        found.append(covered(fitted.predict_interval(NEW), NEW_Y))
    assert abs(np.mean(found) - 0.9) <= 3 * np.std(found) / math.sqrt(len(found)) + 2 / 350


def test_intervals_are_nested(model):
    ends = [model.predict_interval(NEW, coverage) for coverage in (0.1, 0.5, 0.8, 0.9, 0.95)]
    for inner, outer in pairwise(ends):
        assert (outer[:, 0] <= inner[:, 0]).all()
        assert (inner[:, 1] <= outer[:, 1]).all()
    assert np.isinf(model.predict_interval(NEW, 0.9999)).all()


def test_noise_that_is_the_same_everywhere_gives_the_same_width_nearly():
    rng = np.random.default_rng(0)
    own = rng.uniform(-1, 1, (600, 3))
    fitted = GCERegressor(**FAST).fit(own, own[:, 0] + rng.normal(size=600))
    found = widths(fitted.predict_interval(NEW))
    assert found.std() < 0.05 * found.mean()


def test_models_without_a_scale():
    constant = GCERegressor(**FAST).fit(X, np.full(len(X), 3.0))
    few = GCERegressor(**FAST).fit(X[:15], Y[:15])
    for fitted in (constant, few):
        assert fitted.result_.calibration.scale is None
        with pytest.raises(ValueError, match=r"'scaled' needs a fit that found widths by row .* use method='auto'"):
            fitted.predict_interval(X, method="scaled")
    np.testing.assert_allclose(constant.predict_interval(X), 3.0)
    assert np.isinf(few.predict_interval(X)).all()


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"coverage": 0}, r"coverage must be in \(0, 1\), got 0"),
        ({"coverage": 1.5}, r"coverage must be in \(0, 1\), got 1.5"),
        ({"coverage": "most"}, r"coverage must be in \(0, 1\), got 'most'"),
        ({"method": "wide"}, "method must be 'auto', 'scaled' or 'constant', got 'wide'"),
        ({"method": None}, "method must be 'auto', 'scaled' or 'constant', got None"),
    ],
)
def test_refused(model, given_, words):
    with pytest.raises(ValueError, match=words):
        model.predict_interval(X, **given_)


def test_each_target_has_a_scale_of_its_own():
    rng = np.random.default_rng(3)
    other = 1000 * (X[:, 2] + (0.2 + 1.8 * (X[:, 0] > 0)) * rng.normal(size=len(X)))
    fitted = GCERegressor(**FAST).fit(X, np.c_[Y, other, np.zeros(len(X))])
    found = widths(fitted.predict_interval(NEW))
    assert found.shape == (len(NEW), 3)
    for output, column in ((0, 1), (1, 0)):
        loud = NEW[:, column] > 0
        assert np.median(found[loud, output]) > 3 * np.median(found[~loud, output])
    np.testing.assert_array_equal(found[:, 2], 0.0)
    assert (np.abs(covered(fitted.predict_interval(NEW)[:, :1], NEW_Y[:, None]) - 0.9) < 0.05).all()


@pytest.mark.parametrize("kind", ["file", "resumable file", "joblib"])
def test_kept_to_the_bit(model, kind, tmp_path):
    path = tmp_path / "model.safetensors"
    if kind == "joblib":
        joblib.dump(model, path)
        again = joblib.load(path)
    else:
        model.save(path, resumable=kind.startswith("resumable"))
        again = gce.load(path)
    assert again.result_.calibration.scale is not None
    for method in ("scaled", "constant"):
        found, known = (own.predict_interval(NEW, method=method) for own in (again, model))
        np.testing.assert_array_equal(found, known)


def _unsorted(meta, tensors):
    tensors["scale.residuals"] = tensors["scale.residuals"].flip(0).contiguous()


def _other_outputs(meta, tensors):
    tensors["scale.residuals"] = tensors["scale.residuals"].repeat(1, 2)


def _negative(meta, tensors):
    tensors["scale.bound"] = -tensors["scale.bound"]


def _no_atoms(meta, tensors):
    del meta["scale"]["ensemble"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_unsorted, "scaled residuals must be sorted"),
        (_other_outputs, "'residuals' must be"),
        (_negative, "a bound must be positive"),
        (_no_atoms, "'ensemble' is missing"),
    ],
)
def test_files_with_an_impossible_scale_are_refused(model, change, words, tmp_path):
    path = tmp_path / "model.safetensors"
    model.save(path)
    meta, tensors = container.read(path)
    change(meta, tensors)
    container.write(path, meta, tensors)
    with pytest.raises(ValueError, match=words):
        gce.load(path)


def test_a_classifier_has_no_scale(model, tmp_path):
    path, other = tmp_path / "model.safetensors", tmp_path / "classifier.safetensors"
    model.save(path)
    GCEClassifier(**FAST).fit(X, Y > 0).save(other)
    (meta, tensors), (own_meta, own) = container.read(other), container.read(path)
    meta["scale"] = own_meta["scale"]
    container.write(other, meta, tensors | {name: t for name, t in own.items() if name.startswith("scale.")})
    with pytest.raises(ValueError, match="a model without residuals has no scale"):
        gce.load(other)


def test_an_interrupted_fit_ends_in_the_same_intervals(model, tmp_path):
    def interrupt(step):
        if step.t == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GCERegressor(callbacks=[interrupt], **FAST).fit(X, Y, checkpoint=tmp_path / "fit")
    resumed = GCERegressor(**FAST).fit(X, Y, checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(resumed.predict_interval(NEW), model.predict_interval(NEW))


def test_a_continued_fit_has_the_scale_of_its_own_residuals(model):
    short = GCERegressor(warm_start=True, **FAST | {"max_atoms": 5}).fit(X, Y)
    before = short.predict_interval(NEW)
    short.set_params(max_atoms=25).fit(X, Y)
    # a continued fit sums up predictions in another order
    np.testing.assert_allclose(short.predict_interval(NEW), model.predict_interval(NEW), rtol=1e-9, atol=1e-12)
    assert not np.allclose(before, short.predict_interval(NEW), rtol=1e-3)


def test_edits_learn_the_scale_anew_and_imitations_keep_it(model):
    pruned = model.prune(10, X=X, y=Y)
    elsewhere = model.reweight(NEW[:1000], NEW_Y[:1000])
    for edited in (pruned, elsewhere):
        assert edited.result_.calibration.scale is not model.result_.calibration.scale
        assert abs(covered(edited.predict_interval(NEW[1000:], method="scaled"), NEW_Y[1000:]) - 0.9) < 0.05
    assert model.prune(10, X=X).result_.calibration.scale is model.result_.calibration.scale


@pytest.mark.parametrize(
    "given_",
    [
        {"cv": KFold(3)},
        {"cv": ShuffleSplit(6, random_state=0)},
        {"cv": TimeSeriesSplit(4)},
        {"cv": None, "validation_fraction": 0.5},
        {"cv": [(np.arange(300), np.arange(300, 600))] * 2},
    ],
    ids=str,
)
def test_whatever_rows_are_held_out(given_):
    fitted = GCERegressor(**given_, **FAST).fit(X, Y)
    # rows that all members hold out leave none to learn scales from
    assert (fitted.result_.calibration.scale is None) == isinstance(given_["cv"], list)
    assert abs(covered(fitted.predict_interval(NEW), NEW_Y) - 0.9) < 0.05


def test_groups_validation_rows_and_networks():
    groups = np.arange(len(X)) // 4
    by_group = GCERegressor(**FAST).fit(X, Y, groups=groups)
    given_rows = GCERegressor(**FAST).fit(X, Y, X_val=NEW[:300], y_val=NEW_Y[:300])
    network = NNRegressor(hidden=5, max_epochs=30, random_state=0).fit(X, Y)
    for fitted in (by_group, given_rows, network):
        assert fitted.result_.calibration.scale is not None
        assert abs(covered(fitted.predict_interval(NEW[300:]), NEW_Y[300:]) - 0.9) < 0.05


def test_counts_have_intervals_in_their_own_units_and_several_quantiles_none():
    rng = np.random.default_rng(0)
    counts, new = (rng.poisson(np.exp(1 + 1.5 * own[:, 1])).astype(float) for own in (X, NEW))
    fitted = GCERegressor(loss="poisson", **FAST).fit(X, counts)
    found = fitted.predict_interval(NEW, method="scaled")
    assert 0.86 < covered(found, new) < 0.97  # counts have ties
    assert np.median(widths(found)[NEW[:, 1] > 0.5]) > 2 * np.median(widths(found)[NEW[:, 1] < -0.5])
    several = GCERegressor(loss=gce.losses.Quantiles([0.1, 0.9]), **FAST).fit(X, Y)
    assert several.result_.calibration.scale is None
    with pytest.raises(ValueError, match="several quantiles has no interval"):
        several.predict_interval(NEW)


def test_categories_with_statistics_of_the_target_have_scales_too():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 150, 900)
    size = np.where(np.arange(150) % 2, 0.2, 2.0)
    films = {"film": code.astype(str), "x": rng.normal(size=900)}
    y = rng.normal(size=150)[code] + size[code] * rng.normal(size=900)
    for cv in ("auto", None):
        fitted = GCERegressor(cv=cv, **FAST).fit(pd.DataFrame(films), y)
        assert fitted.table_.statistics is not None
        assert np.isfinite(fitted.predict_interval(pd.DataFrame(films))).all()


def test_scaled_residuals_are_read_by_the_same_rule(model):
    scale = model.result_.calibration.scale
    low, high = residual_range(scale.residuals, 0.8)
    ends = model.predict_interval(NEW, 0.8)
    factor = scale.scales(scale.ensemble(model.encode_rows(NEW)))[:, 0].numpy()
    np.testing.assert_array_equal(ends, model.predict(NEW)[:, None] + factor[:, None] * np.array([low[0], high[0]]))
    bare = model._with(replace(model.result_, calibration=replace(model.result_.calibration, scale=None)))
    np.testing.assert_array_equal(bare.predict_interval(NEW), model.predict_interval(NEW, method="constant"))


def test_rows_in_files_have_scales_of_the_rows_held_out(tmp_path):
    many, y = rows(4000, 8)
    pd.DataFrame({"a": many[:, 0], "b": many[:, 1], "c": many[:, 2], "y": y}).to_parquet(tmp_path / "rows.parquet")
    fitted = GCERegressor(**FAST).fit(gce.Shards(str(tmp_path / "rows.parquet"), target="y"))
    found = fitted.predict_interval(pd.DataFrame(NEW, columns=list("abc")), method="scaled")
    assert abs(covered(found, NEW_Y) - 0.9) < 0.05
    assert np.median(widths(found)[noise(NEW) == 2.0]) > 4 * np.median(widths(found)[noise(NEW) == 0.2])
