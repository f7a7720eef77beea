"""The two ways of weighing members: the best convex combination, and Caruana's selection to compare it with."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from gce.responses import Array
from gce.settings import check_count, check_number, users_line
from gce.stacking.editing import EditableStack
from gce.stacking.evidence import Evidence
from gce.weighting import Solution, greedy_selection, solve


class BestWeights(EditableStack):
    """Weights of least risk, to a gap."""

    tol: float

    def _check_settings(self) -> None:
        super()._check_settings()
        check_number("tol", self.tol, 0)

    def _solve(self, evidence: Evidence, start: Array | None = None) -> Solution:
        with torch.no_grad():
            known = start if start is not None and start.any() else None
            solution = solve(evidence.risk, evidence.outputs, self.tol, start=known)
        if not solution.reached:
            warn_of_gap(solution, self.tol)
        return solution


class SelectedWeights(EditableStack):
    """Weights by greedy selection."""

    rounds: int
    bags: int
    share: float

    def _check_settings(self) -> None:
        super()._check_settings()
        check_count("rounds", self.rounds, 1)
        check_count("bags", self.bags, 1)
        if not 0 < check_number("share", self.share, 0) <= 1:
            raise ValueError(f"share must be in (0, 1], got {self.share!r}")

    def _solve(self, evidence: Evidence, start: Array | None = None) -> Solution:
        rng = np.random.default_rng(self._seed)
        with torch.no_grad():
            return greedy_selection(evidence.risk, evidence.outputs, self.rounds, self.bags, self.share, rng)


def warn_of_gap(solution: Solution, tol: float) -> None:
    """Say that weights are not as good as was asked, and how good they are."""
    warnings.warn(
        f"the weights' loss {solution.loss:.6g} is proved to be within {solution.gap:.2g} of the least, but "
        f"tol={tol:g} asks for {tol * abs(solution.loss):.2g}: use them if that is near enough, with a larger tol",
        ConvergenceWarning,
        stacklevel=users_line(),
    )
