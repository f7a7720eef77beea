"""Input tables: arrays, lists and data frames of any library as columns of numbers or of categories.

Data frames are read through narwhals, so that pandas, polars and pyarrow are all supported and none is required.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.sparse import Matrix, SparseRows

Array = NDArray[np.float64]
Values = NDArray[np.object_]
Kind = Literal["number", "boolean", "category"]

_FLOATS = {float, np.float64, np.float32, np.float16}
#: Types of dates and times.
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Frame:
    """A table of inputs, column by column.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    kinds : tuple of {"number", "boolean", "category"}
        Kind of each column, by its type.
    columns : sequence of arrays of shape (n,)
        Numbers and booleans as float64 with NaN for missing values, categories as Python values with None. Empty where
        ``matrix`` is sparse.
    matrix : array or SparseRows of shape (n, d), optional
        All columns together, where all are numbers.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: Sequence[Array | Values]
    matrix: Matrix | None = None

    @classmethod
    def from_matrix(cls, X: Matrix, names: Sequence[str] | None = None) -> Frame:
        """A frame from a matrix of numbers ``(n, d)``, and names of its columns (default: x0, x1, ...).

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            The numbers.
        names : sequence of str, optional
            Names of the columns; by default x0, x1, ...

        Returns
        -------
        Frame
        """
        column_names = tuple(names) if names is not None else default_names(X.shape[1])
        return cls(column_names, ("number",) * X.shape[1], () if isinstance(X, SparseRows) else _Columns(X), X)

    def __len__(self) -> int:
        if self.matrix is not None:
            return len(self.matrix)
        return len(self.columns[0]) if self.columns else 0

    def take_rows(self, rows: NDArray[np.intp]) -> Frame:
        """The rows with some indices, which are ascending.

        Parameters
        ----------
        rows : array of shape (m,)
            Ascending row indices.

        Returns
        -------
        Frame
        """
        if len(rows) == len(self):  # ascending indices: all rows
            return self
        if self.matrix is not None:
            return Frame.from_matrix(self.matrix[rows], self.names)
        return Frame(self.names, self.kinds, [column[rows] for column in self.columns])


class _Columns(Sequence[Array]):
    """The columns of a matrix ``(n, d)``, taken when they are asked for: most predictions need none."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix

    def __len__(self) -> int:
        return self._matrix.shape[1]

    @overload
    def __getitem__(self, j: int) -> Array: ...
    @overload
    def __getitem__(self, j: slice) -> list[Array]: ...
    def __getitem__(self, j: int | slice) -> Array | list[Array]:
        return list(self._matrix.T[j]) if isinstance(j, slice) else self._matrix[:, j]


@lru_cache(maxsize=16)
def default_names(d: int) -> tuple[str, ...]:
    """scikit-learn's default names of ``d`` columns."""
    return tuple(f"x{j}" for j in range(d))


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame that narwhals supports."""
    if isinstance(X, np.ndarray | list | tuple) or not hasattr(type(X), "columns"):
        return False
    import narwhals as nw

    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X is a LazyFrame, whose rows are not loaded: pass X.collect()")
    return bool(nw.dependencies.is_into_dataframe(X))


def is_tabular(X: Any) -> bool:
    """Whether ``X`` must be read column by column: a data frame, or an array or list with other values than numbers."""
    if is_frame(X):
        return True
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and (X.dtype.kind in "USMm" or (X.dtype == object and not _only_numbers(X)))
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple | np.ndarray):
        try:
            objects = np.asarray(X, dtype=object)
        except ValueError:  # ragged: left to the error of scikit-learn
            return False
        return objects.ndim == 2 and not _only_numbers(objects)
    return False


def read_frame(X: Any) -> Frame:
    """Read a tabular object.

    Parameters
    ----------
    X : data frame, array or list
        See :func:`is_tabular`.

    Returns
    -------
    Frame

    Raises
    ------
    ValueError
        There are no rows or no columns, a column contains infinity, or an integer is beyond float64's range.
    TypeError
        A column holds dates, mixes text and numbers, or has values of another type.
    """
    frame = _from_dataframe(X) if is_frame(X) else _from_array(X)
    if not frame.names or len(frame) == 0:
        raise ValueError(
            f"X has {len(frame)} sample(s) and {len(frame.names)} feature(s): at least 1 of each is needed"
        )
    for name, kind, column in zip(frame.names, frame.kinds, frame.columns, strict=True):
        if kind == "number" and np.isinf(column.astype(np.float64)).any():
            raise ValueError(
                f"column {name!r} contains infinity: replace it by a number, or by NaN if the value is missing"
            )
    if all(kind == "number" for kind in frame.kinds):
        return Frame.from_matrix(np.column_stack(list(frame.columns)).astype(np.float64), frame.names)
    return frame


def fill_masked(X: Any) -> Any:
    """A masked array with its masked values as missing values; anything else unchanged."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "fiub":
        return np.ma.filled(X.astype(np.float64), np.nan)
    objects = np.array(X.data, dtype=object)
    objects[np.ma.getmaskarray(X)] = None
    return objects


