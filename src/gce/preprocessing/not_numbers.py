"""What of a table is not numbers, for errors about models that take nothing else."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gce._utils.params import short_repr
from gce.preprocessing.frames import is_frame


def not_numbers(X: Any) -> str | None:
    """The first column or cell of a table that is not numbers, in words.

    Parameters
    ----------
    X : data frame, array or list
        The table.

    Returns
    -------
    str or None
        None where all are numbers.

    Examples
    --------
    >>> not_numbers([[1.0, "red"]])
    "'red' in row 0"
    """
    if is_frame(X):
        import narwhals as nw

        for series in nw.from_native(X, eager_only=True).iter_columns():
            if not series.dtype.is_numeric() and not isinstance(series.dtype, nw.Boolean):
                return f"column {short_repr(series.name)} of type {short_repr(series.dtype)}"
        return None
    if not isinstance(X, list | tuple | np.ndarray):
        return None if issparse(X) else f"the type {type(X).__name__}"
    objects = np.empty(len(X), dtype=object)
    objects[:] = [list(row) if isinstance(row, list | tuple | np.ndarray) else [row] for row in X]
    for i, row in enumerate(objects):
        for value in row:
            if not _is_number(value):
                return f"{short_repr(value)} in row {i}"
    return None


def explain_not_numbers(error: Exception, what: str, X: Any) -> None:
    """Raise an error in words in place of a model's error about rows that are not numbers.

    Parameters
    ----------
    error : Exception
        What the model raised; its cause.
    what : str
        Which model, and what it cannot do.
    X : rows of any kind
        What it was given. Where all of it are numbers, nothing is raised.
    """
    if isinstance(error, TypeError | ValueError | OverflowError) and (found := not_numbers(X)) is not None:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{what} these rows, which have {found}: if it takes numbers only, encode them first, for instance in a "
            f"pipeline; its own error: {shorten(str(error), 200)}"
        ) from error


def _is_number(value: Any) -> bool:
    if isinstance(value, complex | np.complexfloating):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
