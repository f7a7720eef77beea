"""Tables of rows: valid ones of every kind of container, and what may be odd about them."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import torch

from campaign.inputs_columns import COLUMNS, plain_column
from campaign.inputs_values import CELLS

#: Names that a frame may have by accident.
NAMES: tuple[Callable[[Random, int], Any], ...] = (
    lambda rng, j: "a", lambda rng, j: "", lambda rng, j: None, lambda rng, j: j, lambda rng, j: 1.5,
    lambda rng, j: float("nan"), lambda rng, j: ("a", j), lambda rng, j: "x" * 300, lambda rng, j: "\ud800",
    lambda rng, j: "<b>&\x1b[31m", lambda rng, j: b"name", lambda rng, j: True, lambda rng, j: f"x{1 - j}",
    lambda rng, j: datetime.date(2020, 1, 1), lambda rng, j: "a\nb",
)  # fmt: skip


@dataclass
class Cells:
    """A table before it has a container: names and columns, and what was done to them, in words."""

    names: list[Any]
    columns: list[Any]
    words: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def plain_cells(rng: Random, rows: int, columns: int) -> Cells:
    """A valid table: numbers first, other kinds after them."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    found = [plain_column(rng, numbers, rows, first=j == 0) for j in range(columns)]
    return Cells([f"x{j}" for j in range(columns)], found)


def numeric_cells(rng: Random, rows: int, columns: int) -> Cells:
    """A valid table of numbers alone, which any model takes."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    return Cells([f"x{j}" for j in range(columns)], [numbers.normal(size=rows) for _ in range(columns)])


def _put_cells(rng: Random, cells: Cells) -> None:
    """Replace some cells of a column by an odd one."""
    j = rng.randrange(len(cells.columns))
    make = rng.choice(CELLS)
    column = list(cells.columns[j])
    share = rng.choice([0.0, 0.2, 1.0])
    for i in range(len(column)):
        if i == 0 or rng.random() < share:
            column[i] = make(rng)
    cells.columns[j] = column


def _put_column(rng: Random, cells: Cells) -> None:
    """Replace a column by an odd one."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    cells.columns[rng.randrange(len(cells.columns))] = rng.choice(COLUMNS)(rng, numbers, cells.rows)


def _rename(rng: Random, cells: Cells) -> None:
    """Odd names for one column or for all."""
    make, one = rng.choice(NAMES), rng.randrange(len(cells.names))
    everywhere = rng.random() < 0.3
    cells.names = [make(rng, j) if everywhere or j == one else name for j, name in enumerate(cells.names)]


def _cut_rows(rng: Random, cells: Cells) -> None:
    """Fewer rows, down to none."""
    rows = rng.choice([0, 1, 1, 2, 3])
    cells.columns = [column[:rows] for column in cells.columns]


def _repeat_rows(rng: Random, cells: Cells) -> None:
    """The first row, everywhere."""
    cells.columns = [list(column[:1]) * cells.rows for column in cells.columns]


def _change_columns(rng: Random, cells: Cells) -> None:
    """A column less, one more, none at all, or in another order."""
    kind = rng.randrange(5)
    if kind == 0:
        cells.names, cells.columns = cells.names[:-1], cells.columns[:-1]
    elif kind == 1:
        cells.names, cells.columns = [*cells.names, "more"], [*cells.columns, list(range(cells.rows))]
    elif kind == 2:
        cells.names, cells.columns = [], []
    elif kind == 3:
        cells.names, cells.columns = cells.names[::-1], cells.columns[::-1]
    else:
        # many columns, few rows
        many = 60
        cells.names = [f"w{j}" for j in range(many)]
        cells.columns = [np.arange(cells.rows) * (j % 7) % 5 * 1.0 for j in range(many)]


CELL_MUTATIONS = (_put_cells, _put_cells, _put_cells, _put_column, _put_column, _rename, _cut_rows, _repeat_rows,
                  _change_columns)  # fmt: skip


def objects(cells: Cells) -> Any:
    """The cells as an array of Python objects ``(n, d)``."""
    array = np.empty((cells.rows, len(cells.columns)), dtype=object)
    for j, column in enumerate(cells.columns):
        for i, value in enumerate(column):
            array[i, j] = value
    return array


