"""Memory that a process cannot have: a cgroup of its own where one can be made, else a limit of its address space."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

#: What a process may take beyond what it shares with the one that it was forked from: twice what any job takes.
MORE = 256 * 2**20
#: What it takes at a time, to have all of it.
CHUNK = 4 * 2**20
#: What it has taken, and keeps.
_TAKEN: list[bytearray] = []
_ROOT = Path("/sys/fs/cgroup")
#: The file of the limit, by version of cgroups.
_LIMITS = {"v1": "memory.limit_in_bytes", "v2": "memory.max"}


class Group:
    """A cgroup below that of this process, or beside it, with little memory; or none where none can be made.

    Attributes
    ----------
    folder : Path or None
        The cgroup. None where processes limit their address space instead.
    """

    _made = 0

    def __init__(self) -> None:
        self.folder: Path | None = None
        Group._made += 1
        name = f"gce-campaign-{os.getpid()}-{Group._made}"
        for version, parent in _parents():
            try:
                (parent / name).mkdir()
                (parent / name / _LIMITS[version]).write_text(str(MORE))
            except OSError:
                with suppress(OSError):
                    (parent / name).rmdir()
                continue
            with suppress(OSError):
                # a process that may swap is slowed down, and not ended
                (parent / name / "memory.swappiness").write_text("0")
            self.folder = parent / name
            return

    def enter(self) -> None:
        """Move this process into the group."""
        if self.folder is not None:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        """Remove the group, whose processes have ended."""
        if self.folder is not None:
            self.folder.rmdir()


def has_cgroups() -> bool:
    """Whether processes can be given a cgroup here."""
    group = Group()
    group.close()
    return group.folder is not None


def exhaust(group: Group | None) -> None:
    """Take all memory that there is: the kernel ends the process, or all that it allocates from here on fails."""
    if group is None or group.folder is None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for size in (CHUNK, CHUNK >> 6, CHUNK >> 10):
        with suppress(MemoryError):
            while True:
                _TAKEN.append(bytearray(b"x" * size))


def _parents() -> list[tuple[str, Path]]:
    """Where a cgroup may be made: the group of this process, and (version 2) those above it."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines() if Path("/proc/self/cgroup").exists() else []:
        number, names, path = line.split(":", 2)
        own = Path(path.lstrip("/"))
        if "memory" in names.split(","):
            found.append(("v1", _ROOT / "memory" / own))
        elif number == "0":
            # a group of version 2 that has processes cannot pass limits on to groups below it
            found += [("v2", _ROOT / part) for part in (own, *own.parents)]
    return found
