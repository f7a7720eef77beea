"""Tables from files and standard input: CSV, Parquet and Arrow, told apart by their first bytes or their suffix."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import polars as pl

from gce.cli.failures import DataError
from gce.cli.rendering import some, warn

Source = Path | io.BytesIO

#: What files begin with. CSV has no mark: it is what nothing else is.
_MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow stream"}
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
_SUFFIXES = {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}
_READERS: dict[str, Callable[[Source], pl.DataFrame]] = {
    "Parquet": pl.read_parquet,
    "Arrow": pl.read_ipc,
    "Arrow stream": pl.read_ipc_stream,
}
_SEPARATORS = ",;\t|"
#: What pandas calls the columns of an index without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def read_table(
    path: str, missing: Sequence[str] = (), text: Collection[str] = (), keep: Collection[str] = ()
) -> pl.DataFrame:
    """Read a table; ``-`` is standard input. The index of a pandas frame is no column of it.

    Parameters
    ----------
    path : str
    missing : sequence of str
        Cells of a CSV that mean "missing" beside empty ones.
    text : collection of str
        Columns of a CSV that are text even where they look like numbers.
    keep : collection of str
        Columns that are asked for by name, so that they stay even where they are an index.
    """
    source: Source = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else Path(path)
    head = _head(source)
    marks = (kind for mark, kind in _MAGIC.items() if head.startswith(mark))
    kind = next(marks, None) or _SUFFIXES.get(Path(path).suffix.lower(), "CSV")
    try:
        frame = _READERS[kind](source) if kind in _READERS else _read_csv(source, head, missing, text)
        if kind in _READERS:
            frame = _without_index(path, frame, _index_columns(source, kind, frame.columns), keep)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        raise DataError(f"{named(path)} cannot be read as {kind}: {reason}") from error
    if frame.height == 0:
        raise DataError(f"{named(path)} has no rows")
    return frame


def named(path: str) -> str:
    """A file as messages name it."""
    return "standard input" if path == "-" else path


def _head(source: Source) -> bytes:
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(65_536)
    return source.getvalue()[:65_536]


def _index_columns(source: Source, kind: str, columns: Sequence[str]) -> list[str]:
    """The columns that hold the index of a pandas frame, by what pandas wrote beside the table and by their names."""
    unnamed = [name for name in columns if _UNNAMED_INDEX.fullmatch(name)]
    # polars tells it since 1.30 or so, of Parquet alone
    about = getattr(pl, "read_parquet_metadata", None)
    if kind != "Parquet" or about is None:
        return unnamed
    if isinstance(source, io.BytesIO):
        source.seek(0)
    try:
        listed = json.loads(about(source).get("pandas", "{}")).get("index_columns", [])
    except (ValueError, AttributeError):  # not what pandas writes
        return unnamed
    # a range is told in words and has no column
    return list(dict.fromkeys([*unnamed, *(name for name in listed if isinstance(name, str) and name in columns)]))


def _without_index(path: str, frame: pl.DataFrame, index: Sequence[str], keep: Collection[str]) -> pl.DataFrame:
    left_out = [name for name in index if name not in keep]
    own = [name for name in left_out if not _UNNAMED_INDEX.fullmatch(name)]
    if own:
        warn(f"{named(path)}: {some(own)} is the index of a pandas frame, and left out: reset_index() keeps it")
    return frame.drop(left_out)


def _read_csv(source: Source, head: bytes, missing: Sequence[str], text: Collection[str]) -> pl.DataFrame:
    separator = "," if head.startswith(_COMPRESSED) else _separator(head)
    names = pl.read_csv(source, separator=separator, n_rows=0).columns
    if isinstance(source, io.BytesIO):
        source.seek(0)
    frame = pl.read_csv(
        source,
        separator=separator,
        null_values=["", *missing],
        infer_schema_length=None,
        # a date is refused by the model with a sentence; left as text it would become a category
        try_parse_dates=True,
        schema_overrides={name: pl.String for name in names if name.strip() in text},
    )
    frame = frame.rename({name: name.strip() for name in frame.columns})
    words = [_trimmed(column, missing) for column in frame if column.dtype == pl.String]
    return frame.with_columns(word if word.name in text else _number(word, separator) for word in words)


def _separator(head: bytes) -> str:
    """The separator that cuts the first line into most names; the comma where none does."""
    lines = head.decode("utf-8-sig", errors="replace").lstrip("\r\n").splitlines()[:1]
    return max(_SEPARATORS, key=lambda mark: max((len(row) for row in csv.reader(lines, delimiter=mark)), default=0))


def _trimmed(column: pl.Series, missing: Sequence[str]) -> pl.Series:
    """A text column without blanks around its cells."""
    trimmed = column.str.strip_chars()
    return trimmed.set(trimmed.is_in(["", *missing]), None)


def _number(column: pl.Series, separator: str) -> pl.Series:
    """The numbers that blanks or decimal commas hid, where all of a text column is such; else the column."""
    # who separates by semicolons writes decimals with commas
    plain = column if separator == "," else column.str.replace(",", ".", literal=True)
    numbers = (plain.cast(kind, strict=False) for kind in (pl.Int64, pl.Float64))
    known = len(column) - column.null_count()
    return next((number for number in numbers if len(number) - number.null_count() == known > 0), column)
