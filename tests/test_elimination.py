"""Crowds thinned several at a time, and ensembles that imitate a larger one."""

from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import gce
from gce.frank_wolfe.simplex import Outputs, backward_elimination, solve_simplex
from gce.frank_wolfe.simplex.elimination import constrained_inverse, eliminate_models
from gce.frank_wolfe.simplex.outputs import QuadraticOutputs
from gce.losses import CrossEntropy, Power, Squared
from helpers import outputs_of, targets

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.1 * RNG.normal(size=80)
NEW = RNG.normal(size=(50, 3))
TREES = {
    "basis": gce.bases.Tree(4, min_samples_leaf=2),
    "algorithm": gce.frank_wolfe.Boosting(),
    "max_atoms": 30,
    "cv": 3,
    "random_state": 0,
}


def crowd(loss, models, n, seed=0):
    """Models that are a little right, each in its own way: all are of use."""
    rng = np.random.default_rng(seed)
    y = targets(loss, n, rng)
    answers = 3 * rng.normal(size=(models, n, outputs_of(loss))) + 2 * y.numpy()
    weight = torch.full((1, n), 1 / n, dtype=torch.float64)
    risk = gce.losses.risk.Risk(loss, y, weight, torch.zeros(y.shape[1], dtype=torch.float64))
    return risk, Outputs([torch.from_numpy(answer) for answer in answers])


def affine(hessian, pull, kept):
    """Weights of a sum of 1 that make ``w'Hw / 2 - pull'w`` least, by the optimality conditions."""
    size = len(kept)
    system = np.ones((size + 1, size + 1))
    system[:-1, :-1], system[-1, -1] = hessian[np.ix_(kept, kept)], 0
    weights = np.zeros(len(hessian))
    weights[kept] = np.linalg.solve(system, np.append(pull[kept], 1))[:-1]
    return weights


def value(hessian, pull, weights):
    return weights @ hessian @ weights / 2 - pull @ weights


@given(seed=st.integers(0, 10**6), count=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_those_who_stay_have_the_best_weights(seed, count):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(30, 12))
    hessian, everyone = root.T @ root, np.arange(12)
    best = rng.dirichlet(np.full(12, 2.0))
    left = eliminate_models(constrained_inverse(hessian), best, everyone == 3, count)
    kept = np.flatnonzero(left)
    assert (left >= 0).all()
    assert len(kept) <= 12 - count
    # they adjust to those who left, and the first who left was the cheapest to lose
    np.testing.assert_allclose(left, affine(hessian, hessian @ best, kept), rtol=1e-6, atol=1e-9)
    one = eliminate_models(constrained_inverse(hessian), best, everyone == 3, 1)
    if np.count_nonzero(one) == 11:
        alone = [affine(hessian, hessian @ best, everyone[everyone != j]) for j in everyone if j != 3]
        assert value(hessian, hessian @ best, one) == pytest.approx(
            min(value(hessian, hessian @ best, w) for w in alone), rel=1e-9, abs=1e-12
        )
        assert one[3] > 0


def test_a_quadratic_risk_has_one_hessian():
    risk, outputs = crowd(Squared(), 9, 20)
    here, there = (outputs.combine(w) for w in RNG.dirichlet(np.ones(9), 2))
    kept, some = QuadraticOutputs.from_risk(risk, outputs, here), np.array([7, 2, 5])
    moves = np.array([[1, -1, 0], [2, -1, -1]])
    expected = moves @ outputs.hessian(risk, there, some) @ moves.T
    np.testing.assert_allclose(moves @ kept.hessian(risk, there, some) @ moves.T, expected, rtol=1e-12)
    again = kept.select([5, 7, 2]).hessian(risk, there, np.array([1, 2, 0]))
    np.testing.assert_allclose(moves @ again @ moves.T, expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), CrossEntropy(), Power(1.0)])
def test_every_set_of_a_crowd_has_its_best_weights(loss, monkeypatch):
    module = import_module("gce.frank_wolfe.simplex.pruning")
    monkeypatch.setattr(module, "_CROWD", 8)
    monkeypatch.setattr(module, "_ONE_IN", 4)
    risk, outputs = crowd(loss, 20, 300)
    start = solve_simplex(risk, outputs, 1e-6)
    assert len(start.used) > 14
    path = backward_elimination(risk, outputs, start, 1e-6)
    sizes, losses = [len(step.used) for step in path], [step.loss for step in path]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    assert sizes[1] <= sizes[0] - sizes[0] // 4
    assert all(later >= earlier - 1e-6 * earlier for earlier, later in pairwise(losses))
    for step in path[1:4]:
        alone = solve_simplex(risk, outputs.select(step.used), 1e-8)
        assert abs(alone.loss - step.loss) <= alone.gap + step.gap
        assert step.gap <= 1e-6 * step.loss


