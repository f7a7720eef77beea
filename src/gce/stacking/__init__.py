"""Convex stacking: the best convex combination of models that people already have."""

from gce.stacking.estimators import (
    ConvexStackingClassifier,
    ConvexStackingRegressor,
    GreedySelectionClassifier,
    GreedySelectionRegressor,
)

__all__ = [
    "ConvexStackingClassifier",
    "ConvexStackingRegressor",
    "GreedySelectionClassifier",
    "GreedySelectionRegressor",
]
