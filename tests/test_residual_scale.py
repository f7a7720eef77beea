"""The scale of residuals by itself: rows and their folds, weights, units, and what averaging leaves."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce._utils.clock import OutOfTimeError
from gce.bases import Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses import Squared
from gce.training.calibration import HeldOutScores, held_out_residuals
from gce.training.problem import Problem
from gce.training.residual_scale import LEAST_SCALE, _left_by_averaging, _pairs, fit_scale, scales_of

NEW = np.random.default_rng(1).uniform(-1, 1, (500, 3))


def rows(n, seed):
    """Columns, and residuals whose size depends on one of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, ((0.2 + 1.8 * (X[:, 1] > 0)) * rng.normal(size=n))[:, None]


def folded(own, residual, held_out):
    """The problem of a fit whose members hold out rows by weights ``(M, N)``."""
    weight = torch.as_tensor(held_out, dtype=torch.float64)
    k = residual.shape[1]
    offset = torch.zeros(k, dtype=torch.float64)
    train = (weight == 0).double()
    return Problem(Squared(), torch.from_numpy(own), torch.from_numpy(residual), train, weight, offset, offset + 1)


def of_pairs(problem, residual):
    member, row = problem.held_out.nonzero().T
    return torch.from_numpy(residual)[row], problem.held_out[member, row]


def by_folds(n, folds=5):
    return (np.arange(n) % folds == np.arange(folds)[:, None]).astype(float)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), members=st.integers(1, 6))
def test_no_row_has_a_part_in_its_own_scale(seed, members):
    rng = np.random.default_rng(seed)
    n = 200
    own, residual = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    held_out = (rng.random((members, n)) < 0.6) * rng.integers(1, 3, (members, n))
    problem = folded(own, residual, held_out)
    residuals, weight = of_pairs(problem, residual)
    pairs = _pairs(problem, residuals, weight)
    if pairs is None:
        return
    assert not ((pairs.train > 0) & (pairs.held_out > 0)).any()
    assert (pairs.held_out[pairs.member, pairs.row] > 0).all()
    trained = (pairs.train > 0).any(0)
    assert trained[: int(trained.sum())].all()
    # pairs still are those of their rows
    of = {tuple(x): r for x, r in zip(own.tolist(), residual.tolist(), strict=True)}
    assert [of[tuple(x)] for x in pairs.X[pairs.row].tolist()] == pairs.residual.tolist()


def test_a_sample_of_weight_two_is_two_samples():
    own, residual = rows(300, 5)
    count = np.random.default_rng(0).integers(1, 4, 300)
    twice = np.repeat(np.arange(300), count)
    for held_out in (by_folds(300), np.ones((1, 300))):
        weighted = folded(own, residual, held_out * count)
        repeated = folded(own[twice], residual[twice], held_out[:, twice])
        found = [
            fit_scale(problem, *of_pairs(problem, some))
            for problem, some in ((weighted, residual), (repeated, residual[twice]))
        ]
        scales = [one.scales(one.ensemble(torch.from_numpy(NEW))) for one in found]
        np.testing.assert_allclose(*scales, rtol=1e-9)


def test_units_do_not_matter():
    own, residual = rows(300, 6)
    problem = folded(own, residual, by_folds(300))
    plain, weight = of_pairs(problem, residual)
    one, other = (fit_scale(problem, unit * plain, weight) for unit in (1.0, 2.0**400))
    np.testing.assert_array_equal(one.residuals * 2.0**400, other.residuals)
    np.testing.assert_array_equal(one.ensemble.weights, other.ensemble.weights)


def test_scales_are_positive():
    scores = torch.tensor([[-1.0], [0.0], [0.5], [3.0]])
    found = scales_of(scores)
    assert (found >= LEAST_SCALE).all()
    assert (found.diff(dim=0) >= 0).all()


def test_no_scale_where_time_is_short_or_a_residual_is_infinite():
    own, residual = rows(300, 7)
    problem = folded(own, residual, by_folds(300))
    plain, weight = of_pairs(problem, residual)
    assert fit_scale(problem, plain, weight) is not None
    with pytest.raises(OutOfTimeError):
        fit_scale(problem, plain, weight, deadline=0.0)
    plain[3] = math.inf
    assert fit_scale(problem, plain, weight) is None


def test_the_mean_of_members_leaves_what_the_ambiguity_decomposition_says():
    rng = np.random.default_rng(0)
    n, count = 150, 4
    own, residual = rng.normal(size=(n, 2)), 5 * rng.normal(size=(n, 1))
    problem = folded(own, residual, by_folds(n, count) * rng.integers(1, 3, n))
    pairs = _pairs(problem, *of_pairs(problem, residual))
    constants = rng.normal(size=count)
    one = torch.ones(1, dtype=torch.float64)
    members = [
        ConvexEnsemble([Zero(1, 1)], one, torch.zeros(1, 2).long(), torch.tensor([c], dtype=torch.float64), one)
        for c in constants
    ]
    scale = torch.from_numpy(rng.uniform(0.5, 2, (len(pairs.row), 1)))
    found = _left_by_averaging(members, problem, pairs, scale, one)
    share, size = pairs.share.numpy(), scale[:, 0].numpy()
    ratio = [np.delete(constants, m).var(ddof=1) / s**2 for m, s in zip(pairs.member.tolist(), size, strict=True)]
    order = np.argsort(ratio)
    median = np.array(ratio)[order][np.searchsorted(np.cumsum(share[order]), 0.5)]
    whole = share @ (pairs.residual[:, 0].numpy() / size) ** 2
    np.testing.assert_allclose(found, [math.sqrt(1 - 0.75 * median / whole)], rtol=1e-12)
    assert float(found) < 1
    for others in (members[:1], members[:2], ()):
        np.testing.assert_array_equal(_left_by_averaging(others, problem, pairs, scale, one), [1.0])
    # members that disagree by more than they err
    wild = [replace_offset(member, 1e6 * member.offset) for member in members]
    np.testing.assert_array_equal(_left_by_averaging(wild, problem, pairs, scale, one), [0.5])


def replace_offset(ensemble, offset):
    return ConvexEnsemble(list(ensemble.parts), ensemble.weights, ensemble.origin, offset, ensemble.bound)


def test_residuals_are_in_the_units_of_the_target():
    class Exponential(Squared):
        def predict(self, pred):
            return pred.exp()

    scores = HeldOutScores(torch.zeros(2, 1), torch.tensor([[3.0], [0.5]]), torch.ones(2))
    np.testing.assert_array_equal(held_out_residuals(Exponential().predict, scores), [[2.0], [-0.5]])
