"""Cases in a process of their own, which may hang, end or take memory without harm to the part that runs them."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from campaign.outcomes import Outcome

#: Seconds and bytes that a case may take.
SECONDS, MOST_BYTES = 20, 2**30
#: Address space that a limited process may have beyond what it has.
_ROOM = 2**33

Run = Callable[[int], Outcome]
#: From a seed and a folder to what runs a case.
Begin = Callable[[int, Path], Run]


def isolated(begin: Begin, cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Outcomes of cases; one that ends its process, by itself or after :data:`SECONDS`, is a fault."""
    worker: _Worker | None = None
    try:
        for case in cases:
            worker = worker or _Worker(begin, seed, folder)
            outcome = worker.outcome(case)
            if outcome is None:
                code, worker = worker.ended(), None
                why = f"took over {SECONDS} s" if code == -signal.SIGALRM else f"ended with exit code {code}"
                outcome = Outcome(case, "ended its process", f"the process of this case {why}")
            yield outcome
    finally:
        if worker is not None:
            worker.end()


class _Worker:
    """A process that runs one case after another."""

    def __init__(self, begin: Begin, seed: int, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, begin, seed, folder), daemon=True)
        self._process.start()
        other.close()

    def outcome(self, case: int) -> Outcome | None:
        """The outcome of a case; None where the process has ended."""
        try:
            self._connection.send(case)
            return self._connection.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            return None

    def ended(self) -> int | None:
        self._process.join(10)
        return self._process.exitcode

    def end(self) -> None:
        self._connection.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()


def _serve(connection: Connection, begin: Begin, seed: int, folder: Path) -> None:
    warnings.simplefilter("ignore")
    # a payload that is executed leaves its mark here
    os.chdir(folder)
    # these files need not outlive a power cut
    os.fsync = lambda *_: None  # type: ignore[assignment]
    run = begin(seed, folder)
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        connection.send(_measured(run, case))


def _measured(run: Run, case: int) -> Outcome:
    _forget_peak()
    before = _peak()
    signal.alarm(SECONDS)
    outcome = run(case)
    signal.alarm(0)
    taken = _peak() - before
    if outcome.fault is None and taken > MOST_BYTES:
        return Outcome(case, outcome.kind, f"took {taken / 2**30:.1f} GiB of memory")
    return outcome


def _forget_peak() -> None:
    """Let the peak of memory be what is in use now, where Linux can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The most bytes of memory that were in use."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage has the peak of the process that started this one, too
        (most,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(most.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit_address_space() -> None:
    """Let this process take some GiB more at most: a runaway case must not starve the machine."""
    used: Any = Path("/proc/self/statm")
    if used.exists():
        most = int(used.read_text().split()[0]) * resource.getpagesize() + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
