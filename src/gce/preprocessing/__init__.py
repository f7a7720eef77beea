"""Preprocessing of inputs and targets: data frames, categories, missing values, scaling and splits."""

from gce.preprocessing.columns import Column
from gce.preprocessing.frames import Frame, is_tabular, read_frame, select_columns
from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.schema import Schema
from gce.preprocessing.table import Table
from gce.preprocessing.targets import (
    check_labels,
    check_magnitude,
    check_regression_targets,
    check_spread,
    one_hot,
    targets_as_array,
)
from gce.preprocessing.values import fill_masked, refuse_class

__all__ = [
    "Column",
    "Frame",
    "Schema",
    "Standardizer",
    "Table",
    "check_labels",
    "check_magnitude",
    "check_regression_targets",
    "check_spread",
    "fill_masked",
    "is_tabular",
    "one_hot",
    "read_frame",
    "refuse_class",
    "select_columns",
    "targets_as_array",
]
