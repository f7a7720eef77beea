"""A table split into features, target, sample weights and groups."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gce._utils.params import counted
from gce.cli.failures import DataError
from gce.cli.reading import Cells, find_dates, named, read_table
from gce.cli.rendering import some, warn
from gce.cli.tasks import Task, check_kind, check_labels, values

#: Names of identifiers, and how many rows a column must number to be one.
_IDENTIFIER = re.compile(r"(?:^|[_\W])(?:id|ids|uid|uuid|index|key|nr|no)$|[a-z](?:Id|ID)$|^Id$|^ID$", re.ASCII)
_FEWEST_NUMBERED = 20
#: The fraction of numbers from which a text column is probably a mistake.
_MOSTLY = 0.9


@dataclass(frozen=True)
class Columns:
    """The roles of columns; all others are features."""

    target: str
    weights: str | None = None
    groups: str | None = None
    drop: Sequence[str] = ()
    #: Those that predictions carry, which are no features either.
    keep: Sequence[str] = ()

    @property
    def special(self) -> list[str]:
        named = (self.target, self.weights, self.groups, *self.drop, *self.keep)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class Rows:
    """The rows of a table.

    Parameters
    ----------
    file : str
        The file they come from, for messages.
    X : polars.DataFrame of shape (n, d)
    y : polars.Series of length n
    weight : array of shape (n,), optional
    groups : array of shape (n,), optional
    dates : tuple of str
        Columns of text that were recognised as dates.
    """

    file: str
    X: pl.DataFrame
    y: pl.Series
    weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    dates: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.X.height

    def take(self, index: NDArray[np.intp]) -> Rows:
        """The rows of an index, in its order."""
        weight, groups = (None if part is None else part[index] for part in (self.weight, self.groups))
        return replace(self, X=self.X[index], y=self.y[index], weight=weight, groups=groups)


def load(
    train: str,
    test: str | None,
    columns: Columns,
    cells: Cells,
    drop_missing_target: bool,
    categorical: Sequence[str] = (),
) -> tuple[Rows, Rows | None]:
    """Read the training and the test table; ``categorical`` names columns that are neither dates nor an index."""
    if train == test == "-":
        raise DataError("standard input can be read only once: give one of the tables as a file")
    kept = [*columns.special, *categorical]
    frame = read_table(train, cells, keep=kept)
    for name in cells.dates:
        check_column(name, "dates", frame.columns, train)
    found = find_dates(train, frame, kept) if cells.find_dates else []
    frame, names = frame.with_columns(found), tuple(column.name for column in found)
    rows = replace(training_rows(train, frame, columns, drop_missing_target), dates=names)
    if test is None:
        return rows, None
    text = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    other = read_table(test, replace(cells, dates=(*cells.dates, *names)), text, kept)
    return rows, evaluation_rows(test, other, columns, rows.X.columns, drop_missing_target)


def check_test(task: Task, rows: Rows, test: Rows | None) -> None:
    """Check that the targets of a test table, if there is one, are like those of the training rows."""
    if test is None:
        return
    if task is Task.regression:
        check_kind("number", test.y, test.file)
    else:
        check_labels(np.unique(values(rows.y, task)).tolist(), values(test.y, task), rows.y.name, test.file)


def text_as_dates(names: Sequence[str]) -> str:
    """A line about columns of text that were recognised as dates; nothing if there are none."""
    form = "text in the form of ISO 8601 dates (--no-dates reads it as text)"
    return f"\ndates: {some(names)}, {form}" if names else ""


def training_rows(path: str, frame: pl.DataFrame, columns: Columns, drop_missing_target: bool) -> Rows:
    """The rows of a training table, which must have all of ``columns``."""
    for what, name in {"target": columns.target, "weights": columns.weights, "groups": columns.groups}.items():
        if name is not None:
            check_column(name, what, frame.columns, path)
    for what, names in {"drop": columns.drop, "keep": columns.keep}.items():
        for name in names:
            check_column(name, what, frame.columns, path)
    frame = _with_target(path, frame, columns.target, drop_missing_target)
    X = frame.drop(columns.special)
    if X.width == 0:
        raise DataError(f"{named(path)} has no features besides {some(columns.special)}")
    for column in X:
        _warn_of_numbers(column)
        _warn_of_identifier(column)
    return Rows(named(path), X, frame[columns.target], _weights(path, frame, columns), _groups(path, frame, columns))


def evaluation_rows(
    path: str, frame: pl.DataFrame, columns: Columns, names: Sequence[str], drop_missing_target: bool
) -> Rows:
    """The rows of a test table: further columns are ignored, and weights used if present."""
    check_column(columns.target, "target", frame.columns, path)
    frame = _with_target(path, frame, columns.target, drop_missing_target)
    weighted = columns.weights is not None and columns.weights in frame.columns
    weight = _weights(path, frame, columns) if weighted else None
    return Rows(named(path), select_columns(path, frame, names), frame[columns.target], weight)


def select_columns(path: str, frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The columns a model was fitted on, in their order."""
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        number = "columns" if len(lacking) > 1 else "column"
        wanted = f"the {number} {some(lacking)} that the model was fitted on"
        raise DataError(f"{named(path)} lacks {wanted}; it has {some(frame.columns)}")
    return frame.select(names)


