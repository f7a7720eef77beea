"""Convex stacking: the best convex combination of models that people already have."""

from gce.estimators.stacking.convex import ConvexStackingClassifier, ConvexStackingRegressor
from gce.estimators.stacking.selection import GreedySelectionClassifier, GreedySelectionRegressor

__all__ = [
    "ConvexStackingClassifier",
    "ConvexStackingRegressor",
    "GreedySelectionClassifier",
    "GreedySelectionRegressor",
]
