"""Inspection of fitted models: displays, explanations, pruning paths and reports.

matplotlib is imported when something is drawn, and the report when one is written.
"""

from typing import TYPE_CHECKING

from gce._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gce.inspection.explanation import Explanation, PathStep, PruningPath
    from gce.inspection.partial import partial_dependence
    from gce.inspection.plotting import (
        StagedErrorDisplay,
        TrainingDisplay,
        WeightsDisplay,
        calibration_display,
        partial_dependence_display,
        residual_display,
    )
    from gce.inspection.shapley import ShapExplanation
    from gce.training.metrics import concordance, concordance_index

__all__ = [
    "Explanation",
    "PathStep",
    "PruningPath",
    "ShapExplanation",
    "StagedErrorDisplay",
    "TrainingDisplay",
    "WeightsDisplay",
    "calibration_display",
    "concordance",
    "concordance_index",
    "partial_dependence",
    "partial_dependence_display",
    "residual_display",
]

# estimators need the explanations only
__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(__all__, "plotting")
    | dict.fromkeys(("Explanation", "PathStep", "PruningPath"), "explanation")
    | dict.fromkeys(("concordance", "concordance_index"), ".training.metrics")
    | {"ShapExplanation": "shapley", "partial_dependence": "partial"},
)


def __dir__() -> list[str]:
    return list(__all__)
