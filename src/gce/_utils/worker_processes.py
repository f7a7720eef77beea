"""joblib's worker processes where gce starts some: in copies of a process, and at the end of child processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from multiprocessing.util import Finalize
from typing import Any

from sklearn.utils.parallel import Parallel

from gce._utils.parallel import bounded


def worker_processes(n_jobs: int | None, verbose: int = 0) -> Any:
    """A ``Parallel`` of joblib that gives results in order as they come, with workers that end with this process.

    Parameters
    ----------
    n_jobs : int or None
        How many; ``joblib`` says what None and negative numbers mean.
    verbose : int, default=0
        How much joblib reports.

    Returns
    -------
    Parallel
    """
    _workers.end_with_this_process()
    return Parallel(n_jobs=bounded(n_jobs), verbose=int(verbose), return_as="generator")


class _Workers:
    """The processes that joblib keeps for the next call, for 300 idle seconds.

    A copy of a process has joblib's record of them, but not the thread that speaks to them: its next call would wait
    for ever. A child process of multiprocessing waits for its own children before joblib ends them: for 300 seconds.
    """

    def __init__(self) -> None:
        self._forgotten: list[Any] = []
        self._ended_with: int | None = None

    def forget(self) -> None:
        """In the copy of a process: they are the parent's."""
        loky = _loky()
        if loky is not None:
            # not deleted: its last reference would tell the parent's thread to stop
            self._forgotten.append(loky._executor)
            loky._executor, loky._executor_kwargs, loky._executor_lock = None, None, threading.RLock()

    def end_with_this_process(self) -> None:
        """Let a child process of multiprocessing end them before it waits for its children."""
        if multiprocessing.parent_process() is not None and self._ended_with != os.getpid():
            self._ended_with = os.getpid()
            Finalize(None, self._end, exitpriority=100)

    def _end(self) -> None:
        loky = _loky()
        if loky is not None and loky._executor is not None:
            loky._executor.shutdown(wait=True, kill_workers=True)


def _loky() -> Any:
    """The module that keeps the workers; None before joblib has started any."""
    module = sys.modules.get("joblib.externals.loky.reusable_executor")
    return module if hasattr(module, "_executor") else None


_workers = _Workers()
if hasattr(os, "register_at_fork"):  # where processes fork at all
    os.register_at_fork(after_in_child=_workers.forget)
