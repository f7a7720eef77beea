"""One simplex of an ensemble: what it combines, and the rows its weights are found on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gce.frank_wolfe.simplex import Outputs, Solution, certify_weights, solve_simplex
from gce.losses.risk import Risk

Array = NDArray[np.float64]

#: The gap, relative to the loss, to which weights are solved.
TOL = 1e-6


@dataclass(frozen=True)
class SimplexProblem:
    """A member of an ensemble, or all of it, with the answers of what it combines on rows of its own.

    Parameters
    ----------
    names : tuple of P str
    outputs : Outputs
        Measured from the offset.
    risk : Risk
    weights : array of shape (P,)
        As they are; all 0 where nothing is known yet.
    free : tuple of int
        Which of them are the zero function: it is there for any weights, and does not count.
    tol : float
        The gap, relative to the loss, to which weights are solved.
    """

    names: tuple[str, ...]
    outputs: Outputs
    risk: Risk
    weights: Array
    free: tuple[int, ...] = ()
    tol: float = TOL

    def without(self, names: Collection[str]) -> SimplexProblem:
        """All but some."""
        kept = [j for j, name in enumerate(self.names) if name not in names]
        return replace(
            self,
            names=tuple(self.names[j] for j in kept),
            outputs=self.outputs.select(kept),
            weights=self.weights[kept],
            free=tuple(kept.index(j) for j in self.free),
        )

    def adding(self, name: str, answer: Tensor, weight: float) -> SimplexProblem:
        """One more, with the weight it has."""
        return replace(
            self,
            names=(*self.names, name),
            outputs=self.outputs.append(answer),
            weights=np.append(self.weights, weight),
        )

    def solved(self) -> Solution:
        """The best weights, found from where they are."""
        return solve_simplex(self.risk, self.outputs, self.tol, start=self.weights)

    def certified(self) -> Solution:
        """The weights as they are, with their gap."""
        return certify_weights(self.risk, self.outputs, self.weights)

    def size(self, solution: Solution) -> int:
        """How many are in use, the zero function not counted."""
        return len(np.setdiff1d(solution.used, self.free))
