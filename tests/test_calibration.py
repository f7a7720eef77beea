"""What held-out rows say about answers: temperatures, intervals; class weights, groups and metadata on the way in."""

import numpy as np
import pytest
import sklearn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    TimeSeriesSplit,
    cross_val_score,
)

import gce.training.targets
from gce import GCEClassifier, GCERegressor, NGCEClassifier, NNRegressor, losses
from gce.bases import Neural
from gce.preprocessing.splits import TrainingRows, splits_for
from gce.training.calibration import HeldOutScores, best_temperature, residual_range, smooth_labels, spread_residuals

FAST = {"basis": Neural(hidden=4, max_epochs=10), "max_atoms": 4, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
NUMBERS = X[:, 0] - X[:, 1] ** 2 + 0.3 * RNG.normal(size=120)
CLASSES = np.where(NUMBERS < -1, "low", np.where(NUMBERS > 0, "high", "middle"))


@pytest.mark.parametrize(("loss", "k"), [(losses.Logistic(), 1), (losses.CrossEntropy(), 3)])
@pytest.mark.parametrize("hot", [0.4, 1.0, 3.0])
def test_a_known_temperature_is_found(loss, k, hot):
    rng = np.random.default_rng(3)
    scores = torch.from_numpy(rng.normal(size=(4000, k)) * 2)
    proba = loss.predict(scores).numpy()
    codes = np.array([rng.choice(len(p), p=p) for p in proba])
    y = torch.from_numpy(codes[:, None] * 1.0 if k == 1 else np.eye(3)[codes])
    found = best_temperature(loss, HeldOutScores(scores * hot, y, torch.ones(4000, dtype=torch.float64)))
    assert found == pytest.approx(hot, rel=0.1)
    steps = np.linspace(0.9, 1.1, 21) * found
    values = [float(loss.value(scores * hot / t, y).mean()) for t in steps]
    assert np.argmin(values) == 10


def test_a_temperature_that_gains_nothing_is_1():
    loss, y = losses.Logistic(), torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    assert (
        best_temperature(loss, HeldOutScores(torch.zeros(2, 1, dtype=torch.float64), y, torch.ones(2).double())) == 1.0
    )


@pytest.mark.parametrize("y", [CLASSES, CLASSES == "low"], ids=["three", "two"])
def test_the_temperature_is_that_of_out_of_fold_rows(y):
    splits = [(np.arange(0, 80), np.arange(80, 120)), (np.arange(40, 120), np.arange(0, 40))]
    model = GCEClassifier(cv=splits, **FAST).fit(X, y)
    pred = [model.ensemble_.of_member(m)(model.encode_rows(X[test])) for m, (_, test) in enumerate(splits)]
    target = torch.from_numpy(model.result_.target.encode(y[np.r_[80:120, 0:40]]))
    expected = best_temperature(model.loss_, HeldOutScores(torch.cat(pred), target, torch.ones(80).double()))
    assert model.temperature_ == pytest.approx(expected, rel=1e-4)
    assert model.temperature_ != 1
    plain = GCEClassifier(cv=splits, temperature=1.0, **FAST).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))  # raw scores are untouched
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    scores = torch.from_numpy(np.atleast_2d(model.decision_function(X).T).T)
    np.testing.assert_allclose(
        model.predict_proba(X), model.loss_.predict(scores / model.temperature_).numpy(), rtol=1e-12
    )
    np.testing.assert_allclose(plain.predict_proba(X), plain.loss_.predict(scores).numpy(), rtol=1e-12)
    assert (np.abs(scores.numpy() - model.offset_) <= model.bound_ * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    "model", [GCEClassifier(**FAST), NGCEClassifier(n_atoms=3, hidden=3, max_epochs=60, random_state=0)]
)
def test_given_validation_rows_set_the_temperature(model):
    model = clone(model).fit(X[:80], CLASSES[:80], X_val=X[80:], y_val=CLASSES[80:])
    y = smooth_labels(torch.from_numpy(model.result_.target.encode(CLASSES[80:])), 40)
    assert y.sum() == pytest.approx(40)
    values = [
        float(model.loss_.value(model.raw_predict(X[80:]) / (t * model.temperature_), y).sum()) for t in (0.98, 1, 1.02)
    ]
    assert np.argmin(values) == 1
    assert model.temperature_ != 1


