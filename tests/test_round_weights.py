"""Weights of rounds that all members share: found on held-out rows, fewer, and used only where they are better."""

from copy import copy
from itertools import pairwise
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import torch

import gce
from gce.bases import SymmetricTree, Tree
from gce.frank_wolfe.simplex.quadratic import QuadraticRisk
from gce.losses import Squared
from gce.training import family_weights, round_weights
from gce.training.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
Y = 3 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=600)
LABELS = (Y > 0).astype(int) + (Y > 1.5)
BASES = [Tree(max_leaf_nodes=8, learning_rate=0.3), SymmetricTree(max_depth=3, learning_rate=0.3)]
FOLDS = [(np.flatnonzero(np.arange(600) % 3 != m), np.flatnonzero(np.arange(600) % 3 == m)) for m in range(3)]


def regressor(**others):
    return gce.GCERegressor(**{"basis": BASES, "max_atoms": 40, "cv": FOLDS, "random_state": 0, **others})


def classifier(**others):
    return gce.GCEClassifier(**{"basis": BASES, "max_atoms": 20, "cv": FOLDS, "random_state": 0, **others})


@pytest.fixture(scope="module", autouse=True)
def few_rows_suffice():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_weights, "_ENOUGH", 100)
        yield


@pytest.fixture(scope="module")
def thinned(few_rows_suffice):
    return regressor().fit(X, Y)


@pytest.fixture(scope="module")
def whole(few_rows_suffice):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_weights, "_ENOUGH", 2**62)
        patch.setattr(family_weights, "FEWER_FAMILIES", -1.0)
        return regressor().fit(X, Y)


def held_out_loss(model):
    """The mean squared error of members on the rows that each holds out."""
    losses = []
    for m, (_, rows) in enumerate(FOLDS):
        encoded = torch.from_numpy(model.table_.transform(X[rows]))
        with torch.no_grad():
            losses.append((model.ensemble_.of_member(m)(encoded).numpy()[:, 0] - Y[rows]) ** 2)
    return np.mean(losses)


def problem(seed, size=12):
    """A quadratic risk over a zero function and other models, with the outputs it comes from."""
    rng = np.random.default_rng(seed)
    outputs, y, reference = rng.normal(size=(40, size)), rng.normal(size=40), rng.normal(size=40) / 3
    outputs[:, 0] = 0
    relative, residual = outputs - reference[:, None], reference - y
    return (
        outputs,
        y,
        QuadraticRisk(np.mean(residual**2), 2 * relative.T @ residual / 40, 2 * relative.T @ relative / 40),
    )


def gap(risk, weights, among):
    """How far the risk of weights is above the least over some models, at most."""
    slope = risk.gradient + risk.hessian @ weights
    return max(float(weights @ slope - slope[among].min()), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_quadratic_risk_is_solved_to_the_optimum(seed):
    outputs, y, risk = problem(seed)
    weights = cp.Variable(outputs.shape[1], nonneg=True)
    best = cp.Problem(cp.Minimize(cp.sum_squares(outputs @ weights - y)), [cp.sum(weights) == 1])
    least, found = best.solve(solver=cp.CLARABEL) / len(y), risk.solve()
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert risk.at(found) == pytest.approx(np.mean((outputs @ found - y) ** 2), rel=1e-10)
    assert risk.at(found) == pytest.approx(least, rel=1e-7)
    assert gap(risk, found, np.arange(len(found))) <= 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_every_step_of_thinning_is_the_optimum_of_fewer_models(seed):
    _, _, risk = problem(seed)
    steps = list(risk.thin(risk.solve()))
    counts = [np.count_nonzero(own[1:]) for own in steps]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 1
    for own in steps:
        assert own.sum() == pytest.approx(1, abs=1e-12)
        among = np.union1d(np.flatnonzero(own), [0])
        assert gap(risk, own, among) <= 1e-10
    values = [risk.at(own) for own in steps]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(values))


def test_weights_are_on_the_simplex_of_each_member(thinned):
    ensemble, members = thinned.ensemble_, len(FOLDS)
    assert thinned.result_.round_weights is not None
    assert (ensemble.weights > 0).all()
    for m in range(members):
        own = ensemble.weights[ensemble.origin[:, 0] == m]
        assert float(own.sum()) == pytest.approx(1 / members, abs=1e-12)
    assert sum(thinned.result_.family_weights) <= 1 + 1e-12


def test_rounds_have_one_weight_for_all_members(thinned):
    for factors in thinned.result_.round_weights.values():
        # members of unequal weights may have been scaled down to the simplex, as a whole
        used = factors[:, (factors > 0).any(0)]
        assert (used > 0).all()
        np.testing.assert_allclose(used / used[:1], (used / used[:1])[:, :1].expand_as(used), rtol=1e-12)


def test_fewer_atoms_are_no_worse_on_the_rows_held_out(thinned, whole):
    assert held_out_loss(thinned) <= held_out_loss(whole)
    assert len(thinned.ensemble_) < len(whole.ensemble_) / 2


def test_the_last_stage_is_the_ensemble(thinned):
    *_, last = thinned.staged_predict(X)
    np.testing.assert_allclose(last, thinned.predict(X), rtol=1e-12)
    assert len(list(thinned.staged_predict(X[:5]))) == thinned.n_iter_ + 1 == len(thinned.history_)


def test_the_history_ends_in_numbers_of_the_ensemble(thinned):
    last = thinned.history_[-1]
    counts = thinned.ensemble_.origin[:, 0].bincount(minlength=3)
    assert last["family"] == "all"
    assert last["members"]["n_atoms"] == counts.tolist()
    # validated as single families are, by what these very rows chose
    assert last["validation"] == pytest.approx(held_out_loss(thinned), rel=1e-10)
    assert thinned.result_.best_validation == last["validation"]
    # the model's metrics are by weights that a row had no part in
    assert thinned.result_.held_out["rmse"] ** 2 == pytest.approx(np.mean(thinned.residuals_**2), rel=1e-10)
    assert thinned.result_.held_out["rmse"] ** 2 > last["validation"]


