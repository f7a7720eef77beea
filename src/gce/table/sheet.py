"""The door: what users hold (arrays, lists, frames of any library) as columns of numbers or of values.

Frames come in through narwhals, so that pandas, polars and pyarrow are all read and none is needed.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gce.rows import Matrix, SparseRows

Array = NDArray[np.float64]
Values = NDArray[np.object_]
Kind = Literal["number", "boolean", "category"]

_FLOATS = {float, np.float64, np.float32, np.float16}
#: Types of dates and times.
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Sheet:
    """A user's table, column by column.

    Parameters
    ----------
    names : tuple of str
    kinds : tuple of {"number", "boolean", "category"}
        What each column looks like by its type.
    columns : sequence of arrays of shape (n,)
        float64 with NaN for what is missing (numbers and booleans), or Python values with None (categories).
    matrix : array or SparseRows of shape (n, d), optional
        All columns together, where all are numbers already. Sparse ones are not taken apart: there are no ``columns``.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: Sequence[Array | Values]
    matrix: Matrix | None = None

    @classmethod
    def of_numbers(cls, X: Matrix, names: Sequence[str] | None = None) -> Sheet:
        """A sheet of an array of numbers ``(n, d)``."""
        named = tuple(names) if names is not None else default_names(X.shape[1])
        return cls(named, ("number",) * X.shape[1], () if isinstance(X, SparseRows) else list(X.T), X)

    def __len__(self) -> int:
        if self.matrix is not None:
            return len(self.matrix)
        return len(self.columns[0]) if self.columns else 0

    def take(self, rows: NDArray[np.intp]) -> Sheet:
        """Some rows."""
        if len(rows) == len(self):  # rows are ascending: all of them
            return self
        if self.matrix is not None:
            return Sheet.of_numbers(self.matrix[rows], self.names)
        return Sheet(self.names, self.kinds, [column[rows] for column in self.columns])


def default_names(d: int) -> tuple[str, ...]:
    """scikit-learn's names of columns that have none."""
    return tuple(f"x{j}" for j in range(d))


def is_frame(X: Any) -> bool:
    """Whether narwhals knows ``X`` as a frame."""
    if isinstance(X, np.ndarray | list | tuple) or not hasattr(type(X), "columns"):
        return False
    import narwhals as nw

    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X is a LazyFrame, whose rows are not there yet: give X.collect()")
    return bool(nw.dependencies.is_into_dataframe(X))


def is_tabular(X: Any) -> bool:
    """Whether ``X`` must be read column by column: a frame, or an array or list that holds more than numbers."""
    if is_frame(X):
        return True
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and (X.dtype.kind in "USMm" or (X.dtype == object and not _only_numbers(X)))
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple | np.ndarray):
        try:
            held = np.asarray(X, dtype=object)
        except ValueError:  # ragged: scikit-learn says it better
            return False
        return held.ndim == 2 and not _only_numbers(held)
    return False


def read(X: Any) -> Sheet:
    """A tabular object, see :func:`is_tabular`, as a sheet."""
    sheet = _of_frame(X) if is_frame(X) else _of_array(X)
    if not sheet.names or len(sheet) == 0:
        raise ValueError(
            f"X has {len(sheet)} sample(s) and {len(sheet.names)} feature(s): at least 1 of each is needed"
        )
    for name, kind, column in zip(sheet.names, sheet.kinds, sheet.columns, strict=True):
        if kind == "number" and np.isinf(column.astype(np.float64)).any():
            raise ValueError(
                f"column {name!r} contains infinity: replace it by a number, or by NaN where the value is not known"
            )
    if all(kind == "number" for kind in sheet.kinds):
        return Sheet.of_numbers(np.column_stack(sheet.columns).astype(np.float64), sheet.names)
    return sheet


def unmasked(X: Any) -> Any:
    """A masked array with gaps in place of what is masked; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "fiub":
        return np.ma.filled(X.astype(np.float64), np.nan)
    held = np.array(X.data, dtype=object)
    held[np.ma.getmaskarray(X)] = None
    return held


def select_columns(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of a fit in its order, out of a frame that has them all; anything else as it is.

    Which columns are missing is left to scikit-learn to say; a frame that has a name twice is refused.
    """
    if not is_frame(X):
        return X
    _refuse_repeated(X)
    if names is None:
        return X
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    known = list(frame.columns)
    listed = list(names)
    return X if known == listed or not set(listed) <= set(known) else frame.select(listed).to_native()


def _refuse_repeated(X: Any) -> None:
    """Refuse a frame that has a column's name twice."""
    named = X.column_names if hasattr(X, "column_names") else X.columns
    repeated = [str(name) for name, count in Counter(map(str, named)).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, repeated))}: give each column a name of its own"
        )


