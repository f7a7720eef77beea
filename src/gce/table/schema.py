"""Which columns are numbers and which are categories, and the codes of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce.parameters import is_iterable
from gce.rows import Matrix, SparseRows
from gce.table.sheet import Kind, Sheet, Values

Array = NDArray[np.float64]
Level = str | int | float | bool

#: The code of a category that has none: it was rare in the fit, or not there.
OTHER = -1
#: Levels of a column that get a code, and the least share of all rows each of them must have.
MOST_LEVELS, LEAST_SHARE = 256, 1 / 1000
#: The share of rows without a code from which on a column is said to be lost.
MOST_OTHERS = 0.25


@dataclass(frozen=True)
class Column:
    """One column as a fit found it.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "category"}
    levels : tuple
        Of a category: the values with a code, which is their place; all others share the code -1.
    distinct : int or None
        How many values a category had in the fit; None of other kinds, and where a file does not say.
    others : float or None
        The share of rows of the fit whose value has no code.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    distinct: int | None = None
    others: float | None = None

    @property
    def lost(self) -> str | None:
        """How much of a category is not read, in words: where all of it is, or the values of many rows."""
        if self.distinct is None or self.others is None:
            return None
        if not self.levels and self.distinct > 1:
            return f"{self.distinct:,} levels, none of them frequent: not read at all"
        if self.others <= MOST_OTHERS:
            return None
        return f"{self.distinct:,} levels, {len(self.levels):,} of them read: {self.others:.0%} of rows have another"

    def code(self, kind: Kind, column: Array | Values) -> Array:
        """A column as numbers ``(n,)``: itself, or codes; NaN where it is missing."""
        if self.kind == "category":
            return self._codes(column)
        if kind != "category":
            return column.astype(np.float64, copy=False)
        known = [value for value in column if value is not None]
        if known:
            raise ValueError(
                f"column {self.name!r} held {self.kind}s when the model was fitted and holds {known[0]!r} now"
            )
        return np.full(len(column), np.nan)

    def _codes(self, column: Array | Values) -> Array:
        values = column.tolist()
        known = next((value for value in values if value is not None and value == value), None)
        if known is not None and self.levels and isinstance(known, str) != isinstance(self.levels[0], str):
            raise ValueError(
                f"column {self.name!r} held categories such as {self.levels[0]!r} when the model was fitted and holds "
                f"{known!r} now: give it the same type"
            )
        place: dict[Level | None, float] = {level: code for code, level in enumerate(self.levels)} | {None: np.nan}
        codes = np.array([place.get(value, OTHER) for value in values], dtype=np.float64)
        return codes if column.dtype == object else np.where(np.isnan(column.astype(np.float64)), np.nan, codes)


