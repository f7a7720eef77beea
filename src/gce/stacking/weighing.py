"""The two ways of weighing members: the best convex combination, and Caruana's selection to compare it with."""

from __future__ import annotations

import numpy as np
import torch

from gce.responses import Array
from gce.settings import check_count, check_number
from gce.stacking.editing import EditableStack
from gce.stacking.evidence import Evidence
from gce.surgery.share import warn_of_gaps
from gce.weighting import Solution, greedy_selection, solve


class BestWeights(EditableStack):
    """Weights of least risk, to a gap."""

    tol: float

    def _check_settings(self) -> None:
        super()._check_settings()
        check_number("tol", self.tol, 0)

    def _solve(self, evidence: Evidence, start: Array | None = None) -> Solution:
        with torch.no_grad():
            solution = solve(evidence.risk, evidence.outputs, self.tol, start=start)
        warn_of_gaps([solution], self.tol)
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
