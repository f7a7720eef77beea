"""Minimisation of a convex quadratic over the simplex by Wolfe's active-set method (1976).

Between two evaluations of the gradient it solves for the best *affine* combination of the active vertices, and moves
toward it until a weight reaches 0, whose vertex is dropped. Every affine minimum that is reached lies below the one
before, so that no set of vertices occurs twice and the method terminates.

Everything is relative to the initial weights: close to an optimum changes are far smaller than weights, and would be
lost in their rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Ridges, relative to the mean of the diagonal; the first that works is used: equal models make the system singular.
_RIDGES = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3, 1.0, 1e3)
#: Gradients that differ by less than this, relative to the largest, count as equal.
_TIE = 1e-13


def solve_simplex_qp(hessian: Array, gradient: Array, weights: Array, entering: int = 1) -> Array:
    """The change ``x`` that minimises ``gradient'x + x'Hx / 2`` with ``weights + x`` on the simplex.

    Parameters
    ----------
    hessian : array of shape (A, A)
        Positive semidefinite on vectors that sum to 0.
    gradient : array of shape (A,)
        Gradient, up to a constant: changes sum to 0.
    weights : array of shape (A,)
        Initial weights, on the simplex.
    entering : int, default=1
        Vertices that may enter at a time. Several save factorisations where hundreds end in use.

    Returns
    -------
    array of shape (A,)

    Examples
    --------
    >>> import numpy as np
    >>> from gce.frank_wolfe.simplex.qp import solve_simplex_qp
    >>> solve_simplex_qp(np.eye(2), np.array([0.0, 0.5]), np.array([0.5, 0.5])).round(6).tolist()
    [0.25, -0.25]
    """
    size = float(np.trace(hessian)) / len(hessian)
    if not (np.isfinite(size) and size > 0):
        return np.eye(len(weights))[int(gradient.argmin())] - weights
    H, g = hessian / size, (gradient - weights @ gradient) / size
    moves, used, value = np.zeros_like(weights), weights > 0, np.inf
    for _ in range(3 * len(weights) + 10):
        moves, used = _minimise_over(H, g, weights, moves, used)
        current = H @ moves + g
        best = int(current.argmin())
        least = current[used].min() - _TIE * np.abs(g).max()
        if used[best] or current[best] >= least:
            break
        if entering > 1:
            # several that only do well without each other may leave again: one alone lowers the value
            before, value = value, float(g @ moves + moves @ (current - g) / 2)
            entering = entering if value < before else 1
        lowest = np.argpartition(current, min(entering, len(current)) - 1)[:entering] if entering > 1 else [best]
        used[[j for j in lowest if current[j] < least]] = True
    return moves


def _minimise_over(H: Array, g: Array, weights: Array, moves: Array, used: Mask) -> tuple[Array, Mask]:
    """Move to the affine minimum over the active vertices, dropping those whose weight reaches 0 on the way."""
    while True:
        goal = _affine_minimum(H, g, weights, used)
        falling = used & (weights + goal <= 0)
        if not falling.any():
            return goal, used
        # a vertex that was just added has weight 0: if it would fall, it is dropped after a step of length 0
        height, drop = weights + moves, moves - goal
        share = np.full_like(weights, np.inf)
        share[falling] = height[falling] / np.maximum(drop[falling], np.finfo(np.float64).tiny)
        step = min(float(share.min()), 1.0)
        out = falling & (share <= step)
        moves, used = moves + step * (goal - moves), used & ~out
        moves[out] = -weights[out]


def _affine_minimum(H: Array, g: Array, weights: Array, used: Mask) -> Array:
    """Best change over the active vertices, all others at weight 0, regardless of signs.

    The active vertex of the largest weight is eliminated by the sum, so that changes keep their sum, and differences
    between the vertices are not lost beside what they have in common.
    """
    goal = np.where(used, 0.0, -weights)
    index = np.flatnonzero(used)
    last = index[int(weights[index].argmax())]
    goal[last] = -(goal.sum() - goal[last])
    free = index[index != last]
    slope = g + H @ goal
    differing = H[np.ix_(free, free)] - H[free, last][:, None] - H[last, free] + H[last, last]
    # where models hardly differ only rounding is left, which may be negative: a ridge relative to it would not do
    rounding = np.finfo(np.float64).eps * float(np.diag(H)[index].max())
    moves = _solve_with_ridge(differing, slope[last] - slope[free], rounding)
    goal[free] = moves
    goal[last] -= moves.sum()
    return goal


def _solve_with_ridge(H: Array, right: Array, rounding: float) -> Array:
    """``H^-1 right`` for a positive semidefinite matrix, with the smallest ridge that works."""
    # without curvature only the ridge is left, and changes are longer than any step
    size = max(float(np.trace(H)) / max(len(H), 1), rounding) or 1.0
    for ridge in _RIDGES:
        try:
            factor = cho_factor(H + ridge * size * np.eye(len(H)), check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, right))
    raise LinAlgError("the Hessian in the weights is not positive semidefinite: the loss is not convex")
