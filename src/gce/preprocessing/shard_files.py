"""Rows of Parquet and Arrow files, and of batches in memory: what there is, and the rows of one unit.

A unit is what is read at once: a row group of a Parquet file, a record batch of an Arrow file, or a batch.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from gce._utils.optional import import_optional
from gce._utils.params import is_iterable, short_repr
from gce._utils.text import escape_control

#: Formats by the endings of their files.
ENDINGS = {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}
_ENDINGS = ", ".join(ENDINGS)
#: Characters of a pattern.
_WILD = frozenset("*?[")

#: From the number of a unit and names of columns to a table.
Read = Callable[[int, Sequence[str]], Any]


class Stamp(NamedTuple):
    """What the system says of a file; one that is written again or replaced gets another.

    Its number is not compared: some network file systems give a file a new one at any time.

    Parameters
    ----------
    size : int
    modified : int
        The time of the last change, in nanoseconds.
    """

    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file now."""
        about = path.stat()
        return cls(about.st_size, about.st_mtime_ns)


@dataclass(frozen=True, eq=False)
class Piece:
    """One file, or one batch in memory.

    Parameters
    ----------
    name : str
        Its path, or ``batch 3``.
    schema : pyarrow.Schema
        Its columns.
    rows : tuple of int
        Rows of each of its units.
    unit : str
        What a unit is called: ``row group``, ``record batch``, or nothing for a batch, which is its own unit.
    read : callable
        From the number of a unit and names of columns to a ``pyarrow.Table``.
    path : Path, optional
        The file.
    stamp : Stamp, optional
        What the system said of the file when it was opened.
    """

    name: str
    schema: Any
    rows: tuple[int, ...]
    unit: str
    read: Read
    path: Path | None = None
    stamp: Stamp | None = None


def find_pieces(source: Any) -> list[Piece]:
    """The files of paths and patterns, or the batches of an iterable; only metadata of files is read.

    Parameters
    ----------
    source : str, Path, list of these, or iterable of pyarrow.RecordBatch or pyarrow.Table
        See :class:`gce.Shards`.

    Returns
    -------
    list of Piece

    Raises
    ------
    FileNotFoundError
        A path does not exist, or no file matches a pattern.
    ValueError
        A file cannot be read, or has another ending.
    TypeError
        The source is none of these, or can be read only once.
    """
    pa = import_optional("pyarrow", "arrow")
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, pa.Table | pa.RecordBatch):
        source = [source]
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source):
        return [_open_file(path) for path in _find_files(source)]
    if not isinstance(source, Iterable):
        raise TypeError(
            f"source is {short_repr(source)}: give paths or patterns of Parquet or Arrow files, or a list of "
            "pyarrow.RecordBatch"
        )
    if isinstance(source, Iterator):
        raise TypeError(
            f"source is a {type(source).__name__}, which can be read only once: give a list, or an object whose "
            "__iter__ begins anew each time"
        )
    return _open_batches(source)


def is_pattern(path: str) -> bool:
    """Whether a path stands for several files: it has ``*``, ``?`` or ``[`` and is no file itself, or is a folder.

    Parameters
    ----------
    path : str
    """
    return Path(path).is_dir() or (not _WILD.isdisjoint(path) and not Path(path).exists())


