"""scikit-learn's contract: a task and a way of learning, together, and nothing else."""

from gce.estimators.greedy import GCEClassifier, GCERegressor
from gce.estimators.jointly import NGCEClassifier, NGCERegressor, NNClassifier, NNRegressor

__all__ = ["GCEClassifier", "GCERegressor", "NGCEClassifier", "NGCERegressor", "NNClassifier", "NNRegressor"]
