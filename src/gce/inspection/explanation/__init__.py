"""Why an ensemble is what it is: one row per member, and the loss of smaller ensembles."""

from gce.inspection.explanation.explanation import Explanation
from gce.inspection.explanation.pruning_path import PathStep, PruningPath
from gce.inspection.explanation.removals import explain

__all__ = ["Explanation", "PathStep", "PruningPath", "explain"]
