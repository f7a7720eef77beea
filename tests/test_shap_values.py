"""Shapley values of fitted models: additivity, columns of tables, files, edits, networks and refusals."""

import copy
import pickle
import sys
from pathlib import Path
from types import ModuleType

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gce
import shapley_brute as brute
from gce.bases import Forest, Neural, Pool, SignTree, SymmetricTree, Tree
from gce.inspection import ShapExplanation
from gce.inspection.shapley import tree_parts
from gce.inspection.shapley.coalitions import CoalitionGame, Part, all_coalitions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2]
#: Additivity of sums of a few hundred numbers of about 1.
EXACT = 1e-12
TREES = {
    "tree": Tree(max_leaf_nodes=8),
    "symmetric": SymmetricTree(max_depth=3),
    "vectors": Tree(max_leaf_nodes=8, outputs_per_tree="all"),
    "forest": Forest(n_estimators=4),
    "sign": SignTree(min_samples_leaf=10),
}


def regressor(basis="tree", **given):
    given = {"max_iter": 6, "random_state": 0, "cv": 2, **given}
    if isinstance(basis, SignTree):
        given["algorithm"] = "frank-wolfe"
    return gce.GCERegressor(basis=basis, **given)


class Truth:
    """An external model that is right."""

    def predict(self, rows):
        return rows[:, 0] + rows[:, 1] * rows[:, 2]


class FirstColumn:
    """An external model that is right in part."""

    def predict(self, rows):
        return rows[:, 0]


def assert_adds_up(model, rows, found, tolerance=EXACT):
    raw = model.raw_predict(rows).numpy()
    total = found.base_values + found.values.sum(1)
    assert np.abs(total.reshape(raw.shape) - raw).max() < tolerance


@pytest.mark.parametrize("basis", TREES.values(), ids=TREES)
@pytest.mark.parametrize("y", [Y, np.stack([Y, X[:, 3]], 1)], ids=["one", "two"])
def test_values_of_trees_add_up_to_raw_scores(basis, y):
    model = regressor(basis).fit(X, y)
    for background in (None, X[:7]):
        found = model.shap_values(X[:20], background)
        assert found.shape == ((20, 4) if y.ndim == 1 else (20, 4, 2))
        assert found.standard_errors is None
        assert_adds_up(model, X[:20], found)
        reference = X if background is None else background
        assert np.abs(found.base_values - model.raw_predict(reference).numpy().mean(0)).max() < EXACT


def test_values_of_a_model_are_those_of_its_definition():
    model, background = regressor().fit(X, Y), X[:3]
    found = model.shap_values(X[:3], background)
    for i in range(3):

        def value(inside, row=X[i]):
            return model.predict(np.where(np.isin(range(4), list(inside)), row, background)).mean()

        assert np.abs(brute.shapley(value, 4) - found.values[i]).max() < EXACT


