"""Losses of counts and amounts, base scores, Huber's loss and several quantiles."""

import numpy as np
import pytest
import sklearn
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    d2_pinball_score,
    make_scorer,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate

import gce
from gce.bases import Forest, Pool
from gce.losses import Gamma, Huber, Poisson, PseudoHuber, Quantile, Quantiles, Tweedie
from helpers import targets

DEVIANCES = {
    "poisson": (Poisson(), mean_poisson_deviance),
    "gamma": (Gamma(), mean_gamma_deviance),
    "tweedie": (Tweedie(1.3), lambda y, p: mean_tweedie_deviance(y, p, power=1.3)),
}
LOG_LINKS = pytest.mark.parametrize("name", DEVIANCES)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
EXPOSURE = RNG.uniform(0.1, 3.0, 240)
MEAN = np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1])
COUNTS = RNG.poisson(MEAN * EXPOSURE).astype(float)
TINY = {"basis": gce.bases.Tree(max_leaf_nodes=4, min_samples_leaf=5), "max_atoms": 8, "cv": 2, "random_state": 0}


@LOG_LINKS
def test_twice_the_loss_is_the_deviance_of_scikit_learn(name):
    loss, deviance = DEVIANCES[name]
    rng = np.random.default_rng(1)
    y, pred = targets(loss, 200, rng), torch.from_numpy(rng.normal(size=(200, 1)))
    expected = deviance(y[:, 0].numpy(), loss.predict(pred)[:, 0].numpy())
    assert float(2 * loss.value(pred, y).mean()) == pytest.approx(expected, rel=1e-12)
    assert float(loss.deviance(pred, y).mean()) == pytest.approx(expected, rel=1e-12)


@LOG_LINKS
@settings(deadline=None, max_examples=50)
@given(base=st.floats(-3, 3), score=st.floats(-3, 3), weight=st.floats(0.1, 5), seed=st.integers(0, 99))
def test_a_base_score_is_the_same_as_other_targets_and_weights(name, base, score, weight, seed):
    loss = DEVIANCES[name][0]
    y = targets(loss, 1, np.random.default_rng(seed))
    w, b, f = (torch.tensor([[v]], dtype=torch.float64) for v in (weight, base, score))
    moved, scaled = loss.move_base(y, w[0], b)
    direct = weight * loss.value(f + b, y)
    # both have cancelled terms of this size
    unit = weight * float(loss.predict(f + b).abs().sum() + y.abs().sum() + 1) * 20
    assert abs(float(scaled * loss.value(f, moved) - direct)) <= 1e-13 * unit
    torch.testing.assert_close(scaled[:, None] * loss.gradient(f, moved), weight * loss.gradient(f + b, y))


@LOG_LINKS
def test_the_best_weights_of_a_pool_are_those_of_another_solver(name):
    loss = DEVIANCES[name][0]
    rng = np.random.default_rng(2)
    y = targets(loss, 60, rng)[:, 0].numpy()
    outputs = rng.uniform(-2, 2, (4, 60, 1))
    model = gce.GCERegressor(
        loss=loss, basis=Pool(outputs=outputs), algorithm="pairwise", validation_fraction=None, cv=None, bound=2.0,
        offset=0.2, max_iter=3000, tol=1e-12, n_iter_no_change=None, random_state=0,
    )  # fmt: skip
    rows = np.arange(60.0)[:, None]
    model.fit(rows, y)
    target = torch.from_numpy(y[:, None])

    def risk(logits):
        w = np.exp(logits - logits.max())
        scores = np.tensordot(w / w.sum(), outputs, 1) + 0.2
        return float(loss.value(torch.from_numpy(scores), target).mean())

    best = min(
        minimize(risk, start, method="BFGS", options={"gtol": 1e-9}).fun for start in 3 * rng.normal(size=(5, 4))
    )
    assert model.history_[-1]["risk"] <= best + 1e-6


def test_exposure_is_a_base_score():
    """Twice the exposure is as two rows of half the count: the same model from either."""
    rates = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE / EXPOSURE.mean())
    model = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS, base_score=np.log(EXPOSURE))
    np.testing.assert_allclose(model.predict(X), rates.predict(X), rtol=1e-9)
    expected = EXPOSURE * model.predict(X)
    np.testing.assert_allclose(model.predict(X, base_score=np.log(EXPOSURE)), expected, rtol=1e-12)
    assert mean_poisson_deviance(COUNTS, expected) < mean_poisson_deviance(COUNTS, EXPOSURE * COUNTS.mean())