def select_columns(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of the training data in their order, from a data frame that has them all; anything else unchanged.

    Missing columns are left to the error of scikit-learn.

    Parameters
    ----------
    X : data frame or array
        The table.
    names : sequence of str or None
        Names of the columns; None leaves a data frame unchanged.

    Raises
    ------
    ValueError
        A data frame has two columns with the same name.
    """
    if not is_frame(X):
        return X
    _check_unique_names(X)
    if names is None:
        return X
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    present, wanted = list(frame.columns), list(names)
    return X if present == wanted or not set(wanted) <= set(present) else frame.select(wanted).to_native()


def _check_unique_names(X: Any) -> None:
    """Raise a ValueError for a data frame with two columns of the same name."""
    named = X.column_names if hasattr(X, "column_names") else X.columns
    repeated = [str(name) for name, count in Counter(map(str, named)).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, repeated))}: give each column its own name"
        )


def _from_dataframe(X: Any) -> Frame:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = tuple(map(str, frame.columns))
    # by position: pandas columns may be named by numbers
    pairs = [_read_series(name, series) for name, series in zip(names, frame.iter_columns(), strict=True)]
    return Frame(names, tuple(kind for kind, _ in pairs), [column for _, column in pairs])


def _read_series(name: str, series: Any) -> tuple[Kind, Array | Values]:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_temporal():
        raise _date_error(name, dtype)
    if isinstance(dtype, nw.Boolean):
        return "boolean", _booleans(series)
    if dtype.is_numeric():
        as_floats = series if isinstance(dtype, nw.Float64) else series.cast(nw.Float64)
        return "number", np.asarray(as_floats.to_numpy(), dtype=np.float64)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object | nw.Unknown):
        values = np.empty(len(series), dtype=object)
        values[:] = series.to_list()
        # narwhals inspects only the first hundred Python objects before it reports a column as text
        if isinstance(dtype, nw.String) and all(isinstance(v, str) or is_missing(v) for v in values):
            return "category", _missing_as_none(values)
        kind, column = _read_values(name, values)
        if isinstance(dtype, nw.Categorical | nw.Enum):
            return "category", _missing_as_none(values)
        return kind, column
    raise TypeError(
        f"column {name!r} is of type {dtype}: only numbers, booleans, text and categories are supported; drop the "
        "column or convert it to numbers"
    )


def _booleans(series: Any) -> Array:
    import narwhals as nw

    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    column = np.asarray(series.fill_null(value=False).cast(nw.Float64).to_numpy(), dtype=np.float64).copy()
    column[missing] = np.nan
    return column


def _from_array(X: Any) -> Frame:
    objects = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    names = default_names(objects.shape[1])
    if objects.dtype.kind in "Mm":
        raise _date_error(names[0], objects.dtype)
    if objects.dtype.kind in "US":
        # numpy has converted numbers to text where an array holds both
        pairs = [_read_text(name, objects[:, j]) for j, name in enumerate(names)]
    else:
        pairs = [_read_values(name, objects[:, j]) for j, name in enumerate(names)]
    return Frame(names, tuple(kind for kind, _ in pairs), [column for _, column in pairs])


def _read_text(name: str, column: NDArray[Any]) -> tuple[Kind, Array | Values]:
    try:
        return "number", column.astype(np.float64)
    except ValueError:
        return _read_values(name, column.astype(str).astype(object))


def _read_values(name: str, values: Values) -> tuple[Kind, Array | Values]:
    """The kind and values of a column of Python objects: text, booleans or numbers, with missing values."""
    column = _missing_as_none(values)
    present = [value for value in column if value is not None]
    groups = {_group(name, _first(present, kind)) for kind in set(map(type, present))}
    if groups <= {"number", "boolean"}:
        try:
            numbers = np.array([np.nan if value is None else float(value) for value in column])
        except OverflowError as error:
            raise ValueError(
                f"column {name!r} holds an integer beyond float64's range: convert it to text or scale it"
            ) from error
        return ("boolean" if groups == {"boolean"} else "number"), numbers
    if len(groups) > 1:
        text, other = (next(v for v in present if isinstance(v, str) is wanted) for wanted in (True, False))
        raise TypeError(
            f"column {name!r} mixes text ({text!r}) and numbers ({other!r}): convert it to one of them, for instance "
            "with pandas.to_numeric(column, errors='coerce') or column.astype(str)"
        )
    return "category", column


def _first(values: list[Any], kind: type) -> Any:
    return next(value for value in values if type(value) is kind)


def _group(name: str, value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, DATES):
        raise _date_error(name, type(value).__name__)
    if isinstance(value, Real | np.number) or type(value).__name__ == "Decimal":
        return "number"
    raise TypeError(
        f"column {name!r} holds {value!r} of type {type(value).__name__}: argument must be a string, a number or "
        "a boolean; convert categories to text, for instance with column.astype(str)"
    )


def _missing_as_none(values: Values) -> Values:
    """Values with None for missing ones (None, NaN, NA, NaT), and numpy scalars as Python scalars."""
    out = np.empty(len(values), dtype=object)
    out[:] = [None if is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values]
    return out


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def _only_numbers(objects: Values) -> bool:
    kinds = set(map(type, objects.ravel())) - {type(None)}
    if not all(issubclass(kind, Real | np.number) and not issubclass(kind, bool) for kind in kinds):
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


def _date_error(name: str, dtype: Any) -> TypeError:
    return TypeError(
        f"column {name!r} holds dates or times ({dtype}), which are not supported: convert them to numbers, such "
        "as year, month, weekday or days since a first date (pandas: (column - column.min()).dt.days)"
    )
