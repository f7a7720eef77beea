"""Work in forked processes, which are ended at chosen moments; packages are imported once, by the process that forks.

The process that forks computes nothing itself: threads of libraries do not survive a fork.
"""

from __future__ import annotations

import mmap
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import memory_limits

#: How work may end: well, by Ctrl-C, by an error whose words are on standard error, and not within the limit.
DONE, FAILED, INTERRUPTED, HANGS = 0, 1, 130, "no end"
#: Seconds after which a process counts as hanging: a hundred times what any takes.
LIMIT = 120.0

Tick = Callable[..., None]
Work = Callable[[Tick], Any]


@dataclass(frozen=True)
class Moment:
    """When a process is ended.

    Parameters
    ----------
    ticks : int
        After this many ticks of its work, such as rounds of a fit.
    seconds : float
        So long after the tick.
    file : int
        If positive: just before this file operation of the work instead (opening, renaming, removing, ...).
    """

    ticks: int = 0
    seconds: float = 0.0
    file: int = 0


#: What ends a process: a signal, or memory that a cgroup does not give.
End = signal.Signals | None


class Child:
    """A forked process that does some work.

    Parameters
    ----------
    work : callable
        Called with a function that it calls at every tick.
    folder : Path
        Where its file operations are counted. Its standard output and error go beside it.
    end : Signals or None
        What ends it; None for memory.
    moment : Moment, optional
        When it is ended. By default it is not.
    """

    def __init__(self, work: Work, folder: Path, end: End = None, moment: Moment | None = None) -> None:
        self._said = folder.parent / f"said-{time.monotonic_ns()}"
        self._end, self._moment = end, moment
        self._group = memory_limits.Group() if end is None and moment is not None else None
        # shared with the fork, and still there when that is killed
        self._seen = memoryview(mmap.mmap(-1, 16)).cast("q")
        self._heard, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._heard)
            _Inside(work, folder, self._said, tell, self._end, self._moment, self._group, self._seen).run()
        os.close(tell)

    def wait(self, limit: float = LIMIT) -> int | str:
        """End it at its moment; its exit status, minus the signal that ended it, or ``HANGS``."""
        until = time.monotonic() + limit
        struck = self._moment is None or self._moment.file > 0 or self._end is None
        while time.monotonic() < until:
            if not struck and select.select([self._heard], [], [], 0.0005)[0]:
                struck = True
                if os.read(self._heard, 1) and self._moment is not None and self._end is not None:
                    time.sleep(self._moment.seconds)
                    # not yet waited for, so that the number is still its own
                    os.kill(self.pid, self._end)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return self._close(os.waitstatus_to_exitcode(status))
            if struck:
                time.sleep(0.002)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self._close(HANGS)

    @property
    def ticks(self) -> int:
        """How often its work has called the function that it was given."""
        return self._seen[0]

    @property
    def struck(self) -> bool:
        """Whether it took all memory at its moment: one that was ended without needed too much by itself."""
        return bool(self._seen[1])

    def said(self) -> str:
        """The last line of its standard output and error, where errors end."""
        lines = self._said.read_text(errors="replace").split("\n") if self._said.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def error(self) -> str:
        """The error that ended it: the last line of a traceback, or all that a command said, which breaks lines."""
        text = self._said.read_text(errors="replace")
        return self.said() if "Traceback" in text else "".join(text.split())

    def _close(self, status: int | str) -> int | str:
        os.close(self._heard)
        if self._group is not None:
            self._group.close()
        return status


class _Inside:
    """What a forked process does."""

    def __init__(
        self,
        work: Work,
        folder: Path,
        said: Path,
        tell: int,
        end: End,
        moment: Moment | None,
        group: memory_limits.Group | None,
        seen: memoryview[int],
    ) -> None:
        self._work, self._folder, self._said, self._tell = work, str(folder.resolve()), said, tell
        self._end, self._moment, self._group = end, moment, group
        self._seen, self._files = seen, 0

    def run(self) -> None:
        """Work, and leave without what other processes would do at their end."""
        status = FAILED
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            out = os.open(self._said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(out, 1)
            os.dup2(out, 2)
            if self._group is not None:
                self._group.enter()
            if self._moment is not None and self._moment.file:
                sys.addaudithook(self._on_event)
            self._meet_moment()
            self._work(self._tick)
            status = DONE
        except KeyboardInterrupt:
            status = INTERRUPTED
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else FAILED
        except BaseException:
            # a limit of the work is none of its last words
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _tick(self, *_: Any) -> None:
        self._seen[0] += 1
        self._meet_moment()

    def _meet_moment(self) -> None:
        if self._moment is None or self._moment.file or self._seen[0] != self._moment.ticks:
            return
        if self._end is None:
            threading.Thread(target=self._exhaust, daemon=True).start()
        else:
            os.write(self._tell, b".")

    def _on_event(self, event: str, given: tuple[Any, ...]) -> None:
        if is_file_operation(event, given, self._folder) and self._moment is not None:
            self._files += 1
            if self._files == self._moment.file:
                self._strike()

    def _strike(self) -> None:
        if self._end is None:
            self._seen[1] = 1
            memory_limits.exhaust(self._group)
        else:
            os.kill(os.getpid(), self._end)

    def _exhaust(self) -> None:
        assert self._moment is not None
        time.sleep(self._moment.seconds)
        self._strike()


def is_file_operation(event: str, given: tuple[Any, ...], folder: str) -> bool:
    """Whether an audit event is about a file in a folder."""
    if event not in ("open", "os.chmod", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.rmdir"):
        return False
    return bool(given) and isinstance(given[0], str | Path) and str(given[0]).startswith(folder + os.sep)


def counted(work: Work, folder: Path) -> tuple[int, int, float]:
    """Ticks, file operations and seconds of work, which is done here: for a forked process."""
    ticks, files = [0], [0]
    place = str(folder.resolve())

    def note(event: str, given: tuple[Any, ...]) -> None:
        files[0] += is_file_operation(event, given, place)

    def tick(*_: Any) -> None:
        ticks[0] += 1

    sys.addaudithook(note)
    began = time.perf_counter()
    work(tick)
    return ticks[0], files[0], time.perf_counter() - began
