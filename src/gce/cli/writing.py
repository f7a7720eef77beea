"""Write tables, in the format of the suffix, or as CSV to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from errno import EACCES, EISDIR
from os import W_OK, access, strerror
from pathlib import Path

import polars as pl
import typer

from gce._utils.text import escape_control
from gce.cli.rendering import encodable, in_encoding
from gce.io.atomic import atomic_replace, remove_abandoned_files

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".csv": pl.DataFrame.write_csv,
    ".parquet": pl.DataFrame.write_parquet,
    ".pq": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".feather": pl.DataFrame.write_ipc,
    ".ipc": pl.DataFrame.write_ipc,
}
#: Rows per write: a closed pipe is noticed before all rows are formatted.
_BATCH_ROWS = 8192


def prepare_output(path: Path) -> None:
    """Create the folder of an output file, and raise an error early if the file cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(EISDIR, strerror(EISDIR), str(path))
    if not access(path if path.exists() else path.parent, W_OK):
        raise PermissionError(EACCES, strerror(EACCES), str(path))


def check_table_file(path: Path) -> None:
    """Raise an error early if the suffix is not that of a table format."""
    if str(path) == "-":
        return
    if path.suffix.lower() not in _WRITERS:
        raise typer.BadParameter(f"{str(path)!r} must end in one of {', '.join(_WRITERS)}", param_hint="--out")
    prepare_output(path)


def _write_lines(lines: str) -> None:
    """Write a part of a table on standard output: escaped for terminals only, not for programs."""
    # a stream that was put in place of standard output may have none
    encoding = getattr(sys.stdout, "encoding", None)
    known = encodable(lines, encoding)
    if sys.stdout.isatty():
        lines = escape_control(lines)
        sys.stdout.write(lines if known else in_encoding(lines, encoding))
    elif known:
        sys.stdout.write(lines)
    else:
        # as in a file: escaped labels would be other labels
        sys.stdout.flush()
        sys.stdout.buffer.write(lines.encode())


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table; ``-`` is CSV on standard output."""
    if str(path) == "-":
        # the names of the columns also without rows
        for first in range(0, max(frame.height, 1), _BATCH_ROWS):
            lines = frame[first : first + _BATCH_ROWS].write_csv(include_header=first == 0)
            _write_lines(lines)
        return
    write = _WRITERS[path.suffix.lower()]
    if path.is_fifo():
        write(frame, path)
        return
    remove_abandoned_files(path)
    with atomic_replace(path) as new:
        try:
            write(frame, new)
        except pl.exceptions.PolarsError as error:
            # what the system refused is an error of the format there, without the file
            raise OSError(f"{path} could not be written: {next(iter(str(error).splitlines()), '')}") from error
