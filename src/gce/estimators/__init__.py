"""Estimators with scikit-learn's interface, and models from files."""

from typing import TYPE_CHECKING

from gce._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gce.estimators.gce_classifier import GCEClassifier
    from gce.estimators.gce_regressor import GCERegressor
    from gce.estimators.gce_survival import GCESurvival
    from gce.estimators.loading import load
    from gce.estimators.ngce import NGCEClassifier, NGCERegressor
    from gce.estimators.nn import NNClassifier, NNRegressor
    from gce.estimators.stacking import (
        ConvexStackingClassifier,
        ConvexStackingRegressor,
        GreedySelectionClassifier,
        GreedySelectionRegressor,
    )

__all__ = [
    "ConvexStackingClassifier",
    "ConvexStackingRegressor",
    "GCEClassifier",
    "GCERegressor",
    "GCESurvival",
    "GreedySelectionClassifier",
    "GreedySelectionRegressor",
    "NGCEClassifier",
    "NGCERegressor",
    "NNClassifier",
    "NNRegressor",
    "load",
]

# who fits one estimator need not wait for the others
__getattr__ = lazy_names(
    __name__,
    {
        "ConvexStackingClassifier": "stacking",
        "ConvexStackingRegressor": "stacking",
        "GCEClassifier": "gce_classifier",
        "GCERegressor": "gce_regressor",
        "GCESurvival": "gce_survival",
        "GreedySelectionClassifier": "stacking",
        "GreedySelectionRegressor": "stacking",
        "NGCEClassifier": "ngce",
        "NGCERegressor": "ngce",
        "NNClassifier": "nn",
        "NNRegressor": "nn",
        "load": "loading",
    },
)


def __dir__() -> list[str]:
    return list(__all__)
