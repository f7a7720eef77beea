"""scikit-learn's regressors as a class of models: what they are fitted to, and that they stay in their bound."""

import io
import pickle

import joblib
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from gce import GCEClassifier, GCERegressor
from gce._utils.random import Streams
from gce.bases import FitContext, RegressorBasis
from gce.bases.objectives import Joint, Linear, Quadratic
from gce.bases.regressor import _repeated, best_step
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.losses.risk import Risk
from helpers import LOSSES, outputs_of, targets


class Noted(RegressorMixin, BaseEstimator):
    """A mean that takes down what it was fitted to."""

    seen = None

    def __init__(self, random_state=None, inner=None):
        self.random_state = random_state
        self.inner = inner

    def fit(self, X, y, sample_weight=None):
        Noted.seen.append((self, X, y, sample_weight))
        self.mean_ = np.average(y, axis=0, weights=sample_weight)
        return self

    def predict(self, X):
        return np.broadcast_to(self.mean_, (len(X), *np.shape(self.mean_)))


class NotedTogether(Noted):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class Lost(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


@pytest.fixture
def noted():
    Noted.seen = []
    return Noted.seen


def problem(loss, seed=0, n=15, members=2):
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.normal(size=(n + 4, 3)))
    weight = torch.from_numpy(rng.integers(0, 3, (members, n)).astype(float))
    weight[:, 0] = 1.0
    k = outputs_of(loss)
    count = weight.sum(1)
    risk = Risk(loss, targets(loss, n, rng), weight / count[:, None], torch.zeros(k, dtype=torch.float64), count)
    pred = torch.from_numpy(rng.uniform(-1, 1, (members, n, k)))
    return X, risk, pred, torch.full((k,), 2.0, dtype=torch.float64)


def streams(members, t=1):
    return Streams(0, tuple(range(7, 7 + members))).at(t, torch.arange(members), torch.zeros(members, dtype=torch.long))


@pytest.mark.parametrize("name", LOSSES)
def test_clones_are_fitted_to_the_minimum_of_the_quadratic(name, noted):
    X, risk, pred, bound = problem(LOSSES[name])
    objective = Quadratic(risk, pred, risk.gradient(pred), bound)
    RegressorBasis(Noted()).minimize(objective, X, rng=streams(2), context=FitContext())
    k, count = outputs_of(LOSSES[name]), risk.weight.gt(0).sum(1)
    assert len(noted) == 2 * k
    for call, (_, rows, y, weight) in enumerate(noted):
        m, j = divmod(call, k)
        used = risk.weight[m] > 0
        D, H = objective.model.gradient[m, used, j], objective.model.hessian[m, used, j]
        assert len(rows) == count[m]
        assert np.array_equal(rows, X[:15][used])
        np.testing.assert_allclose(weight * y, -D / (H.sum() * risk.unit[m]), rtol=1e-12)
        np.testing.assert_allclose(weight, H / (H.sum() * risk.unit[m]), rtol=1e-12)


def test_weights_are_in_units_of_a_row(noted):
    X, risk, pred, bound = problem(LOSSES["squared"])
    RegressorBasis(Noted()).minimize(
        Linear(risk.gradient(pred), bound, risk=risk), X, rng=streams(2), context=FitContext()
    )
    given = risk.weight * risk.count[:, None]
    for m, (*_, weight) in enumerate(noted):
        np.testing.assert_allclose(weight, given[m][given[m] > 0], rtol=1e-12)


def test_the_conclusions_own_case_is_a_fit_to_what_is_left(noted):
    """Nonlinear greedy, squared error, step ``a``: a fit to ``(y - (1-a) f) / a``."""
    X, risk, pred, bound = problem(LOSSES["squared"])
    RegressorBasis(Noted()).minimize(Joint(risk, pred, bound, start=0.25), X, rng=streams(2), context=FitContext())
    for m, (_, _, y, _) in enumerate(noted):
        wanted = (risk.y[:, 0] - 0.75 * pred[m, :, 0]) / 0.25
        np.testing.assert_allclose(y, wanted[risk.weight[m] > 0], rtol=1e-12)


def test_several_outputs_at_once_where_rows_weigh_the_same_in_all(noted):
    X, risk, pred, bound = problem(LOSSES["cross_entropy"])
    D = risk.gradient(pred)
    together = RegressorBasis(NotedTogether())
    one = together.minimize(Linear(D, bound, risk=risk), X, rng=streams(2), context=FitContext()).atoms
    assert [np.shape(y)[1:] for _, _, y, _ in noted] == [(3,), (3,)]
    apart = RegressorBasis(Noted()).minimize(Linear(D, bound, risk=risk), X, rng=streams(2), context=FitContext()).atoms
    assert len(noted) == 2 + 6
    torch.testing.assert_close(one(X), apart(X))
    together.minimize(Quadratic(risk, pred, D, bound), X, rng=streams(2), context=FitContext())
    assert len(noted) == 8 + 6  # curvatures differ from class to class


