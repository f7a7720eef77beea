"""Optimal convex weights over a finite pool of models, with a duality gap."""

from gce.frank_wolfe.simplex.certificate import warn_of_gaps
from gce.frank_wolfe.simplex.outputs import Outputs
from gce.frank_wolfe.simplex.pruning import backward_elimination, solve_without
from gce.frank_wolfe.simplex.selection import greedy_selection
from gce.frank_wolfe.simplex.solver import Solution, certify_weights, solve_simplex

__all__ = [
    "Outputs",
    "Solution",
    "backward_elimination",
    "certify_weights",
    "greedy_selection",
    "solve_simplex",
    "solve_without",
    "warn_of_gaps",
]