@dataclass(frozen=True)
class Schema:
    """The columns of a fit.

    Parameters
    ----------
    columns : tuple of Column
    """

    columns: tuple[Column, ...]

    @classmethod
    def learn(cls, sheet: Sheet, weight: Array, categorical: Any) -> Schema:
        """Learn from a sheet with row weights ``(n,)``; ``categorical`` names columns that are categories whatever
        their type.
        """
        chosen = chosen_columns(categorical, sheet.names)
        if isinstance(sheet.matrix, SparseRows):
            if chosen:
                raise ValueError(
                    f"sparse rows hold numbers alone, got categorical_features={categorical!r}: give X.toarray(), or "
                    "encode the categories as columns of 0 and 1"
                )
            return cls(tuple(Column(name, "number") for name in sheet.names))
        share = weight / weight.sum()
        return cls(
            tuple(
                _category(name, column, share)
                if kind == "category" or (j in chosen and kind != "boolean")
                else Column(name, kind)
                for j, (name, kind, column) in enumerate(zip(sheet.names, sheet.kinds, sheet.columns, strict=True))
            )
        )

    def code(self, sheet: Sheet) -> Matrix:
        """A sheet as numbers, ``(n, d)``: categories by their codes, NaN for what is missing."""
        if sheet.matrix is not None and all(column.kind != "category" for column in self.columns):
            return sheet.matrix
        if isinstance(sheet.matrix, SparseRows):
            raise ValueError("the model was fitted on categories, which sparse rows cannot hold: give X.toarray()")
        parts = zip(self.columns, sheet.kinds, sheet.columns, strict=True)
        return np.column_stack([column.code(kind, values) for column, kind, values in parts])

    @property
    def lost(self) -> str | None:
        """A sentence about the columns with so many levels that most rows have one without a code, if there are any."""
        lost = [f"{column.name!r} ({column.lost})" for column in self.columns if column.lost is not None]
        if not lost:
            return None
        shown = "; ".join(lost[:10]) + (f"; and {len(lost) - 10:,} more columns" if len(lost) > 10 else "")
        return (
            f"levels of a column must have {LEAST_SHARE:.1%} of the rows to be read, rarer ones count as one: {shown}. "
            "Make numbers of such columns first, for instance with scikit-learn's TargetEncoder"
        )

    def of_kind(self, *kinds: Kind) -> NDArray[np.intp]:
        """Where the columns of some kinds stand."""
        return np.array([j for j, column in enumerate(self.columns) if column.kind in kinds], dtype=np.intp)

    def signs(self, given: Mapping[str, int] | ArrayLike) -> NDArray[np.int64]:
        """Monotone constraints by column, ``(d,)`` of -1, 0 and 1; only numbers can have one."""
        names = [column.name for column in self.columns]
        if isinstance(given, Mapping):
            unknown = [name for name in given if name not in names]
            if unknown:
                raise ValueError(
                    f"monotonic_cst names the columns {unknown}, which X does not have: it has {_some(names)}"
                )
            listed: NDArray[Any] = _as_array([given.get(name, 0) for name in names])
        else:
            listed = _as_array(given)
        if listed.shape != (len(names),) or not np.isin(listed, (-1, 0, 1)).all():
            raise ValueError(
                f"monotonic_cst must have -1, 0 or 1 for each of the {len(names)} columns of X, got {given!r}"
            )
        for column, sign in zip(self.columns, listed, strict=True):
            if sign and column.kind != "number":
                raise ValueError(f"monotonic_cst constrains {column.name!r}, which has no order: it is a {column.kind}")
        return listed.astype(np.int64)


def _as_array(given: Any) -> NDArray[Any]:
    """An array of what is given, whatever that is."""
    try:
        return np.asarray(given)
    except ValueError:  # parts of different lengths
        return np.empty(0, dtype=object)


def chosen_columns(given: Any, names: Sequence[str]) -> set[int]:
    """Columns that a user lists by name, place or mask; none for "from_dtype"."""
    if isinstance(given, str):
        if given != "from_dtype":
            raise ValueError(
                f"categorical_features must be 'from_dtype' or a list of names, places or booleans, got {given!r}"
            )
        return set()
    return set() if given is None else _places("categorical_features", given, names)


def _places(what: str, given: Any, names: Sequence[str]) -> set[int]:
    if not is_iterable(given):
        raise ValueError(f"{what} must list names, places or booleans, got {given!r}")
    # an array of both names and places would make names of the places
    listed = [item.item() if isinstance(item, np.generic) else item for item in given]
    if listed and all(isinstance(item, bool) for item in listed):
        if len(listed) != len(names):
            raise ValueError(f"{what} as booleans must be one a column, {len(names)}, got {len(listed)}")
        return set(np.flatnonzero(listed).tolist())
    places = set()
    for item in listed:
        if isinstance(item, str):
            if item not in names:
                raise ValueError(f"{what} names the column {item!r}, which X does not have: it has {_some(names)}")
            places.add(list(names).index(item))
        elif isinstance(item, int) and not isinstance(item, bool) and 0 <= item < len(names):
            places.add(item)
        else:
            raise ValueError(f"{what} has {item!r}: give names, places from 0 to {len(names) - 1}, or booleans")
    return places


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _category(name: str, column: Array | Values, share: Array) -> Column:
    """A category, whose most frequent levels get a code, in their natural order."""
    total: dict[Level, float] = {}
    for value, part in zip(column.tolist(), share.tolist(), strict=True):
        if value is not None and value == value:
            total[value] = total.get(value, 0.0) + part
    frequent = sorted(total, key=lambda level: (-round(total[level], 12), level))[:MOST_LEVELS]
    levels = tuple(sorted(level for level in frequent if total[level] >= LEAST_SHARE * (1 - 1e-9)))
    read = set(levels)
    others = sum(part for level, part in total.items() if level not in read)
    return Column(name, "category", levels, len(total), round(min(float(others), 1.0), 6))
