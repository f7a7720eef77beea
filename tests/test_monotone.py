"""Monotone constraints: predictions of rows that differ in constrained columns are ordered, whatever was learned."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gce
from gce.bases import Forest, Networks, Neural, Neuron, Pool, SymmetricTree, Tree
from gce.bases.neural import compiled, kernels
from gce.bases.neural.descent import Descent, Schedule, descend
from gce.bases.neural.monotone import turned
from gce.bases.neural.network import SingleNeuron, TwoLayer
from helpers import GPU, by_tensor_operations, oracle_problem

SIGNS = [1, -1, 0, 1]
SCHEDULE = Schedule(rate=1e-2, floor=1e-4, patience=3, last_epochs=4, max_epochs=12)
SMALL = {"max_atoms": 4, "cv": 2, "random_state": 0, "monotonic_cst": SIGNS}
TRAINED = {"max_epochs": 15, "cv": 2, "random_state": 0, "monotonic_cst": SIGNS}
NET = {"hidden": 4, "max_epochs": 8}


def table(n=120, seed=0):
    """Rows, and a target that does not keep to the signs of two columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 * X[:, 2] + X[:, 3] + 0.1 * rng.normal(size=n)


def pairs(seed=1, n=400):
    """Rows, and rows that lie farther the way of the signs, in one column or in several, by a little or a lot."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(n, 4)) * rng.choice([1.0, 5.0], (n, 1))
    step = rng.exponential(size=(n, 4)) * 10.0 ** rng.integers(-6, 2, (n, 1)) * SIGNS
    one = np.eye(4)[rng.choice([0, 1, 3], n)]
    several = rng.integers(0, 2, (n, 4))
    return low, low + step * np.where(rng.random((n, 1)) < 0.5, one, several)


def assert_ordered(answer, reach):
    low, high = pairs()
    # the scaling of a row rounds in double precision, so that equal answers may differ by as much
    assert np.all(answer(high) - answer(low) >= -1e-12 * reach)
    assert np.any(answer(high) > answer(low) + 1e-6 * reach)


def assert_model_ordered(model):
    reach = np.where(np.isfinite(model.bound_), model.bound_, 1.0).max()
    assert_ordered(model.decision_function if hasattr(model, "classes_") else model.predict, reach)
    if hasattr(model, "classes_"):
        assert_ordered(lambda X: model.predict_proba(X)[:, 1], 1.0)
        assert_ordered(lambda X: np.searchsorted(model.classes_, model.predict(X)), 1.0)


def labels(y):
    return np.where(y > np.median(y), "yes", "no")


BASES = [
    Neural(**NET),
    Neural(**NET, activation="tanh", output="tanh"),
    Neural(**NET, batch_size=40, inherit=0.9),
    Neural(**NET, batch_size=40, activation="tanh", inherit=0.5, restarts=2),
    Neuron(max_epochs=8),
    Neuron(max_epochs=8, batch_size=40),
]


@pytest.mark.parametrize("basis", BASES, ids=str)
@pytest.mark.parametrize("algorithm", ["pairwise", "away", "frank-wolfe", "nonlinear", "blended"])
def test_greedy_ensembles_are_monotone_at_every_stage(algorithm, basis):
    X, y = table()
    model = gce.GCERegressor(algorithm=algorithm, basis=basis, **SMALL).fit(X, y)
    assert_model_ordered(model)
    low, high = pairs()
    for below, above in zip(model.staged_predict(low), model.staged_predict(high), strict=True):
        assert np.all(above - below >= -1e-12 * model.bound_)


TREES = [
    Tree(max_leaf_nodes=12, min_samples_leaf=2, learning_rate=0.3),
    Tree(max_leaf_nodes=12, min_samples_leaf=0, l2_regularization=0, subsample=0.7, max_features=0.6),
    SymmetricTree(max_depth=4, learning_rate=0.3),
    SymmetricTree(max_depth=5, l2_regularization=0, subsample=0.7),
    Forest(8),
    Forest(8, max_features=0.5, min_samples_leaf=4),
]


@pytest.mark.parametrize("basis", TREES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_trees_are_monotone_at_every_stage(seed, basis):
    X, y = table(seed=seed)
    model = gce.GCERegressor(basis=basis, **{**SMALL, "max_atoms": 12}).fit(X, y)
    assert_model_ordered(model)
    low, high = pairs(seed)
    for below, above in zip(model.staged_predict(low), model.staged_predict(high), strict=True):
        assert np.all(above - below >= -1e-12 * model.bound_)
    assert_model_ordered(gce.GCEClassifier(basis=basis, **{**SMALL, "max_atoms": 12}).fit(X, labels(y)))


@pytest.mark.parametrize("basis", TREES, ids=str)
def test_trees_without_a_constrained_column_are_those_without_constraints(basis):
    X, y = table()
    some = {**SMALL, "max_atoms": 5}
    zeros, none = (gce.GCERegressor(basis=basis, **{**some, "monotonic_cst": s}).fit(X, y) for s in ([0] * 4, None))
    np.testing.assert_allclose(zeros.predict(X), none.predict(X), rtol=1e-12)


def test_the_defaults_obey():
    X, y = table()
    model = gce.GCERegressor(monotonic_cst=SIGNS, max_iter=15, cv=3, random_state=0).fit(X, y)
    assert [family.name for family in model.result_.families] == ["tree", "symmetric", "forest", "neural"]
    assert_model_ordered(model)


@pytest.mark.parametrize("basis", BASES[:3], ids=str)
def test_greedy_classifiers_are_monotone(basis):
    X, y = table()
    model = gce.GCEClassifier(basis=basis, **SMALL).fit(X, labels(y))
    assert_model_ordered(model)
    low, high = pairs()
    for below, above in zip(model.staged_predict_proba(low), model.staged_predict_proba(high), strict=True):
        assert np.all(above[:, 1] - below[:, 1] >= -1e-12)


@pytest.mark.parametrize("batch_size", [None, 40])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("task", ["regression", "classes"])
def test_models_trained_at_once_are_monotone(task, activation, batch_size):
    X, y = table()
    some = {**TRAINED, "activation": activation, "batch_size": batch_size}
    kinds = (
        [gce.NGCERegressor(n_atoms=5, hidden=4, **some), gce.NNRegressor(hidden=20, **some)]
        if task == "regression"
        else [gce.NGCEClassifier(n_atoms=5, hidden=4, output="tanh", **some), gce.NNClassifier(hidden=20, **some)]
    )
    for model in [*kinds, gce.NGCERegressor(n_atoms=5, basis="neuron", **some)][: 3 if task == "regression" else 2]:
        assert_model_ordered(model.fit(X, y if task == "regression" else labels(y)))


@pytest.mark.parametrize("shared", [True, False])
def test_all_targets_obey(shared):
    X, y = table()
    basis = Neural(hidden=4, max_epochs=8, shared=shared)
    model = gce.GCERegressor(basis=basis, **SMALL).fit(X, np.stack([y, -y, X[:, 2]], 1))
    assert_ordered(model.predict, model.bound_)


def test_a_warm_start_stays_monotone_and_keeps_its_signs():
    X, y = table()
    model = gce.GCERegressor(basis=Neural(**NET, inherit=0.9), **SMALL, warm_start=True).fit(X, y)
    model.set_params(max_atoms=7).fit(X, y)
    assert model.n_iter_ > 4
    assert_model_ordered(model)
    whole = gce.GCERegressor(basis=Neural(**NET, inherit=0.9), **{**SMALL, "max_atoms": 7}).fit(X, y)
    assert np.array_equal(whole.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"warm_start continues atoms with monotonic constraints \(1, -1, 0, 1\)"):
        model.set_params(max_atoms=9, monotonic_cst=[1, 1, 0, 1]).fit(X, y)


def test_what_the_data_contradict_is_flat_and_what_is_free_is_learned():
    X, _ = table(200)
    y = -X[:, 0] + 0.01 * X[:, 1]
    free, against, beside = (
        gce.GCERegressor(basis="neural", max_atoms=15, cv=2, random_state=0, monotonic_cst=signs).fit(X, y)
        for signs in (None, [1, 0, 0, 0], [0, 1, 0, 0])
    )
    moved = X + np.array([0.5, 0, 0, 0])
    assert np.abs(against.predict(moved) - against.predict(X)).max() < 0.05 * y.std()
    assert beside.score(X, y) > free.score(X, y) - 0.01
    assert np.mean(beside.predict(moved) - beside.predict(X)) == pytest.approx(-0.5, abs=0.1)


def test_a_constraint_that_holds_does_not_hurt():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = np.tanh(2 * X[:, 0]) + np.exp(-X[:, 1]) / 2 + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] + 0.1 * rng.normal(size=500)
    free, kept = (
        gce.GCERegressor(basis="neural", max_atoms=30, cv=2, random_state=0, monotonic_cst=signs).fit(X[:300], y[:300])
        for signs in (None, SIGNS)
    )
    assert kept.score(X[300:], y[300:]) > free.score(X[300:], y[300:]) - 0.01


def test_by_tensor_operations_the_model_is_the_same(monkeypatch):
    X, y = table()
    model = gce.GCERegressor(basis=Neural(**NET, inherit=0.9), **SMALL)
    looped = model.fit(X, y).predict(X)
    by_tensor_operations(monkeypatch)
    np.testing.assert_allclose(model.fit(X, y).predict(X), looped, rtol=1e-6, atol=1e-8)
    assert_model_ordered(model)


def test_no_sign_is_no_constraint():
    X, y = table()
    free, none = (
        gce.GCERegressor(basis=Neural(**NET), **{**SMALL, "monotonic_cst": signs}).fit(X, y).predict(X)
        for signs in (None, [0, 0, 0, 0])
    )
    assert np.array_equal(free, none)


@pytest.mark.parametrize("given", [[1, 0], [1, 0, 2, 0], [[1, 0, 0, 0]], "increasing"])
def test_signs_that_do_not_fit_the_table_are_refused(given):
    X, y = table(30)
    with pytest.raises(ValueError, match=r"monotonic_cst must have -1, 0 or 1 for each of the 4 columns"):
        gce.GCERegressor(monotonic_cst=given).fit(X, y)


def test_what_cannot_be_monotone_is_refused():
    X, y = table(30)
    with pytest.raises(ValueError, match="needs two classes, got 3"):
        gce.GCEClassifier(monotonic_cst=SIGNS).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="Pool does not support monotonic_cst"):
        gce.GCERegressor(basis=Pool([np.sin]), monotonic_cst=SIGNS).fit(X, y)


# The trainers: one projection, in tensor operations, in loops, on a GPU.


def constrained_problem(architecture, dtype=torch.float64):
    architecture = architecture.monotone([1, -1, 0])
    X, objective, start = oracle_problem(architecture, 130, 3, 2, members=2, dtype=dtype)
    return architecture, turned(start, architecture.signs(start)), objective, X


def assert_kept(architecture, parameters):
    for p, sign in zip(parameters, architecture.signs(parameters), strict=True):
        assert ((p * sign) >= 0).all()
        assert sign.abs().max() <= 1
        assert sign.shape == p.shape


@pytest.mark.parametrize("batch_size", [10_000, 70])
@pytest.mark.parametrize("form", [("relu", "hardtanh"), ("tanh", "tanh")])
def test_loops_and_tensor_operations_keep_the_same_signs(form, batch_size):
    architecture, *problem = constrained_problem(TwoLayer(5, *form))
    results = [
        trained(architecture, *problem, SCHEDULE, batch_size, torch.Generator().manual_seed(5))[0]
        for trained in (compiled.descend, descend)
    ]
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-7, atol=1e-8)
    assert_kept(architecture, results[0])
    # the problem meets its constraints, or this would compare nothing
    assert any((p == 0).any() for p in results[0])


@pytest.mark.parametrize("architecture", [TwoLayer(5, "relu", "hardtanh"), SingleNeuron()])
def test_a_descent_keeps_signs_at_every_step(architecture):
    architecture, start, objective, X = constrained_problem(architecture)
    descent = Descent(architecture, start, objective, X, SCHEDULE, 20)
    for _ in range(8):
        descent.epoch(torch.randperm(130))
        *joined, _ = descent._views(descent._flat)
        assert_kept(architecture, architecture.split(joined))


numbers = st.floats(-2, 2, width=32)


@given(arrays(np.float64, (4, 9), elements=numbers), arrays(np.float64, 9, elements=st.sampled_from([-1.0, 0.0, 1.0])))
@settings(max_examples=100, deadline=None)
def test_a_step_is_a_free_step_and_then_the_nearest_point_that_keeps_its_signs(vectors, signs):
    net, slope, mean, square = vectors
    free = net.copy()
    kernels.adam(free, slope, 1.5, mean.copy(), square**2, np.zeros(9), 3, 0.1)
    kernels.adam(net, slope, 1.5, mean.copy(), square**2, signs, 3, 0.1)
    low, high = np.where(signs > 0, 0, -np.inf), np.where(signs < 0, 0, np.inf)
    assert np.array_equal(net, free.clip(low, high))


def test_a_step_to_nan_stays_nan():
    net, zeros = np.ones(3), np.zeros(3)
    kernels.adam(net, np.full(3, math.nan), 1.0, zeros.copy(), zeros.copy(), np.array([-1.0, 0, 1]), 1, 0.1)
    assert np.isnan(net).all()


@given(arrays(np.float64, (2, 5, 3), elements=numbers), st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_a_start_has_its_signs_and_what_had_them_is_left_alone(W1, inputs):
    architecture = TwoLayer(5, "relu", "hardtanh").monotone(inputs)
    W2 = torch.from_numpy(W1).transpose(1, 2).contiguous()
    parameters = [torch.from_numpy(W1), W2[:, 0, :, None], W2, W2[:, :, :1]]
    signs = architecture.signs(parameters)
    if signs is None:
        assert inputs == [0, 0, 0]
        return
    once = turned(parameters, signs)
    assert_kept(architecture, once)
    assert all(torch.equal(p.abs(), q.abs()) for p, q in zip(parameters[1:], once[1:], strict=True))
    assert torch.equal(once[0], torch.where(parameters[0] * signs[0] >= 0, parameters[0], 0.0))
    assert all(torch.equal(p, q) for p, q in zip(once, turned(once, signs), strict=True))


def test_frozen_networks_are_plain_networks():
    X, y = table(60)
    model = gce.GCERegressor(basis=Neural(**NET), **SMALL).fit(X, y)
    (networks,) = [part for part in model.ensemble_.parts if isinstance(part, Networks)]
    assert type(networks.architecture) is TwoLayer
    assert vars(networks.architecture) == vars(TwoLayer(4, "relu", "hardtanh"))
    assert networks.architecture.compiled


@GPU
def test_recorded_epochs_keep_the_same_signs():
    from gce.bases.neural.captured import Recorder

    architecture, start, objective, X = constrained_problem(TwoLayer(5, "relu", "hardtanh"))
    here = descend(architecture, start, objective, X, SCHEDULE, 10_000, torch.Generator().manual_seed(5))[0]
    moved = gce.bases.objectives.Linear(objective.gradient.cuda(), objective.bound.cuda())
    there = Recorder().descend(
        architecture, [p.cuda() for p in start], moved, X.cuda(), SCHEDULE, 10_000, torch.Generator().manual_seed(5)
    )[0]
    assert_kept(architecture, there)
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=1e-6, atol=1e-7)
