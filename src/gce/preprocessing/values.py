"""Python values of columns: which of them are missing, and numbers of any type as Python numbers."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.object_]

_FLOATS = {float, np.float64, np.float32, np.float16}


def fill_masked(X: Any) -> Any:
    """A masked array with its masked values as missing values; anything else unchanged."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "fiub":
        return np.ma.filled(X.astype(np.float64), np.nan)
    if X.dtype.kind in "Mm":
        # a missing date of the column's own unit: numpy 2.5 refuses one without a unit
        return X.filled(X.dtype.type("NaT", np.datetime_data(X.dtype)))
    objects = np.array(X.data, dtype=object)
    objects[np.ma.getmaskarray(X)] = None
    return objects


def missing_as_none(values: NDArray[Any]) -> Values:
    """Values ``(n,)`` with None for missing ones (None, NaN, NA, NaT), and decimals and numpy scalars as Python's.

    Dates and durations of numpy stay as they are.

    Parameters
    ----------
    values : array of shape (n,)

    Returns
    -------
    array of shape (n,)
    """
    out = np.empty(len(values), dtype=object)
    # most are text, which is told by its type faster than by what it is not
    out[:] = [value if type(value) is str else None if is_missing(value) else _plain(value) for value in values]
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    # of dates and durations in nanoseconds numpy makes integers
    plain = isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64)
    return value.item() if plain else value


def refuse_class(X: Any) -> None:
    """Raise a ValueError where rows are a class, such as ``pandas.DataFrame`` itself."""
    if isinstance(X, type):
        raise ValueError(f"X is the class {X.__name__}: give rows, as an array, a list or a data frame")


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN (of a decimal too), NA or NaT."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and value != value


def only_numbers(objects: Values) -> bool:
    """Whether Python objects of any shape are numbers that fit into a float64, or None."""
    kinds = set(map(type, objects.ravel())) - {type(None)}
    if not all(issubclass(kind, Real | np.number) and not issubclass(kind, bool | np.timedelta64) for kind in kinds):
        return False
    # integers beyond float64 are reported with their column
    return not any(_beyond(value) for value in objects.ravel()) if kinds - _FLOATS else True


def _beyond(value: Any) -> bool:
    """Whether a number is too large to be a float."""
    try:
        float(0 if value is None else value)
    except OverflowError:
        return True
    return False
