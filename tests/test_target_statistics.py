"""Statistics of the target by category: what they are, that they do not leak, and where they go."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

import gce
from gce import GCEClassifier, GCERegressor
from gce.bases import Zero
from gce.estimators._edit_rows import edit_data
from gce.estimators._validation import FitInput, validate
from gce.preprocessing.target_statistics import StatisticsFit
from gce.preprocessing.target_summaries import INNER_FOLDS, TARGET_BINS, Summaries
from helpers import GPU


def people(n=900, levels=400, seed=0):
    """A table whose target depends on a column of many categories, and on a number."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, levels, n)
    x = rng.normal(size=n)
    y = 2.0 * rng.normal(size=levels)[who] + x + 0.3 * rng.normal(size=n)
    return pd.DataFrame({"who": [f"p{i:03}" for i in who], "x": x}), y


def fitted(X, targets, train, n_classes=None, size=None):
    """Statistics of codes ``(n, 1)``."""
    weight = train.sum(0)
    count = np.array([np.count_nonzero(own) for own in train], dtype=float)
    shares = train / train.sum(1, keepdims=True)
    summaries = Summaries(targets.reshape(len(X), -1).astype(float), n_classes, weight)
    size = int(np.nanmax(X)) + 1 if size is None else size
    return StatisticsFit({0: size}, summaries, shares, count, X)


def members(n, count, seed=0):
    fold = np.random.default_rng(seed).integers(0, count, n)
    return np.stack([(fold != m).astype(float) for m in range(count)])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["number", "few", "classes", "two"]))
def test_what_a_member_knows_does_not_depend_on_the_targets_it_holds_out(seed, kind):
    rng = np.random.default_rng(seed)
    n = 120
    X = rng.integers(-1, 25, (n, 1)).astype(float)
    X[rng.random(n) < 0.1] = np.nan
    classes = {"classes": 4, "two": 2}.get(kind)
    level = np.nan_to_num(X[:, 0], nan=3.0)
    y = {"number": level + rng.normal(size=n), "few": np.round(level / 9)}.get(kind, level % (classes or 1))
    train = members(n, 3, seed)
    m = int(rng.integers(3))
    out = train[m] == 0
    other = y.copy()
    other[out] = rng.permutation(other[out])
    # the bins of a target with few values are those of all rows: its values stay the same ones
    (one, before), (two, after) = (fitted(X, t, train, classes).run() for t in (y, other))
    own = one.owner == m
    # inner folds hash the target too: rows that are trained on keep theirs
    assert np.array_equal(before[~out][:, own], after[~out][:, own])
    assert np.array_equal(before[out][:, own], after[out][:, own])
    assert all(np.array_equal(a[m], b[m]) for a, b in zip(one.values, two.values, strict=True))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_training_rows_own_target_is_in_none_of_its_statistics(seed):
    """By brute force: the sums of the other inner folds, of the same category, shrunk to the mean of all rows."""
    rng = np.random.default_rng(seed)
    n, size = 80, 9
    X = rng.integers(0, size, (n, 1)).astype(float)
    y = 5.0 * X[:, 0] + rng.normal(size=n)
    fit = fitted(X, y, np.ones((1, n)), size=size)
    _, columns = fit.run()
    fold, groups = (
        fit.inner_folds(np.ones(n, bool)),
        [y[X[:, 0] == level] for level in range(size) if (X[:, 0] == level).any()],
    )
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (n - len(groups))
    between = sum(len(g) * (g.mean() - y.mean()) ** 2 for g in groups) / (len(groups) - 1)
    average = (n - sum(len(g) ** 2 for g in groups) / n) / (len(groups) - 1)
    smoothing = within / ((between - within) / average)
    unit = 2.0**-4 * 2.0 ** np.ceil(np.log2(y.std()))
    for i in range(n):
        others = y[(X[:, 0] == X[i, 0]) & (fold != fold[i])]
        expected = (others.sum() + smoothing * y.mean()) / (len(others) + smoothing)
        assert abs(columns[i, 0] - expected) <= unit / 2 + 1e-9
        assert columns[i, -1] == pytest.approx(np.log1p(len(others)), abs=2.0**-10)


