"""What may be wrong with a disk: each is a context manager around work in a folder, which gives what to do inside."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from campaign.children import is_file_operation

#: Called in the process that works, before it does.
Inside = Callable[[], None]
#: Seconds that every flush to a slow disk takes.
SLOW = 0.02


def nothing() -> None:
    """A process need not do anything."""


def can_mount() -> bool:
    """Whether this process may mount a file system of its own."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("mount") is not None


@contextmanager
def full(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """A disk on which a few bytes are left."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                os.write(file.fileno(), bytes(4096))
        except OSError:
            os.truncate(ballast, max(0, ballast.stat().st_size - 4096 * rng.randrange(2)))
    try:
        yield nothing
    finally:
        ballast.unlink()


@contextmanager
def short_files(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """Files that may have a few bytes only, as by a quota."""
    most = rng.randrange(1, 1500)
    yield partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


@contextmanager
def read_only(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """A folder that cannot be written to."""
    if can_mount():
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    else:
        folder.chmod(0o500)
    try:
        yield nothing
    finally:
        if can_mount():
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        else:
            folder.chmod(0o700)


@contextmanager
def slow(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """A disk on which every flush takes long."""
    flush = os.fsync

    def late(handle: int) -> None:
        time.sleep(SLOW)
        flush(handle)

    yield partial(setattr, os, "fsync", late)


@contextmanager
def removed(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """A folder that is removed with all that is in it, before one of the first file operations."""
    left, place = [rng.randrange(1, 12)], str(folder.resolve())

    def remove(event: str, given: tuple[Any, ...]) -> None:
        if left[0] and is_file_operation(event, given, place):
            left[0] -= 1
            if not left[0]:
                shutil.rmtree(folder)

    yield partial(sys.addaudithook, remove)
    folder.mkdir(exist_ok=True)