def _find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files of all patterns, sorted by their names."""
    found = [path for pattern in patterns for path in _matching(os.fspath(pattern))]
    twice = [path for path, count in Counter(found).items() if count > 1]
    if twice:
        raise ValueError(f"source names the file {str(twice[0])!r} twice: name each file once")
    return sorted(found)


def _matching(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        inside = [one for one in path.iterdir() if one.suffix.lower() in ENDINGS and one.name[0] not in "._"]
        if not inside:
            raise FileNotFoundError(f"the folder {pattern!r} has no files that end in {_ENDINGS}: name other files")
        return inside
    if path.exists():
        return [path]
    if _WILD.isdisjoint(pattern):
        raise FileNotFoundError(f"the file {pattern!r} does not exist: check its path")
    # not of Path, which knows no absolute patterns
    inside = [Path(one) for one in glob.glob(pattern, recursive=True)]  # noqa: PTH207
    if not inside:
        raise FileNotFoundError(
            f"no file matches the pattern {pattern!r}: check it, it is relative to {os.fspath(Path.cwd())!r}"
        )
    return inside


def _open_file(path: Path) -> Piece:
    kind = ENDINGS.get(path.suffix.lower())
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder: end the pattern with the ending of its files, as in *.parquet")
    if kind is None:
        raise ValueError(
            f"the file {str(path)!r} does not end in one of {_ENDINGS}: convert it to Parquet, or rename it"
        )
    describe = _describe_parquet if kind == "Parquet" else _describe_arrow
    try:
        # before its contents: what is written between the two is a change
        stamp = Stamp.of(path)
        return replace(describe(path), stamp=stamp)
    except (ValueError, OSError, NotImplementedError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"the file {str(path)!r} cannot be read as {kind}, as its ending says ({first_line(error)}): write it again"
        ) from error


def _describe_parquet(path: Path) -> Piece:
    metadata = _parquet_metadata(path)
    rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    schema = metadata.schema.to_arrow_schema()
    return Piece(str(path), schema, rows, "row group", partial(_read_row_group, path), path)


def _parquet_metadata(path: Path) -> Any:
    return _cached_metadata(path, Stamp.of(path))


@lru_cache(maxsize=16)
def _cached_metadata(path: Path, stamp: Stamp) -> Any:
    """The metadata of a file: that of many row groups takes long to read, and each of them needs it."""
    return import_optional("pyarrow.parquet", "arrow").read_metadata(path)


def _read_row_group(path: Path, group: int, columns: Sequence[str]) -> Any:
    parquet = import_optional("pyarrow.parquet", "arrow")
    with parquet.ParquetFile(path, metadata=_parquet_metadata(path)) as file:
        # "a" also reads a column "a.b"
        return file.read_row_group(group, columns=list(columns)).select(list(columns))


def _describe_arrow(path: Path) -> Piece:
    pa, ipc = import_optional("pyarrow", "arrow"), import_optional("pyarrow.ipc", "arrow")
    with pa.memory_map(str(path)) as file:
        # the numbers of rows are with the batches, which are decompressed: one column of them is enough
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=[0]))
        rows = tuple(reader.get_batch(batch).num_rows for batch in range(reader.num_record_batches))
    with pa.memory_map(str(path)) as file:
        schema = ipc.open_file(file).schema
    return Piece(str(path), schema, rows, "record batch", partial(_read_record_batch, path), path)


def _read_record_batch(path: Path, batch: int, columns: Sequence[str]) -> Any:
    pa, ipc = import_optional("pyarrow", "arrow"), import_optional("pyarrow.ipc", "arrow")
    with pa.memory_map(str(path)) as file:
        schema = ipc.open_file(file).schema
        options = ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in columns])
        # the memory of the file stays as long as the table that shows it
        table = pa.Table.from_batches([ipc.open_file(file, options=options).get_batch(batch)]).select(list(columns))
    # lengths and offsets are as the file has them, and Arrow reads where they point
    table.validate(full=True)
    return table


def _open_batches(source: Iterable[Any]) -> list[Piece]:
    pa = import_optional("pyarrow", "arrow")
    if not is_iterable(source):
        raise TypeError(f"source must be paths or batches, got {short_repr(source)}")
    batches = _Batches(source)
    pieces = []
    for i, batch in enumerate(source):
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise TypeError(
                f"source must be pyarrow.RecordBatch or pyarrow.Table objects, or only paths, got {short_repr(source)}"
                f": its item {i} is of type {type(batch).__name__}"
            )
        pieces.append(Piece(f"batch {i}", batch.schema, (batch.num_rows,), "", partial(batches.read, i)))
    return pieces


class _Batches:
    """Batches by their number, of an iterable that gives them in order.

    Parameters
    ----------
    source : iterable of pyarrow.RecordBatch or pyarrow.Table
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = source
        self._rest: Iterator[Any] = iter(())
        self._next = 0

    def read(self, i: int, unit: int, columns: Sequence[str]) -> Any:
        """Columns of batch ``i``; those before it are passed over, from the last one that was read or from the start.

        Parameters
        ----------
        i : int
        unit : int
            0: a batch is one unit.
        columns : sequence of str

        Returns
        -------
        pyarrow.Table
        """
        pa = import_optional("pyarrow", "arrow")
        batch = self._source[i] if isinstance(self._source, list | tuple) else self._advance(i)
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        return batch.select(list(columns))

    def _advance(self, i: int) -> Any:
        if i < self._next or self._next == 0:
            self._rest, self._next = iter(self._source), 0
        for batch in self._rest:
            self._next += 1
            if self._next == i + 1:
                return batch
        raise ValueError(
            f"source gave {self._next} batches, fewer than when it was opened: it must give the same ones each time"
        )


def first_line(error: BaseException) -> str:
    """The first line of an error, without the control characters that damaged files put there.

    Parameters
    ----------
    error : BaseException
    """
    lines = (line.strip().rstrip(".") for line in str(error).splitlines() if line.strip())
    return escape_control(next(lines, type(error).__name__))
