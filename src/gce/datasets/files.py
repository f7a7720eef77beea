"""The data folder: where it is, checksums, and files that are either whole or not there."""

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

#: What reading a spoilt file raises. RuntimeError is zipfile's, of a member that seems encrypted or packed otherwise.
UNREADABLE = (
    ValueError, KeyError, EOFError, OSError, RuntimeError, zlib.error, zipfile.BadZipFile, tarfile.TarError
)  # fmt: skip

#: Seconds without a change after which nobody writes to a part any more.
_STALE = 86_400


class MissingDataError(FileNotFoundError):
    """A file is neither in the data folder nor to be had."""


class CorruptDataError(ValueError):
    """A file is not the one it should be. It is never deleted."""


def data_home(given: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: the one given, else ``GCE_DATA_HOME``, else ``gce`` in the user's cache folder."""
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
    """Algorithm and checksum a source file must have: the published one, else the recorded one, else an empty one."""
    algorithm, _, digest = source.digest.partition(":")
    return (algorithm, digest) if digest else ("sha256", _recorded(path) or "")


def check_source(path: Path, source: Source) -> None:
    """Hold a source file against the checksum it must have; where there is none yet, record its own."""
    algorithm, digest = expected(path, source)
    if not digest and os.access(path.parent, os.W_OK):
        record(path, digest_of(path))
    elif digest and (found := digest_of(path, algorithm)) != digest:
        raise CorruptDataError(
            f"{path} is refused: expected {algorithm} {digest}, found {found}. It is left as it is: "
            f"{_to_have_another(path, source)}"
        )


def _to_have_another(path: Path, source: Source) -> str:
    """What must go before another file is downloaded: one recorded checksum would refuse every other file."""
    if source.digest:
        return "move it away to have it downloaded anew"
    return (
        f"move it away to have the same file downloaded anew, and {beside(path).name} too, the checksum recorded when "
        "it was first seen, to have whatever is there now"
    )


def check_prepared(path: Path, known: str) -> None:
    """Hold a prepared file against the checksum beside it and the one that is known; one of them must be its own."""
    valid = [digest for digest in (known, _recorded(path)) if digest]
    found = digest_of(path)
    if found in valid:
        return
    wanted = " or ".join(valid) or f"the one in {beside(path).name}, which is not there"
    raise CorruptDataError(
        f"{path} is refused: expected sha256 {wanted}, found {found}. It is left as it is: move it away to have it "
        f"made anew, or, if you made it and trust it, write its checksum into {beside(path)}"
    )


def beside(path: Path) -> Path:
    """Where a file's own checksum is recorded."""
    return path.with_name(f"{path.name}.sha256")


def record(path: Path, digest: str) -> None:
    """Write a checksum beside its file, in the form of ``sha256sum``."""
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
    """A file that gets its name when it is complete: a kill or an error leaves nothing under that name.

    What a kill leaves beside it is removed when the file is next written, a day later or more.
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
    """Remove the parts of a file that killed processes left; a young one may be somebody's who writes now."""
    part = re.compile(re.escape(f".{path.name}.") + r"\d+-[0-9a-f]{8}\.part")
    for left in path.parent.iterdir():
        # another user's, or gone by now: it is in nobody's way
        with suppress(OSError):
            if part.fullmatch(left.name) and left.stat().st_mtime < time.time() - _STALE:
                left.unlink()


def values_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """sha256 of X, then y, as float32 in little-endian order, row by row: the same whatever file they came in."""
    digest = hashlib.sha256()
    for name in ("X", "y"):
        digest.update(arrays[name].astype("<f4").tobytes())
    return digest.hexdigest()


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays and their checksum.

    The checksum gets its name first: a kill between the two leaves a checksum without a file, which harms nothing,
    where a file without a checksum would be refused.
    """
    with written(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub takes the names for options
        file.flush()
        record(path, digest_of(Path(file.name)))


def read_npz(path: Path, known: str) -> Arrays:
    """Arrays of a prepared file, after its checksum was checked."""
    check_prepared(path, known)
    # numpy would take whatever is no zip for a pickle, or for one array
    if not zipfile.is_zipfile(path):
        raise CorruptDataError(f"{path} is no npz file, though its checksum is right. {_REMADE}")
    try:
        with np.load(path, allow_pickle=False) as file:
            # a member that is no array comes as bytes
            return {name: np.asarray(file[name]) for name in file.files}
    except UNREADABLE as error:
        raise CorruptDataError(f"{path} could not be read: {reason(error)}. {_REMADE}") from error


_REMADE = "It is left as it is: move it away to have it made anew"


def reason(error: Exception) -> str:
    """What an error says, or its name where it says nothing."""
    return str(error) or type(error).__name__
