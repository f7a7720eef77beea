"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Suffix of files that are being written.
TEMPORARY = ".tmp"


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: all of its contents, or none; what killed processes left of it is removed.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        Its contents.
    """
    remove_abandoned_files(path)
    with atomic_replace(path) as part:
        part.write_bytes(data)


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Context manager for a temporary file that replaces another one, with its permissions, if there was no error.

    A symbolic link is followed, and its target is replaced. Errors of the system name the file.

    Parameters
    ----------
    path : Path
        The file to be replaced or created.

    Yields
    ------
    Path
        The temporary file.
    """
    path = _without_links(path)
    if path.exists() and not path.is_file():
        # renaming would replace a device by a file
        raise ValueError(f"{str(path)!r} exists and is not a file: pass the path of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} of {path.name!r} does not exist: create it first")
    part, lock = path, None
    try:
        part, lock = _new_file(path)
        mode = stat.S_IMODE((path if path.exists() else part).stat().st_mode)
        # from the start, so that nobody else can read a private file
        part.chmod(mode | stat.S_IWUSR)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(mode)
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno is None:
            raise
        # the error of a full disk names no file, and the temporary name means nothing to users
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if part != path:
            part.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def remove_partial_files(folder: Path, names: str) -> None:
    """Delete temporary files that interrupted writes of files of a name pattern left in a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    names : str
        Pattern of the names of complete files.
    """
    for part in folder.glob(f".{names}.*{TEMPORARY}"):
        part.unlink(missing_ok=True)


def remove_abandoned_files(path: Path) -> None:
    """Delete temporary files of a file whose processes were killed.

    A process that writes has a lock on its temporary file, which ends with it. On Windows, and on file systems without
    locks, nothing is deleted.

    Parameters
    ----------
    path : Path
        The complete file.
    """
    if fcntl is None:
        return
    path = _without_links(path)
    for part in path.parent.glob(f".{escape(path.name)}.*{TEMPORARY}"):
        # gone meanwhile, in use, or somebody else's
        with suppress(OSError):
            lock = os.open(part, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink(missing_ok=True)
            finally:
                os.close(lock)


def _without_links(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except UnicodeEncodeError as error:
        raise ValueError(f"the path {str(path)!r} has characters that no file's name can have") from error


def _new_file(path: Path) -> tuple[Path, int | None]:
    """A new temporary file, and a handle whose lock shows that its process is alive."""
    while True:
        part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
        if fcntl is None:
            part.touch(exist_ok=False)
            return part, None
        lock = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        # a file system without locks answers with an error
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        # another process may have found it without a lock, and deleted it
        if part.exists():
            return part, lock
        os.close(lock)


def _sync_folder(folder: Path) -> None:
    """Flush a renamed file's folder entry to disk, where the system supports it."""
    # the file is complete already; not every file system supports it
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
