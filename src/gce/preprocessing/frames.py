"""Input tables: arrays, lists and data frames of any library as columns of numbers or of categories.

Data frames are read through narwhals, so that pandas, polars and pyarrow are all supported and none is required.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import short_repr
from gce.preprocessing import dates
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.preprocessing.values import Values, is_missing, missing_as_none, only_numbers

Array = NDArray[np.float64]
Kind = Literal["number", "boolean", "category", "date", "duration"]

#: Rows of a table that are copied together: fewer of them cost more calls, more of them the cache.
_STACKED_ROWS = 2048


@dataclass(frozen=True)
class Frame:
    """A table of inputs, column by column.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    kinds : tuple of {"number", "boolean", "category", "date", "duration"}
        Kind of each column, by its type.
    columns : sequence of arrays of shape (n,)
        Numbers and booleans as float64 with NaN for missing values, categories as Python values with None, dates and
        durations in seconds (:class:`gce.preprocessing.dates.Moments`). Empty where ``matrix`` is sparse.
    matrix : array or SparseRows of shape (n, d), optional
        All columns together, where all are numbers.
    zones : dict of int to str
        Time zones of dates, by the index of the column.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: Sequence[Array | Values]
    matrix: Matrix | None = None
    zones: Mapping[int, str] = field(default_factory=dict)

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
        return Frame(self.names, self.kinds, [column[rows] for column in self.columns], zones=self.zones)


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
        return X.ndim == 2 and (X.dtype.kind in "USMm" or (X.dtype == object and not only_numbers(X)))
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple | np.ndarray):
        try:
            objects = _rows_as_array(X)
        except ValueError:  # ragged: left to the error of scikit-learn
            return False
        return objects.ndim == 2 and (objects.dtype != object or not only_numbers(objects))
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
        There are no columns, a column contains infinity, or an integer is beyond float64's range.
    TypeError
        A column mixes text, numbers and dates, or has values of another type.
    """
    frame = _from_dataframe(X) if is_frame(X) else _from_array(X)
    if not frame.names:
        raise ValueError(f"X has {len(frame)} sample(s) and 0 feature(s): at least 1 feature is needed")
    for name, infinite in zip(frame.names, _infinite(frame), strict=True):
        if infinite:
            raise ValueError(
                f"column {name!r} contains infinity: replace it by a number, or by NaN if the value is missing"
            )
    if isinstance(frame.matrix, np.ndarray):
        # memory of its own: a data frame's may be read-only
        return Frame.from_matrix(np.require(frame.matrix, np.float64, ["C", "W", "O"]), frame.names)
    if all(kind == "number" for kind in frame.kinds):
        return Frame.from_matrix(np.column_stack(list(frame.columns)).astype(np.float64), frame.names)
    return frame


def _infinite(frame: Frame) -> list[bool]:
    """Whether each column has infinite numbers."""
    if isinstance(frame.matrix, np.ndarray):
        return list(map(bool, np.asarray(np.isinf(frame.matrix).any(0))))
    return [
        kind == "number" and bool(np.isinf(column.astype(np.float64)).any())
        for kind, column in zip(frame.kinds, frame.columns, strict=True)
    ]


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
            f"X has more than one column named {', '.join(map(short_repr, repeated))}: give each column its own name"
        )


def _from_dataframe(X: Any) -> Frame:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = tuple(map(str, frame.columns))
    if names and all(isinstance(dtype, nw.Float64) for dtype in frame.schema.values()):
        # all at once: column by column, thousands of them would take seconds
        if frame.implementation.is_pyarrow():
            matrix = _stacked([column.to_numpy() for column in frame.to_native().columns])
        else:
            matrix = np.asarray(frame.to_numpy())
        if matrix.dtype == np.float64:
            return Frame.from_matrix(matrix, names)
    # by position: pandas columns may be named by numbers
    return _assemble(names, list(frame.iter_columns()), _dates_of_series, _read_series)


def _stacked(columns: Sequence[Array]) -> Array:
    """Columns ``(n,)`` side by side ``(n, d)``, by blocks of rows that stay in the processor's cache."""
    matrix = np.empty((len(columns[0]), len(columns)))
    for first in range(0, len(matrix), _STACKED_ROWS):
        rows = slice(first, first + _STACKED_ROWS)
        for j, column in enumerate(columns):
            matrix[rows, j] = column[rows]
    return matrix