def check_column(name: str, what: str, columns: Sequence[str], path: str) -> None:
    """Raise an error if a column does not exist, suggesting the closest name."""
    if name in columns:
        return
    lower = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    guess = f"did you mean {lower[near[0]]!r}? It has" if near else "it has"
    raise DataError(f"--{what} {name!r} is not a column of {named(path)}: {guess} {some(list(columns))}")


def _with_target(path: str, frame: pl.DataFrame, target: str, drop: bool) -> pl.DataFrame:
    if frame.height == 0:
        raise DataError(f"{named(path)} has no rows")
    y = frame[target]
    absent = y.is_null() | (y.is_nan() if y.dtype.is_float() else False)
    if not absent.any():
        return frame
    count = int(absent.sum())
    if count == len(y):
        raise DataError(f"the target {target!r} is missing in every row of {named(path)}")
    if not drop:
        raise DataError(
            f"the target {target!r} is missing in {count:,} of {counted(len(y), 'row')} of {named(path)}: fill it "
            "in, or drop these rows with --drop-missing-target"
        )
    return frame.filter(~absent.fill_null(value=True))


def _weights(path: str, frame: pl.DataFrame, columns: Columns) -> NDArray[np.float64] | None:
    if columns.weights is None:
        return None
    column = frame[columns.weights]
    if not column.dtype.is_numeric() or column.null_count():
        raise DataError(f"--weights {columns.weights!r} must be a number in every row of {named(path)}")
    return column.cast(pl.Float64).to_numpy()


def _groups(path: str, frame: pl.DataFrame, columns: Columns) -> NDArray[Any] | None:
    if columns.groups is None:
        return None
    column = frame[columns.groups]
    if column.null_count():
        raise DataError(
            f"--groups {columns.groups!r} is missing in {counted(column.null_count(), 'row')} of {named(path)}"
        )
    if column.n_unique() == 1:
        raise DataError(
            f"--groups {columns.groups!r} has one group only in {named(path)}, {column[0]!r}, so that no rows can be "
            "held out: leave out --groups, or name another column"
        )
    return np.asarray(column.to_list())


def _warn_of_identifier(column: pl.Series) -> None:
    """Warn of integers that number the rows, or are named so: of new rows they say nothing."""
    if not column.dtype.is_integer() or len(column) < _FEWEST_NUMBERED or column.null_count():
        return
    values = column.to_numpy()
    low, high = int(values.min()), int(values.max())
    numbered = high - low == len(column) - 1
    if (numbered or _IDENTIFIER.search(column.name)) and column.n_unique() == len(column):
        warn(
            f"column {column.name!r} looks like an identifier (from {low} to {high}, each once) and is used as a "
            f"feature: --keep {column.name!r} leaves it out, and carries it to predictions"
        )


def _warn_of_numbers(column: pl.Series) -> None:
    """Warn if a few non-numeric values make a column text: each distinct number would be a category."""
    if column.dtype != pl.String:
        return
    cells = column.drop_nulls()
    others = cells.filter(cells.cast(pl.Float64, strict=False).is_null())
    if 0 < len(others) <= (1 - _MOSTLY) * len(cells):
        numbers = f"{len(cells) - len(others):,} of its {counted(len(cells), 'value')}"
        warn(f"column {column.name!r} is text, though {numbers} are numbers: use --missing {others[0]!r} to read it so")
