"""Displays of fitted models in the manner of scikit-learn: ``Display.from_estimator(model, ...)``."""

from gce.inspection.plotting.borrowed import calibration_display, residual_display
from gce.inspection.plotting.staged import StagedErrorDisplay
from gce.inspection.plotting.training import TrainingDisplay
from gce.inspection.plotting.weights import WeightsDisplay

__all__ = ["StagedErrorDisplay", "TrainingDisplay", "WeightsDisplay", "calibration_display", "residual_display"]
