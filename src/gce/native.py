"""Compiled loops where numba is installed, and threads to run them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

Run = Callable[[list[Callable[[], Any]]], list[Any]]

#: Multiplications below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 22


@cache
def loops() -> ModuleType | None:
    """The compiled loops, or None without numba: only the CPU wants it, and tensor operations stand in."""
    try:
        from gce import kernels
    except ImportError:
        return None
    return kernels


@cache
def sums() -> ModuleType | None:
    """The compiled sums, or None without numba."""
    try:
        from gce import sums
    except ImportError:
        return None
    return sums


@contextmanager
def workers(threads: int) -> Iterator[Run]:
    """Something that runs tasks on so many threads; compiled loops leave Python alone meanwhile."""
    if threads <= 1:
        yield lambda tasks: [task() for task in tasks]
        return
    with ThreadPoolExecutor(threads) as pool:
        yield lambda tasks: list(pool.map(lambda task: task(), tasks))
