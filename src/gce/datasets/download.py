"""Download of source files: streamed, verified, and atomic."""

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

#: Seconds without data after which the next address is tried.
TIMEOUT = 30.0
_BLOCK_BYTES = 1 << 20


class _BadBodyError(Exception):
    """The response of a server is not the file."""


def obtain(source: Source, folder: Path) -> Path:
    """The path of a source file, downloaded if missing, with a verified checksum."""
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
        f"{source.file} is not in {path.parent} and could not be downloaded from {' or '.join(failures)}: download "
        f"it by other means and put it at {path}"
    )


def _fetch(address: str, source: Source, path: Path) -> None:
    algorithm, wanted = expected(path, source)
    digest = hashlib.new(algorithm, usedforsecurity=False)
    request = Request(address, headers={"User-Agent": "gce"})
    with urlopen(request, timeout=TIMEOUT) as response, written(path) as file:
        length = int(response.headers.get("Content-Length") or 0)
        with _bar(source.file, length) as advance:
            while block := response.read(_BLOCK_BYTES):
                file.write(block)
                digest.update(block)
                advance(len(block))
        if length and file.tell() != length:
            raise _BadBodyError(f"the response ended after {file.tell()} of {length} bytes")
        if wanted and digest.hexdigest() != wanted:
            words = f"expected {algorithm} {wanted}, found {digest.hexdigest()}"
            raise _BadBodyError(words if source.digest else f"{words}; {_recorded_earlier(path)}")
        if not wanted:
            # recorded first, for the reason given in write_npz
            record(path, digest.hexdigest())


def _recorded_earlier(path: Path) -> str:
    return (
        f"the former was recorded in {beside(path).name} at the first download: move that away to accept a changed file"
    )


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        # it holds the body of the response, an open file
        with error:
            return f"HTTP {error.code} {error.reason}"
    return str(error.reason if isinstance(error, URLError) else error) or type(error).__name__


@contextmanager
def _bar(name: str, length: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error if that is a terminal and rich is installed."""
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
