"""Frank-Wolfe algorithms over a convex hull: active set, algorithms, ensembles and weights on the simplex."""

from gce.frank_wolfe.algorithm import Algorithm
from gce.frank_wolfe.algorithms import AwayStep, Blended, Boosting, FrankWolfe, NonlinearGreedy, Pairwise
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.frank_wolfe.step import Step
from gce.losses.line_search import Brent, Exact, LineSearch, OpenLoop

__all__ = [
    "Algorithm",
    "AwayStep",
    "Blended",
    "Boosting",
    "Brent",
    "ConvexEnsemble",
    "Exact",
    "FrankWolfe",
    "LineSearch",
    "NonlinearGreedy",
    "OpenLoop",
    "Pairwise",
    "Step",
]
