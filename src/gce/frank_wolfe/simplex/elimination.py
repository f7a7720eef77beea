"""Backward elimination of several models at once by the optimal brain surgeon (Hassibi and Stork, 1993)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Relative to the mean of the diagonal: equal models would make the system singular, and with less a pivot would be
#: rounding once some of them are eliminated.
_RIDGE = 1e-9
_TINY = float(np.finfo(np.float64).tiny)


def constrained_inverse(hessian: Array) -> Array:
    """Inverse Hessian in the weights under the constraint that they sum to 1: ``K^-1`` without its border.

    ``K`` is the Hessian, divided by the mean of its diagonal and bordered by ones. At optimal weights, setting ``w_j``
    to 0 while the others are re-optimised costs ``w_j^2 / (2 (K^-1)_jj)`` and moves them by ``-w_j (K^-1)_j /
    (K^-1)_jj``.

    Parameters
    ----------
    hessian : array of shape (A, A)
        Hessian of the risk in the weights.

    Returns
    -------
    array of shape (A, A)
    """
    size = max(float(np.trace(hessian)) / len(hessian), _TINY)
    bordered = np.ones((len(hessian) + 1, len(hessian) + 1))
    bordered[:-1, :-1] = hessian / size + _RIDGE * np.eye(len(hessian))
    bordered[-1, -1] = 0.0
    return np.asarray(np.linalg.inv(bordered)[:-1, :-1])


def removal_costs(diagonal: Array, weights: Array) -> Array:
    """Cost of removing each model alone, up to a common factor.

    Parameters
    ----------
    diagonal : array of shape (A,)
        Diagonal of the :func:`constrained_inverse`.
    weights : array of shape (A,)
        Optimal weights.

    Returns
    -------
    array of shape (A,)
    """
    cost: Array = weights**2 / np.maximum(diagonal, _TINY)
    return cost


def eliminate_models(inverse: Array, weights: Array, protected: Mask, count: int) -> Array:
    """Eliminate models one by one, always the one with the least removal cost, or with a negative weight.

    Parameters
    ----------
    inverse : array of shape (A, A)
        The :func:`constrained_inverse` of all models.
    weights : array of shape (A,)
        Optimal, positive weights.
    protected : mask of shape (A,)
        Models that are eliminated only if their weights become negative.
    count : int
        Number of models to eliminate; more are, where weights become negative.

    Returns
    -------
    array of shape (A,)
        Nonnegative weights, exactly 0 for eliminated models; optimal for the others under the quadratic model.
    """
    current, present, diagonal = weights.copy(), np.ones(len(weights), dtype=bool), np.diag(inverse).copy()
    # every elimination is a rank-one update of the inverse; only columns of eliminated models are needed
    ranks = np.empty((0, len(weights)))
    while np.count_nonzero(~present) < count or (current < 0).any():
        cost = np.where(present & ~protected, removal_costs(diagonal, current), np.inf)
        j = int(current.argmin() if (current < 0).any() else cost.argmin())
        column = inverse[:, j] - ranks.T @ ranks[:, j]
        pivot = max(float(column[j]), _TINY)
        current -= column * (current[j] / pivot)
        present[j] = False
        current[~present] = 0.0
        ranks = np.vstack([ranks, column / np.sqrt(pivot)])
        diagonal -= ranks[-1] ** 2
    return current