def _assemble(
    names: tuple[str, ...],
    columns: Sequence[Any],
    read_dates: Callable[[str, Any], dates.Moments | None],
    read: Callable[[str, Any], tuple[Kind, Array | Values]],
) -> Frame:
    """A frame of columns, whose readers are one of dates, which gives None for other columns, and one of all others."""
    moments = [read_dates(name, column) for name, column in zip(names, columns, strict=True)]
    pairs = [
        read(name, column) if own is None else (own.kind, own.seconds)
        for name, column, own in zip(names, columns, moments, strict=True)
    ]
    zones = {j: own.zone for j, own in enumerate(moments) if own is not None and own.zone is not None}
    return Frame(names, tuple(kind for kind, _ in pairs), [column for _, column in pairs], zones=zones)


def _dates_of_series(name: str, series: Any) -> dates.Moments | None:
    import narwhals as nw

    if series.dtype.is_temporal():
        return dates.from_series(name, series)
    return _dates_of_values(name, as_objects(series)) if isinstance(series.dtype, nw.Object | nw.Unknown) else None


def _dates_of_values(name: str, values: NDArray[Any]) -> dates.Moments | None:
    if values.dtype.kind in "Mm":
        return dates.from_numpy(name, values)
    return dates.from_objects(name, values) if dates.are_among(values) else None


def as_objects(series: Any) -> Values:
    """The values of a narwhals series ``(n,)`` as Python objects."""
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return values


def _read_series(name: str, series: Any) -> tuple[Kind, Array | Values]:
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Boolean):
        return "boolean", _booleans(series)
    if dtype.is_numeric():
        try:
            as_floats = series if isinstance(dtype, nw.Float64) else series.cast(nw.Float64)
        except ValueError:  # Arrow refuses integers that float64 rounds
            return "number", np.array([np.nan if v is None else float(v) for v in series.to_list()])
        return "number", np.asarray(as_floats.to_numpy(), dtype=np.float64)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object | nw.Unknown):
        values = as_objects(series)
        # narwhals inspects only the first hundred Python objects before it reports a column as text
        if isinstance(dtype, nw.String) and all(isinstance(v, str) or is_missing(v) for v in values):
            return "category", missing_as_none(values)
        kind, column = _read_values(name, values)
        if isinstance(dtype, nw.Categorical | nw.Enum):
            return "category", missing_as_none(values)
        return kind, column
    raise TypeError(
        f"column {name!r} is of type {dtype}: only numbers, booleans, dates, text and categories are supported; drop "
        "the column or convert it to numbers"
    )


def _booleans(series: Any) -> Array:
    import narwhals as nw

    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    column = np.asarray(series.fill_null(value=False).cast(nw.Float64).to_numpy(), dtype=np.float64).copy()
    column[missing] = np.nan
    return column


def _from_array(X: Any) -> Frame:
    objects = _rows_as_array(X)
    # numpy has converted numbers to text where an array holds both
    read = _read_text if objects.dtype.kind in "US" else _read_values
    return _assemble(default_names(objects.shape[1]), list(objects.T), _dates_of_values, read)


def _rows_as_array(X: Any) -> NDArray[Any]:
    """An array as it is, rows of a list as Python objects."""
    # as objects, datetime64 in nanoseconds would be integers
    dated = isinstance(X, np.ndarray) or all(isinstance(row, np.ndarray) and row.dtype.kind in "Mm" for row in X)
    return np.asarray(X) if dated else np.asarray(X, dtype=object)


def _read_text(name: str, column: NDArray[Any]) -> tuple[Kind, Array | Values]:
    try:
        return "number", column.astype(np.float64)
    except ValueError:
        return _read_values(name, column.astype(str).astype(object))


def _read_values(name: str, values: Values) -> tuple[Kind, Array | Values]:
    """The kind and values of a column of Python objects: text, booleans or numbers, with missing values."""
    column = missing_as_none(values)
    present = [value for value in column if value is not None]
    # whatever such a column holds later, it is ignored
    if not present:
        return "category", column
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
        what = "booleans" if isinstance(other, bool) else "numbers"
        raise TypeError(
            f"column {name!r} mixes text ({short_repr(text)}) and {what} ({short_repr(other)}): convert it to one of "
            "them, for instance with pandas.to_numeric(column, errors='coerce') or column.astype(str)"
        )
    return "category", column


def _first(values: list[Any], kind: type) -> Any:
    return next(value for value in values if type(value) is kind)


def _group(name: str, value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, dates.DATES):
        raise TypeError(
            f"column {name!r} holds {value} among text, or as a category: convert the whole column to dates, for "
            "instance with pandas.to_datetime(column, errors='coerce'), or to text"
        )
    if isinstance(value, Real | np.number | Decimal):
        return "number"
    raise TypeError(
        f"column {name!r} holds {short_repr(value)} of type {type(value).__name__}: argument must be a string, a "
        "number or a boolean; convert categories to text, for instance with column.astype(str)"
    )
