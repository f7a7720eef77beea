"""Threads that compiled kernels run on."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from threading import Lock, local
from typing import Any

import torch
from joblib import effective_n_jobs

_threads: ContextVar[int | None] = ContextVar("threads", default=None)
#: Whether a thread runs a task of :func:`workers`.
_task = local()

Run = Callable[[Sequence[Callable[[], Any]]], list[Any]]

#: Multiplications below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 22
#: Numbers of a tensor below which an operation is too short for several threads.
_FEW = 1 << 20
#: Maximum number of threads, whatever ``n_jobs`` is: where the system refuses one, the whole process ends.
MOST_THREADS = max(64, os.cpu_count() or 1)


def bounded(n_jobs: int | None) -> int | None:
    """A user's ``n_jobs``, positive numbers limited to ``MOST_THREADS``."""
    return None if n_jobs is None else min(n_jobs, MOST_THREADS)


def threads() -> int:
    """The number of threads that compiled loops may use here."""
    return _threads.get() or min(_fork.torch_threads or _torch.count(), MOST_THREADS)


@contextmanager
def limited(n_jobs: int | None) -> Iterator[None]:
    """Limit the threads of compiled loops in this context only; None: as many as torch."""
    token = _threads.set(None if n_jobs is None else effective_n_jobs(bounded(n_jobs)))
    try:
        yield
    finally:
        _threads.reset(token)


@contextmanager
def alone() -> Iterator[None]:
    """Run tensor operations on the calling thread, and leave the other threads to compiled loops.

    For many short operations in sequence: torch's waiting threads would occupy the cores that compiled loops need.
    """
    token = _threads.set(threads())
    try:
        with torch_threads(1):
            yield
    finally:
        _threads.reset(token)


def alone_if_few(numbers: torch.Tensor) -> AbstractContextManager[None]:
    """As :func:`alone`, where tensors like this one on the CPU are too short for several threads."""
    return alone() if numbers.device.type == "cpu" and numbers.numel() < _FEW else nullcontext()


def one_blas_thread() -> AbstractContextManager[None]:
    """Linear algebra of numpy and scipy on the calling thread, for many small systems in sequence."""
    return _blas.limited()


def together() -> AbstractContextManager[None]:
    """Tensor operations on all threads that compiled loops may use, also within :func:`alone`."""
    return torch_threads(threads())


@contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Set torch's number of threads and restore it afterwards; None changes nothing."""
    if n_jobs is None:
        yield
        return
    before = _torch.enter(effective_n_jobs(bounded(n_jobs)))
    try:
        yield
    finally:
        _torch.leave(before)


@contextmanager
def workers(threads: int) -> Iterator[Run]:
    """A function that runs tasks on a number of threads; compiled loops release the interpreter lock.

    Within a task there is one thread: all of them could wait for tasks that none is left to run.
    """
    if threads <= 1 or getattr(_task, "runs", False):
        yield lambda tasks: [task() for task in tasks]
        return
    yield partial(_run, _pool.of(threads), threads)


