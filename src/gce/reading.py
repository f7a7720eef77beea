"""Rows, targets, weights and groups at the door: what users give, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_y, check_consistent_length, validate_data

from gce.rows import SparseRows
from gce.settings import as_numpy, taken
from gce.table import Sheet, as_targets, is_tabular, read

#: How arrays of numbers are checked: gaps are welcome, infinity is not.
_NUMBERS = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
_SPARSE = {"dtype": np.float64, "accept_sparse": "csr"}


class Given(NamedTuple):
    """What a user gives to ``fit``."""

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None


class Reading(BaseEstimator):
    """How every model reads."""

    def _read_both(self, X: Any, y: Any, reset: bool) -> tuple[Sheet, NDArray[Any]]:
        """Rows and targets at the door, checked as scikit-learn does."""
        several = self.__sklearn_tags__().target_tags.multi_output
        about_y = {"multi_output": several, "y_numeric": is_regressor(self)}
        if is_tabular(X):
            validate_data(self, X, y, skip_check_array=True, reset=reset)
            sheet, y = read(X), _check_y(y, estimator=self, **about_y)
            check_consistent_length(sheet.columns[0], y)
            return sheet, y
        X, y = validate_data(self, X, y, reset=reset, **(_SPARSE if issparse(X) else _NUMBERS), **about_y)
        return self._sheet(X), y

    def _read(self, X: Any) -> Sheet:
        """Rows like those of the fit."""
        X = as_numpy(X)
        if is_tabular(X):
            return read(validate_data(self, X, skip_check_array=True, reset=False))
        return self._sheet(validate_data(self, X, reset=False, **(_SPARSE if issparse(X) else _NUMBERS)))

    def _sheet(self, X: Any) -> Sheet:
        return Sheet.of_numbers(SparseRows.of(X) if issparse(X) else X, getattr(self, "feature_names_in_", None))

    def _check_groups(self, groups: Any, rows: int, kept: NDArray[np.intp]) -> NDArray[Any] | None:
        if groups is None:
            return None
        groups = column_or_1d(as_targets(as_numpy(groups)))
        if len(groups) != rows:
            raise ValueError(f"groups has {len(groups)} entries for {rows} rows: give one a row")
        return taken(groups, kept)
