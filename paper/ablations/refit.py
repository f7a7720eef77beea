"""Weights of given atoms, anew: on the simplex, and free.

Atoms are their output matrices ``(A, n, k)``; the ensemble is ``offset + sum_j w_j G_j``. In the linear hull ``w`` is
any vector, in the convex hull it lies on the simplex over the atoms and the zero function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from gce.losses import Loss

Array = NDArray[np.float64]

#: Steps of a fit at most, and the simplex fit's tolerance as a part of the risk of equal weights.
STEPS, TOLERANCE = 2000, 1e-9


@dataclass(frozen=True, eq=False)
class Given:
    """Atoms on training rows, and what they are to explain.

    Parameters
    ----------
    outputs : array of shape (A, n, k)
    y : array of shape (n, k)
    loss : Loss
    offset, bound : array of shape (k,)
    """

    outputs: Array
    y: Array
    loss: Loss
    offset: Array
    bound: Array

    def risk(self, weights: Array) -> float:
        """Mean training loss of weights ``(A,)``."""
        scores = torch.from_numpy(self.offset + np.tensordot(weights, self.outputs, 1))
        return float(self.loss.value(scores, torch.from_numpy(self.y)).mean())

    def slope(self, weights: Array) -> Array:
        """Its derivative in the weights, ``(A,)``."""
        scores = torch.from_numpy(self.offset + np.tensordot(weights, self.outputs, 1))
        gradient = self.loss.gradient(scores, torch.from_numpy(self.y)).numpy() / len(self.y)
        return np.tensordot(self.outputs, gradient, 2)


def on_simplex(given: Given) -> tuple[Array, float]:
    """The best weights of the convex hull, ``(A,)``, and the duality gap that is left of them.

    Weights that do not sum to 1 leave the rest to the zero function. The gap ``<slope, w> - min(0, min slope)`` bounds
    how far their risk is above the least one, whatever found them.
    """
    start = np.full(len(given.outputs), 1 / len(given.outputs))
    unit = given.risk(start)
    found = minimize(
        lambda weights: given.risk(weights) / unit,
        start,
        jac=lambda weights: given.slope(weights) / unit,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints={"type": "ineq", "fun": lambda w: 1 - w.sum(), "jac": lambda w: -np.ones(len(w))},
        options={"maxiter": STEPS, "ftol": TOLERANCE},
    )
    weights = np.clip(found.x, 0.0, None)
    weights /= max(1.0, weights.sum())
    slope = given.slope(weights)
    return weights, float(slope @ weights - min(0.0, slope.min()))


def free(given: Given, start: Array) -> Array:
    """The best weights of the linear hull, ``(A,)``.

    Squared loss: least squares, of minimum norm where several weights are best. Other losses: L-BFGS from ``start``,
    and no worse than it; where classes can be told apart without error the loss has no minimum, and this is where the
    steps end.
    """
    if given.loss.quadratic:
        flat = given.outputs.reshape(len(given.outputs), -1).T
        return np.linalg.lstsq(flat, (given.y - given.offset).ravel(), rcond=None)[0]
    options = {"maxiter": STEPS, "maxfun": 2 * STEPS}
    found = minimize(given.risk, start, jac=given.slope, method="L-BFGS-B", options=options)
    return np.asarray(found.x) if found.fun <= given.risk(start) else start
