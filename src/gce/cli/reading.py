"""Tables from files and standard input: CSV, Parquet and Arrow, recognised by their first bytes or their suffix."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gce._utils.params import counted
from gce.cli.failures import DataError
from gce.cli.rendering import some, warn
from gce.preprocessing.dates import ISO_DATE, are_iso_dates

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
_ZSTD = b"\x28\xb5\x2f\xfd"
#: Of UTF-32 before UTF-16, whose mark begins it.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: Names that polars gives to columns whose name was there already.
_RENAMED = re.compile(r"(.*)_duplicated_\d+", re.DOTALL)
#: Names that pandas gives the columns of an unnamed index.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class Cells:
    """How the cells of a table are read.

    Parameters
    ----------
    missing : sequence of str
        Values of a CSV that are missing, besides empty ones.
    encoding : str, optional
        The encoding of a CSV without a byte order mark. Default: UTF-8.
    dates : sequence of str
        Columns of text that are ISO 8601 dates.
    find_dates : bool
        Other features that are text in this form are dates, too.
    """

    missing: Sequence[str] = ()
    encoding: str | None = None
    dates: Sequence[str] = ()
    find_dates: bool = False


#: Of a table of which nothing is said.
_PLAIN = Cells()


def read_table(
    path: str, cells: Cells = _PLAIN, text: Collection[str] = (), keep: Collection[str] = ()
) -> pl.DataFrame:
    """Read a table without the index of a pandas frame; ``-`` is standard input.

    Parameters
    ----------
    path : str
    cells : Cells
        What they mean; dates are not searched for here.
    text : collection of str
        Columns of a CSV that are text even if they look like numbers.
    keep : collection of str
        Columns to keep even if they are an index.
    """
    source: Source = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else Path(path)
    head = _head(source)
    marks = (kind for mark, kind in _MAGIC.items() if head.startswith(mark))
    kind = next(marks, None) or _SUFFIXES.get(Path(path).suffix.lower(), "CSV")
    try:
        if kind in _READERS:
            frame = _READERS[kind](source)
        else:
            frame = _read_csv(path, _as_utf8(path, source, head, cells.encoding), cells.missing, {*text, *cells.dates})
        if kind in _READERS:
            frame = _without_index(path, frame, _index_columns(source, kind, frame.columns), keep)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError, zlib.error) as error:
        # a panic is what is left of some damaged files, and no Exception; the system names the file itself
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = next(iter(str(error).splitlines()), "").rstrip(". ")
        if kind == "CSV" and reason.startswith("invalid utf-8"):
            raise _not_utf8(path) from error
        raise DataError(f"{named(path)} cannot be read as {kind}: {reason}") from error
    written = [column for column in frame if column.name in cells.dates and column.dtype == pl.String]
    return frame.with_columns(_parse_dates(path, column) for column in written)


def find_dates(path: str, frame: pl.DataFrame, others: Collection[str]) -> list[pl.Series]:
    """The columns of text, but for some others, of which all values are ISO 8601 dates, as dates."""
    found = []
    for column in frame:
        if column.dtype != pl.String or column.name in others:
            continue
        _warn_of_words_among_dates(column)
        if are_iso_dates(column.to_numpy()):
            # what a few values spoil is left to the warning of the fit
            with suppress(DataError):
                found.append(_parse_dates(path, column))
    return found


def _warn_of_words_among_dates(column: pl.Series) -> None:
    """Warn if words make a column of dates text: each distinct date would be a category."""
    cells = column.drop_nulls()
    words = cells.filter(~cells.str.contains(f"^(?:{ISO_DATE.pattern})$"))
    if 0 < len(words) <= len(cells) / 2:
        dates = f"{len(cells) - len(words):,} of its {counted(len(cells), 'value')}"
        warn(f"column {column.name!r} is text, though {dates} are dates: use --missing {words[0]!r} to read it so")


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


def _as_utf8(path: str, source: Source, head: bytes, encoding: str | None) -> Source:
    """A CSV in UTF-8, which is what polars reads: a byte order mark is more certain than ``encoding``."""
    known = _marked(head) or encoding
    # polars knows the mark of UTF-8
    if known is None or _marked(head) == "utf-8":
        _check_utf8(path, head)
        return source
    raw = _decompressed(path, source.read_bytes() if isinstance(source, Path) else source.getvalue())
    known = _marked(raw) or known
    try:
        return io.BytesIO(raw.decode(known).removeprefix("\ufeff").encode())
    except LookupError as error:
        raise DataError(
            f"--encoding {known!r} is not an encoding of text: use utf-8, utf-16, latin-1, cp1252 or another one "
            "that Python knows"
        ) from error
    except UnicodeError as error:
        raise DataError(f"{named(path)} is not text in the encoding {known!r} ({error})") from error


def _marked(head: bytes) -> str | None:
    """The encoding that a byte order mark says."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)


def _decompressed(path: str, raw: bytes) -> bytes:
    """The contents of a file that is to be decoded, which polars would decompress itself."""
    if not raw.startswith(_COMPRESSED):
        return raw
    if raw.startswith(_ZSTD):
        raise DataError(f"{named(path)} is compressed by zstd, and --encoding needs it as it is: decompress it first")
    return gzip.decompress(raw) if raw.startswith(_COMPRESSED[0]) else zlib.decompress(raw)


def _check_utf8(path: str, head: bytes) -> None:
    """Check that the names of the columns are UTF-8; polars checks the cells."""
    if head.startswith(_COMPRESSED):
        return
    if max(head[::2].count(0), head[1::2].count(0)) > len(head) / 4:
        raise DataError(
            f"{named(path)} is no text in UTF-8 but looks like UTF-16: name its encoding, such as --encoding utf-16-le"
        )
    try:
        # the last character may be cut
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _not_utf8(path: str) -> DataError:
    return DataError(
        f"{named(path)} is not text in UTF-8: name its encoding, such as --encoding latin-1 or --encoding cp1252"
    )


def _read_csv(path: str, source: Source, missing: Sequence[str], text: Collection[str]) -> pl.DataFrame:
    head = _head(source)
    separator = "," if head.startswith(_COMPRESSED) else _separator(head)
    names = pl.read_csv(source, separator=separator, n_rows=0, infer_schema=False).columns
    _check_names(path, source, separator, names)
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


def _check_names(path: str, source: Source, separator: str, names: Sequence[str]) -> None:
    """Check that no two columns have one name: polars gives the second one another name."""
    repeated = [name for name, count in Counter(name.strip() for name in names).items() if count > 1]
    renamed = [found[1] for found in map(_RENAMED.fullmatch, names) if found and found[1] in names]
    if isinstance(source, io.BytesIO):
        source.seek(0)
    if renamed:
        # unless they have just these names in the file
        line = pl.read_csv(
            source, separator=separator, has_header=False, n_rows=1, infer_schema=False, truncate_ragged_lines=True
        ).row(0)
        repeated += renamed if [name or "" for name in line] != list(names) else []
        if isinstance(source, io.BytesIO):
            source.seek(0)
    if repeated:
        raise DataError(
            f"{named(path)} has more than one column named {some(list(dict.fromkeys(repeated)))}: give each column its "
            "own name"
        )


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
