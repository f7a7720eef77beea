"""Pictures of a fitted model, as scikit-learn's displays: ``Display.from_estimator(model, ...)``.

matplotlib is imported when something is drawn, not before.
"""

from gce.plotting.borrowed import calibration_display, residual_display
from gce.plotting.staged import StagedErrorDisplay
from gce.plotting.training import TrainingDisplay
from gce.plotting.weights import WeightsDisplay

__all__ = ["StagedErrorDisplay", "TrainingDisplay", "WeightsDisplay", "calibration_display", "residual_display"]