def _of_frame(X: Any) -> Sheet:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = tuple(map(str, frame.columns))
    # by place: pandas' columns may be named by numbers
    pairs = [_of_series(name, series) for name, series in zip(names, frame.iter_columns(), strict=True)]
    return Sheet(names, tuple(kind for kind, _ in pairs), [column for _, column in pairs])


def _of_series(name: str, series: Any) -> tuple[Kind, Array | Values]:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_temporal():
        raise _date_refused(name, dtype)
    if isinstance(dtype, nw.Boolean):
        return "boolean", _booleans(series)
    if dtype.is_numeric():
        as_floats = series if isinstance(dtype, nw.Float64) else series.cast(nw.Float64)
        return "number", np.asarray(as_floats.to_numpy(), dtype=np.float64)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object | nw.Unknown):
        values = np.empty(len(series), dtype=object)
        values[:] = series.to_list()
        # of Python objects narwhals looks at a hundred before it says that they are text
        if isinstance(dtype, nw.String) and all(isinstance(v, str) or is_missing(v) for v in values):
            return "category", _gaps_as_none(values)
        kind, column = _of_values(name, values)
        if isinstance(dtype, nw.Categorical | nw.Enum):
            return "category", _gaps_as_none(values)
        return kind, column
    raise TypeError(
        f"column {name!r} is of type {dtype}: only numbers, booleans, text and categories can be learned from; drop "
        "the column or make numbers of it"
    )


def _booleans(series: Any) -> Array:
    import narwhals as nw

    gaps = np.asarray(series.is_null().to_numpy(), dtype=bool)
    column = np.asarray(series.fill_null(value=False).cast(nw.Float64).to_numpy(), dtype=np.float64).copy()
    column[gaps] = np.nan
    return column


def _of_array(X: Any) -> Sheet:
    held = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    names = default_names(held.shape[1])
    if held.dtype.kind in "Mm":
        raise _date_refused(names[0], held.dtype)
    if held.dtype.kind in "US":
        # an array has one type: numbers beside text were turned into text before we saw them
        pairs = [_of_text(name, held[:, j]) for j, name in enumerate(names)]
    else:
        pairs = [_of_values(name, held[:, j]) for j, name in enumerate(names)]
    return Sheet(names, tuple(kind for kind, _ in pairs), [column for _, column in pairs])


def _of_text(name: str, column: NDArray[Any]) -> tuple[Kind, Array | Values]:
    try:
        return "number", column.astype(np.float64)
    except ValueError:
        return _of_values(name, column.astype(str).astype(object))


def _of_values(name: str, values: Values) -> tuple[Kind, Array | Values]:
    """A column of Python values by what they are: text, booleans or numbers, with gaps."""
    column = _gaps_as_none(values)
    known = [value for value in column if value is not None]
    groups = {_group(name, value) for value in set(map(type, known)) for value in [_first(known, value)]}
    if groups <= {"number", "boolean"}:
        try:
            numbers = np.array([np.nan if value is None else float(value) for value in column])
        except OverflowError as error:
            raise ValueError(
                f"column {name!r} holds an integer beyond float64's range: make it text or scale it"
            ) from error
        return ("boolean" if groups == {"boolean"} else "number"), numbers
    if len(groups) > 1:
        text, other = (next(v for v in known if isinstance(v, str) is wanted) for wanted in (True, False))
        raise TypeError(
            f"column {name!r} mixes text ({text!r}) and numbers ({other!r}): make it one of them, for instance with "
            "pandas.to_numeric(column, errors='coerce') or column.astype(str)"
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
        raise _date_refused(name, type(value).__name__)
    if isinstance(value, Real | np.number) or type(value).__name__ == "Decimal":
        return "number"
    raise TypeError(
        f"column {name!r} holds {value!r} of type {type(value).__name__}: argument must be a string, a number or "
        "a boolean; for categories make it text, for instance with column.astype(str)"
    )


def _gaps_as_none(values: Values) -> Values:
    """What is missing (None, NaN, NA, NaT) as None, numpy's scalars as Python's."""
    out = np.empty(len(values), dtype=object)
    out[:] = [None if is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in values]
    return out


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def _only_numbers(held: Values) -> bool:
    kinds = set(map(type, held.ravel())) - {type(None)}
    if not all(issubclass(kind, Real | np.number) and not issubclass(kind, bool) for kind in kinds):
        return False
    # what no float can be is named with its column
    return not any(_beyond(value) for value in held.ravel()) if kinds - _FLOATS else True


def _beyond(value: Any) -> bool:
    """Whether a number is too large to be a float."""
    try:
        float(0 if value is None else value)
    except OverflowError:
        return True
    return False


def _date_refused(name: str, dtype: Any) -> TypeError:
    return TypeError(
        f"column {name!r} holds dates or times ({dtype}): a model cannot know what matters in them; make numbers of "
        "them, such as year, month, weekday or days since a first date (pandas: (column - column.min()).dt.days)"
    )