def r2_by_hand(y, pred, weight=None):
    weight = np.ones_like(y) if weight is None else weight
    residual, total = y - pred, y - (weight @ y) / weight.sum()
    return 1 - (weight @ residual**2) / (weight @ total**2)


def test_score_takes_base_scores(tmp_path):
    base, weight = np.log(EXPOSURE), RNG.uniform(0.5, 2, 240)
    model = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS, base_score=base)
    expected = r2_by_hand(COUNTS, EXPOSURE * model.predict(X))
    assert model.score(X, COUNTS, base_score=base) == pytest.approx(expected, rel=1e-9)
    weighted = model.score(X, COUNTS, weight, base_score=base)
    assert weighted == pytest.approx(r2_by_hand(COUNTS, EXPOSURE * model.predict(X), weight), rel=1e-9)
    rates = model.score(X, COUNTS / EXPOSURE, EXPOSURE, base_score=np.zeros(240))
    assert rates == pytest.approx(r2_by_hand(COUNTS / EXPOSURE, model.predict(X), EXPOSURE), rel=1e-9)
    model.save(tmp_path / "model.safetensors")
    edited = model.reweight(X, COUNTS, base_score=base)
    for one in (model, gce.load(tmp_path / "model.safetensors"), edited):
        with pytest.raises(ValueError, match="fitted with base_score, which score needs too"):
            one.score(X, COUNTS)
        with pytest.raises(ValueError, match=r"base_score is of shape \(7,\)"):
            one.score(X, COUNTS, base_score=np.zeros(7))
    # a model that knows no base score may be scored with one
    plain = gce.GCERegressor(**TINY).fit(X, MEAN)
    shifted = plain.score(X, MEAN + X[:, 2], base_score=X[:, 2])
    assert shifted == pytest.approx(r2_by_hand(MEAN + X[:, 2], plain.predict(X) + X[:, 2]), rel=1e-9)


def test_quantiles_are_scored_with_base_scores():
    y = X[:, 0] + X[:, 2]
    model = gce.GCERegressor(loss=Quantiles([0.2, 0.8]), **TINY).fit(X, y, base_score=X[:, 2])
    pred = model.predict(X) + X[:, 2:]
    expected = np.mean([d2_pinball_score(y, p, alpha=a) for p, a in zip(pred.T, (0.2, 0.8), strict=True)])
    assert model.score(X, y, base_score=X[:, 2]) == pytest.approx(expected, rel=1e-12)


def test_base_scores_are_routed_to_scores():
    base, cv, given_ = np.log(EXPOSURE), KFold(3), {"base_score": np.log(EXPOSURE)}
    by_hand, deviances = [], []
    for train, test in cv.split(X):
        model = gce.GCERegressor(loss="poisson", **TINY).fit(X[train], COUNTS[train], base_score=base[train])
        pred = EXPOSURE[test] * model.predict(X[test])
        by_hand.append(r2_by_hand(COUNTS[test], pred))
        deviances.append(mean_poisson_deviance(COUNTS[test], pred))

    def deviance(y, rate, base_score):
        return mean_poisson_deviance(y, rate * np.exp(base_score))

    with sklearn.config_context(enable_metadata_routing=True):
        routed = gce.GCERegressor(loss="poisson", **TINY).set_fit_request(base_score=True)
        with pytest.raises(UnsetMetadataPassedError):
            cross_val_score(routed, X, COUNTS, cv=cv, params=given_)
        scored = clone(routed).set_score_request(base_score=True)
        np.testing.assert_allclose(cross_val_score(scored, X, COUNTS, cv=cv, params=given_), by_hand, rtol=1e-9)
        search = GridSearchCV(scored, {"max_atoms": [8]}, cv=cv).fit(X, COUNTS, **given_)
        assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-9)
        # scorers of scikit-learn predict without any metadata
        for one in (routed, scored):
            with pytest.raises(ValueError, match="predict was called without it, as scikit-learn's scorers"):
                cross_val_score(
                    one, X, COUNTS, cv=cv, params=given_, scoring="neg_mean_poisson_deviance", error_score="raise"
                )
        rates = clone(routed).set_predict_request(base_score=False)
        scorer = make_scorer(deviance, greater_is_better=False).set_score_request(base_score=True)
        found = cross_validate(rates, X, COUNTS, cv=cv, params=given_, scoring={"deviance": scorer})
        np.testing.assert_allclose(-found["test_deviance"], deviances, rtol=1e-9)
        # cross_val_predict routes nothing to predict, whatever is requested
        with pytest.raises(ValueError, match="predict was called without it"):
            cross_val_predict(clone(routed).set_predict_request(base_score=True), X, COUNTS, cv=cv, params=given_)
        counts = clone(routed).set_predict_request(base_score=True).fit(X, COUNTS, **given_)
        np.testing.assert_allclose(
            counts.predict(X, base_score=base), EXPOSURE * rates.fit(X, COUNTS, **given_).predict(X)
        )
    # without routing only the fit is given parameters
    with pytest.raises(ValueError, match="fitted with base_score, which score needs too"):
        cross_val_score(gce.GCERegressor(loss="poisson", **TINY), X, COUNTS, params=given_, error_score="raise")


