"""The least value of a convex quadratic over the simplex, by Wolfe's active-set method (1976).

Between two looks at the gradient it solves for the best *affine* combination of the corners in use, and walks toward it
until a weight reaches 0, which is then dropped. Every affine minimum that is reached lies below the one before, so that
no set of corners comes twice, and the method ends.

All is measured from the point where it begins: close to an optimum moves are far smaller than weights, and would be
lost in their rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Added to the diagonal, relative to its mean: equal models would make the system singular. From the first that works.
_RIDGES = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3, 1.0, 1e3)
#: Slopes this close, relative to the steepest, are equal.
_TIE = 1e-13


def best_moves(hessian: Array, slope: Array, weights: Array) -> Array:
    """Moves ``x`` that make ``slope'x + x'Hx / 2`` least while ``weights + x`` stays on the simplex.

    Parameters
    ----------
    hessian : array of shape (A, A)
        Positive semidefinite on moves that sum to 0.
    slope, weights : array of shape (A,)
        Slopes may be shifted by any number: moves sum to 0.
    """
    size = float(np.trace(hessian)) / len(hessian)
    if not (np.isfinite(size) and size > 0):
        return np.eye(len(weights))[int(slope.argmin())] - weights
    H, g = hessian / size, (slope - weights @ slope) / size
    moves, used = np.zeros_like(weights), weights > 0
    for _ in range(3 * len(weights) + 10):
        moves, used = _settled(H, g, weights, moves, used)
        gradient = H @ moves + g
        best = int(gradient.argmin())
        if used[best] or gradient[best] >= gradient[used].min() - _TIE * np.abs(g).max():
            break
        used[best] = True
    return moves


def _settled(H: Array, g: Array, weights: Array, moves: Array, used: Mask) -> tuple[Array, Mask]:
    """Walk to the affine minimum over the corners in use, dropping those whose weight reaches 0 on the way."""
    while True:
        goal = _affine_minimum(H, g, weights, used)
        falling = used & (weights + goal <= 0)
        if not falling.any():
            return goal, used
        # a corner that has just come in stands at 0: should it fall, it leaves again after a walk of length 0
        height, drop = weights + moves, moves - goal
        share = np.full_like(weights, np.inf)
        share[falling] = height[falling] / np.maximum(drop[falling], np.finfo(np.float64).tiny)
        step = min(float(share.min()), 1.0)
        out = falling & (share <= step)
        moves, used = moves + step * (goal - moves), used & ~out
        moves[out] = -weights[out]


def _affine_minimum(H: Array, g: Array, weights: Array, used: Mask) -> Array:
    """Best moves of the corners in use, all others at weight 0, regardless of signs.

    The heaviest corner in use takes what the others' moves leave over, so that moves keep their sum, and what all
    corners have in common cannot drown in what they differ by.
    """
    goal = np.where(used, 0.0, -weights)
    index = np.flatnonzero(used)
    last = index[int(weights[index].argmax())]
    goal[last] = -(goal.sum() - goal[last])
    free = index[index != last]
    slope = g + H @ goal
    differing = H[np.ix_(free, free)] - H[free, last][:, None] - H[last, free] + H[last, last]
    # where models hardly differ only rounding is left, which may be negative: no ridge relative to it would do
    rounding = np.finfo(np.float64).eps * float(np.diag(H)[index].max())
    moves = _solved(differing, slope[last] - slope[free], rounding)
    goal[free] = moves
    goal[last] -= moves.sum()
    return goal


def _solved(H: Array, right: Array, rounding: float) -> Array:
    """``H^-1 right`` for a positive semidefinite matrix, by as little of a ridge as works."""
    # without any curvature the ridge is all there is, and moves are longer than any walk
    size = max(float(np.trace(H)) / max(len(H), 1), rounding) or 1.0
    for ridge in _RIDGES:
        try:
            factor = cho_factor(H + ridge * size * np.eye(len(H)), check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, right))
    raise LinAlgError("the Hessian in the weights is not positive semidefinite: the loss is not convex")
