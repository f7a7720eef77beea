"""Training: rounds, families, early stopping, callbacks and calibration."""

from gce.training.callbacks import EarlyStopping, SharedEarlyStopping
from gce.training.integrations import MLflow, OptunaPruning, TensorBoard

__all__ = ["EarlyStopping", "MLflow", "OptunaPruning", "SharedEarlyStopping", "TensorBoard"]
