"""Compiled loops where numba is installed, and threads to run them on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from joblib import effective_n_jobs

logger = logging.getLogger(__name__)

_threads: ContextVar[int | None] = ContextVar("threads", default=None)

Run = Callable[[Sequence[Callable[[], Any]]], list[Any]]

#: Multiplications below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 22


@cache
def loops() -> ModuleType | None:
    """The compiled loops, or None without numba: only the CPU wants it, and tensor operations stand in."""
    return _compiled("gce.kernels")


@cache
def passes() -> ModuleType | None:
    """The compiled passes, or None without numba."""
    return _compiled("gce.passes")


@cache
def falling() -> ModuleType | None:
    """The compiled fall of rows through trees, or None without numba."""
    return _compiled("gce.trees.falling")


def _compiled(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError as error:
        logger.warning("%s cannot be compiled (%s): tensor operations stand in, several times slower", name, error)
        return None


def threads() -> int:
    """How many threads compiled loops may use here."""
    return _threads.get() or torch.get_num_threads()


@contextmanager
def limited(n_jobs: int | None) -> Iterator[None]:
    """Let compiled loops use so many threads in this thread of control, and in no other; None: as many as torch."""
    token = _threads.set(None if n_jobs is None else effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        _threads.reset(token)


@contextmanager
def alone() -> Iterator[None]:
    """Leave tensor operations to the calling thread, and threads to compiled loops.

    For many short operations in a row: threads that wait for the next one keep compiled loops from their cores, and
    where others want these too, each operation waits for the slowest.
    """
    token = _threads.set(threads())
    try:
        with torch_threads(1):
            yield
    finally:
        _threads.reset(token)


def together() -> AbstractContextManager[None]:
    """Tensor operations on all threads that compiled loops may use, also within :func:`alone`."""
    return torch_threads(threads())


@contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Let torch use so many threads, and put its setting back; None leaves it alone."""
    if n_jobs is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def workers(threads: int) -> Iterator[Run]:
    """Something that runs tasks on so many threads; compiled loops leave Python alone meanwhile.

    Tasks must not ask for workers themselves: all threads might then wait for tasks that nobody is left to run.
    """
    if threads <= 1:
        yield lambda tasks: [task() for task in tasks]
        return
    pool = _pool(threads)
    yield lambda tasks: list(pool.map(lambda task: task(), tasks))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: a round of a fit may take less time than starting some."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gce")


if hasattr(os, "register_at_fork"):  # where processes fork at all, a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