def test_rows_without_the_base_scores_of_the_fit_are_refused_or_named(tmp_path):
    base = np.log(EXPOSURE)
    model = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS, base_score=base)
    model.save(tmp_path / "model.safetensors")
    for one in (model, gce.load(tmp_path / "model.safetensors"), model.reweight(X, COUNTS, base_score=base)):
        name = next(name for name in one.atom_names_ if not name.endswith(":0"))
        for judged in (
            lambda one=one: one.explain(X, COUNTS),
            lambda one=one: one.explain(X[:50], COUNTS[:50], by="atoms"),
            lambda one=one: one.reweight(X, COUNTS),
            lambda one=one, name=name: one.remove(name, X, COUNTS),
            lambda one=one: one.prune(2, X=X, y=COUNTS),
            lambda one=one: one.pruning_path(X, COUNTS),
        ):
            with pytest.raises(ValueError, match=r"fitted with base_score, which .* needs too: give base_score="):
                judged()
        rates = one.reweight(X, COUNTS / EXPOSURE, EXPOSURE, base_score=np.zeros(240))
        with_base = one.reweight(X, COUNTS, base_score=base)
        np.testing.assert_allclose(rates.predict(X), with_base.predict(X), rtol=1e-3)
    # to imitate the model takes no targets, and so no base scores
    assert len(model.prune(2, X=X).weights_) <= 3
    model.report(tmp_path / "r.html", X, COUNTS / EXPOSURE, EXPOSURE)
    assert "these are predictions of a base score of 0" in (tmp_path / "r.html").read_text("utf-8")
    gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS).report(tmp_path / "r.html", X, COUNTS)
    assert "base score" not in (tmp_path / "r.html").read_text("utf-8")


def test_edits_take_base_scores():
    base = np.log(EXPOSURE)
    model = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS, base_score=base)
    rates = gce.GCERegressor(loss="poisson", **TINY).fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE / EXPOSURE.mean())
    pairs = [
        (model.reweight(X, COUNTS, base_score=base), rates.reweight(X, COUNTS / EXPOSURE, EXPOSURE / EXPOSURE.mean())),
        (
            model.remove(model.atom_names_[3], X, COUNTS, base_score=base),
            rates.remove(rates.atom_names_[3], X, COUNTS / EXPOSURE, EXPOSURE / EXPOSURE.mean()),
        ),
    ]
    for edited, expected in pairs:
        np.testing.assert_allclose(edited.predict(X), expected.predict(X), rtol=1e-4)


def test_the_unit_of_exposure_does_not_matter():
    models = [gce.GCERegressor(loss="poisson", **TINY) for _ in range(2)]
    days, years = (m.fit(X, COUNTS, base_score=np.log(c * EXPOSURE)) for m, c in zip(models, (365.0, 1.0), strict=True))
    np.testing.assert_allclose(365 * days.predict(X), years.predict(X), rtol=1e-9)


def test_rows_held_out_may_all_be_zero():
    model = gce.GCERegressor(**{**TINY, "cv": None}, loss="poisson")
    model.fit(X[:200], COUNTS[:200], X_val=X[200:], y_val=0 * COUNTS[200:])
    assert np.isfinite(model.history_[-1]["validation"])


