"""Kinds of columns, and the codes of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce._utils.params import is_iterable, short_repr
from gce.preprocessing.frames import Frame, Kind, Values
from gce.preprocessing.sparse import Matrix, SparseRows

Array = NDArray[np.float64]
Category = str | int | float | bool

#: Code of a category that is rare in the training rows, or does not occur in them.
OTHER = -1
#: Categories of a column that get a code, and the least share of the rows that each of them must have.
MAX_CATEGORIES, MIN_CATEGORY_SHARE = 254, 1 / 1000
#: Share of rows without a code above which a column has a warning.
MAX_OTHER_SHARE = 0.25


@dataclass(frozen=True)
class Column:
    """One column of the training data.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean", "category"}
        Kind of the column.
    categories : tuple
        Categories with a code, which is their index; all others share the code -1. Empty for other kinds.
    n_distinct : int or None
        Number of distinct categories in the training rows; None for other kinds, and for old files.
    other_share : float or None
        Share of the training rows whose category has no code.
    """

    name: str
    kind: Kind
    categories: tuple[Category, ...] = ()
    n_distinct: int | None = None
    other_share: float | None = None

    @property
    def warning(self) -> str | None:
        """What is lost of a column with too many categories: all of it, or the categories of many rows; else None."""
        if self.n_distinct is None or self.other_share is None:
            return None
        if not self.categories and self.n_distinct > 1:
            return f"{self.n_distinct:,} categories, none of them frequent: ignored"
        if self.other_share <= MAX_OTHER_SHARE:
            return None
        return (
            f"{self.n_distinct:,} categories, {len(self.categories):,} of them encoded: {self.other_share:.0%} of rows "
            "have another one"
        )

    def encode(self, kind: Kind, column: Array | Values) -> Array:
        """Encode values as numbers: codes of categories, other values unchanged, NaN for missing ones.

        Parameters
        ----------
        kind : {"number", "boolean", "category"}
            Kind of the given values.
        column : array of shape (n,)
            The values.

        Returns
        -------
        array of shape (n,)
        """
        if self.kind == "category":
            return self._codes(column)
        if kind != "category":
            return column.astype(np.float64, copy=False)
        present = [value for value in column if value is not None]
        if present:
            raise ValueError(
                f"column {self.name!r} held {self.kind}s when the model was fitted and holds {present[0]!r} now"
            )
        return np.full(len(column), np.nan)

    def _codes(self, column: Array | Values) -> Array:
        values = column.tolist()
        first = next((value for value in values if value is not None and value == value), None)
        if first is not None and self.categories and isinstance(first, str) != isinstance(self.categories[0], str):
            raise ValueError(
                f"column {self.name!r} held categories such as {self.categories[0]!r} when the model was fitted and "
                f"holds {first!r} now: convert it to the same type"
            )
        code_of: dict[Category | None, float] = {category: code for code, category in enumerate(self.categories)}
        code_of[None] = np.nan
        codes = np.array([code_of.get(value, OTHER) for value in values], dtype=np.float64)
        return codes if column.dtype == object else np.where(np.isnan(column.astype(np.float64)), np.nan, codes)


@dataclass(frozen=True)
class Schema:
    """The columns of the training data.

    Parameters
    ----------
    columns : tuple of Column
        The columns, in order.
    """

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, frame: Frame, weight: Array, categorical: Any) -> Schema:
        """Fit a schema.

        Parameters
        ----------
        frame : Frame
            Training rows.
        weight : array of shape (n,)
            Sample weights.
        categorical : "from_dtype", None, or list of str, int or bool
            Columns that are categories whatever their type.

        Returns
        -------
        Schema
        """
        chosen = categorical_indices(categorical, frame.names)
        if isinstance(frame.matrix, SparseRows):
            if chosen:
                raise ValueError(
                    f"sparse rows can only hold numbers, got categorical_features={categorical!r}: pass X.toarray(), "
                    "or one-hot encode the categories"
                )
            return cls(tuple(Column(name, "number") for name in frame.names))
        share = weight / weight.sum()
        return cls(
            tuple(
                _category(name, column, share)
                if kind == "category" or (j in chosen and kind != "boolean")
                else Column(name, kind)
                for j, (name, kind, column) in enumerate(zip(frame.names, frame.kinds, frame.columns, strict=True))
            )
        )

    def encode(self, frame: Frame) -> Matrix:
        """A frame as numbers ``(n, d)``: codes of categories, NaN for missing values."""
        if frame.matrix is not None and all(column.kind != "category" for column in self.columns):
            return frame.matrix
        if isinstance(frame.matrix, SparseRows):
            raise ValueError("the model was fitted on categories, which sparse rows cannot hold: pass X.toarray()")
        parts = zip(self.columns, frame.kinds, frame.columns, strict=True)
        return np.column_stack([column.encode(kind, values) for column, kind, values in parts])

    @property
    def warning(self) -> str | None:
        """A message about the columns with a warning, None if there are none."""
        warnings = [f"{column.name!r} ({column.warning})" for column in self.columns if column.warning is not None]
        if not warnings:
            return None
        shown = "; ".join(warnings[:10]) + (f"; and {len(warnings) - 10:,} more columns" if len(warnings) > 10 else "")
        return (
            f"categories with less than {MIN_CATEGORY_SHARE:.1%} of the rows are merged into one: {shown}. Encode such "
            "columns first, for instance with scikit-learn's TargetEncoder"
        )

    def indices_of_kind(self, *kinds: Kind) -> NDArray[np.intp]:
        """Indices of the columns of some kinds."""
        return np.array([j for j, column in enumerate(self.columns) if column.kind in kinds], dtype=np.intp)

    def monotonic_signs(self, given: Mapping[str, int] | ArrayLike) -> NDArray[np.int64]:
        """Monotonic constraints by column.

        Parameters
        ----------
        given : mapping of str to int, or array-like of shape (d,)
            -1, 0 or 1 by name, or for each column; only numbers can be constrained.

        Returns
        -------
        array of shape (d,)
        """
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
                raise ValueError(
                    f"monotonic_cst constrains {column.name!r}, which has no order because it is a {column.kind}"
                )
        return listed.astype(np.int64)


def _as_array(values: Any) -> NDArray[Any]:
    """Anything as an array."""
    try:
        return np.asarray(values)
    except ValueError:  # ragged
        return np.empty(0, dtype=object)


def categorical_indices(given: Any, names: Sequence[str]) -> set[int]:
    """Indices of the columns listed by name, index or mask; none for "from_dtype" and None.

    Parameters
    ----------
    given : "from_dtype", None, or list of str, int or bool
        The ``categorical_features`` parameter.
    names : sequence of str
        Names of all columns.

    Returns
    -------
    set of int
    """
    if isinstance(given, str):
        if given != "from_dtype":
            raise ValueError(
                f"categorical_features must be 'from_dtype' or a list of names, indices or booleans, got {given!r}"
            )
        return set()
    return set() if given is None else _column_indices("categorical_features", given, names)


def _column_indices(what: str, listed_columns: Any, names: Sequence[str]) -> set[int]:
    if not is_iterable(listed_columns):
        raise ValueError(f"{what} must list names, indices or booleans, got {listed_columns!r}")
    # an array of both names and indices would convert the indices to text
    listed = [item.item() if isinstance(item, np.generic) else item for item in listed_columns]
    if listed and all(isinstance(item, bool) for item in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"{what} as booleans must have one for each of the {len(names)} columns, got {len(listed)}"
            )
        return set(np.flatnonzero(listed).tolist())
    return {column_index(what, item, names, mask=True) for item in listed}


def column_index(what: str, item: Any, names: Sequence[str], mask: bool = False) -> int:
    """Index of a column that is given by its name or index.

    Parameters
    ----------
    what : str
        The parameter that names it, for errors.
    item : object
        The name or index.
    names : sequence of str
        Names of all columns.
    mask : bool, default=False
        The parameter may also be a boolean for each column, for errors.

    Returns
    -------
    int
    """
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, str):
        if item not in names:
            raise ValueError(f"{what} names the column {item!r}, which X does not have: it has {_some(names)}")
        return list(names).index(item)
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < len(names):
        return item
    last = len(names) - 1
    words = f"names, indices from 0 to {last}, or booleans" if mask else f"names or indices from 0 to {last}"
    raise ValueError(f"{what} has {short_repr(item)}: use {words}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _category(name: str, column: Array | Values, share: Array) -> Column:
    """A category column, whose most frequent categories get a code, in sorted order."""
    total: dict[Category, float] = {}
    for value, part in zip(column.tolist(), share.tolist(), strict=True):
        if value is not None and value == value:
            total[value] = total.get(value, 0.0) + part
    # first those that have enough rows, of which there are few, however many categories there are
    enough = [value for value, part in total.items() if part >= MIN_CATEGORY_SHARE * (1 - 1e-9)]
    categories = tuple(sorted(sorted(enough, key=lambda value: (-round(total[value], 12), value))[:MAX_CATEGORIES]))
    encoded = set(categories)
    others = sum(part for value, part in total.items() if value not in encoded)
    return Column(name, "category", categories, len(total), round(min(float(others), 1.0), 6))
