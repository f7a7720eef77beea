"""Several models at once leave a crowd, each the one that is missed least when those before it are gone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Relative to the mean of the diagonal: equal models would make the system singular, and less would leave a pivot to
#: rounding when some of them have left.
_RIDGE = 1e-9
_TINY = float(np.finfo(np.float64).tiny)


def compliance(hessian: Array) -> Array:
    """How weights of a sum of 1 give way to slopes: ``K^-1`` without its border, ``(A, A)``.

    ``K`` is the Hessian, divided by the mean of its diagonal and bordered by ones (the weights keep their sum). Where
    weights are optimal, taking ``w_j`` to 0 while the others adjust costs ``w_j^2 / (2 (K^-1)_jj)``, and moves them by
    ``-w_j (K^-1)_j / (K^-1)_jj``: the optimal brain surgeon (Hassibi and Stork, 1993).
    """
    size = max(float(np.trace(hessian)) / len(hessian), _TINY)
    bordered = np.ones((len(hessian) + 1, len(hessian) + 1))
    bordered[:-1, :-1] = hessian / size + _RIDGE * np.eye(len(hessian))
    bordered[-1, -1] = 0.0
    return np.asarray(np.linalg.inv(bordered)[:-1, :-1])


def missed(diagonal: Array, weights: Array) -> Array:
    """What it costs that one model leaves, of each, ``(A,)``."""
    cost: Array = weights**2 / np.maximum(diagonal, _TINY)
    return cost


def thinned(given: Array, weights: Array, staying: Mask, count: int) -> Array:
    """Weights when ``count`` models, one after another, and those that would then fall below 0, are gone.

    Parameters
    ----------
    given : array of shape (A, A)
        The :func:`compliance` of all of them.
    weights : array of shape (A,)
        Optimal, and positive.
    staying : mask of shape (A,)
        Models that leave only where they would fall below 0.
    count : int

    Returns
    -------
    array of shape (A,)
        Nowhere negative, exactly 0 for those who left; optimal among the others by the quadratic model.
    """
    left, there, diagonal = weights.copy(), np.ones(len(weights), dtype=bool), np.diag(given).copy()
    # who leaves takes a rank off the inverse; only columns of those who leave are ever wanted
    ranks = np.empty((0, len(weights)))
    while np.count_nonzero(~there) < count or (left < 0).any():
        cost = np.where(there & ~staying, missed(diagonal, left), np.inf)
        leaver = int(left.argmin() if (left < 0).any() else cost.argmin())
        column = given[:, leaver] - ranks.T @ ranks[:, leaver]
        pivot = max(float(column[leaver]), _TINY)
        left -= column * (left[leaver] / pivot)
        there[leaver] = False
        left[~there] = 0.0
        ranks = np.vstack([ranks, column / np.sqrt(pivot)])
        diagonal -= ranks[-1] ** 2
    return left