@pytest.mark.parametrize("loss", ["huber", "pseudo_huber", "absolute_error", Quantiles([0.2, 0.9])], ids=str)
def test_targets_in_another_unit(loss):
    """Models of robust losses have the unit of y."""
    y = X[:, 0] + np.sin(2 * X[:, 1])
    settings = {**TINY, "max_atoms": 60}
    models = [gce.GCERegressor(loss=loss, **settings).fit(X, c * y) for c in (1e-3, 1.0, 1e5)]
    errors = [np.abs(m.predict(X).T / c - y).mean() for m, c in zip(models, (1e-3, 1.0, 1e5), strict=True)]
    np.testing.assert_allclose(errors, errors[0], rtol=0.05)


def test_a_width_that_is_given_does_not_overshoot():
    """Far beyond its width a loss of Huber is the absolute error, and trees need many rounds."""
    y = 1e5 * (X[:, 0] + np.sin(2 * X[:, 1]))
    for loss in (Huber(1.0), PseudoHuber(1.0)):
        model = gce.GCERegressor(loss=loss, **{**TINY, "max_atoms": 60}).fit(X, y)
        assert model.loss_.delta == 1.0
        assert np.abs(model.predict(X) - y).mean() < np.abs(y - np.median(y)).mean()


HUBERS = pytest.mark.parametrize("kind", [Huber, PseudoHuber])


@HUBERS
@settings(deadline=None, max_examples=50)
@given(
    y=st.lists(st.integers(-1000, 1000), min_size=2, max_size=30),
    times=st.lists(st.integers(1, 4), min_size=30, max_size=30),
    factor=st.integers(-40, 40),
)
def test_the_width_follows_the_targets(kind, y, times, factor):
    """Of repeated rows it is that of weights, in another unit of y another number, and outliers do not move it."""
    y, times = np.array(y, dtype=float), np.array(times[: len(y)])
    width = auto_width(kind, y, times)
    assert width == auto_width(kind, np.repeat(y, times))
    if np.ptp(y) > 0:
        assert auto_width(kind, np.ldexp(y, factor), times) == np.ldexp(width, factor)
        assert 0 < width <= 1.5 * np.abs(y - y[:, None]).max()
    else:
        assert width > 0


