"""A quadratic model of a risk in the weights of many models: solved and thinned without a look at any row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.frank_wolfe.simplex.elimination import constrained_inverse, eliminate_models
from gce.frank_wolfe.simplex.qp import solve_simplex_qp

Array = NDArray[np.float64]

#: One in so many models in use is eliminated at a time.
_ONE_IN = 8
#: Models that may enter at a time.
_ENTERING = 32
#: Weights below are rounding.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class QuadraticRisk:
    """The risk of convex weights ``u`` around a reference: ``value + gradient'u + u' hessian u / 2``.

    Outputs of models are measured from the reference, which itself is the zero vector among them. The first model is
    the zero function around the offset: it is there for any weights, and does not count.

    Parameters
    ----------
    value : float
        The risk of the reference.
    gradient : array of shape (P,)
    hessian : array of shape (P, P)

    Examples
    --------
    >>> import numpy as np
    >>> from gce.frank_wolfe.simplex.quadratic import QuadraticRisk
    >>> risk = QuadraticRisk(1.0, np.array([0.0, -1.0]), np.diag([0.0, 2.0]))
    >>> risk.solve().round(6).tolist()
    [0.5, 0.5]
    """

    value: float
    gradient: Array
    hessian: Array

    def __add__(self, other: QuadraticRisk) -> QuadraticRisk:
        return QuadraticRisk(self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian)

    def at(self, weights: Array) -> float:
        """The risk of weights ``(P,)`` on the simplex."""
        return float(self.value + self.gradient @ weights + weights @ self.hessian @ weights / 2)

    def solve(self) -> Array:
        """The best weights ``(P,)`` on the simplex.

        The search starts from the reference, so that only models that improve on it enter.
        """
        weights = np.zeros(len(self.gradient) + 1)
        weights[-1] = 1.0
        # the reference is a model too, of outputs 0
        hessian = np.pad(self.hessian, (0, 1))
        found = weights + solve_simplex_qp(hessian, np.append(self.gradient, 0.0), weights, _ENTERING)
        own = _cleaned(found[:-1]) if found[:-1].max() > _LEAST else np.eye(len(self.gradient))[0]
        # where the reference stays in use, other combinations are as good without it
        return own if found[-1] <= _LEAST else self._descend(own, np.arange(len(own)))

    def thin(self, weights: Array) -> Iterator[Array]:
        """Ever fewer models in use, each time with the best weights, beginning with the given ones ``(P,)``.

        Models leave in the order of the optimal brain surgeon's removal costs, one in eight at a time.
        """
        yield weights
        while (count := int(np.count_nonzero(weights[1:]))) > 1:
            used = np.union1d(np.flatnonzero(weights), [0])
            inverse = constrained_inverse(self.hessian[np.ix_(used, used)])
            rest = eliminate_models(inverse, weights[used], used == 0, max(1, count // _ONE_IN))
            start = np.zeros_like(weights)
            start[used] = np.maximum(rest, 0.0)
            if not start.any():
                start[0] = 1.0
            weights = self._descend(_cleaned(start), np.union1d(np.flatnonzero(start), [0]))
            yield weights

    def _descend(self, start: Array, among: NDArray[np.intp]) -> Array:
        """The best weights over some models."""
        own, hessian = start[among], self.hessian[np.ix_(among, among)]
        moves = solve_simplex_qp(hessian, self.gradient[among] + hessian @ own, own, _ENTERING)
        found = np.zeros_like(start)
        found[among] = own + moves
        return _cleaned(found)


def _cleaned(weights: Array) -> Array:
    """Weights on the simplex, 0 where they are rounding."""
    kept = np.where(weights > _LEAST, weights, 0.0)
    return kept / kept.sum()