@pytest.mark.parametrize("basis", ["neural", "auto"])
def test_values_of_networks_are_exact_for_few_columns(basis):
    model, background = regressor(basis, max_iter=3).fit(X, Y), X[:2]
    found = model.shap_values(X[:2], background)

    def value(inside):
        return model.predict(np.where(np.isin(range(4), list(inside)), X[1], background)).mean()

    assert np.abs(brute.shapley(value, 4) - found.values[1]).max() < 1e-9
    assert not found.standard_errors.any()
    assert_adds_up(model, X[:2], found, 1e-9)
    assert_adds_up(model, X[:2], model.shap_values(X[:2]), 1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_all_coalitions_give_the_values_of_the_definition(seed, d):
    worth = np.random.default_rng(seed).normal(size=2**d)
    known, weights = all_coalitions(d)
    by_coalition = {frozenset(np.flatnonzero(row).tolist()): own for row, own in zip(known, worth, strict=True)}
    assert np.allclose(weights @ worth, brute.shapley(by_coalition.__getitem__, d), atol=1e-12)


class Product:
    """A function of thirteen columns, of which four interact: values of a pair would have no error."""

    d = 13

    def __init__(self):
        self.rows = np.random.default_rng(1).normal(size=(3, self.d))
        self.background = np.random.default_rng(2).normal(size=(2, self.d))

    def __call__(self, rows):
        return (3 * rows[:, 0] * rows[:, 1] * rows[:, 2] * np.tanh(rows[:, 2] + 2 * rows[:, 3]) + rows.sum(1))[:, None]

    def exact(self, i):
        def value(inside):
            hybrid = np.where(np.isin(range(4), list(inside)), self.rows[i, :4], self.background[:, :4])
            return self(np.pad(hybrid, ((0, 0), (0, self.d - 4)))).mean()

        rest = self.rows[i, 4:] - self.background[:, 4:].mean(0)
        return np.append(brute.shapley(value, 4), rest)

    def sampled(self, seed, pairs):
        part = Part(self, self.rows, self.background, np.arange(self.d))
        game = CoalitionGame([part], self.d, 1, np.array([0.5, 0.5]))
        return game.values(pairs, np.random.default_rng(seed)), game.base


def test_sampled_values_add_up_and_err_as_they_say():
    function = Product()
    exact = np.stack([function.exact(i) for i in range(3)])
    off, variances = [], []
    for seed in range(40):
        (values, errors), base = function.sampled(seed, 8)
        assert np.abs(base + values.sum(1) - function(function.rows)).max() < 1e-12
        # columns that only add something have no error
        assert errors[:, 4:].max() < 1e-12
        assert np.abs(values[:, 4:, 0] - exact[:, 4:]).max() < 1e-12
        off.append((values - exact[..., None])[:, :4])
        variances.append(errors[:, :4] ** 2)
    squares, variances = np.mean(np.square(off), 0), np.mean(variances, 0)
    # of 40 squares of normal errors the mean has a standard deviation of 0.22; twelve of them are averaged
    assert 0.7 < np.mean(squares / variances) < 1.3
    # no bias: the mean of 40 is within four of its standard errors
    assert (np.abs(np.mean(off, 0)) < 4 * np.sqrt(variances / 40)).all()


def test_permutations_of_a_seed_are_the_same_and_more_of_them_err_less():
    rows = RNG.normal(size=(60, 14))
    model = gce.NNRegressor(max_epochs=3, random_state=0).fit(rows, np.tanh(rows[:, 0] * rows[:, 1]))
    few, again = (model.shap_values(rows[:2], n_permutations=2, random_state=3) for _ in range(2))
    many = model.shap_values(rows[:2], n_permutations=64)
    assert np.array_equal(few.values, again.values)
    assert many.standard_errors.mean() < few.standard_errors.mean()
    assert_adds_up(model, rows[:2], many, 1e-9)


@pytest.mark.parametrize("kind", [gce.GCEClassifier, gce.NGCEClassifier, gce.NNClassifier])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_have_values_of_raw_scores(kind, classes):
    y = np.digitize(Y, [0, 1][: classes - 1]).astype(str)
    limits = {"max_iter": 2, "cv": 2} if kind is gce.GCEClassifier else {"max_epochs": 2}
    model = kind(random_state=0, **limits).fit(X, y)
    for background in (None, X[:3]):
        found = model.shap_values(X[:4], background)
        assert found.shape == ((4, 4) if classes == 2 else (4, 4, 3))
        assert_adds_up(model, X[:4], found, 1e-9)
    assert found.output_names == (None if classes == 2 else ["0", "1", "2"])


@pytest.mark.parametrize("classes", [2, 3])
def test_values_of_a_classifiers_forest_are_exact_against_a_background(classes):
    y = np.digitize(Y, [0, 1][: classes - 1])
    model = gce.GCEClassifier(basis=Forest(n_estimators=4), cv=2, random_state=0).fit(X, y)
    found = model.shap_values(X[:1], X[:2])

    def value(inside):
        hybrid = np.where(np.isin(range(4), list(inside)), X[0], X[:2])
        return model.raw_predict(hybrid).numpy().mean(0)

    by_hand = brute.shapley(value, 4)
    assert np.abs(found.values[0].reshape(by_hand.shape) - by_hand).max() < 1e-9


@pytest.mark.parametrize("y", [Y, np.digitize(Y, [-1, 1])], ids=["numbers", "classes"])
def test_values_of_forests_are_the_same_in_blocks_of_rows(y, monkeypatch):
    kind = gce.GCERegressor if y.dtype.kind == "f" else gce.GCEClassifier
    model = kind(basis=Forest(n_estimators=4), max_iter=3, cv=2, random_state=0).fit(X, y)
    whole = model.shap_values(X)
    monkeypatch.setattr(tree_parts, "_AT_ONCE", 1)
    monkeypatch.setattr(tree_parts, "_ROWS", 64)
    blocks = model.shap_values(X)
    assert len(X) % 64
    assert np.array_equal(whole.values, blocks.values)
    assert np.array_equal(whole.base_values, blocks.base_values)


def table(n=120):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "city": rng.choice([f"city{i}" for i in range(30)], n),
            "day": pd.date_range("2020-01-01", periods=n, freq="31h"),
            "open": rng.random(n) < 0.5,
        }
    )
    frame.loc[::9, "city"] = None
    effect = frame["city"].fillna("x").str.len() + frame["day"].dt.day_of_week + frame["open"] + frame["size"].fillna(3)
    return frame, effect.to_numpy()


