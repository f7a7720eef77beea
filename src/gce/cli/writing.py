"""Tables to files by their suffix, or as CSV to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from errno import EACCES, EISDIR
from os import W_OK, access, strerror
from pathlib import Path

import polars as pl
import typer

from gce.cli.rendering import harmless
from gce.storage.container import replacing

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".csv": pl.DataFrame.write_csv,
    ".parquet": pl.DataFrame.write_parquet,
    ".pq": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".feather": pl.DataFrame.write_ipc,
    ".ipc": pl.DataFrame.write_ipc,
}
#: Rows written at once: a reader that goes away is noticed before all of them are turned into text.
_ROWS_AT_ONCE = 8192


def make_room(path: Path) -> None:
    """Make the folder of a file that will be written, and refuse what cannot be one before any work is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(EISDIR, strerror(EISDIR), str(path))
    if not access(path if path.exists() else path.parent, W_OK):
        raise PermissionError(EACCES, strerror(EACCES), str(path))


def check_table_file(path: Path) -> None:
    """Refuse a name that says nothing about the format, before any work is done."""
    if str(path) == "-":
        return
    if path.suffix.lower() not in _WRITERS:
        raise typer.BadParameter(f"{str(path)!r} must end in one of {', '.join(_WRITERS)}", param_hint="--out")
    make_room(path)


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table; ``-`` is CSV on standard output."""
    if str(path) == "-":
        for number, part in enumerate(frame.iter_slices(_ROWS_AT_ONCE)):
            lines = part.write_csv(include_header=number == 0)
            # a program that reads them gets them as they are
            sys.stdout.write(harmless(lines) if sys.stdout.isatty() else lines)
        return
    write = _WRITERS[path.suffix.lower()]
    if path.is_fifo():
        write(frame, path)
        return
    with replacing(path) as new:
        write(frame, new)
