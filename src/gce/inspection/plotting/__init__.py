"""Displays of fitted models, in scikit-learn's style: matplotlib is imported when something is drawn."""

from typing import TYPE_CHECKING

from gce._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gce.inspection.plotting.borrowed import (
        calibration_display,
        partial_dependence_display,
        residual_display,
    )
    from gce.inspection.plotting.staged import StagedErrorDisplay
    from gce.inspection.plotting.training import TrainingDisplay
    from gce.inspection.plotting.weights import WeightsDisplay

__all__ = [
    "StagedErrorDisplay",
    "TrainingDisplay",
    "WeightsDisplay",
    "calibration_display",
    "partial_dependence_display",
    "residual_display",
]

_MODULES = {
    "StagedErrorDisplay": "staged",
    "TrainingDisplay": "training",
    "WeightsDisplay": "weights",
    "calibration_display": "borrowed",
    "partial_dependence_display": "borrowed",
    "residual_display": "borrowed",
}

# explanations need the style only
__getattr__ = lazy_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return list(__all__)