def test_no_held_out_rows_leave_the_temperature_at_one():
    assert GCEClassifier(cv=None, validation_fraction=None, **FAST).fit(X, CLASSES).temperature_ == 1.0


def test_rows_that_are_all_told_right_do_not_make_a_model_certain():
    """Thirty of thirty say that the next one fails about once in thirty, not never."""
    scores = torch.tensor([[4.0], [-4.0]], dtype=torch.float64).repeat(15, 1)
    y = (scores > 0).double()
    for n in (30, 10):
        found = best_temperature(losses.Logistic(), HeldOutScores(scores[:n], y[:n], torch.ones(n).double()))
        wrong = torch.sigmoid(torch.tensor(-4.0 / found, dtype=torch.float64))
        assert float(wrong) == pytest.approx(0.5 / (n + 1), rel=1e-3)
    weighted = HeldOutScores(scores[:10], y[:10], torch.full((10,), 3.0).double())
    repeated = HeldOutScores(scores, y, torch.ones(30).double())
    small = HeldOutScores(scores, y, torch.full((30,), 1e-3).double())
    same = best_temperature(losses.Logistic(), repeated)
    for rows in (weighted, small):
        assert best_temperature(losses.Logistic(), rows) == pytest.approx(same, rel=1e-4)


def test_rows_of_small_and_large_folds_count_alike():
    rng = np.random.default_rng(4)
    splits = [(np.arange(30, 120), np.arange(30)), (np.arange(30), np.arange(30, 120))]
    weight = rng.uniform(0.5, 2, 120)
    for kind, y, name in ((GCERegressor, NUMBERS, "spread_residuals"), (GCEClassifier, CLASSES, "best_temperature")):
        with pytest.MonkeyPatch.context() as patch:
            seen = []
            own = getattr(gce.training.targets, name)
            patch.setattr(
                gce.training.targets, name, lambda *given, own=own, seen=seen: seen.append(given[-1]) or own(*given)
            )
            kind(cv=splits, **FAST).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(seen[0].weight, weight, rtol=1e-12)


def test_weighted_residuals_cover_the_population_that_weights_describe():
    """Held-out rows are drawn too often where residuals are small, and weighted back."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        odd = rng.random(60) < 0.25  # half of all rows there are such
        residual = torch.from_numpy(rng.normal(size=60) * np.where(odd, 3.0, 1.0))[:, None]
        weight = torch.from_numpy(np.where(odd, 3.0, 1.0))
        low, high = residual_range(spread_residuals(HeldOutScores(torch.zeros_like(residual), residual, weight)), 0.8)
        new = rng.normal(size=200) * np.where(rng.random(200) < 0.5, 3.0, 1.0)
        inside.append(np.mean((low[0] <= new) & (new <= high[0])))
    assert np.mean(inside) >= 0.8 - 3 * np.std(inside) / 20
    assert np.mean(inside) <= 0.83


@given(seed=st.integers(0, 10**6), coverage=st.sampled_from([0.5, 0.8, 0.9, 0.95]))
@settings(max_examples=30, deadline=None)
def test_the_conformal_rule_covers_exactly(seed, coverage):
    """Of r + 1 exchangeable residuals each is the new one equally often: leave one out, and count."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(20, 60))
    every = rng.standard_cauchy(r + 1)
    inside = []
    for i in range(r + 1):
        rest = torch.from_numpy(np.delete(every, i))[:, None]
        rows = HeldOutScores(torch.zeros_like(rest), rest, torch.full((r,), 1 / r, dtype=torch.float64))
        low, high = residual_range(spread_residuals(rows), coverage)
        inside.append(low[0] <= every[i] <= high[0])
    assert np.mean(inside) >= coverage - 1e-12
    assert np.mean(inside) <= coverage + 2 / (r + 1) + 1e-12