def test_random_states_are_drawn_for_each_clone(noted):
    X, risk, pred, bound = problem(LOSSES["cross_entropy"])
    objective, basis = Linear(risk.gradient(pred), bound, risk=risk), RegressorBasis(Noted(inner=Noted()))
    for _ in range(2):
        basis.minimize(objective, X, rng=streams(2), context=FitContext())
    drawn = [(one.random_state, one.inner.random_state) for one, *_ in noted]
    assert drawn[:6] == drawn[6:]
    assert len({seed for pair in drawn for seed in pair}) == 12
    assert basis.estimator.random_state is None


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([DecisionTreeRegressor(), Ridge(), KNeighborsRegressor(1)]))
def test_atoms_keep_to_the_bound_and_the_farthest_reaches_it(seed, estimator):
    X, risk, pred, bound = problem(LOSSES["squared"], seed)
    objective = Linear(risk.gradient(pred), bound, risk=risk)
    proposal = RegressorBasis(estimator).minimize(objective, X, rng=streams(2), context=FitContext())
    outs, far = proposal.outputs, proposal.atoms(100 * X + 1)
    assert outs.abs().max() <= 2
    assert far.abs().max() <= 2
    torch.testing.assert_close(outs, proposal.atoms(X))
    for m, own in enumerate(outs[:, :15]):
        torch.testing.assert_close(own[risk.weight[m] > 0].abs().max(), torch.tensor(2.0, dtype=torch.float64))
    # the quadratic along the atom is least at its length
    D, H, best = objective.model.gradient, objective.model.hessian, proposal.step_length
    below, at, above = (
        (size[:, None, None] * outs[:, :15] * (D + H * size[:, None, None] * outs[:, :15] / 2)).sum((1, 2))
        for size in (0.9 * best, best, 1.1 * best)
    )
    assert (at < below).all()
    assert (at < above).all()


def test_clipped_atoms_keep_their_own_length():
    X, risk, pred, bound = problem(LOSSES["squared"])
    objective = Linear(risk.gradient(pred), 5 * bound, risk=risk)
    raw = RegressorBasis(LinearRegression(), "clip").minimize(objective, X, rng=streams(2), context=FitContext())
    assert raw.atoms.factor.tolist() == [1.0, 1.0]
    assert raw.atoms(X[:15]).abs().max() < 10
    # a least-squares fit is the best of its own line
    torch.testing.assert_close(raw.step_length, torch.ones(2, dtype=torch.float64))


def test_an_atom_without_a_slope_is_zero_and_no_step_is_taken():
    X, risk, pred, bound = problem(LOSSES["squared"])
    objective = Linear(0 * pred, bound, risk=risk)
    proposal = RegressorBasis(LinearRegression()).minimize(objective, X, rng=streams(2), context=FitContext())
    assert not proposal.outputs.any()
    assert not proposal.step_length.any()


def test_a_step_upwards_is_not_taken():
    _, risk, pred, bound = problem(LOSSES["squared"])
    model = Linear(risk.gradient(pred), bound, risk=risk).model
    assert best_step(model, model.gradient).tolist() == [0.0, 0.0]
    assert (best_step(model, -model.gradient) > 0).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_whole_weights_repeat_rows_that_often(weights, start):
    rows = _repeated(np.array(weights, dtype=float), start)
    assert np.array_equal(rows, np.repeat(np.arange(len(weights)), weights))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=30), st.floats(0, 0.999))
def test_rows_come_as_often_as_their_weights_rounded(weights, start):
    weight = np.array(weights)
    count = np.bincount(_repeated(weight, start), minlength=len(weight))
    # they stand for a whole number of rows
    weight *= max(1, round(weight.sum())) / weight.sum()
    assert (np.abs(count - weight) < 1 + 1e-9).all()


def test_rows_come_as_often_as_their_weights_on_average():
    weight = np.array([0.3, 1.7, 0.5, 2.5])
    counts = [np.bincount(_repeated(weight, start), minlength=4) for start in (np.arange(1000) + 0.5) / 1000]
    np.testing.assert_allclose(np.mean(counts, 0), weight, atol=1e-2)


def test_large_weights_do_not_repeat_rows_without_end():
    assert np.array_equal(_repeated(np.full(5, 1e6), 0.5), np.arange(5))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=40)


@pytest.mark.parametrize(
    "estimator", [Ridge(), KNeighborsRegressor(3, weights="distance"), make_pipeline(StandardScaler(), Ridge())]
)
def test_weighted_rows_equal_repeated_rows(estimator, table):
    X, y = table
    weight = np.arange(40) % 3 + 1
    rows = np.repeat(np.arange(40), weight)
    given = {
        "basis": RegressorBasis(estimator),
        "max_atoms": 5,
        "cv": None,
        "validation_fraction": None,
        "random_state": 0,
    }
    one = GCERegressor(**given).fit(X, y, weight)
    two = GCERegressor(**given).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-8)


