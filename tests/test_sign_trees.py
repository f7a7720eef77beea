"""Trees of the linear oracle: leaves at the bound, cuts where sides disagree."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce import GCEClassifier, GCERegressor
from gce._utils.random import Streams
from gce.bases import FitContext, SignTree
from gce.bases.objectives import Joint, Linear
from helpers import LOSSES, PoolProblem


def streams(members):
    return Streams(0, tuple(range(members))).at(1, torch.arange(members), torch.zeros(members, dtype=torch.long))


def by_brute_force(X, D, leaves, depth, least):
    """Best-first growth on the rows themselves: partition as lists of rows, leaf by leaf."""
    partition = [(np.arange(len(X)), 0)]
    while len(partition) < leaves:
        best = (1e-9 * np.abs(D).sum(), None, None, None)
        for place, (rows, level) in enumerate(partition):
            if level >= depth:
                continue
            for j in range(X.shape[1]):
                for cut in np.unique(X[rows, j])[:-1]:
                    low = X[rows, j] <= cut
                    if low.sum() < least or (~low).sum() < least:
                        continue
                    gain = abs(D[rows[low]].sum()) + abs(D[rows[~low]].sum()) - abs(D[rows].sum())
                    if gain > best[0] * (1 + 1e-9):
                        best = (gain, place, rows[low], rows[~low])
        _, place, low, high = best
        if place is None:
            break
        level = partition[place][1] + 1
        partition[place : place + 1] = [(low, level), (high, level)]
    out = np.zeros(len(X))
    for rows, _ in partition:
        total = D[rows].sum()
        out[rows] = -np.sign(total) if abs(total) > 1e-9 * np.abs(D).sum() else 0
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4), st.integers(1, 3))
def test_growth_equals_brute_force(seed, leaves, depth, least):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (14, 3)).astype(float)
    D = rng.normal(size=(14, 1))
    objective = Linear(torch.from_numpy(D)[None], torch.tensor([3.0], dtype=torch.float64))
    atoms = (
        SignTree(leaves, depth, least)
        .minimize(objective, torch.from_numpy(X), rng=streams(1), context=FitContext())
        .atoms
    )
    wanted = by_brute_force(X, D[:, 0], leaves, depth, least)
    assert np.array_equal(atoms(torch.from_numpy(X))[0, :, 0].numpy(), 3 * wanted)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 10))
def test_leaves_are_the_best_for_their_partition(seed, leaves):
    rng = np.random.default_rng(seed)
    X, D = torch.from_numpy(rng.normal(size=(30, 2))), torch.from_numpy(rng.normal(size=(2, 30, 2)))
    bound = torch.tensor([2.0, 0.5], dtype=torch.float64)
    atoms = (
        SignTree(leaves, min_samples_leaf=1).minimize(Linear(D, bound), X, rng=streams(2), context=FitContext()).atoms
    )
    out = atoms(X)
    assert (out.abs() == bound).all()
    # no leaf can be turned to advantage, and more leaves are never worse
    assert ((D * out).sum(1) <= 1e-12).all()
    more = (
        SignTree(leaves + 3, min_samples_leaf=1)
        .minimize(Linear(D, bound), X, rng=streams(2), context=FitContext())
        .atoms
    )
    assert ((D * more(X)).sum(1) <= (D * out).sum(1) + 1e-9).all()


def of_three(slopes):
    X, D = torch.arange(3.0, dtype=torch.float64)[:, None], torch.tensor(slopes, dtype=torch.float64)[None, :, None]
    return (
        SignTree(min_samples_leaf=1)
        .minimize(Linear(D, torch.ones(1, dtype=torch.float64)), X, rng=streams(1), context=FitContext())
        .atoms(X)
        .flatten()
    )


def test_greedy_growth_stops_before_the_oracle():
    """Three leaves are worth 7 and one is worth 5, but no first cut has sides that disagree."""
    assert of_three([3.0, -1.0, 3.0]).tolist() == [-1, -1, -1]
    assert of_three([3.0, -4.0, 3.0]).tolist() == [-1, 1, -1]


def test_a_cut_whose_sides_agree_is_worth_nothing():
    """Least squares would cut the step at 10; the linear objective sees one sign and leaves it alone."""
    X = torch.arange(20.0, dtype=torch.float64)[:, None]
    D = torch.where(X < 10, -1.0, -5.0)[None]
    atoms = (
        SignTree(min_samples_leaf=1)
        .minimize(Linear(D, torch.ones(1, dtype=torch.float64)), X, rng=streams(1), context=FitContext())
        .atoms
    )
    assert atoms.trees.size.tolist() == [1]
    assert (atoms(X) == 1).all()


def test_least_counts_weighted_rows_as_repeated_ones():
    rng = np.random.default_rng(3)
    X, y, weight = rng.normal(size=(40, 2)), rng.normal(size=40), rng.integers(1, 4, 40)
    rows = np.repeat(np.arange(40), weight)
    given = {
        "basis": SignTree(6, min_samples_leaf=5),
        "max_atoms": 8,
        "cv": None,
        "validation_fraction": None,
        "random_state": 0,
    }
    one, two = GCERegressor(**given).fit(X, y, weight), GCERegressor(**given).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-8)


@pytest.mark.parametrize("algorithm", ["pairwise", "frank-wolfe", "away", "blended", "boosting"])
def test_ensembles_of_sign_trees_learn(algorithm):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = np.sin(2 * X[:, 0]) + (X[:, 1] > 0)
    given = {"basis": SignTree(8, min_samples_leaf=3), "algorithm": algorithm, "max_atoms": 15, "random_state": 0}
    model = GCERegressor(**given).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()
    assert GCEClassifier(**given).fit(X, y > 0.5).score(X, y > 0.5) > 0.85


@pytest.mark.parametrize("loss", LOSSES)
def test_an_atom_never_points_uphill(loss):
    problem = PoolProblem(0, LOSSES[loss])
    D = problem.risk.gradient(problem.active.train_pred)
    proposal = SignTree(4, min_samples_leaf=1).minimize(
        Linear(D, problem.bound, risk=problem.risk), problem.X, rng=streams(2), context=FitContext()
    )
    assert ((D * proposal.outputs[:, :12]).sum((1, 2)) <= 0).all()
    assert (proposal.step_length >= 0).all()


def test_other_objectives_and_bad_parameters_are_refused():
    problem = PoolProblem(0)
    joint = Joint(problem.risk, problem.active.train_pred, problem.bound, start=0.5)
    with pytest.raises(ValueError, match="minimises linear objectives"):
        SignTree().minimize(joint, problem.X, rng=streams(2), context=FitContext())
    for bad in ({"max_leaf_nodes": 1}, {"max_depth": 0}, {"min_samples_leaf": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
            SignTree(**bad).minimize(joint, problem.X, rng=streams(2), context=FitContext())
