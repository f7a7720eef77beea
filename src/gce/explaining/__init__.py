"""Why an ensemble is what it is: one row a member, and what smaller ensembles would cost."""

from gce.explaining.explanation import Explanation
from gce.explaining.pruned import PathStep, Pruned
from gce.explaining.removals import explain

__all__ = ["Explanation", "PathStep", "Pruned", "explain"]
