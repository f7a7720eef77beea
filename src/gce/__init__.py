"""Greedy convex ensembles: convex combinations of basis models, learned by Frank-Wolfe in function space."""

from gce import datasets, losses, plotting, theory, trackers
from gce.algorithms import Algorithm, AwayStep, Blended, Boosting, FrankWolfe, NonlinearGreedy, Pairwise, Step
from gce.basis import Basis, Forest, Neural, Neuron, Pool, RegressorBasis, SignTree, SymmetricTree, Tree, Union
from gce.ensemble import ConvexEnsemble
from gce.estimators import (
    GCEClassifier,
    GCERegressor,
    NGCEClassifier,
    NGCERegressor,
    NNClassifier,
    NNRegressor,
)
from gce.line_search import Brent, Exact, LineSearch, OpenLoop
from gce.loading import load
from gce.stacking import (
    ConvexStackingClassifier,
    ConvexStackingRegressor,
    GreedySelectionClassifier,
    GreedySelectionRegressor,
)
from gce.storage import ModelFileError

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "AwayStep",
    "Basis",
    "Blended",
    "Boosting",
    "Brent",
    "ConvexEnsemble",
    "ConvexStackingClassifier",
    "ConvexStackingRegressor",
    "Exact",
    "Forest",
    "FrankWolfe",
    "GCEClassifier",
    "GCERegressor",
    "GreedySelectionClassifier",
    "GreedySelectionRegressor",
    "LineSearch",
    "ModelFileError",
    "NGCEClassifier",
    "NGCERegressor",
    "NNClassifier",
    "NNRegressor",
    "Neural",
    "Neuron",
    "NonlinearGreedy",
    "OpenLoop",
    "Pairwise",
    "Pool",
    "RegressorBasis",
    "SignTree",
    "Step",
    "SymmetricTree",
    "Tree",
    "Union",
    "datasets",
    "load",
    "losses",
    "plotting",
    "theory",
    "trackers",
]