def test_many_residuals_are_thinned_without_moving_their_quantiles():
    residual = torch.from_numpy(np.random.default_rng(0).normal(size=(50_000, 2)))
    rows = HeldOutScores(torch.zeros_like(residual), residual, torch.ones(50_000, dtype=torch.float64))
    kept = spread_residuals(rows)
    assert kept.shape == (10_001, 2)
    assert (np.diff(kept, axis=0) >= 0).all()
    for coverage in (0.5, 0.9, 0.99):
        low, high = residual_range(kept, coverage)
        inside = ((low <= residual.numpy()) & (residual.numpy() <= high)).mean(0)
        assert ((coverage <= inside) & (inside <= coverage + 4e-4)).all()


def test_intervals_cover_new_rows():
    rng = np.random.default_rng(1)
    big = rng.normal(size=(900, 3))
    y = big[:, 0] - big[:, 1] ** 2 + (1 + (big[:, 2] > 0)) * rng.normal(size=900)
    model = GCERegressor(cv=5, **FAST).fit(big[:450], y[:450])
    covered = {}
    for coverage in (0.5, 0.8, 0.9):
        low, high = model.predict_interval(big[450:], coverage).T
        assert (low < high).all()
        covered[coverage] = np.mean((low <= y[450:]) & (y[450:] <= high))
        error = 3 * np.sqrt(coverage * (1 - coverage) * (1 / 450 + 1 / 450))
        assert abs(covered[coverage] - coverage) <= error
    assert covered[0.5] < covered[0.8] < covered[0.9]
    assert np.isinf(model.predict_interval(big[:2], 0.9999)).all()
    two = NNRegressor(hidden=3, max_epochs=5, random_state=0).fit(big, np.c_[y, -y])
    assert two.predict_interval(big[:4]).shape == (4, 2, 2)


def test_an_interval_needs_held_out_rows():
    model = GCERegressor(cv=None, validation_fraction=None, **FAST).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="this fit held out none: use cv or validation_fraction"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match=r"coverage must be in \(0, 1\), got 1.0"):
        model.predict_interval(X, 1.0)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"class_weight": [1, 2]}, r"class_weight must be 'balanced', a dict or None, got \[1, 2\]"),
        ({"class_weight": "even"}, "class_weight must be 'balanced', a dict or None, got 'even'"),
        ({"class_weight": {"none": 2}}, r"class_weight names \['none'\]"),
        ({"class_weight": {"low": 0}}, "class weights must be positive numbers"),
        ({"temperature": np.inf}, "temperature must be 'auto' or positive and finite, got inf"),
        ({"temperature": 0}, "temperature must be 'auto' or positive"),
    ],
)
def test_refused(given_, words):
    with pytest.raises(ValueError, match=words):
        GCEClassifier(**given_, **FAST).fit(X, CLASSES)


def test_class_weights_are_sample_weights():
    factor = {"low": 3.0, "middle": 0.5, "high": 1.0}
    by_class = GCEClassifier(cv=3, class_weight=factor, **FAST).fit(X, CLASSES)
    by_row = GCEClassifier(cv=3, **FAST).fit(X, CLASSES, sample_weight=[factor[c] for c in CLASSES])
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    balanced = GCEClassifier(class_weight="balanced", **FAST).fit(X, CLASSES)
    np.testing.assert_allclose(balanced.offset_, 0, atol=1e-12)  # three classes of the same weight
    assert [e["validation"] for e in by_class.history_] == [e["validation"] for e in by_row.history_]
    given_ = {"X_val": X[90:], "y_val": CLASSES[90:]}
    own = GCEClassifier(class_weight=factor, **FAST).fit(X[:90], CLASSES[:90], **given_)
    weights = [factor[c] for c in CLASSES]
    rows = GCEClassifier(**FAST).fit(X[:90], CLASSES[:90], weights[:90], sample_weight_val=weights[90:], **given_)
    np.testing.assert_array_equal(own.predict_proba(X), rows.predict_proba(X))


