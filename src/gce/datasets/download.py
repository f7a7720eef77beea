"""Source files from their addresses: streamed, checked, and named only when they are whole and right."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from gce.datasets.files import MissingDataError, beside, check_source, expected, record, written
from gce.datasets.registry import Source

#: Seconds without a byte after which an address is given up.
TIMEOUT = 30.0
_BYTES_AT_ONCE = 1 << 20


class _BadBodyError(Exception):
    """The server answered, but not with the file."""


def obtain(source: Source, folder: Path) -> Path:
    """A source file, downloaded if it is not in the folder; either way its checksum was checked."""
    path = folder / source.file
    if not path.exists():
        _download(source, path)
    check_source(path, source)
    return path


def _download(source: Source, path: Path) -> None:
    failures = []
    for address in source.addresses:
        try:
            _fetch(address, source, path)
        except (URLError, HTTPException, ConnectionError, TimeoutError, _BadBodyError) as error:
            failures.append(f"{address} ({_reason(error)})")
        else:
            return
    raise MissingDataError(
        f"{source.file} is not in {path.parent} and could not be downloaded from {' or '.join(failures)}: fetch it by "
        f"other means and put it at {path}"
    )


def _fetch(address: str, source: Source, path: Path) -> None:
    algorithm, wanted = expected(path, source)
    digest = hashlib.new(algorithm, usedforsecurity=False)
    request = Request(address, headers={"User-Agent": "gce"})
    with urlopen(request, timeout=TIMEOUT) as response, written(path) as file:
        length = int(response.headers.get("Content-Length") or 0)
        with _bar(source.file, length) as advance:
            while block := response.read(_BYTES_AT_ONCE):
                file.write(block)
                digest.update(block)
                advance(len(block))
        if length and file.tell() != length:
            raise _BadBodyError(f"the answer ended after {file.tell()} of {length} bytes")
        if wanted and digest.hexdigest() != wanted:
            words = f"expected {algorithm} {wanted}, found {digest.hexdigest()}"
            raise _BadBodyError(words if source.digest else f"{words}; {_recorded_earlier(path)}")
        if not wanted:
            # named first, for the reason given in write_npz
            record(path, digest.hexdigest())


def _recorded_earlier(path: Path) -> str:
    return (
        f"the former was recorded in {beside(path).name} when the file was first seen: move that away to have whatever "
        "is there now"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code} {error.reason}"
    return str(error.reason if isinstance(error, URLError) else error) or type(error).__name__


@contextmanager
def _bar(name: str, length: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error where that is a terminal and rich is installed, else nothing."""
    if not sys.stderr.isatty():
        yield lambda size: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    except ImportError:
        yield lambda size: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(name, total=length or None)
        yield lambda size: progress.advance(task, size)