def auto_width(kind, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return kind().for_targets(torch.from_numpy(y[:, None]), torch.from_numpy(weight.astype(float))).delta


@HUBERS
def test_the_width_is_a_multiple_of_the_median_distance_from_the_median(kind):
    y = RNG.lognormal(12, 0.5, 501)
    expected = 1.5 * np.median(np.abs(y - np.median(y)))
    assert auto_width(kind, y) == pytest.approx(expected, rel=1e-12)
    far = np.r_[y, 1e9, 2e9]
    assert auto_width(kind, far) == pytest.approx(expected, rel=0.03)
    # most targets may be one number
    assert auto_width(kind, np.r_[np.zeros(60), 7 * np.ones(40)]) == pytest.approx(1.5 * 2.8)


@HUBERS
@pytest.mark.parametrize("basis", ["tree", "neural"])
def test_models_of_huber_have_the_unit_of_y(kind, basis):
    y = np.exp(MEAN / 2)
    models = [gce.GCERegressor(loss=kind(), **{**TINY, "basis": basis}).fit(X, c * y) for c in (1.0, 2.0**20)]
    one, other = (model.predict(X) for model in models)
    np.testing.assert_allclose(other, 2.0**20 * one, rtol=1e-3 if basis == "neural" else 1e-9)
    assert models[1].loss_.delta == 2.0**20 * models[0].loss_.delta


@HUBERS
def test_several_targets_have_widths_of_their_own(kind, tmp_path):
    y = np.column_stack([MEAN, 1e6 * MEAN])
    model = gce.GCERegressor(loss=kind(), **{**TINY, "max_atoms": 40}).fit(X, y)
    assert model.loss_.delta == tuple(auto_width(kind, column) for column in y.T)
    np.testing.assert_allclose(1e6 * model.predict(X)[:, 0], model.predict(X)[:, 1], rtol=1e-6)
    alone = gce.GCERegressor(loss=kind(), **{**TINY, "max_atoms": 40}).fit(X, y[:, 0])
    scale = np.abs(MEAN - np.median(MEAN)).mean()
    assert np.abs(alone.predict(X) - model.predict(X)[:, 0]).mean() < 0.3 * scale
    model.save(tmp_path / "model.safetensors")
    loaded = gce.load(tmp_path / "model.safetensors")
    assert loaded.loss_.delta == model.loss_.delta
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_a_width_stays_with_its_model(tmp_path):
    """What is stored, continued and edited has the number of the fit, whatever other targets would give."""
    model = gce.GCERegressor(loss="huber", **TINY, warm_start=True).fit(X, MEAN)
    width = 1.5 * np.median(np.abs(MEAN - np.median(MEAN)))
    # the weighted median is an actual target, numpy's lies between two
    assert model.loss_.delta == pytest.approx(width, rel=0.05)
    model.save(tmp_path / "model.safetensors", resumable=False)
    loaded = gce.load(tmp_path / "model.safetensors")
    assert (loaded.loss, loaded.loss_.delta) == ("huber", model.loss_.delta)
    assert model.reweight(X, 3 * MEAN).loss_.delta == model.loss_.delta
    delta = model.loss_.delta
    assert model.set_params(max_atoms=10).fit(X, 3 * MEAN).loss_.delta == delta
    assert clone(gce.GCERegressor(loss=Huber(2.0))).loss.delta == 2.0
    assert clone(model).fit(X, MEAN, base_score=MEAN / 2).loss_.delta == pytest.approx(delta / 2)


def test_stacks_have_widths_of_their_targets():
    members = [("a", gce.GCERegressor(**TINY)), ("b", gce.GCERegressor(**{**TINY, "basis": "symmetric"}))]
    y, weight = 1e6 * MEAN, RNG.integers(1, 4, 240).astype(float)
    stack = gce.ConvexStackingRegressor(members, loss="huber", random_state=0).fit(X, y, weight)
    assert stack.result_.task.loss.delta == auto_width(Huber, y, weight)
    assert 0 <= stack.gap_ <= 1e-6 * stack.risk_


@HUBERS
def test_a_width_without_targets_is_said_to_be_unknown(kind):
    loss, zero = kind(), torch.zeros(2, 1)
    for use in (lambda: loss.value(zero, zero), lambda: loss.lipschitz(1.0), lambda: loss.gradient(zero, zero)):
        with pytest.raises(ValueError, match="has no width yet, because delta='auto' follows the targets"):
            use()
    for wrong in ("wide", (), (1.0, -1.0), True):
        with pytest.raises(ValueError, match="delta must be 'auto', in"):
            kind(wrong).value(zero, zero)


@HUBERS
@pytest.mark.parametrize(
    ("delta", "targets", "words"),
    [((1.0, 2.0, 3.0), 2, "3 widths, but y has 2 targets"), ((1.0, 2.0), 1, "2 widths, but y has 1 target:")],
)
def test_widths_that_are_not_those_of_the_targets_are_refused(kind, delta, targets, words):
    y = np.column_stack([MEAN] * targets)
    stack = gce.ConvexStackingRegressor([("a", DummyRegressor()), ("b", LinearRegression())])
    for model in (gce.GCERegressor(**TINY), gce.NNRegressor(random_state=0), stack):
        with pytest.raises(ValueError, match=rf"{kind.__name__} has {words}.*got delta=\({delta[0]}, "):
            model.set_params(loss=kind(delta)).fit(X, y)
    with pytest.raises(ValueError, match=words):
        kind(delta).value(torch.zeros(2, targets), torch.zeros(2, targets))


def test_prices_have_smaller_errors_than_with_a_width_of_1():
    """On prices the default is at least as good for the absolute error as squared error is; a width of 1 is not."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 4))
    price = np.exp(12 + 0.5 * rows[:, 0] - 0.3 * rows[:, 1] * rows[:, 2] + 0.3 * rng.standard_t(2, 600))
    new = np.exp(12 + 0.5 * rows[:, 0] - 0.3 * rows[:, 1] * rows[:, 2])
    settings = {"basis": "symmetric", "max_atoms": 40, "cv": 3, "random_state": 0}
    errors = {
        loss: np.abs(gce.GCERegressor(loss=loss, **settings).fit(rows, price).predict(rows) - new).mean()
        for loss in ("squared_error", "huber", Huber(1.0))
    }
    squared, default, narrow = errors.values()
    assert default < squared
    assert default < narrow


@pytest.mark.parametrize("loss", ["absolute_error", Quantile(0.9)], ids=str)
@pytest.mark.parametrize("basis", ["tree", "symmetric"])
def test_outputs_in_other_units_and_outliers_leave_a_target_alone(loss, basis):
    y, big = X[:, 0] + np.sin(2 * X[:, 1]), 1e6 * X[:, 2]
    settings = {**TINY, "basis": basis, "max_atoms": 20}
    alone = gce.GCERegressor(loss=loss, **settings).fit(X, y).predict(X)
    beside = gce.GCERegressor(loss=loss, **settings).fit(X, np.column_stack([y, big])).predict(X)[:, 0]
    far = y.copy()
    far[0] = 1e6
    weights = np.where(np.arange(len(y)) == 0, 1e-9, 1.0)
    outlier = gce.GCERegressor(loss=loss, **settings).fit(X, far, sample_weight=weights).predict(X)
    for other in (beside, outlier):
        assert np.abs(other - alone)[1:].mean() < 0.3 * np.abs(y - np.median(y)).mean()


def test_scorers_of_quantiles_see_the_targets_as_given():
    def covered(y, pred):
        return -abs(np.mean((pred[:, 0] <= y) & (y <= pred[:, 1])) - 0.8)

    model = gce.GCERegressor(loss=Quantiles([0.1, 0.9]), scoring=make_scorer(covered), **TINY).fit(X, X[:, 0])
    assert all(0 <= entry["validation"] <= 0.8 for entry in model.history_)


def test_what_another_model_predicts_is_a_base_score():
    y = MEAN + X[:, 2]
    model = gce.GCERegressor(**TINY).fit(X, y, base_score=X[:, 2])
    alone = gce.GCERegressor(**TINY).fit(X, y - X[:, 2])
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert np.array_equal(model.predict(X, base_score=X[:, 2]), alone.predict(X) + X[:, 2])


def test_base_scores_of_validation_rows():
    half = slice(0, 120), slice(120, 240)
    given = {"base_score": np.log(EXPOSURE[half[0]]), "base_score_val": np.log(EXPOSURE[half[1]])}
    model = gce.GCERegressor(**{**TINY, "cv": None}, loss="poisson")
    model.fit(X[half[0]], COUNTS[half[0]], X_val=X[half[1]], y_val=COUNTS[half[1]], **given)
    assert np.isfinite(model.history_[-1]["validation"])
    with pytest.raises(ValueError, match="base_score and base_score_val must be given together"):
        model.fit(X, COUNTS, X_val=X, y_val=COUNTS, base_score=np.log(EXPOSURE))
    with pytest.raises(ValueError, match="base_score_val needs X_val"):
        model.fit(X, COUNTS, base_score_val=np.log(EXPOSURE))


@pytest.mark.parametrize(
    ("loss", "y", "more", "words"),
    [
        ("poisson", -COUNTS, {}, "needs non-negative targets, but y has -"),
        ("gamma", COUNTS, {}, "needs positive targets, but y has 0"),
        ("tweedie", 0 * COUNTS, {}, "all of y are 0"),
        (Tweedie(2.5), COUNTS, {}, "power must be"),
        (Quantiles([0.5, 0.1]), COUNTS, {}, "levels must be a list or tuple of increasing levels in"),
        (Quantiles([0.5, 1.0]), COUNTS, {}, "levels must be a list or tuple of increasing levels in"),
        (Quantiles([0.2, 0.5]), np.column_stack([COUNTS, COUNTS]), {}, "takes one target, but y has 2"),
        ("poisson", COUNTS, {"base_score": np.zeros(7)}, r"base_score is of shape \(7,\)"),
        ("poisson", COUNTS, {"base_score": np.full(240, -np.inf)}, "all must be finite"),
        ("poisson", COUNTS, {"base_score": np.full(240, 800.0)}, "beyond what float64 holds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_said_in_one_sentence(loss, y, more, words):
    with pytest.raises(ValueError, match=words):
        gce.GCERegressor(loss=loss, **TINY).fit(X, y, **more)


def test_classes_take_no_base_score_and_stacks_no_link():
    with pytest.raises(TypeError, match="base_score"):
        gce.GCEClassifier(**TINY).fit(X, COUNTS > 1, base_score=EXPOSURE)
    stack = gce.ConvexStackingRegressor([("a", gce.GCERegressor(**TINY))], loss="poisson")
    with pytest.raises(ValueError, match="a loss of differences"):
        stack.fit(X, COUNTS)


@pytest.mark.parametrize("basis", ["tree", "symmetric", Forest(n_estimators=5), "neural"], ids=str)
def test_every_family_learns_counts(basis):
    settings = {**TINY, "basis": basis, "max_atoms": 1 if isinstance(basis, Forest) else 10}
    model = gce.GCERegressor(loss="poisson", **settings).fit(X, COUNTS, base_score=np.log(EXPOSURE))
    pred = model.predict(X, base_score=np.log(EXPOSURE))
    constant = EXPOSURE * COUNTS.sum() / EXPOSURE.sum()
    assert mean_poisson_deviance(COUNTS, pred) < mean_poisson_deviance(COUNTS, constant)


@settings(deadline=None, max_examples=50)
@given(delta=st.floats(0.01, 10), residual=st.floats(-50, 50), step=st.floats(-50, 50))
@pytest.mark.parametrize("kind", [Huber, PseudoHuber])
def test_the_parabola_is_above_the_loss_of_huber(kind, delta, residual, step):
    loss, zero = kind(delta), torch.zeros(1, 1, dtype=torch.float64)
    here, there = (torch.full((1, 1), v, dtype=torch.float64) for v in (residual, residual + step))
    value, slope, bend = loss.value(here, zero), loss.gradient(here, zero), loss.majorizer(here, zero)
    above = float(value + slope * step + bend * step**2 / 2)
    assert float(loss.value(there, zero)) <= above + 1e-12 * (abs(above) + 1) * 1e3


@pytest.fixture(scope="module")
def quantiles():
    y = X[:, 0] + np.exp(X[:, 1]) * RNG.normal(size=240)
    model = gce.GCERegressor(loss=Quantiles([0.1, 0.4, 0.45, 0.5, 0.9]), **{**TINY, "max_atoms": 30}).fit(X, y)
    return model, y


def test_quantiles_never_cross(quantiles):
    model, _ = quantiles
    rows = np.random.default_rng(3).normal(scale=3, size=(20_000, 3))
    assert (np.diff(model.predict(rows), axis=1) >= 0).all()
    # raw scores do: the test would see it if predictions were not sorted
    assert (np.diff(model.raw_predict(rows).numpy(), axis=1) < 0).any()


def test_sorting_lowers_the_pinball_loss(quantiles):
    model, y = quantiles
    target = torch.from_numpy(np.repeat(y[:, None], 5, 1))
    raw = model.raw_predict(X)
    loss = model.loss_
    assert (loss.value(loss.predict(raw), target) <= loss.value(raw, target) + 1e-12).all()


def test_quantiles_have_their_shares_of_targets_below(quantiles):
    model, y = quantiles
    below = (y[:, None] <= model.predict(X)).mean(0)
    np.testing.assert_allclose(below, model.loss_.levels, atol=0.12)
    constant = [mean_pinball_loss(y, np.full(240, np.quantile(y, a)), alpha=a) for a in model.loss_.levels]
    fitted = [mean_pinball_loss(y, p, alpha=a) for p, a in zip(model.predict(X).T, model.loss_.levels, strict=True)]
    assert np.mean(fitted) < 0.9 * np.mean(constant)
    assert 0.1 < model.score(X, y) <= 1


def test_quantiles_are_edited_cloned_and_refuse_intervals(quantiles, tmp_path):
    model, y = quantiles
    assert clone(model).get_params()["loss"].levels == [0.1, 0.4, 0.45, 0.5, 0.9]
    edited = model.reweight(X, y)
    assert (np.diff(edited.predict(X), axis=1) >= 0).all()
    edited.save(tmp_path / "m.safetensors")
    assert np.array_equal(gce.load(tmp_path / "m.safetensors").predict(X), edited.predict(X))
    with pytest.raises(ValueError, match="no interval around each"):
        model.predict_interval(X)


@pytest.mark.parametrize("loss", ["poisson", "tweedie", "huber", Quantiles([0.1, 0.5])], ids=str)
def test_reports_name_the_loss(loss, tmp_path):
    model = gce.GCERegressor(loss=loss, **TINY).fit(X, COUNTS)
    model.report(tmp_path / "r.html", X, COUNTS)
    page = (tmp_path / "r.html").read_text()
    names = {"poisson": "Half the Poisson deviance", "tweedie": "Half the Tweedie deviance", "huber": "Huber loss"}
    assert names.get(str(loss), "Mean pinball loss") in page
    assert ("Shares below the quantiles" in page) == isinstance(loss, Quantiles)
