"""Rows, targets, weights and groups at the door: what users give, checked as scikit-learn does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length, validate_data

from gce.rows import SparseRows
from gce.settings import as_numpy, taken
from gce.table import Sheet, as_targets, check_numbers, is_tabular, read, select_columns, unmasked

Array = NDArray[np.float64]

#: How arrays of numbers are checked: gaps are welcome, infinity is not.
_NUMBERS = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
_SPARSE = {"dtype": np.float64, "accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
#: How many times the least weight the greatest may be: beyond, products of two weights are no longer numbers.
_WIDEST = 1e100
#: Weights are counted, added and squared: more than that is measured in a larger unit.
_HEAVIEST = 1e100


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
        if is_regressor(self):
            check_numbers(y)
        X = select_columns(unmasked(X), None if reset else getattr(self, "feature_names_in_", None))
        if is_tabular(X):
            validate_data(self, X, y, skip_check_array=True, reset=reset)
            sheet, y = read(X), _check_y(y, estimator=self, **about_y)
            check_consistent_length(sheet.columns[0], y)
            return sheet, y
        X, y = validate_data(self, X, y, reset=reset, **(_SPARSE if issparse(X) else _NUMBERS), **about_y)
        return self._sheet(X), y

    def _read(self, X: Any) -> Sheet:
        """Rows like those of the fit."""
        X = select_columns(unmasked(as_numpy(X)), getattr(self, "feature_names_in_", None))
        if is_tabular(X):
            return read(validate_data(self, X, skip_check_array=True, reset=False))
        return self._sheet(validate_data(self, X, reset=False, **(_SPARSE if issparse(X) else _NUMBERS)))

    def _sheet(self, X: Any) -> Sheet:
        if issparse(X) and np.isnan(X.data).any():
            raise ValueError(
                "X is sparse and contains NaN, which sparse rows cannot have: give X.toarray(), where NaN means "
                "missing, or numbers in place of NaN"
            )
        return Sheet.of_numbers(SparseRows.of(X) if issparse(X) else X, getattr(self, "feature_names_in_", None))

    def _check_groups(self, groups: Any, rows: int, kept: NDArray[np.intp]) -> NDArray[Any] | None:
        if groups is None:
            return None
        groups = column_or_1d(as_targets(as_numpy(groups), "groups"))
        if len(groups) != rows:
            raise ValueError(f"groups has {len(groups)} entries for {rows} rows: give one a row")
        return taken(groups, kept)


def row_weights(given: Any, like: Any) -> Array:
    """A user's weights, one for each row of ``like``; 1 each where none are given."""
    given = as_targets(as_numpy(given), "sample_weight")
    return measured(_check_sample_weight(given, like, dtype=np.float64, ensure_non_negative=True))


def measured(weight: Array, what: str = "weights of rows") -> Array:
    """Weights ``(n,)`` that can be added and multiplied: themselves, or in another unit where they are extreme.

    Less than a row altogether is counted by proportions anyway, and 1e100 rows and more are as good as infinitely many.
    """
    known = weight[weight > 0]
    if len(known) == 0:
        return weight
    least, most = float(known.min()), float(known.max())
    if least < most / _WIDEST:
        raise ValueError(
            f"{what} go from {least:.3g} to {most:.3g}: beside the greatest the least count for nothing; give "
            f"some within {_WIDEST:.0e} times each other, and rows that are not to count a sample weight of 0"
        )
    _, exponent = np.frexp(most)
    if most > _HEAVIEST:
        return weight / np.ldexp(1.0, exponent - 100)
    return weight / np.ldexp(1.0, exponent) if most < 1 / _HEAVIEST else weight


def counted_alike(weight: Array) -> Array:
    """Weights ``(n,)`` of a fit: equal ones below 1 are 1, since proportions alone count there, and to the bit."""
    return np.ones_like(weight) if len(weight) and weight.min() == weight.max() < 1 else weight