def _run(pool: ThreadPoolExecutor, threads: int, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Results of tasks that are run on some of a pool's threads."""
    waiting, results = deque(enumerate(tasks)), [None] * len(tasks)

    def work() -> None:
        _task.runs = True
        try:
            while waiting:
                try:
                    i, task = waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                results[i] = task()
        except BaseException:
            waiting.clear()
            raise
        finally:
            _task.runs = False

    done = []
    try:
        try:
            for _ in range(min(threads, len(tasks))):
                done.append(pool.submit(work))
        except RuntimeError:
            # no thread can be started, as at the end of the interpreter: the calling one does what is left
            work()
        for some in done:
            some.result()
    finally:
        # after an error or an interruption no further task is started
        waiting.clear()
    return results


class _Pool:
    """Persistent threads: a round of a fit may take less time than starting threads.

    One pool for all, as large as the largest request; a smaller one ends with its last user.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop the pool, as a child process must: it has no copies of the threads, and the lock may be held."""
        self._lock, self._size = Lock(), 0

    def of(self, threads: int) -> ThreadPoolExecutor:
        """A pool of at least this many threads."""
        with self._lock:
            if threads > self._size:
                self._size, self._threads = threads, ThreadPoolExecutor(threads, thread_name_prefix="gce")
            return self._threads


class _Fork:
    """A child process without its parent's OpenMP threads.

    libgomp, torch's OpenMP on Linux, keeps threads for each thread that has used some. The copy of that thread in a
    child would wait for them for ever. They are ended before a fork, and parent and child start new ones when needed.
    Where libgomp cannot do that (before GCC 9) torch stays on one thread in the child, and compiled loops have as
    many as ever.
    """

    def __init__(self) -> None:
        try:
            self._pause = getattr(ctypes.CDLL(torch._C.__file__), "omp_pause_resource_all", None)
        except OSError:  # a frozen program may have no such file
            self._pause = None
        self._ended = True
        #: Torch's threads in the parent of a process that must not use them; None in all others.
        self.torch_threads: int | None = None

    def before(self) -> None:
        # 1: omp_pause_soft, which keeps settings
        self._ended = self._pause is not None and self._pause(1) == 0

    def in_child(self) -> None:
        _pool.forget()
        _blas.forget()
        _torch.forget_other_threads()
        if not self._ended and self.torch_threads is None:
            self.torch_threads = torch.get_num_threads()
            torch.set_num_threads(1)


class _TorchThreads:
    """Torch's number of threads, which several threads change for a while at the same time.

    Each thread has a number of its own, but its first one is what any thread set last. A thread that meets torch beside
    a fit would take the fit's number for the user's, and leave it behind.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._users_number, self._last = Lock(), 0, 0, 0
        self._here = local()

    def count(self) -> int:
        """The calling thread's number."""
        with self._lock:
            return self._count()

    def _count(self) -> int:
        found = torch.get_num_threads()
        if not getattr(self._here, "known", False):
            self._here.known = True
            if self._users and found == self._last:
                found = self._users_number
                torch.set_num_threads(found)
        return found

    def enter(self, count: int) -> int:
        """Set the calling thread's number; the one before, which :meth:`leave` takes."""
        with self._lock:
            before = self._count()
            if not self._users:
                self._users_number = before
            self._users += 1
            self._here.depth = getattr(self._here, "depth", 0) + 1
            self._set(count)
            return before

    def leave(self, before: int) -> None:
        with self._lock:
            self._users -= 1
            self._here.depth -= 1
            self._set(before)

    def _set(self, count: int) -> None:
        self._last = count if _fork.torch_threads is None else 1
        torch.set_num_threads(self._last)

    def forget_other_threads(self) -> None:
        """In a child process, which has the calling thread alone."""
        self._lock = Lock()
        depth = getattr(self._here, "depth", 0)
        if self._users > depth:
            # threads that are started here begin with the number of this one
            torch.set_num_threads(torch.get_num_threads())
        self._users = depth


class _Blas:
    """One thread for linear algebra, which several threads ask for at the same time.

    The limit is the whole process's in most libraries. One who finds the limit of another in place restores what was
    before both.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As a child process must: the lock may be held."""
        self._lock, self._users = Lock(), 0

    @contextmanager
    def limited(self) -> Iterator[None]:
        # imported where it is needed: it looks for libraries that are loaded by then
        from threadpoolctl import ThreadpoolController

        libraries = ThreadpoolController().select(user_api="blas")
        with self._lock:
            own = libraries.limit(limits=1)
            if not self._users:
                self._first = own
            first, self._users = self._first, self._users + 1
        try:
            with own:
                yield
        finally:
            with self._lock, first:
                # on leaving, a limit sets what it found
                self._users = max(self._users - 1, 0)


_pool, _fork, _torch, _blas = _Pool(), _Fork(), _TorchThreads(), _Blas()
if hasattr(os, "register_at_fork"):  # where processes fork at all
    os.register_at_fork(before=_fork.before, after_in_child=_fork.in_child)
