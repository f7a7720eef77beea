"""What users have, as numbers: frames read, categories coded, gaps marked, columns scaled, targets encoded."""

from gce.table.scaling import Standardizer
from gce.table.schema import Column, Schema
from gce.table.sheet import Sheet, is_tabular, read, select_columns, unmasked
from gce.table.table import Table
from gce.table.targets import as_targets, check_labels, check_magnitude, check_numbers, check_spread, one_hot

__all__ = [
    "Column",
    "Schema",
    "Sheet",
    "Standardizer",
    "Table",
    "as_targets",
    "check_labels",
    "check_magnitude",
    "check_numbers",
    "check_spread",
    "is_tabular",
    "one_hot",
    "read",
    "select_columns",
    "unmasked",
]
