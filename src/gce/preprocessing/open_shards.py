"""What is in the files of :class:`gce.Shards`, and how their rows are divided."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gce._utils.optional import import_optional
from gce.preprocessing.shard_checks import (
    check_kinds,
    check_names,
    check_roles,
    check_rows,
    common_schema,
    distinct_schemas,
    index_columns,
    listed,
    warn_of_index,
)
from gce.preprocessing.shard_files import Piece, Stamp, find_pieces, first_line
from gce.preprocessing.shard_types import cast_column, is_text
from gce.preprocessing.shards import Shards

#: Bytes at the end of a file by which it is recognised: those of Parquet have ranges of the values.
_TAIL = 2**16
#: Logical shards of a fit.
MOST_SHARDS = 256


class Unit(NamedTuple):
    """What is read at once: a row group, a record batch of a file, or a batch.

    Parameters
    ----------
    rows : int
        How many rows it has, at least one.
    name : str
        What it is called in messages.
    """

    rows: int
    name: str


@dataclass(frozen=True, eq=False)
class OpenShards:
    """Checked rows in files or batches, of one set of columns.

    Parameters
    ----------
    columns : tuple of str
        The features, in the order of the first file.
    targets : tuple of str
        The columns to predict.
    weight, group : str or None
        The columns of sample weights and of groups.
    schema : pyarrow.Schema
        Features, targets, weight and group, with the types that :meth:`read` gives.
    pieces : tuple of Piece
        The files or batches.

    Attributes
    ----------
    units : tuple of Unit
        What is read at once, in order.
    rows : int
        Rows of all units.
    """

    columns: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    group: str | None
    schema: Any
    pieces: tuple[Piece, ...]
    units: tuple[Unit, ...] = field(init=False)
    _places: tuple[tuple[Piece, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # an empty row group is no unit: no file has to be written again because of one
        places = tuple((piece, i) for piece in self.pieces for i, rows in enumerate(piece.rows) if rows)
        units = tuple(
            Unit(piece.rows[i], f"{piece.unit} {i} of {piece.name}" if piece.unit else piece.name)
            for piece, i in places
        )
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "units", units)

    @property
    def rows(self) -> int:
        """Rows of all units."""
        return sum(unit.rows for unit in self.units)

    def read(self, i: int, columns: Sequence[str] | None = None) -> Any:
        """The rows of a unit.

        Parameters
        ----------
        i : int
            The number of the unit.
        columns : sequence of str, optional
            Some of the columns of ``schema``; by default all.

        Returns
        -------
        pyarrow.Table of shape (rows, columns)

        Raises
        ------
        ValueError
            The rows cannot be read, or are not those that there were when the shards were opened.
        """
        pa = import_optional("pyarrow", "arrow")
        names = self.schema.names if columns is None else list(columns)
        unit, (piece, own) = self.units[i], self._places[i]
        try:
            table = piece.read(own, names)
            changed = piece.path is not None and Stamp.of(piece.path) != piece.stamp
        except (KeyError, pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{unit.name} can no longer be read ({first_line(error)}): open the shards again"
            ) from error
        if table.num_rows != unit.rows:
            raise ValueError(
                f"{unit.name} has {table.num_rows} rows and had {unit.rows} when it was opened: open the shards again"
            )
        if changed:
            raise ValueError(
                f"{piece.name} was written again or replaced after it was opened: let nothing write to files that are "
                "being read, and start again"
            )
        cast = [self._cast(table[name], name, unit) for name in names]
        return pa.table(cast, schema=pa.schema([self.schema.field(name) for name in names]))

    def marks(self) -> list[list[int] | None]:
        """What tells files from their copies: number in the file system, size and time of change; None for batches."""
        return [
            None if piece.path is None or piece.stamp is None else [piece.path.stat().st_ino, *piece.stamp]
            for piece in self.pieces
        ]

    def fingerprint(self) -> dict[str, Any]:
        """What these rows are recognised by in another process, or after a restart.

        Returns
        -------
        dict of str to JSON values
            Names and types of columns, rows of units; names of files without their folders, their sizes, and a hash of
            the last bytes of each.
        """
        return {
            "columns": [[name, str(dtype)] for name, dtype in zip(self.schema.names, self.schema.types, strict=True)],
            "targets": list(self.targets),
            "weight": self.weight,
            "group": self.group,
            "rows": [unit.rows for unit in self.units],
            "files": [_about_file(piece.path) for piece in self.pieces if piece.path is not None],
        }

    def _cast(self, column: Any, name: str, unit: Unit) -> Any:
        pa = import_optional("pyarrow", "arrow")
        dtype = self.schema.field(name).type
        try:
            # features are float64 in any case; two groups must not become one
            return cast_column(column, dtype, exact=name not in self.columns)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"column {name!r} of {unit.name} is {column.type} and does not fit into {dtype}, the common type of "
                f"all files ({first_line(error)}): write it as {dtype}"
            ) from error


def open_shards(shards: Shards) -> OpenShards:
    """Read the metadata of all files, and check that they fit together, see :meth:`gce.Shards.open`."""
    pieces = check_rows(find_pieces(shards.source))
    schemas = distinct_schemas(pieces)
    check_names(schemas)
    first, roles = schemas[0], shards.roles
    check_roles(roles, first)
    special = [name for names in roles.values() for name in names]
    index = [name for name in index_columns(first.schema) if name not in special]
    columns = [name for name in first.schema.names if name not in special and name not in index]
    if not columns:
        raise ValueError(f"{first.name} has no column besides {listed([*special, *index])}: add features")
    warn_of_index(index)
    targets = roles["target"]
    schema = common_schema([*columns, *targets, *roles["sample_weight"], *roles["groups"]], schemas)
    check_kinds(schema, columns, roles, first.name)
    return OpenShards(tuple(columns), targets, shards.sample_weight, shards.groups, schema, tuple(pieces))


def logical_shards(units_rows: Sequence[int], most: int = MOST_SHARDS) -> list[range]:
    """Consecutive units in groups of about equal rows, which depend on the rows only.

    Parameters
    ----------
    units_rows : sequence of int
        Rows of each unit, at least one.
    most : int, default=256
        How many groups there are at most. One has at most the rows of the largest unit more than the mean of so many.

    Returns
    -------
    list of range
        The numbers of the units of each group; where there are no more than ``most`` units, one of each.
    """
    if len(units_rows) <= most:
        return [range(i, i + 1) for i in range(len(units_rows))]
    ends = list(accumulate(units_rows))
    # by the middle of a unit, in integers: the first and the last unit of a group exceed its range by half at most
    of = [(2 * end - rows) * most // (2 * ends[-1]) for end, rows in zip(ends, units_rows, strict=True)]
    starts = [i for i, group in enumerate(of) if i == 0 or group != of[i - 1]]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(of)], strict=True)]


def assign(shard_rows: Sequence[int], size: int) -> list[range]:
    """Consecutive logical shards for each of several processes: those for which the largest number of rows is least.

    Parameters
    ----------
    shard_rows : sequence of int
        Rows of each shard.
    size : int
        How many processes there are.

    Returns
    -------
    list of range
        The numbers of the shards of each process, at least one.

    Raises
    ------
    ValueError
        There are more processes than shards.
    """
    if size > len(shard_rows):
        raise ValueError(
            f"{size} processes cannot divide {len(shard_rows)} row groups or batches among them: start fewer "
            "processes, or write files with smaller row groups"
        )
    low, high = max(max(shard_rows), -(-sum(shard_rows) // size)), sum(shard_rows)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_filled(shard_rows, middle, 1)) <= size else (middle + 1, high)
    ends = _filled(shard_rows, low, size)
    return [range(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]


def _filled(shard_rows: Sequence[int], most: int, least: int) -> list[int]:
    """Where runs of at most ``most`` rows end, each as long as it can be if there are to be ``least`` runs."""
    ends: list[int] = []
    total = 0
    for i, rows in enumerate(shard_rows):
        # the shards from here on are just enough for the runs that are still to come
        needed = len(shard_rows) - i <= least - len(ends) - 1
        if i and (total + rows > most or needed):
            ends.append(i)
            total = 0
        total += rows
    return [*ends, len(shard_rows)]


def digest_rows(table: Any) -> str:
    """A hash of the values of an Arrow table, whatever its chunks are and whatever lies beneath missing values."""
    sha = hashlib.sha256(str(table.num_rows).encode())
    for column in table.columns:
        sha.update(_digest_column(column))
    return sha.hexdigest()


def _digest_column(column: Any) -> bytes:
    """A hash of an Arrow column: of its validity, of the lengths of texts, and of the bytes of its values."""
    types = import_optional("pyarrow.types", "arrow")
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_boolean(column.type):
        column = column.cast("uint8")
    validity, lengths, content = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    for chunk in column.chunks:
        if column.null_count:
            validity.update(chunk.is_valid().cast("uint8").to_numpy())
        present = chunk.drop_null() if chunk.null_count else chunk
        if types.is_null(present.type) or len(present) == 0:
            continue
        _, first, *text = present.buffers()
        if is_text(present.type):
            width = 8 if types.is_large_string(present.type) else 4
            offsets = np.frombuffer(first, f"i{width}")[present.offset :][: len(present) + 1]
            lengths.update(np.diff(offsets).astype(np.int64).tobytes())
            content.update(memoryview(text[0] or b"")[offsets[0] : offsets[-1]])
        else:
            width = present.type.bit_width // 8
            content.update(memoryview(first)[present.offset * width :][: len(present) * width])
    return validity.digest() + lengths.digest() + content.digest()


def _about_file(path: Path) -> list[Any]:
    """Its name without the folder, its size, and a hash of its end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        return [path.name, size, hashlib.sha256(file.read()).hexdigest()]