@pytest.mark.parametrize(
    ("kind", "y", "splitter"),
    [(GCERegressor, NUMBERS, GroupKFold(3)), (GCEClassifier, CLASSES, StratifiedGroupKFold(3))],
)
def test_groups_stay_whole(kind, y, splitter):
    groups = np.array([f"g{i}" for i in np.arange(120) // 8])
    named = kind(cv=splitter, **FAST).fit(X, y, groups=groups)
    listed = kind(cv=list(splitter.split(X, y, groups)), **FAST).fit(X, y)
    np.testing.assert_array_equal(named.predict(X), listed.predict(X))
    for cv in ("auto", 3, None):
        codes = None if kind is GCERegressor else np.arange(120) % 3
        rows = TrainingRows(X, np.zeros((120, 1)), codes, np.ones(120), np.arange(120), groups, 120)
        for learn, test in splits_for(cv, 0.2, rows, 0):
            assert not set(groups[learn]) & set(groups[test])
            assert len(test) > 0
    weight = np.r_[np.zeros(8), np.ones(112)]
    kind(cv=splitter, **FAST).fit(X, y, sample_weight=weight, groups=groups)


def test_rows_in_time():
    model = GCERegressor(cv=TimeSeriesSplit(3), **FAST).fit(X, NUMBERS)
    splits = list(TimeSeriesSplit(3).split(X))
    same = GCERegressor(cv=splits, **FAST).fit(X, NUMBERS)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.ensemble_.members == 3


def test_metadata_is_routed():
    groups, weight = np.arange(120) // 8, np.random.default_rng(0).uniform(0.5, 2, 120)
    model = GCERegressor(cv=GroupKFold(2), **FAST)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = model.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
        given_ = {"groups": groups, "sample_weight": weight}
        search = GridSearchCV(asked, {"max_atoms": [1, 3]}, cv=GroupKFold(3)).fit(X, NUMBERS, **given_)
        scores = cross_val_score(asked, X, NUMBERS, cv=GroupKFold(3), params=given_)
        assert scores.shape == (3,)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            cross_val_score(GCERegressor(**FAST), X, NUMBERS, params={"sample_weight": weight})
    direct = GCERegressor(cv=GroupKFold(2), **{**FAST, **search.best_params_}).fit(X, NUMBERS, **given_)
    np.testing.assert_array_equal(search.predict(X), direct.predict(X))


def test_a_member_alone_is_its_own_ensemble():
    splits = [(np.arange(0, 80), np.arange(80, 120)), (np.arange(40, 120), np.arange(0, 40))]
    both = GCERegressor(cv=splits, **FAST).fit(X, NUMBERS)
    rows = both.encode_rows(X)
    alone = [both.ensemble_.of_member(m) for m in range(2)]
    np.testing.assert_allclose(sum(one(rows) for one in alone) / 2, both.ensemble_(rows), rtol=1e-12)
    for one in alone:
        assert float(one.weights.sum()) == pytest.approx(1, abs=1e-12)
    single = GCERegressor(cv=splits[:1], **FAST).fit(X, NUMBERS)
    assert np.abs(single.predict(X) - alone[0](rows).numpy()[:, 0]).max() < 1e-9


def test_a_classifier_can_be_subclassed():
    class Plain(GCEClassifier):
        """Nothing of its own."""

    class Own(GCEClassifier):
        def __init__(self, *, max_atoms=2, temperature=1.0, extra=None):
            super().__init__(max_atoms=max_atoms, temperature=temperature, basis=Neural(hidden=3, max_epochs=5))
            self.extra = extra

    assert Plain(class_weight="balanced").get_params() == GCEClassifier(class_weight="balanced").get_params()
    assert clone(Own(extra=3)).get_params() == {"max_atoms": 2, "temperature": 1.0, "extra": 3}
    assert len(Own().fit(X, CLASSES).history_) == 2
    search = GridSearchCV(Plain(**FAST), {"class_weight": [None, "balanced", {"low": 9.0}]}, cv=2).fit(X, CLASSES)
    assert search.best_estimator_.class_weight == search.best_params_["class_weight"]