def test_a_crowd_larger_than_its_rows_does_not_leave_one_by_one(monkeypatch):
    module, calls = import_module("gce.frank_wolfe.simplex.qp"), []
    affine_minimum = module._affine_minimum
    monkeypatch.setattr(module, "_affine_minimum", lambda *given_: calls.append(1) or affine_minimum(*given_))
    risk, outputs = crowd(Squared(), 300, 20)
    noisy = replace(risk, y=risk.y + 50 * torch.from_numpy(np.random.default_rng(1).normal(size=(20, 1))))
    found = solve_simplex(noisy, outputs, 1e-8, start=np.full(300, 1 / 300))
    assert found.converged
    assert len(found.used) <= 21
    assert len(calls) < 150
    alone = solve_simplex(noisy, outputs.select(found.used), 1e-8)
    assert abs(alone.loss - found.loss) <= alone.gap + found.gap


# Imitation.


@pytest.fixture(scope="module")
def trees():
    return gce.GCERegressor(**TREES).fit(X, Y)


def test_without_targets_a_smaller_ensemble_says_what_the_whole_says(trees):
    pruned, path = trees.prune(20, X=NEW), trees.pruning_path(NEW)
    chosen = next(step for step in path.steps if step.size <= 20)
    far = np.mean((pruned.predict(NEW) - trees.predict(NEW)) ** 2)
    assert far == pytest.approx(chosen.loss, rel=1e-9)
    assert path.steps[0].loss <= 1e-20
    assert all(later >= earlier - 1e-20 for earlier, later in pairwise(path.losses))
    assert chosen.size == len([name for name in pruned.atom_names_ if not name.endswith(":0")])
    assert pruned.result_.one_simplex
    # nothing that the same atoms could say is nearer than the certificate allows
    names, answers = chosen.names, trees.ensemble_.outputs(trees.encode_rows(NEW))[:, :, 0].numpy()
    own = np.array([answers[trees.atom_names_.index(name)] for name in names])
    others = np.random.default_rng(1).dirichlet(np.full(len(names), 0.3), 50)
    scores = trees.predict(NEW) - trees.offset_
    assert (np.mean((others @ own - scores) ** 2, axis=1) >= far - pruned.gap_).all()


def test_an_imitation_is_calibrated_as_the_whole(trees):
    small = trees.prune(10, X=X)
    np.testing.assert_array_equal(small.residuals_, trees.residuals_)
    assert (np.abs(small.predict(NEW) - small.offset_) <= small.bound_ * (1 + 1e-12)).all()
    labels = np.array(["ant", "bee", "cicada"])[(X[:, 0] > 0) + (X[:, 1] > 0.3).astype(int)]
    classifier = gce.GCEClassifier(**{**TREES, "max_atoms": 10}).fit(X, labels)
    mini = classifier.prune(15, X=X)
    assert mini.temperature_ == classifier.temperature_
    assert np.mean(mini.predict(X) == classifier.predict(X)) > 0.9


def test_rows_of_no_weight_do_not_count(trees):
    weight = np.r_[np.ones(50), np.zeros(30)]
    some = trees.prune(9, X=X, sample_weight=weight)
    few = trees.prune(9, X=X[:50])
    np.testing.assert_allclose(some.predict(NEW), few.predict(NEW), rtol=1e-9)


def test_an_external_model_is_imitated_too(trees):
    external = Ridge().fit(X, Y)
    both = trees.add("ridge", external, X, Y).reweight(NEW, external.predict(NEW))
    small = both.prune(1, X=NEW)
    assert [name for name in small.atom_names_ if not name.endswith(":0")] == ["ridge"]
    np.testing.assert_allclose(small.predict(NEW), both.predict(NEW), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda m: m.prune(tol=0.1, X=X), "tol=0.1 compares losses, which need targets"),
        (lambda m: m.prune(3, X=X, groups=np.arange(80)), "imitates another holds out no rows"),
        (lambda m: m.prune(3, X=X, X_val=X, y_val=Y), "imitates another holds out no rows"),
        (lambda m: m.prune(3, X=X, sample_weight=np.zeros(80)), "(?i)sample weights"),
    ],
)
def test_what_an_imitation_cannot_do_is_said(trees, edit, words):
    with pytest.raises(ValueError, match=words):
        edit(trees)
