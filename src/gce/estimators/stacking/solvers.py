"""How weights are found: the best convex combination, or greedy selection to compare it with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from gce.estimators.stacking.out_of_fold import OutOfFold
from gce.frank_wolfe.simplex import Solution, greedy_selection, solve_simplex, warn_of_gaps
from gce.inspection.editing.simplex_problem import TOL
from gce.training.predictions import Array


class WeightSolver(ABC):
    """Finds member weights from out-of-fold predictions."""

    #: Relative gap to which the losses of pruned stacks, and without a member, are solved.
    tol: float = TOL

    @abstractmethod
    def solve(self, out_of_fold: OutOfFold, start: Array | None = None) -> Solution:
        """Find the weights.

        Parameters
        ----------
        out_of_fold : OutOfFold
            Predictions of P members.
        start : array of shape (P,), optional
            Weights to start from, where the solver is iterative.
        """


@dataclass(frozen=True)
class ConvexSolver(WeightSolver):
    """Weights of least risk, with a certificate.

    Parameters
    ----------
    tol : float
        Relative gap at which to stop.
    """

    tol: float = TOL

    def solve(self, out_of_fold: OutOfFold, start: Array | None = None) -> Solution:
        with torch.no_grad():
            solution = solve_simplex(out_of_fold.risk, out_of_fold.outputs, self.tol, start=start)
        warn_of_gaps([solution], self.tol)
        return solution


@dataclass(frozen=True)
class GreedySelectionSolver(WeightSolver):
    """Weights by Caruana's greedy selection with replacement.

    Parameters
    ----------
    max_iter : int
        Number of selected members.
    n_bags : int
    bag_fraction : float
    seed : int
        For drawing bags.
    """

    max_iter: int
    n_bags: int
    bag_fraction: float
    seed: int

    def solve(self, out_of_fold: OutOfFold, start: Array | None = None) -> Solution:
        rng = np.random.default_rng(self.seed)
        with torch.no_grad():
            return greedy_selection(
                out_of_fold.risk, out_of_fold.outputs, self.max_iter, self.n_bags, self.bag_fraction, rng
            )
