"""The least value of a quadratic over the simplex."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gce.frank_wolfe.simplex.qp import solve_simplex_qp


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12), rank=st.integers(0, 12), scale=st.floats(-8, 8))
@settings(max_examples=150, deadline=None)
def test_moves_meet_the_conditions_of_an_optimum(seed, size, rank, scale):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(rank, size))
    factor[:, rng.integers(size)] = factor[:, 0]  # equal models
    hessian, slope = 10**scale * factor.T @ factor, 10**scale * rng.normal(size=size)
    weights = rng.dirichlet(np.ones(size)) * (rng.random(size) > 0.4)
    weights = weights / weights.sum() if weights.any() else np.eye(size)[0]
    moves = solve_simplex_qp(hessian, slope, weights)
    assert (weights + moves >= -1e-15).all()
    assert abs(moves.sum()) <= 1e-14
    gradient = slope + hessian @ moves
    unit = np.abs(slope).max() + np.abs(hessian).max()
    assert (weights + moves) @ (gradient - gradient.min()) <= 1e-9 * unit


def test_moves_far_smaller_than_weights_keep_their_digits():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(30, 5))
    hessian, weights = factor.T @ factor, np.full(5, 0.2)
    slope = 1.0 + 1e-12 * rng.normal(size=5)
    moves = solve_simplex_qp(hessian, slope, weights)
    exact = np.linalg.solve(np.block([[hessian, np.ones((5, 1))], [np.ones((1, 5)), 0]]), [*(1.0 - slope), 0])[:5]
    assert 1e-15 < np.abs(moves).max() < 1e-11
    np.testing.assert_allclose(moves, exact, rtol=1e-3, atol=1e-17)
    assert abs(moves.sum()) <= 1e-15 * np.abs(moves).max()
