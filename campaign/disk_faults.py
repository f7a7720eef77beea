"""What may be wrong with a disk: each is a context manager around work in a folder, which gives what to do inside."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from campaign.children import is_file_operation

#: Called in the process that works, before it does.
Inside = Callable[[], None]
#: Seconds that every flush to a slow disk takes.
SLOW = 0.02


def nothing() -> None:
    """A process need not do anything."""


@cache
def can_mount() -> bool:
    """Whether this process may mount a file system of its own, which is tried once: root in a container may not."""
    if shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as place:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False)
        if mounted.returncode == 0:
            subprocess.run(["umount", place], check=True)
    return mounted.returncode == 0


def can_close_folders() -> bool:
    """Whether a folder can be made read-only for this process: root writes wherever the file system lets it."""
    return can_mount() or os.geteuid() != 0


@contextmanager
def full(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """A disk on which little is left."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                os.write(file.fileno(), bytes(4096))
        except OSError:
            os.truncate(ballast, max(0, ballast.stat().st_size - 4096 * rng.choice((0, 1, 2, 4, 8, 16, 32))))
    try:
        yield nothing
    finally:
        ballast.unlink()


@contextmanager
def short_files(folder: Path, rng: random.Random) -> Iterator[Inside]:
    """Files that may have a few kilobytes only, as by a quota."""
    # what a command says goes into a file too
    most = int(2 ** rng.uniform(9, 16))
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


def aside(folder: Path) -> Path:
    """Where a removed folder is."""
    return folder.with_name("aside")


@contextmanager
def removed(folder: Path, rng: random.Random, files: int) -> Iterator[Inside]:
    """A folder that is moved aside with all that is in it, just before one of as many file operations."""
    left, place = [rng.randint(1, files)], str(folder.resolve())

    def remove(event: str, given: tuple[Any, ...]) -> None:
        if left[0] and is_file_operation(event, given, place):
            left[0] -= 1
            if not left[0]:
                folder.rename(aside(folder))

    yield partial(sys.addaudithook, remove)
    folder.mkdir(exist_ok=True)