@pytest.mark.parametrize("basis", ["tree", "symmetric", "forest", "auto"])
def test_parts_of_a_column_are_one_player(basis):
    frame, y = table()
    model = regressor(basis, max_iter=3).fit(frame, y)
    assert len(model.table_.split_sources) > len(frame.columns)
    background = frame.iloc[5:7]
    found = model.shap_values(frame[:2], background)
    assert found.feature_names == list(frame.columns)
    assert found.data.shape == (2, 4)
    for i in range(2):

        def value(inside, row=frame.iloc[i]):
            hybrid = background.copy()
            for j in inside:
                hybrid[frame.columns[j]] = pd.Series([row.iloc[j]] * 2, index=hybrid.index, dtype=frame.dtypes.iloc[j])
            return model.predict(hybrid).mean()

        assert np.abs(brute.shapley(value, 4) - found.values[i]).max() < 1e-9
    assert_adds_up(model, frame[:9], model.shap_values(frame[:9]), 1e-9)


def test_interactions_add_up_to_values():
    model = regressor().fit(X, np.stack([Y, X[:, 3]], 1))
    pairs, values = model.shap_interaction_values(X[:9]), model.shap_values(X[:9])
    assert pairs.shape == (9, 4, 4, 2)
    assert np.abs(pairs.values.sum(2) - values.values).max() < EXACT
    assert np.abs(pairs.values - pairs.values.swapaxes(1, 2)).max() < EXACT
    with pytest.raises(ValueError, match="this model also has Networks"):
        regressor("neural", max_iter=1).fit(X, Y).shap_interaction_values(X)


@pytest.mark.parametrize("resumable", [False, True])
def test_files_keep_all_that_values_need(tmp_path, resumable):
    model = regressor("auto", max_iter=3).fit(X, Y)
    model.save(tmp_path / "model", resumable=resumable)
    loaded = gce.load(tmp_path / "model")
    assert np.array_equal(loaded.shap_values(X[:5]).values, model.shap_values(X[:5]).values)
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)
    joblib.dump(model, tmp_path / "pickle")
    assert np.array_equal(joblib.load(tmp_path / "pickle").shap_values(X[:5]).values, model.shap_values(X[:5]).values)


def test_weights_of_rows_are_kept_as_they_are(tmp_path):
    weight = RNG.random(len(X)) + 0.1
    model = regressor("forest").fit(X, Y, weight)
    model.save(tmp_path / "model")
    found, again = model.shap_values(X[:5]), gce.load(tmp_path / "model").shap_values(X[:5])
    assert np.array_equal(found.values, again.values)
    mean = np.average(model.predict(X), weights=weight)
    # weights of leaves are in float32
    assert abs(found.base_values[0] - mean) < 1e-6


def test_edited_models_have_values_and_importances():
    model = regressor(max_iter=10).fit(X, Y)
    small = model.prune(3, X=X, y=Y)
    assert_adds_up(small, X[:9], small.shap_values(X[:9]))
    assert small.feature_importances_.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="'truth' is an external model"):
        model.add("truth", Truth(), X, Y).shap_values(X)


def test_models_with_external_models_have_no_importances():
    mixed = regressor(max_iter=10).fit(X, Y).add("column", FirstColumn(), X, Y)
    assert 0 < mixed.result_.external[0].weight < 1
    with pytest.raises(AttributeError, match="external models"):
        mixed.feature_importances_  # noqa: B018
    assert mixed.remove("column", X, Y).feature_importances_.sum() == pytest.approx(1)


def test_models_of_older_files_ask_for_a_background():
    model, rows = gce.load(Path(__file__).parent / "files" / "v6_gce_sparse.safetensors"), np.eye(2)
    with pytest.raises(ValueError, match="give a background of some rows, or fit again"):
        model.shap_values(rows)
    with pytest.raises(AttributeError, match="earlier version"):
        model.feature_importances_  # noqa: B018
    assert_adds_up(model, rows, model.shap_values(rows, rows[:1]), 1e-9)


