"""The two ways of weighing members: the best convex combination, and Caruana's selection to compare it with."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from gce.parameters import Rules, at_least, count, within
from gce.responses import Array
from gce.stacking.editing import EditableStack
from gce.stacking.evidence import Evidence
from gce.surgery.share import warn_of_gaps
from gce.weighting import Solution, greedy_selection, solve


class BestWeights(EditableStack):
    """Weights of least risk, to a gap."""

    tol: float

    parameter_rules: ClassVar[Rules] = {"tol": at_least(0)}

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

    parameter_rules: ClassVar[Rules] = {"rounds": count(1), "bags": count(1), "share": within(0, 1, "(]")}

    def _solve(self, evidence: Evidence, start: Array | None = None) -> Solution:
        rng = np.random.default_rng(self._seed)
        with torch.no_grad():
            return greedy_selection(evidence.risk, evidence.outputs, self.rounds, self.bags, self.share, rng)
