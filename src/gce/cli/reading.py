"""Tables from files and standard input: CSV, Parquet and Arrow, recognised by their first bytes or their suffix."""

from __future__ import annotations

import csv
import datetime
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

#: First bytes of the formats; CSV, which has none, is the fallback.
_MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow stream"}
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda")
_SUFFIXES = {".parquet": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow"}
_READERS: dict[str, Callable[[Source], pl.DataFrame]] = {
    "Parquet": pl.read_parquet,
    "Arrow": pl.read_ipc,
    "Arrow stream": pl.read_ipc_stream,
}
_SEPARATORS = ",;\t|"
#: Names that pandas gives the columns of an unnamed index.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def read_table(
    path: str,
    missing: Sequence[str] = (),
    text: Collection[str] = (),
    keep: Collection[str] = (),
    dates: Collection[str] = (),
) -> pl.DataFrame:
    """Read a table without the index of a pandas frame; ``-`` is standard input.

    Parameters
    ----------
    path : str
    missing : sequence of str
        Values of a CSV that are missing, besides empty ones.
    text : collection of str
        Columns of a CSV that are text even if they look like numbers.
    keep : collection of str
        Columns to keep even if they are an index.
    dates : collection of str
        Columns of text that are ISO 8601 dates.
    """
    source: Source = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else Path(path)
    head = _head(source)
    marks = (kind for mark, kind in _MAGIC.items() if head.startswith(mark))
    kind = next(marks, None) or _SUFFIXES.get(Path(path).suffix.lower(), "CSV")
    try:
        frame = _READERS[kind](source) if kind in _READERS else _read_csv(source, head, missing, {*text, *dates})
        if kind in _READERS:
            frame = _without_index(path, frame, _index_columns(source, kind, frame.columns), keep)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        # a panic is what is left of some damaged files, and no Exception; the system names the file itself
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = next(iter(str(error).splitlines()), "").rstrip(". ")
        raise DataError(f"{named(path)} cannot be read as {kind}: {reason}") from error
    written = [column for column in frame if column.name in dates and column.dtype == pl.String]
    return frame.with_columns(_parse_dates(path, column) for column in written)


def named(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == "-" else path


def _head(source: Source) -> bytes:
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(65_536)
    return source.getvalue()[:65_536]


def _index_columns(source: Source, kind: str, columns: Sequence[str]) -> list[str]:
    """The columns of a pandas index, by the metadata that pandas writes and by their names."""
    unnamed = [name for name in columns if _UNNAMED_INDEX.fullmatch(name)]
    # polars has the metadata of Parquet files only
    if kind != "Parquet":
        return unnamed
    if isinstance(source, io.BytesIO):
        source.seek(0)
    try:
        listed = json.loads(pl.read_parquet_metadata(source).get("pandas", "{}")).get("index_columns", [])
    except (ValueError, AttributeError):  # not what pandas writes
        return unnamed
    # a RangeIndex is a dict and has no column
    return list(dict.fromkeys([*unnamed, *(name for name in listed if isinstance(name, str) and name in columns)]))


def _without_index(path: str, frame: pl.DataFrame, index: Sequence[str], keep: Collection[str]) -> pl.DataFrame:
    left_out = [name for name in index if name not in keep]
    own = [name for name in left_out if not _UNNAMED_INDEX.fullmatch(name)]
    if own:
        warn(f"{named(path)}: {some(own)} is the index of a pandas frame and was dropped: reset_index() keeps it")
    return frame.drop(left_out)


def _read_csv(source: Source, head: bytes, missing: Sequence[str], text: Collection[str]) -> pl.DataFrame:
    separator = "," if head.startswith(_COMPRESSED) else _separator(head)
    names = pl.read_csv(source, separator=separator, n_rows=0, infer_schema=False).columns
    if isinstance(source, io.BytesIO):
        source.seek(0)
    frame = pl.read_csv(
        source,
        separator=separator,
        null_values=["", *missing],
        infer_schema_length=None,
        schema_overrides={name: pl.String for name in names if name.strip() in text},
    )
    frame = frame.rename({name: name.strip() for name in frame.columns})
    texts = [_stripped(column, missing) for column in frame if column.dtype == pl.String]
    return frame.with_columns(column if column.name in text else _parse_numbers(column, separator) for column in texts)


def _separator(head: bytes) -> str:
    """The separator that splits the first line into most names; the comma on ties."""
    lines = head.decode("utf-8-sig", errors="replace").lstrip("\r\n").splitlines()[:1]
    return max(_SEPARATORS, key=lambda mark: max((len(row) for row in csv.reader(lines, delimiter=mark)), default=0))


def _stripped(column: pl.Series, missing: Sequence[str]) -> pl.Series:
    """A text column without surrounding whitespace."""
    stripped = column.str.strip_chars()
    return stripped.set(stripped.is_in(["", *missing]), None)


def _parse_dates(path: str, column: pl.Series) -> pl.Series:
    """A column of ISO 8601 dates, in UTC where they have an offset from it."""
    distinct = column.drop_nulls().unique()
    found = {text: _parse_date(path, column.name, text) for text in distinct.to_list()}
    aware = {date.tzinfo is not None for date in found.values()}
    if len(aware) > 1:
        raise DataError(
            f"column {column.name!r} of {named(path)} has dates with an offset from UTC and dates without: write all "
            "of them in one way"
        )
    utc = [None if text is None else found[text] for text in column.to_list()]
    return pl.Series(column.name, utc, dtype=pl.Datetime("us", "UTC" if True in aware else None))


def _parse_date(path: str, name: str, text: str) -> datetime.datetime:
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise DataError(
            f"column {name!r} of {named(path)} has {text!r}, which is no ISO 8601 date such as 2026-01-31 or "
            "2026-01-31T12:00:00: convert the column, or name such values with --missing"
        ) from error
    return date if date.tzinfo is None else date.astimezone(datetime.UTC)


def _parse_numbers(column: pl.Series, separator: str) -> pl.Series:
    """A text column as numbers if whitespace or decimal commas hid them in every cell; else unchanged."""
    # files separated by semicolons have decimal commas
    plain = column if separator == "," else column.str.replace(",", ".", literal=True)
    numbers = (plain.cast(kind, strict=False) for kind in (pl.Int64, pl.Float64))
    present = len(column) - column.null_count()
    return next((number for number in numbers if len(number) - number.null_count() == present > 0), column)
