"""The columns of the training data, and tables as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce._utils.params import is_iterable, short_repr
from gce.preprocessing.columns import (
    TIMES,
    CategoryTotals,
    Column,
    choose_categories,
    count_categories,
    learn_dates,
)
from gce.preprocessing.dates import offer_dates
from gce.preprocessing.frames import Frame, Kind
from gce.preprocessing.sample_weights import effective_count
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.preprocessing.text_columns import TextParts, learn_text
from gce.preprocessing.text_rule import telling_components

Array = NDArray[np.float64]


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
    def fit(
        cls,
        frame: Frame,
        weight: Array,
        categorical: Any,
        counted: Mapping[int, CategoryTotals] = MappingProxyType({}),
    ) -> Schema:
        """Fit a schema.

        Parameters
        ----------
        frame : Frame
            Training rows.
        weight : array of shape (n,)
            Sample weights.
        categorical : "from_dtype", None, or list of str, int or bool
            Columns that are categories whatever their type.
        counted : mapping of int to CategoryTotals
            Columns whose values have been counted already, in more rows than these.

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
        timed = next((j for j in sorted(chosen) if frame.kinds[j] in TIMES), None)
        if timed is not None:
            raise ValueError(
                f"categorical_features has the column {frame.names[timed]!r}, which holds {frame.kinds[timed]}s: "
                "convert it to text, such as column.dt.strftime('%Y-%m'), or leave it out"
            )
        share, rows = weight / weight.sum(), effective_count(weight)
        columns = []
        for j, (name, kind, values) in enumerate(zip(frame.names, frame.kinds, frame.columns, strict=True)):
            if kind == "category" or (j in chosen and kind != "boolean"):
                column = choose_categories(name, counted.get(j) or count_categories(name, values, share, rows))
                # a column that is named as categorical is no text
                columns.append(column if j in chosen else replace(column, parts=learn_text(values, weight, rows)))
            elif kind == "date":
                columns.append(learn_dates(name, values, frame.zones.get(j)))
            else:
                columns.append(Column(name, kind))
        return cls(tuple(columns))

    def with_telling_text(self, X: Matrix, target: Array, weight: Array) -> tuple[Schema, Matrix]:
        """The schema without components of text that say nothing of the target, see :func:`telling_components`.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d + q)
            Encoded training rows.
        target : array of shape (n, k)
            Encoded targets.
        weight : array of shape (n,)
            Sample weights.

        Returns
        -------
        tuple of (Schema, array or SparseRows of shape (n, d + q'))
        """
        if isinstance(X, SparseRows) or not any(isinstance(column.parts, TextParts) for column in self.columns):
            return self, X
        kept, columns = np.ones(self.width, dtype=bool), list(self.columns)
        for j, column in enumerate(self.columns):
            if isinstance(column.parts, TextParts):
                at = len(self.columns) + np.flatnonzero(self.part_sources == j)
                kept[at] = telling_components(X[:, at], target, weight)
                columns[j] = replace(column, parts=column.parts.select(kept[at]) if kept[at].any() else None)
        return Schema(tuple(columns)), X if kept.all() else np.ascontiguousarray(X[:, kept])

    def encode(self, frame: Frame) -> Matrix:
        """A frame as numbers ``(n, d + q)``: codes of categories, NaN for missing values; then parts of columns.

        Parameters
        ----------
        frame : Frame
            The rows.

        Returns
        -------
        array or SparseRows of shape (n, d + q)
            The first ``d`` columns are those of the frame, the others :attr:`part_sources` and :attr:`part_names`.
        """
        if frame.matrix is not None and all(column.kind in ("number", "boolean") for column in self.columns):
            return frame.matrix
        if isinstance(frame.matrix, SparseRows):
            raise ValueError("the model was fitted on categories, which sparse rows cannot hold: pass X.toarray()")
        encoded = self._encode_own(frame)
        for column, own, values in zip(self.columns, list(encoded), frame.columns, strict=True):
            if column.parts is not None:
                encoded.append(column.parts.transform(values if column.kind == "category" else own))
        return np.column_stack(encoded)

    def encode_columns(self, frame: Frame) -> Array:
        """The same without the parts of columns, ``(n, d)``.

        Parameters
        ----------
        frame : Frame
            The rows, not sparse.

        Returns
        -------
        array of shape (n, d)
        """
        return np.column_stack(self._encode_own(frame))

    def _encode_own(self, frame: Frame) -> list[Array]:
        given = enumerate(zip(self.columns, frame.kinds, frame.columns, strict=True))
        return [column.encode(kind, values, frame.zones.get(j)) for j, (column, kind, values) in given]

    @property
    def part_sources(self) -> NDArray[np.intp]:
        """The column that each part is made of, ``(q,)``."""
        counts = [0 if column.parts is None else len(column.parts.names) for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), counts)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts, such as "arrival: month"."""
        return tuple(f"{c.name}: {part}" for c in self.columns if c.parts is not None for part in c.parts.names)

    @property
    def width(self) -> int:
        """Number of encoded columns, ``d + q``."""
        return len(self.columns) + len(self.part_sources)

    @property
    def warning(self) -> str | None:
        """A message about the columns with a warning, None if there are none."""
        warnings = [f"{column.name!r} ({column.warning})" for column in self.columns if column.warning is not None]
        if not warnings:
            return None
        shown = "; ".join(warnings[:10]) + (f"; and {len(warnings) - 10:,} more columns" if len(warnings) > 10 else "")
        return f"a category that occurs once says nothing of other rows: {shown}. Drop such columns"

    def indices_of_kind(self, *kinds: Kind) -> NDArray[np.intp]:
        """Indices of the columns of some kinds."""
        return np.array([j for j, column in enumerate(self.columns) if column.kind in kinds], dtype=np.intp)

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Indices of the encoded columns that are numbers: some of the table's own, and all parts."""
        own = [j for j, column in enumerate(self.columns) if column.is_number]
        return np.array([*own, *range(len(self.columns), self.width)], dtype=np.intp)

    def monotonic_signs(self, given: Mapping[str, int] | ArrayLike) -> NDArray[np.int64]:
        """Monotonic constraints by column.

        Parameters
        ----------
        given : mapping of str to int, or array-like of shape (d,)
            -1, 0 or 1 by name, or for each column; only numbers, dates (of which the elapsed time is constrained, the
            calendar parts are not) and durations can be constrained.

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
            if sign and not column.is_number:
                raise ValueError(
                    f"monotonic_cst is {sign} for {column.name!r}, which has no order because it is a {column.kind}"
                )
        return listed.astype(np.int64)


def text_that_reads_as_dates(frame: Frame) -> str | None:
    """A message about the text columns of a frame that are ISO 8601 dates, None if there are none.

    Parameters
    ----------
    frame : Frame

    Returns
    -------
    str or None
    """
    text = [j for j, kind in enumerate(frame.kinds) if kind == "category"]
    return offer_dates([frame.names[j] for j in text], [frame.columns[j] for j in text])


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