def test_categories_that_do_not_differ_have_no_statistics():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 300, (900, 1)).astype(float)
    for targets, classes in ((rng.normal(size=900), None), (rng.integers(0, 3, 900), 3)):
        _, columns = fitted(X, targets, members(900, 5), classes).run()
        assert (np.ptp(columns, axis=0) == 0).all()


def test_a_number_has_its_mean_its_bins_and_the_count_and_classes_a_share_each():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (400, 1)).astype(float)
    names = fitted(X, X[:, 0] + rng.normal(size=400), np.ones((1, 400))).run()[0].names
    assert names == ("mean", *(f"share of bin {b}" for b in range(TARGET_BINS)), "count")
    assert fitted(X, X[:, 0] % 2, np.ones((1, 400)), 2).run()[0].names == ("share of class 1", "count")
    assert len(fitted(X, X[:, 0] % 15, np.ones((1, 400)), 15).run()[0].names) == 11


def test_unseen_categories_have_the_statistics_of_all_rows():
    X, y = people()
    model = GCERegressor(basis="tree", max_iter=3, random_state=0).fit(X, y)
    statistics = model.table_.statistics
    coded = model.table_.encode(model.read_rows(pd.DataFrame({"who": ["nobody", None], "x": [0.0, 0.0]})))
    row = statistics.transform(coded)[0].reshape(statistics.members, -1)
    train = np.array([statistics.values[0][m, -1, 0] for m in range(statistics.members)])
    assert np.array_equal(row[:, 0], train)
    assert np.abs(row[:, 0] - y.mean()).max() < 0.3 * y.std()
    assert (row[:, -1] == 0).all()


@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_random_categories_hardly_matter(kind):
    """A column of as many random categories as a third of the rows changes the test loss by less than 1 %."""
    X, y = people(1100, 5, seed=1)
    X["more"] = np.random.default_rng(2).normal(size=len(X))
    y = y + np.random.default_rng(5).normal(size=len(y))
    y = y if kind is GCERegressor else (y > 0).astype(int)
    noisy = X.assign(noise=[f"r{i}" for i in np.random.default_rng(3).integers(0, 200, len(X))])
    train, test = slice(0, 600), slice(600, None)

    def loss(rows):
        model = kind(random_state=0).fit(rows[train], y[train])
        if kind is GCEClassifier:
            return log_loss(y[test], model.predict_proba(rows[test])), model
        return np.sqrt(np.mean((model.predict(rows[test]) - y[test]) ** 2)), model

    (plain, _), (other, model) = loss(X), loss(noisy)
    assert other < 1.01 * plain
    shuffled = noisy[test].assign(noise=np.random.default_rng(4).permutation(noisy["noise"][test]))
    raw, other = (model.raw_predict(rows).numpy() for rows in (noisy[test], shuffled))
    assert np.abs(other - raw).mean() < 0.05 * raw.std()


@pytest.mark.parametrize("basis", ["tree", "symmetric", "forest", "neural"])
@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_weighted_rows_are_repeated_rows(kind, basis):
    # of a small table all categories are frequent, but for those beyond 254
    X, y = people(900, 300, seed=5)
    y = y if kind is GCERegressor else np.digitize(y, [-1, 1])
    X_val, y_val = X[800:], y[800:]
    X, y = X[:800], y[:800]
    times = np.random.default_rng(0).integers(1, 4, len(X))
    again = np.repeat(np.arange(len(X)), times)
    settings = {"basis": basis, "max_iter": 4, "cv": None, "random_state": 0}
    one = kind(**settings).fit(X, y, sample_weight=times, X_val=X_val, y_val=y_val)
    two = kind(**settings).fit(X.iloc[again], y[again], X_val=X_val, y_val=y_val)
    assert one.table_.statistics is not None
    first, second = (model.raw_predict(X_val).numpy() for model in (one, two))
    assert np.allclose(first, second, rtol=0, atol=1e-7 * np.ptp(first))


@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_files_keep_statistics_bit_by_bit(kind, tmp_path):
    X, y = people()
    y = y if kind is GCERegressor else (y > 0).astype(int)
    model = kind(basis=["tree", "forest", "neural"], max_iter=3, random_state=0).fit(X, y)
    assert model.table_.statistics is not None
    model.save(tmp_path / "m")
    again = gce.load(tmp_path / "m")
    new = pd.concat([X, pd.DataFrame({"who": ["nobody", None], "x": [1.0, np.nan]})])
    assert np.array_equal(again.raw_predict(new), model.raw_predict(new))
    assert repr(again.table_) == repr(model.table_)
    assert again.table_.get_feature_names_out() == model.table_.get_feature_names_out()