def test_the_same_fit_is_the_same_to_the_bit(thinned):
    again = regressor(n_jobs=2).fit(X, Y)
    assert np.array_equal(again.predict(X), thinned.predict(X))
    assert np.array_equal(again.weights_, thinned.weights_)


def test_weighted_rows_are_repeated_rows(thinned):
    folds = [tuple(np.concatenate([part, part + 600]) for part in fold) for fold in FOLDS]
    repeated = regressor(cv=folds).fit(np.vstack([X, X]), np.concatenate([Y, Y]))
    weighted = regressor().fit(X, Y, sample_weight=np.full(600, 2.0))
    # the zero function may have what sums round to
    one, two = (dict(zip(model.atom_names_, model.weights_, strict=True)) for model in (repeated, weighted))
    names = {name for own in (one, two) for name, weight in own.items() if weight > 1e-14}
    np.testing.assert_allclose([one[n] for n in names], [two[n] for n in names], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), rtol=1e-9)
    for model in (thinned, repeated, weighted):
        assert model.result_.round_weights is not None


def test_noise_gets_no_weights_of_rounds():
    noise = np.random.default_rng(1).normal(size=600)
    assert regressor().fit(X, noise).result_.round_weights is None


@pytest.mark.parametrize("case", ["kinked loss", "few rows", "nothing held out", "one family"])
def test_where_rounds_keep_the_weights_of_their_family(case):
    rows = slice(90) if case == "few rows" else slice(None)
    changed = {
        "kinked loss": {"loss": "quantile", "cv": 2},
        "few rows": {"cv": 2},
        "nothing held out": {"cv": None, "validation_fraction": None},
        "one family": {"basis": BASES[0]},
    }[case]
    model = regressor(**{"max_atoms": 10, **changed}).fit(X[rows], Y[rows])
    assert model.result_.round_weights is None


def test_classes_are_calibrated_by_weights_that_rows_had_no_part_in():
    model = classifier().fit(X, LABELS)
    assert model.result_.round_weights is not None
    new = np.random.default_rng(2).normal(size=(2000, 4))
    number = 3 * np.sin(2 * new[:, 0]) + new[:, 1] * new[:, 2]
    labels = (number > 0).astype(int) + (number > 1.5)
    p = model.predict_proba(new)
    # as sure as it is right
    assert abs(p.max(1).mean() - (p.argmax(1) == labels).mean()) < 0.05


def weighed(size):
    """Weights and loss of two good families and of one whose errors are ``size`` times theirs, and after dropping."""
    rng = np.random.default_rng(0)
    y, errors = rng.normal(size=400), rng.normal(size=(3, 400))
    # errors of one family say nothing about those of another
    errors = np.linalg.qr(errors.T)[0].T * 6 * np.array([[1], [1], [size]])
    target = torch.from_numpy(y[:, None])
    weight, zero = torch.full((1, 400), 1 / 400, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    task = Problem(Squared(), target, target, weight, weight, zero, zero + 99)
    outputs = [torch.from_numpy((y + own)[None, :, None]) for own in errors]
    fits = [
        SimpleNamespace(name=name, best_outputs=own, divided=False) for name, own in zip("abc", outputs, strict=True)
    ]
    every = family_weights.weigh_families(fits, task, np.array([400.0]))
    fewer = family_weights.drop_families(fits, every, task, np.array([400.0]))
    return [(found.weights, float((found.pred - target).square().mean())) for found in (every, fewer)]


def test_a_family_that_adds_next_to_nothing_is_left_out():
    (every, loss), (fewer, more) = weighed(size=40)
    assert min(every.values()) > 0 == fewer["c"]
    assert min(fewer["a"], fewer["b"]) > 0.4
    assert loss < more <= 1.001 * loss


def test_families_that_add_something_stay():
    every, fewer = weighed(size=3)
    assert every == fewer
    assert every[0]["c"] > 0.02


def test_a_file_and_a_continued_fit_keep_weights_of_rounds(thinned, tmp_path):
    path = tmp_path / "m.safetensors"
    for resumable in (False, True):
        thinned.save(path, resumable=resumable)
        back = gce.load(path)
        assert np.array_equal(back.predict(X), thinned.predict(X))
        assert back.history_ == thinned.history_
    settings = {"warm_start": True, "max_atoms": 45}
    further = copy(thinned).set_params(**settings).fit(X, Y)
    assert np.array_equal(back.set_params(**settings).fit(X, Y).predict(X), further.predict(X))
    assert further.n_iter_ > thinned.n_iter_


def test_a_file_without_rounds_says_what_it_cannot_do(thinned, tmp_path):
    path = tmp_path / "m.safetensors"
    thinned.save(path)
    size = path.stat().st_size
    back = gce.load(path)
    with pytest.raises(ValueError, match=r"save\(path, resumable=True\)"):
        next(back.staged_predict(X))
    with pytest.raises(ValueError, match=r"save\(path, resumable=True\)"):
        back.set_params(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"save\(path, resumable=True\)"):
        back.save(path, resumable=True)
    # what it can: be edited, and be fitted anew
    assert len(back.prune(10, X=X, y=Y).ensemble_) <= 13
    assert np.array_equal(back.set_params(warm_start=False).fit(X, Y).predict(X), thinned.predict(X))
    thinned.save(path, resumable=True)
    # both keep the rows in the leaves of the trees that are left
    assert size < 0.7 * path.stat().st_size
