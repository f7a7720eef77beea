"""Weights over a finite pool of models whose answers are known: the best convex combination, with its certificate."""

from gce.weighting.outputs import Outputs
from gce.weighting.selection import greedy_selection
from gce.weighting.shrinking import shrinking, without
from gce.weighting.solver import Solution, certified, solve

__all__ = ["Outputs", "Solution", "certified", "greedy_selection", "shrinking", "solve", "without"]