def test_onnxruntime_looks_statistics_up(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = people()
    model = GCERegressor(basis=["tree", "forest", "neural"], max_iter=3, random_state=0).fit(X, y)
    model.to_onnx(tmp_path / "m.onnx")
    new = pd.concat([X[:200], pd.DataFrame({"who": ["nobody", None], "x": [1.0, np.nan]})])
    given = {"who": new["who"].fillna("").to_numpy(dtype=object)[:, None], "x": new[["x"]].to_numpy()}
    (found,) = runtime.InferenceSession(tmp_path / "m.onnx").run(["variable"], given)
    assert np.allclose(found[:, 0], model.predict(new), rtol=0, atol=1e-5)


def test_a_fit_continues_with_the_statistics_it_began_with():
    X, y = people()
    whole = GCERegressor(basis="tree", max_iter=6, n_iter_no_change=None, random_state=0).fit(X, y)
    parts = GCERegressor(basis="tree", max_iter=3, n_iter_no_change=None, random_state=0, warm_start=True).fit(X, y)
    parts.set_params(max_iter=6).fit(X, y)
    # the bound of a finished fit is tightened, which rounds
    assert np.allclose(whole.predict(X), parts.predict(X), rtol=0, atol=1e-13)


def test_trees_of_a_member_look_at_its_own_statistics_only():
    X, y = people()
    model = GCERegressor(basis={"tree": "tree", "forest": "forest"}, max_iter=5, random_state=0).fit(X, y)
    owner = np.append(np.full(2, -1), model.table_.statistics.owner)
    first = 0
    for part in model.ensemble_.parts:
        for a in range(len(part)):
            if isinstance(part, Zero):
                continue
            trees = part.select(torch.tensor([a])).trees
            used = trees.feature[trees.left > 0].numpy()
            member = int(model.ensemble_.origin[first + a, 0])
            assert set(owner[used].tolist()) <= {-1, member}
        first += len(part)


@pytest.mark.parametrize("classes", [None, 2, 5])
def test_one_column_alone_does_not_tell_targets_by_their_folds(classes):
    """Where rows differ in nothing but their targets, folds part them by chance, not by target."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (3000, 1)).astype(float)
    y = (rng.random(3000) < X[:, 0] / 60).astype(float) if classes == 2 else rng.integers(0, 5, 3000) + X[:, 0] % 3
    fit = fitted(X, y if classes != 5 else y % 5, np.ones((1, 3000)), classes)
    fold = fit.inner_folds(np.ones(3000, bool))
    assert set(fold.tolist()) == set(range(INNER_FOLDS))
    for value in np.unique(y):
        assert np.bincount(fold[y == value], minlength=INNER_FOLDS).min() > 0
    _, columns = fit.run()
    # within a category a statistic says nothing of the target
    for level in range(60):
        own = X[:, 0] == level
        if np.ptp(columns[own, 0]) > 0 and np.ptp(y[own]) > 0:
            assert abs(np.corrcoef(columns[own, 0], y[own])[0, 1]) < 0.6


def test_rows_that_differ_in_their_target_alone_share_a_fold():
    rng = np.random.default_rng(0)
    X = np.repeat(np.column_stack([rng.integers(0, 50, 200), rng.normal(size=200)]), 2, axis=0)
    fold = fitted(X, rng.normal(size=400), np.ones((1, 400)), size=50).inner_folds(np.ones(400, bool))
    assert np.array_equal(fold[::2], fold[1::2])


def test_a_column_that_names_the_groups_says_nothing():
    """What is known of a group comes from the group itself, and is not known of one that is held out."""
    X, y = people()
    fit = fitted(np.array([[float(v[1:])] for v in X["who"]]), y, np.ones((1, len(X))), size=400)
    grouped = StatisticsFit(fit.sizes, fit.summaries, fit.train, fit.count, fit.X, X["who"].to_numpy())
    _, columns = grouped.run()
    assert (np.ptp(columns, axis=0) == 0).all()
    model = GCERegressor(basis="tree", max_iter=3, random_state=0).fit(X, y, groups=X["who"])
    assert np.array_equal(
        model.predict(X), model.predict(X.assign(who=X["who"].sample(frac=1, random_state=0).to_numpy()))
    )


@GPU
@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_a_gpu_fits_and_predicts_tables_with_statistics(kind):
    X, y = people()
    y = y if kind is GCERegressor else (y > 0).astype(int)
    settings = {"basis": ["tree", "symmetric", "forest"], "max_iter": 3, "random_state": 0}
    one, two = (kind(device=device, **settings).fit(X, y) for device in ("cpu", "cuda"))
    assert np.allclose(one.raw_predict(X).numpy(), two.raw_predict(X).cpu().numpy(), rtol=0, atol=1e-9)


def test_targets_may_lie_far_from_zero():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 30, 600), rng.normal(size=600)])
    y = np.round(4 * (X[:, 0] % 5 + rng.normal(size=600))) / 4
    near, far = (fitted(X, y + shift, np.ones((1, 600)), size=30).run()[1] for shift in (0.0, 2.0**30))
    assert np.array_equal(far[:, 0] - 2.0**30, near[:, 0])
    assert np.array_equal(far[:, 1:], near[:, 1:])


@pytest.mark.parametrize("more", ["nothing", "attributes"])
@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_categories_whose_rows_are_equal_are_learned_too(kind, more):
    """A column of noise must not help: rows of a category that differ in nothing are in different inner folds."""
    rng = np.random.default_rng(0)
    who = rng.integers(0, 300, 2000)
    effect = 2 * rng.normal(size=300)
    y = effect[who] + rng.normal(size=2000)
    y = y if kind is GCERegressor else (y > 0).astype(int)
    X = pd.DataFrame({"who": who.astype(str)})
    if more == "attributes":
        X["age"] = rng.normal(size=300)[who]
    losses = []
    for rows in (X, X.assign(noise=rng.normal(size=2000))):
        model = kind(basis="tree", max_iter=40, random_state=0).fit(rows[:1500], y[:1500])
        if kind is GCERegressor:
            losses.append(np.sqrt(np.mean((model.predict(rows[1500:]) - y[1500:]) ** 2)))
        else:
            losses.append(log_loss(y[1500:], model.predict_proba(rows[1500:])))
    assert losses[0] < 1.05 * losses[1]


def test_other_rows_are_new_to_a_fit_that_goes_on():
    """They are trained on and validated by the statistics that predictions have."""
    X, y = people(1500, 300)
    model = GCERegressor(basis="tree", max_iter=3, random_state=0, warm_start=True).fit(X, y)
    known = model.table_.statistics
    rows = validate(model, FitInput(X, -y), seed=model.result_.seed, previous=model.result_).problem.X
    assert torch.equal(rows.columns.nan_to_num(), model.encode_rows(X).columns.nan_to_num())
    assert model.set_params(max_iter=6).fit(X, -y).table_.statistics is known
    with pytest.raises(ValueError, match="warm_start continues 10 members, but cv now gives 3"):
        model.set_params(cv=3).fit(X, y)
    model.set_params(cv="auto", max_iter=8).fit(X, np.round(y / 4))


def test_a_constant_target_has_statistics(tmp_path):
    X, y = people()
    model = GCERegressor(basis="tree", max_iter=2, random_state=0).fit(X, np.column_stack([y, np.full(len(y), 1e9)]))
    model.save(tmp_path / "m")
    assert np.array_equal(gce.load(tmp_path / "m").predict(X), model.predict(X))


def test_columns_without_statistics_keep_their_indicators():
    X, y = people()
    X["town"] = [f"t{i % 30:02}" for i in range(len(X))]
    model = GCERegressor(basis="neural", max_iter=1, random_state=0).fit(X, y)
    names = model.table_.get_feature_names_out()
    assert sum(name.startswith("town=") for name in names) == 30
    assert sum(name.startswith("who=") for name in names) <= 12


def test_edits_see_the_rows_as_the_fit_did():
    X, y = people()
    model = GCERegressor(basis=["tree", "symmetric"], max_iter=3, random_state=0).fit(X, y)
    data = edit_data(model, model.result_, FitInput(X, y))
    again = validate(model, FitInput(X, y), seed=model.result_.seed, statistics=True)
    assert torch.equal(data.problem.X.columns.nan_to_num(), again.problem.X.columns.nan_to_num())
