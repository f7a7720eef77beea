"""The data folder: its location, checksums, and atomic writes."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gce.datasets.registry import Source

Arrays = dict[str, NDArray[Any]]

#: Errors of reading a damaged file; zipfile raises RuntimeError for members that appear encrypted.
UNREADABLE = (
    ValueError, KeyError, EOFError, OSError, RuntimeError, zlib.error, zipfile.BadZipFile, tarfile.TarError
)  # fmt: skip

#: Seconds without a change after which a partial file is abandoned.
_STALE = 86_400


class MissingDataError(FileNotFoundError):
    """A file is not in the data folder and cannot be downloaded.

    Examples
    --------
    >>> from gce import datasets
    >>> try:
    ...     datasets.load("msd", data_home="/nowhere", download=False)
    ... except datasets.MissingDataError as error:
    ...     print(str(error)[:44])
    msd needs YearPredictionMSD.txt.zip in /nowh
    """


class CorruptDataError(ValueError):
    """A file is damaged or has the wrong checksum. It is never deleted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gce import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = pathlib.Path(folder, "cal_housing.tgz").write_bytes(b"damaged")
    ...     try:
    ...         datasets.load("ca_housing", data_home=folder)
    ...     except datasets.CorruptDataError as error:
    ...         print("expected sha256" in str(error))
    True
    """


def data_home(given: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: ``given``, else ``GCE_DATA_HOME``, else ``gce`` in the cache folder of the user."""
    chosen = given or os.environ.get("GCE_DATA_HOME")
    return Path(chosen).expanduser() if chosen else _cache() / "gce"


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """The hexadecimal checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def expected(path: Path, source: Source) -> tuple[str, str]:
    """Algorithm and expected checksum of a source file: published, else recorded, else empty."""
    algorithm, _, digest = source.digest.partition(":")
    return (algorithm, digest) if digest else ("sha256", _recorded(path) or "")


def check_source(path: Path, source: Source) -> None:
    """Verify the checksum of a source file; if none is known, record its own."""
    algorithm, digest = expected(path, source)
    if not digest and os.access(path.parent, os.W_OK):
        record(path, digest_of(path))
    elif digest and (found := digest_of(path, algorithm)) != digest:
        raise CorruptDataError(
            f"{path} was rejected: expected {algorithm} {digest}, found {found}. It was left in place: "
            f"{_replacement_hint(path, source)}"
        )


def _replacement_hint(path: Path, source: Source) -> str:
    """What to move before another download: a recorded checksum would reject any other file."""
    if source.digest:
        return "move it away to download it again"
    return (
        f"move it away to download the same file again, and {beside(path).name} too, the checksum recorded at the "
        "first download, to accept a changed file"
    )


def check_prepared(path: Path, known: str) -> None:
    """Verify the checksum of a prepared file against the known and the recorded one."""
    valid = [digest for digest in (known, _recorded(path)) if digest]
    found = digest_of(path)
    if found in valid:
        return
    wanted = " or ".join(valid) or f"the one in {beside(path).name}, which does not exist"
    raise CorruptDataError(
        f"{path} was rejected: expected sha256 {wanted}, found {found}. It was left in place: move it away to create "
        f"it again, or, if you trust it, write its checksum into {beside(path)}"
    )


def beside(path: Path) -> Path:
    """The file with the recorded checksum of a file."""
    return path.with_name(f"{path.name}.sha256")


def record(path: Path, digest: str) -> None:
    """Record the checksum of a file, in the format of ``sha256sum``."""
    with written(beside(path)) as file:
        file.write(f"{digest}  {path.name}\n".encode())


def _recorded(path: Path) -> str | None:
    note = beside(path)
    if not note.exists():
        return None
    words = note.read_text().split()
    return words[0].lower() if words else "(an empty checksum file)"


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Write a file atomically: it gets its name when it is complete.

    Partial files of killed processes are removed at a later write, if they are older than a day.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove partial files of killed processes; recent ones may still be in use."""
    part = re.compile(re.escape(f".{path.name}.") + r"\d+-[0-9a-f]{8}\.part")
    for left in path.parent.iterdir():
        # owned by another user, or already removed
        with suppress(OSError):
            if part.fullmatch(left.name) and left.stat().st_mtime < time.time() - _STALE:
                left.unlink()


def values_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """sha256 of X, then y, as little-endian float32 in C order, independent of the file format."""
    digest = hashlib.sha256()
    for name in ("X", "y"):
        digest.update(arrays[name].astype("<f4").tobytes())
    return digest.hexdigest()


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays and their checksum.

    The checksum is recorded first: a kill in between leaves a checksum without a file, which is harmless, while a file
    without a checksum would be rejected.
    """
    with written(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub takes the names for options
        file.flush()
        record(path, digest_of(Path(file.name)))


def read_npz(path: Path, known: str) -> Arrays:
    """The arrays of a prepared file, after verification of its checksum."""
    check_prepared(path, known)
    # numpy takes files that are not zip archives for pickles or single arrays
    if not zipfile.is_zipfile(path):
        raise CorruptDataError(f"{path} is not an npz file, though its checksum is correct. {_REMADE}")
    try:
        with np.load(path, allow_pickle=False) as file:
            # members that are not arrays are returned as bytes
            return {name: np.asarray(file[name]) for name in file.files}
    except UNREADABLE as error:
        raise CorruptDataError(f"{path} could not be read: {reason(error)}. {_REMADE}") from error


_REMADE = "It was left in place: move it away to create it again"


def reason(error: Exception) -> str:
    """The message of an error, or its type if it has none."""
    return str(error) or type(error).__name__
