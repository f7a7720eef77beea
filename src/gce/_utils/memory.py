"""Memory that a fit will need, estimated before it starts, and memory that it no longer needs."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

logger = logging.getLogger(__name__)

#: Outputs are cached while they fit in this many bytes; beyond, atoms are evaluated again when they are needed.
CACHE_BYTES = 4 * 2**30
#: Numbers in double precision that a round holds for every member, row and output at its widest point, the line search:
#: predictions, gradient, direction, their weighed and shifted copies, the losses' temporaries. Measured: 7 to 15, by
#: problem and by what the allocator had kept (benchmarks/working_memory.py).
_WORKING = 15
#: Below this many bytes free memory is not checked.
_SMALL = 2**28


def cache_budget(rows: int, outputs: int, members: int, device: torch.device) -> int:
    """Bytes of outputs that a fit may cache, once its rows and targets are in memory.

    Parameters
    ----------
    rows, outputs, members : int
        Size of the predictions of all members.
    device : torch.device
        Where they are.

    Returns
    -------
    int

    Raises
    ------
    MemoryError
        There is not enough memory even without a cache.
    """
    need = 8 * _WORKING * rows * members * outputs
    free = available(device) if need > _SMALL else None
    if free is None:
        return CACHE_BYTES
    if need > free:
        raise MemoryError(
            f"this fit needs about {format_gib(need)} of memory beside its data ({rows:,} rows, {members} member(s) of "
            f"{outputs} output(s)), but {device} has {format_gib(free)} free: use fewer members (cv=None holds out "
            "one part and trains one), fewer rows or another device"
        )
    if free - need < CACHE_BYTES:
        logger.warning(
            "only %s are free for cached outputs: older atoms may be evaluated again", format_gib(free - need)
        )
    return min(CACHE_BYTES, free - need)


def format_gib(size: int) -> str:
    """A number of bytes in GiB, as text."""
    return f"{size / 2**30:.1f} GiB"


def available(device: torch.device) -> int | None:
    """Free bytes on a device; None where unknown."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    found = [_meminfo(), _control_group()]
    return min((size for size in found if size is not None), default=None)


def _meminfo() -> int | None:
    """Memory available without swapping, according to Linux."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(sizes[0]) * 1024 if sizes else None


def _control_group() -> int | None:
    """Memory left under a container's limit."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        lines = Path("/sys/fs/cgroup/memory.stat").read_text().splitlines()
    except (OSError, ValueError):
        return None
    # the page cache is reclaimed when memory is needed
    kept = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    return None if limit == "max" else max(int(limit) - used + kept, 0)


@cache
def _trim() -> Callable[[int], int] | None:
    """Glibc's ``malloc_trim``, where the process uses glibc."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


def release_freed() -> None:
    """Give freed memory back to the system.

    Rounds of a fit allocate and free arrays of a megabyte, and keep small ones among them: glibc would hold on to what
    is between, a gigabyte after a few hundred rounds.
    """
    trim = _trim()
    if trim is not None:
        trim(0)
