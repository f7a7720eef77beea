"""Columns in model files, with the numbers that are made of them beside their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from numpy.typing import NDArray

from gce.preprocessing.columns import Column, Parts
from gce.preprocessing.date_parts import DateParts
from gce.preprocessing.dates import zone_of
from gce.preprocessing.text_columns import TextParts

Arrays = dict[str, NDArray[Any]]

#: Kinds of parts, by their names in files.
PARTS: dict[str, Any] = {
    "calendar": DateParts,
    "text": TextParts,
}
#: Keys of a column in model files, where they differ from its attributes.
_FILE_KEYS = {"categories": "levels", "n_distinct": "distinct", "other_share": "others", "n_frequent": "frequent"}


def store_columns(columns: Sequence[Column]) -> tuple[list[dict[str, Any]], Arrays]:
    """The state of columns for a file, as JSON values of each and arrays of all.

    Parameters
    ----------
    columns : sequence of Column

    Returns
    -------
    tuple of (list of dict, dict of str to array)
    """
    listed: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for j, column in enumerate(columns):
        present = {
            _FILE_KEYS.get(own.name, own.name): value
            for own in fields(column)
            if own.name != "parts" and (value := getattr(column, own.name)) is not None
        }
        if column.parts is not None:
            kind = next(name for name, kind in PARTS.items() if type(column.parts) is kind)
            meta, more = column.parts.state()
            present["parts"] = {"kind": kind, **meta}
            arrays |= {f"{_prefix(j)}{name}": own for name, own in more.items()}
        listed.append(present)
    return listed, arrays


def restore_columns(listed: Sequence[dict[str, Any]], arrays: Arrays) -> tuple[Column, ...]:
    """Restore columns from their state.

    Parameters
    ----------
    listed : sequence of dict
        JSON values of each column.
    arrays : dict of str to array

    Returns
    -------
    tuple of Column

    Raises
    ------
    ValueError
        There is no such kind of parts, or its state is inconsistent.
    """
    return tuple(
        Column(
            c["name"],
            c["kind"],
            tuple(c["levels"]),
            c.get("distinct"),
            c.get("others"),
            c.get("frequent"),
            c.get("time_zone"),
            _restore_parts(c["parts"], starting_with(_prefix(j), arrays)) if "parts" in c else None,
        )
        for j, c in enumerate(listed)
    )


def _restore_parts(meta: Any, arrays: Arrays) -> Parts:
    kind = meta.get("kind") if isinstance(meta, dict) else None
    if not isinstance(kind, str) or kind not in PARTS:
        raise ValueError(f"there is no kind of parts {kind!r}")
    restored: Parts = PARTS[kind].from_state({name: own for name, own in meta.items() if name != "kind"}, arrays)
    return restored


def _prefix(j: int) -> str:
    """How the names of arrays of a column's parts begin."""
    return f"columns.{j}.parts."


def starting_with(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, without it.

    Parameters
    ----------
    prefix : str
    arrays : dict of str to array

    Returns
    -------
    dict of str to array
    """
    return {name.removeprefix(prefix): own for name, own in arrays.items() if name.startswith(prefix)}


def is_valid(column: Column) -> bool:
    """Whether a column from a file is one that a fit leaves."""
    is_text = isinstance(column.parts, TextParts)
    return _has_valid_counts(column) and _has_valid_zone(column) and (column.kind == "category" or not is_text)


def _has_valid_zone(column: Column) -> bool:
    """Whether a column of dates has calendar parts, and no other column has them or a time zone."""
    if column.kind != "date":
        return column.time_zone is None and not isinstance(column.parts, DateParts)
    if column.time_zone is not None:
        zone_of(str(column.time_zone))
    return isinstance(column.parts, DateParts) and isinstance(column.time_zone, str | None)


def _has_valid_counts(column: Column) -> bool:
    """Whether a column's counts of categories are valid; they are None in old files."""
    if column.n_distinct is None or column.other_share is None:
        return column.n_distinct is column.other_share is None
    whole = type(column.n_distinct) is int and len(column.categories) <= column.n_distinct < 2**53
    whole &= column.n_frequent is None or (
        type(column.n_frequent) is int and 0 <= column.n_frequent <= len(column.categories)
    )
    return column.kind == "category" and whole and type(column.other_share) is float and 0 <= column.other_share <= 1