def as_numbers(cells: Cells) -> Any:
    """The cells as float64 where they can be, NaN elsewhere."""

    def number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError, ArithmeticError):
            return float(len(str(value)) % 5)

    rows = [[number(value) for value in row] for row in objects(cells)]
    return np.array(rows, dtype=np.float64).reshape(cells.rows, len(cells.columns))


def _pandas(cells: Cells, rng: Random) -> Any:
    series = [column if isinstance(column, pd.Series) else _series(column, rng) for column in cells.columns]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame(index=range(cells.rows))
    names = cells.names
    frame.columns = pd.MultiIndex.from_tuples(names) if all(isinstance(n, tuple) for n in names) and names else names
    return frame


def _series(column: Any, rng: Random) -> pd.Series:
    if isinstance(column, np.ndarray):
        return pd.Series(column)
    try:
        return pd.Series(list(column), dtype=None if rng.random() < 0.6 else object)
    except Exception:  # what pandas cannot infer
        return pd.Series(list(column), dtype=object)


def _polars(cells: Cells, rng: Random) -> Any:
    found = {}
    for name, column in zip(cells.names, cells.columns, strict=True):
        own = name if isinstance(name, str) and "\ud800" not in name else str(len(found))
        try:
            found[own] = pl.from_pandas(column) if isinstance(column, pd.Series) else pl.Series(list(column))
        except Exception:
            found[own] = pl.Series(list(map(ascii, column)))
    return pl.DataFrame(found)


def _arrow(cells: Cells, rng: Random) -> Any:
    arrays, names = [], []
    for name, column in zip(cells.names, cells.columns, strict=True):
        try:
            kinds = {isinstance(value, np.datetime64) for value in column}
            # pyarrow does not survive numbers among dates of numpy
            plain = list(map(ascii, column)) if len(kinds) > 1 else list(column)
            array = pa.array(column) if isinstance(column, pd.Series) else pa.array(plain)
        except Exception:
            array = pa.array(list(map(ascii, column)))
        if rng.random() < 0.2 and pa.types.is_string(array.type):
            array = array.dictionary_encode()
        arrays.append(array)
        names.append(name if isinstance(name, str) and "\ud800" not in name else ascii(name))
    return pa.table(arrays, names=names)


def _sparse(cells: Cells, rng: Random) -> Any:
    kind = rng.choice(["csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "bsr_matrix", "csr_array"])
    return getattr(sp, kind)(as_numbers(cells) * (rng.random() < 0.9))


def _tensor(cells: Cells, rng: Random) -> Any:
    return torch.from_numpy(as_numbers(cells))


CONTAINERS: dict[str, Callable[[Cells, Random], Any]] = {
    "array": lambda cells, rng: as_numbers(cells),
    "objects": lambda cells, rng: objects(cells),
    "list": lambda cells, rng: objects(cells).tolist(),
    "pandas": _pandas,
    "polars": _polars,
    "arrow": _arrow,
    "sparse": _sparse,
    "tensor": _tensor,
}


@dataclass(frozen=True)
class Given:
    """A table as it is given to a call, and what it is in words."""

    value: Any
    words: str


def contained(cells: Cells, container: str, rng: Random) -> Any:
    """Cells in a container."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONTAINERS[container](cells, rng)


def odd_table(rng: Random, cells: Cells, container: str, mutations: int) -> Given:
    """A table with some mutations of cells, and perhaps one of its container."""
    from campaign.inputs_containers import CONTAINER_MUTATIONS

    words = [container]
    inside = mutations
    if rng.random() < 0.35:
        inside -= 1
    for _ in range(inside):
        if cells.columns:
            mutate = rng.choice(CELL_MUTATIONS)
            mutate(rng, cells)
            words.append(mutate.__name__.strip("_"))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = contained(cells, container, rng)
        if inside < mutations:
            mutate = rng.choice(CONTAINER_MUTATIONS)
            words.append(mutate.__name__.strip("_"))
            value = mutate(rng, value, cells)
    return Given(value, " ".join(words))


def rows_of(table: Any) -> int | None:
    """The number of rows of a table, where it is plain."""
    if isinstance(table, type) or getattr(table, "is_nested", False):
        return None
    shape = getattr(table, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2:
        return int(shape[0])
    return len(table) if isinstance(table, list | tuple) else None
