"""Whether a process grows with what it does: memory, threads and open files."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: Bytes that memory may grow by after a warm-up. Freed blocks that the allocator keeps vary by some MiB. Of the
#: predictions after the warm-up of a full run 4,000 are of regressors: those of 1,000 rows take 31 MiB; 400 models take
#: more.
ROOM = 12 * 2**20
#: Threads that pools, such as Arrow's, may begin after a warm-up, when they first have more to do at once. A thread
#: that each fit of one model leaves is forty more in a full run.
BEGUN = 4
#: Seconds that threads have to end.
ENDING = 1.0


class Footprint(NamedTuple):
    """What a process has: bytes of memory, threads, open files, and how many threads have which name."""

    memory: int
    threads: int
    handles: int
    names: Counter[str]


def footprint() -> Footprint:
    """What this process has now, without what could be freed."""
    # a thread that was joined is listed until the system has ended it
    time.sleep(ENDING)
    gc.collect()
    if hasattr(trim := ctypes.CDLL(None), "malloc_trim"):
        trim.malloc_trim(0)
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    names = Counter(_name(thread) for thread in Path("/proc/self/task").iterdir())
    return Footprint(memory, names.total(), sum(1 for _ in Path("/proc/self/fd").iterdir()), names)


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text().strip()
    except OSError:
        return "ended meanwhile"


def growth(work: Callable[[int], object], count: int, warm: int) -> Footprint:
    """By how much this process grows while it does work a number of times, after a warm-up.

    Parameters
    ----------
    work : callable
        Given the number of the time, from 0.
    count : int
        How often it is done in all.
    warm : int
        How often before this process is looked at first.
    """
    for i in range(warm):
        work(i)
    before = footprint()
    for i in range(warm, count):
        work(i)
    after = footprint()
    more = (now - then for now, then in zip(after[:3], before[:3], strict=True))
    return Footprint(*more, after.names - before.names)


def too_much(grown: Footprint) -> str | None:
    """What grew, in words; None where nothing did."""
    if grown.memory > ROOM:
        return f"memory grew by {grown.memory / 2**20:.1f} MiB"
    if grown.threads > BEGUN:
        return f"{grown.threads} threads more: {', '.join(grown.names.elements())}"
    if grown.handles > 0:
        return f"{grown.handles} open files more"
    return None