def test_boosting_equals_plain_gradient_boosting(table):
    """A loop of ten lines that knows neither hull nor atoms."""
    X, y = table
    model = GCERegressor(
        basis=RegressorBasis(DecisionTreeRegressor(max_depth=2)),
        max_atoms=12,
        cv=None,
        validation_fraction=None,
        random_state=0,
    ).fit(X, y)
    rows, plain = model.encode_rows(X).numpy(), np.full(40, y.mean())
    for _ in range(12):
        tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(rows, y - plain)
        plain += 0.1 * tree.predict(rows)
    np.testing.assert_allclose(model.predict(X), plain, rtol=1e-6)
    weights = model.ensemble_.weights
    assert (weights >= 0).all()
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_lowers_the_risk(algorithm, table):
    X, y = table
    given = {"basis": RegressorBasis(DecisionTreeRegressor(max_depth=3)), "max_atoms": 8, "random_state": 0}
    model = GCERegressor(algorithm=algorithm, **given).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.7 * y.var()
    assert (np.abs(model.predict(1e3 * X) - model.offset_) <= model.bound_ * (1 + 1e-12)).all()
    classes = np.digitize(y, [-0.7, 0.7])
    for labels in (classes > 0, classes):
        fitted = GCEClassifier(algorithm=algorithm, **given).fit(X, labels)
        assert fitted.score(X, labels) > 0.75


def test_warm_start_goes_on_as_if_it_had_never_stopped(table):
    X, y = table
    basis = RegressorBasis(RandomForestRegressor(5, max_depth=2))
    given = {"basis": basis, "cv": None, "validation_fraction": None, "random_state": 3, "bound": 100.0}
    whole = GCERegressor(max_atoms=6, **given).fit(X, y)
    parted = GCERegressor(max_atoms=3, warm_start=True, **given).fit(X, y)
    parted.set_params(max_atoms=6).fit(X, y)
    np.testing.assert_allclose(parted.predict(X), whole.predict(X), rtol=1e-12)


def test_kept_by_joblib_and_by_nothing_else(table, tmp_path):
    X, y = table
    given = {"basis": RegressorBasis(DecisionTreeRegressor(max_depth=2)), "max_atoms": 3, "random_state": 0}
    model = GCERegressor(**given).fit(X, y)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="a fitted DecisionTreeRegressor is not gce's own and cannot go into a model"):
        model.save(tmp_path / "model.gce")
    with pytest.raises(ValueError, match="a fitted DecisionTreeRegressor is not part of gce and cannot be exported to"):
        model.to_onnx(tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="a fitted DecisionTreeRegressor is not gce's own and cannot go into a check"):
        GCERegressor(**given).fit(X, y, checkpoint=tmp_path / "rounds")


def test_a_fit_leaves_no_state_in_its_basis():
    X, risk, pred, bound = problem(LOSSES["squared"])
    basis = RegressorBasis(LinearRegression())
    atoms = basis.minimize(Linear(risk.gradient(pred), bound, risk=risk), X, rng=streams(2), context=FitContext()).atoms
    assert vars(basis).keys() == basis.get_params(deep=False).keys()
    assert pickle.loads(pickle.dumps(atoms))(X).equal(atoms(X))


def test_no_rows_give_no_outputs(table):
    X, y = table
    model = GCERegressor(basis=RegressorBasis(Ridge()), max_atoms=2, random_state=0).fit(X, y)
    nothing = torch.empty(0, 3, dtype=torch.float64)
    assert model.ensemble_(nothing).shape == (0, 1)
    assert model.ensemble_.outputs(nothing).shape == (len(model.ensemble_), 0, 1)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (RegressorBasis(Ridge), "needs a scikit-learn regressor such as Ridge"),
        (RegressorBasis("ridge"), "needs a scikit-learn regressor"),
        (RegressorBasis(LogisticRegression()), "got the classifier LogisticRegression"),
        (RegressorBasis(Ridge(), "cut"), "bound_by must be 'scale' or 'clip', got 'cut'"),
        (RegressorBasis(Lost()), r"Lost\(\) predicts numbers that are not finite"),
    ],
)
def test_bad_parameters_are_named(basis, message, table):
    with pytest.raises(ValueError, match=message):
        GCERegressor(basis=basis, random_state=0).fit(*table)


def test_few_sparse_rows_are_written_out(table):
    X, y = table
    given = {
        "basis": RegressorBasis(DecisionTreeRegressor(max_depth=2)),
        "max_atoms": 3,
        "random_state": 0,
        "scale": "each",
    }
    sparse, dense = GCERegressor(**given).fit(csr_array(X), y), GCERegressor(**given).fit(X, y)
    np.testing.assert_allclose(sparse.predict(csr_array(X)), dense.predict(X), rtol=1e-12)


def test_many_sparse_rows_and_signs_are_refused(table):
    X, y = table
    basis = RegressorBasis(Ridge())
    with pytest.raises(ValueError, match="takes dense rows, got sparse ones"):
        GCERegressor(basis=basis, random_state=0).fit(csr_array((600, 1000)), np.arange(600.0))
    with pytest.raises(ValueError, match="RegressorBasis does not support monotonic_cst"):
        GCERegressor(basis=basis, monotonic_cst=[1, 0, 0], random_state=0).fit(X, y)
