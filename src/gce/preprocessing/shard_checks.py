"""What files must have in common before they are fitted, and what else can be wrong with their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from gce._utils.optional import import_optional
from gce._utils.params import short_repr
from gce._utils.warn import warn_user
from gce.preprocessing.shard_files import Piece
from gce.preprocessing.shard_types import common_type, kind_of

#: Names that an error lists.
_MOST_NAMES = 8
#: The kinds of columns that each role needs, and in words.
_KINDS = {
    "target": (("number", "boolean", "text", "category of number", "category of boolean"), "numbers, text or booleans"),
    "sample_weight": (("number",), "numbers"),
    "groups": (("number", "boolean", "text", "category of number", "date"), "numbers, text or dates"),
}


def check_rows(pieces: Sequence[Piece]) -> list[Piece]:
    """Check that files have rows.

    Parameters
    ----------
    pieces : sequence of Piece

    Returns
    -------
    list of Piece
        Without batches that have no rows, which other libraries make of filtered rows.
    """
    full = [piece for piece in pieces if sum(piece.rows)]
    if not full:
        what = "source is empty" if not pieces else f"{_all(pieces)} no rows"
        raise ValueError(f"{what}: give files or batches with rows")
    empty = [piece.name for piece in pieces if piece.path is not None and not sum(piece.rows)]
    if empty:
        raise ValueError(f"{listed(empty)} has no rows: leave it out")
    return full


def distinct_schemas(pieces: Sequence[Piece]) -> list[Piece]:
    """The first file with each set of columns and types: most often one.

    Parameters
    ----------
    pieces : sequence of Piece

    Returns
    -------
    list of Piece
    """
    found: list[Piece] = []
    for piece in pieces:
        if not any(piece.schema.equals(other.schema) for other in found):
            found.append(piece)
    return found


def check_names(pieces: Sequence[Piece]) -> None:
    """Check that the names of columns differ in a file, and are the same in all files.

    Parameters
    ----------
    pieces : sequence of Piece
        At least one.

    Raises
    ------
    ValueError
    """
    first = pieces[0]
    for piece in pieces:
        repeated = [name for name, count in Counter(piece.schema.names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"{piece.name} has more than one column named {listed(repeated)}: give each column its own name"
            )
        for one, other in ((piece, first), (first, piece)):
            lacking = [name for name in other.schema.names if name not in set(one.schema.names)]
            if lacking:
                raise ValueError(
                    f"{one.name} is missing the column {listed(lacking)} of {other.name}: add it, or leave it out "
                    "everywhere"
                )


def check_roles(roles: Mapping[str, Sequence[str]], piece: Piece) -> None:
    """Check that columns that are named exist, and have one role each.

    Parameters
    ----------
    roles : dict of str to sequence of str
        Names of columns by the parameter that has them.
    piece : Piece
        The first file.

    Raises
    ------
    ValueError
    """
    names = piece.schema.names
    owner: dict[str, str] = {}
    for role, given in roles.items():
        for name in given:
            if name not in names:
                near = get_close_matches(str(name), names, n=3)
                guess = f"similar names are {listed(near)}" if near else f"it has {listed(names)}"
                raise ValueError(f"{role}={short_repr(name)} is not a column of {piece.name}: {guess}")
            if name in owner:
                raise ValueError(f"column {name!r} is both {owner[name]} and {role}: name it once")
            owner[name] = role


def common_schema(names: Sequence[str], pieces: Sequence[Piece]) -> Any:
    """The types that hold the values of columns in all files.

    Parameters
    ----------
    names : sequence of str
        The columns.
    pieces : sequence of Piece
        Files that have them.

    Returns
    -------
    pyarrow.Schema

    Raises
    ------
    ValueError
        Two files have different kinds of values.
    """
    pa = import_optional("pyarrow", "arrow")
    fields = []
    for name in names:
        types = [piece.schema.field(name).type for piece in pieces]
        dtype = common_type(types)
        if dtype is None:
            # missing values alone are of every kind
            known = [i for i, own in enumerate(types) if not pa.types.is_null(own)]
            i = known[0]
            j = next(j for j in known if common_type([types[i], types[j]]) is None)
            raise ValueError(
                f"column {name!r} is {types[j]} in {pieces[j].name} and {types[i]} in {pieces[i].name}: write it with "
                "one type in all files"
            )
        fields.append(pa.field(name, dtype))
    return pa.schema(fields)


def check_kinds(schema: Any, columns: Sequence[str], roles: Mapping[str, Sequence[str]], file: str) -> None:
    """Check that features, targets, weights and groups are of types that a fit can read.

    Parameters
    ----------
    schema : pyarrow.Schema
        All of them.
    columns : sequence of str
        The features.
    roles : dict of str to sequence of str
        Names of the other columns by the parameter that has them.
    file : str
        Where such a column is, for the error.

    Raises
    ------
    ValueError
    """
    for name in columns:
        dtype = schema.field(name).type
        if kind_of(dtype) is None:
            raise ValueError(
                f"column {name!r} of {file} is of type {dtype}: only numbers, booleans, dates, text and categories are "
                f"supported; convert it, or leave it out with drop=[{name!r}]"
            )
    for role, (kinds, words) in _KINDS.items():
        for name in roles[role]:
            dtype = schema.field(name).type
            if kind_of(dtype) not in kinds:
                raise ValueError(f"{role}={name!r} is of type {dtype} in {file}: it must be {words}")


def index_columns(schema: Any) -> list[str]:
    """Columns that are the index of a pandas frame.

    Parameters
    ----------
    schema : pyarrow.Schema

    Returns
    -------
    list of str
    """
    about = schema.pandas_metadata or {}
    # a RangeIndex is a dict and has no column
    return [name for name in about.get("index_columns", ()) if isinstance(name, str) and name in schema.names]


def warn_of_index(names: Sequence[str]) -> None:
    """Warn of an index with a name, which may have been meant as a feature.

    Parameters
    ----------
    names : sequence of str
    """
    own = [name for name in names if not name.startswith("__index_level_")]
    if own:
        warn_user(f"{listed(own)} is the index of a pandas frame and was dropped: reset_index() keeps it", UserWarning)


def listed(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are.

    Parameters
    ----------
    names : sequence of str
    """
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES:,} more"


def _all(pieces: Sequence[Piece]) -> str:
    return f"{pieces[0].name} has" if len(pieces) == 1 else f"all {len(pieces):,} files or batches have"
