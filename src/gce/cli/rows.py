"""A table cut into what a fit is given: columns to learn from, the target, weights and groups."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gce.cli.failures import DataError
from gce.cli.reading import named, read_table
from gce.cli.rendering import counted, some, warn

#: The share of numbers from which on a column of text looks like a mistake.
_MOSTLY = 0.9


@dataclass(frozen=True)
class Columns:
    """Which columns are what; all others are learned from."""

    target: str
    weights: str | None = None
    groups: str | None = None
    drop: Sequence[str] = ()

    @property
    def special(self) -> list[str]:
        named = (self.target, self.weights, self.groups, *self.drop)
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class Rows:
    """What a fit is given.

    Parameters
    ----------
    file : str
        Where the rows come from, as messages name it.
    X : polars.DataFrame of shape (n, d)
    y : polars.Series of length n
    weight : array of shape (n,), optional
    groups : array of shape (n,), optional
    """

    file: str
    X: pl.DataFrame
    y: pl.Series
    weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self.X.height

    def taken(self, places: NDArray[np.intp]) -> Rows:
        """Some of the rows, in that order."""
        pick = (None if part is None else part[places] for part in (self.weight, self.groups))
        return Rows(self.file, self.X[places], self.y[places], *pick)


def load(
    train: str,
    test: str | None,
    columns: Columns,
    missing: Sequence[str],
    drop_missing_target: bool,
    keep: Sequence[str] = (),
) -> tuple[Rows, Rows | None]:
    """Read a training table, and another one to be judged on; ``keep`` names more columns that a command speaks of."""
    if train == test == "-":
        raise DataError("standard input can be read once only: give one of the tables as a file")
    kept = [*columns.special, *keep]
    frame = read_table(train, missing, keep=kept)
    rows = training_rows(train, frame, columns, drop_missing_target)
    if test is None:
        return rows, None
    text = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    other = read_table(test, missing, text, kept)
    return rows, held_out_rows(test, other, columns, rows.X.columns, drop_missing_target)


def training_rows(path: str, frame: pl.DataFrame, columns: Columns, drop_missing_target: bool) -> Rows:
    """The rows of a training table; what ``columns`` names must be there."""
    for what, name in {"target": columns.target, "weights": columns.weights, "groups": columns.groups}.items():
        if name is not None:
            check_column(name, what, frame.columns, path)
    for name in columns.drop:
        check_column(name, "drop", frame.columns, path)
    frame = _with_target(path, frame, columns.target, drop_missing_target)
    X = frame.drop(columns.special)
    if X.width == 0:
        raise DataError(f"{named(path)} has no column to learn from beside {some(columns.special)}")
    for column in X:
        _warn_of_numbers(column)
    return Rows(named(path), X, frame[columns.target], _weights(path, frame, columns), _groups(path, frame, columns))


def held_out_rows(
    path: str, frame: pl.DataFrame, columns: Columns, like: Sequence[str], drop_missing_target: bool
) -> Rows:
    """The rows of another table with the same columns; more do no harm, weights are used where they are there."""
    check_column(columns.target, "target", frame.columns, path)
    frame = _with_target(path, frame, columns.target, drop_missing_target)
    weighted = columns.weights is not None and columns.weights in frame.columns
    weight = _weights(path, frame, columns) if weighted else None
    return Rows(named(path), alike(path, frame, like), frame[columns.target], weight)


def alike(path: str, frame: pl.DataFrame, like: Sequence[str]) -> pl.DataFrame:
    """The columns a model was fitted on, in its order."""
    lacking = [name for name in like if name not in frame.columns]
    if lacking:
        number = "columns" if len(lacking) > 1 else "column"
        raise DataError(
            f"{named(path)} lacks the {number} {some(lacking)} that the model learns from; it has {some(frame.columns)}"
        )
    return frame.select(like)


def check_column(name: str, what: str, columns: Sequence[str], path: str) -> None:
    """Refuse a column that is not there, naming the nearest one."""
    if name in columns:
        return
    lower = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    guess = f"did you mean {lower[near[0]]!r}? It has" if near else "it has"
    raise DataError(f"--{what} {name!r} is no column of {named(path)}: {guess} {some(list(columns))}")


def _with_target(path: str, frame: pl.DataFrame, target: str, drop: bool) -> pl.DataFrame:
    y = frame[target]
    gaps = y.is_null() | (y.is_nan() if y.dtype.is_float() else False)
    if not gaps.any():
        return frame
    count = int(gaps.sum())
    if count == len(y):
        raise DataError(f"the target {target!r} is missing in every row of {named(path)}")
    if not drop:
        raise DataError(
            f"the target {target!r} is missing in {count:,} of {counted(len(y), 'row')} of {named(path)}: fill it "
            "in, or leave these rows out with --drop-missing-target"
        )
    return frame.filter(~gaps.fill_null(value=True))


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
    return np.asarray(column.to_list())


def _warn_of_numbers(column: pl.Series) -> None:
    """Say where a few words make text of a column of numbers: each of them would be a category."""
    if column.dtype != pl.String:
        return
    cells = column.drop_nulls()
    words = cells.filter(cells.cast(pl.Float64, strict=False).is_null())
    if 0 < len(words) <= (1 - _MOSTLY) * len(cells):
        numbers = f"{len(cells) - len(words):,} of its {counted(len(cells), 'cell')}"
        warn(f"column {column.name!r} is text, though {numbers} are numbers: --missing {words[0]!r} reads it as such")