def test_bad_arguments_are_refused():
    model = regressor().fit(X, Y)
    with pytest.raises(ValueError, match="n_permutations must be an integer of at least 2, got 1"):
        model.shap_values(X, n_permutations=1)
    with pytest.raises(ValueError, match="4 features"):
        model.shap_values(X, X[:, :3])


def test_custom_atoms_are_explained_and_have_no_importances():
    pool = Pool([lambda rows: np.tanh(rows[:, 0]), lambda rows: np.tanh(rows[:, 1])])
    model = regressor(pool, algorithm="frank-wolfe").fit(X, Y)
    assert_adds_up(model, X[:5], model.shap_values(X[:5], X[:3]))
    with pytest.raises(AttributeError, match="atoms of other kinds"):
        model.feature_importances_  # noqa: B018


def test_an_explanation_is_cut_and_converted():
    found = regressor(Neural(), max_iter=1).fit(X, np.stack([Y, X[:, 3]], 1)).shap_values(X[:5])
    assert isinstance(found[1:3], ShapExplanation)
    assert (found[1:3].shape, found[-1].shape, found[..., 1].shape) == ((2, 4, 2), (4, 2), (5, 4))
    assert np.array_equal(found[..., 1].standard_errors, found.standard_errors[..., 1])
    for j, name in enumerate(found.output_names):
        assert np.array_equal(found[..., name].values, found.values[..., j])
        assert np.array_equal(found[..., name].standard_errors, found.standard_errors[..., j])
    with pytest.raises(IndexError, match=r"^there is no output 'q': the outputs are "):
        found[..., "q"]
    shap = pytest.importorskip("shap")
    theirs = found.to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert np.array_equal(theirs.values, found.values)
    assert isinstance(found, shap.Explanation)
    assert list(theirs.feature_names) == list(found.feature_names)


def test_plots_of_shap_take_what_is_returned(monkeypatch):
    """With a stand-in for shap, which refuses all but its own class as shap's plots do."""

    class Explanation:
        def __init__(self, values, **fields):
            self.values, self.fields = values, fields

        def __getitem__(self, index):
            return "of shap", index

        @property
        def abs(self):
            return np.abs(self.values)

    found = regressor(Neural(), max_iter=1).fit(X, Y).shap_values(X[:5])
    assert isinstance(found, ShapExplanation)
    assert not isinstance(found, Explanation)
    with pytest.raises(AttributeError, match="'ShapExplanation' object has no attribute 'abs'"):
        found.abs  # noqa: B018
    shap = ModuleType("shap")
    shap.Explanation = Explanation
    monkeypatch.setitem(sys.modules, "shap", shap)
    assert isinstance(found, Explanation)
    assert isinstance(found, ShapExplanation)
    np.testing.assert_array_equal(found.abs, np.abs(found.values))
    assert found[:, "x1"] == ("of shap", (slice(None), "x1"))
    # of one row all but the names has a dimension less
    one = found[2]
    assert (one.values.shape, np.ndim(one.base_values), one.data.shape) == ((4,), 0, (4,))
    for again in (copy.copy(found), pickle.loads(pickle.dumps(found)), found[:5]):
        assert type(again) is ShapExplanation
        np.testing.assert_array_equal(again.values, found.values)


def test_outputs_have_the_names_of_classes_or_are_above_one():
    y = np.array(["low", "mid", "top"])[np.digitize(Y, [-1, 1])]
    unordered, ordered = (
        gce.GCEClassifier(basis="tree", loss=loss, max_iter=3, random_state=0).fit(X, y)
        for loss in ("log_loss", "ordinal")
    )
    assert unordered.shap_values(X[:3]).output_names == ["low", "mid", "top"]
    assert ordered.shap_values(X[:3]).output_names == ["above low", "above mid"]
    words = pd.Categorical(y, ["top", "low", "mid"], ordered=True)
    ordered = gce.GCEClassifier(basis="tree", loss="ordinal", max_iter=3, random_state=0).fit(X, words)
    assert ordered.shap_values(X[:3]).output_names == ["above top", "above low"]
    labels = gce.GCEClassifier(basis="tree", max_iter=3, random_state=0).fit(X, (X[:, :2] > 0).astype(int))
    assert labels.shap_values(X[:3]).output_names == ["0", "1"]
