"""Work in a forked process with a time limit; at the limit it is ended together with all processes that it started."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: Seconds for a process to write down where it hangs.
_LAST_WORDS = 1.0


def fault_of(work: Callable[[], object], said: Path, limit: float) -> str | None:
    """What went wrong in a process of its own: an error, its death or no end; None where all went well.

    Parameters
    ----------
    work : callable
    said : Path
        Where its standard output and error go.
    limit : float
        Seconds that it may take.
    """
    child = os.fork()
    if not child:
        _do(work, said)
    status, until = 0, time.monotonic() + limit
    try:
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return None if code == 0 else f"ended with status {code}: {_last(said)}"
            time.sleep(0.01)
        os.killpg(child, signal.SIGUSR1)
        time.sleep(_LAST_WORDS)
        return f"no end within {limit:g} s: {_places(said)}"
    finally:
        # also what it has left behind, such as the workers of a pool; not there if it died before its first step
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _do(work: Callable[[], object], said: Path) -> None:
    status = 1
    try:
        os.setsid()
        out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
        # a fork beside threads is deprecated from Python 3.12 on: just what is tried
        warnings.simplefilter("ignore")
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _last(said: Path) -> str:
    lines = [line.strip() for line in said.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:600] if lines else ""


def _places(said: Path) -> str:
    """Where the threads of all its processes were: the innermost call of each."""
    text = said.read_text(errors="replace") if said.exists() else ""
    found = re.findall(r"most recent call first\):\n((?:  File .*\n){1,2})", text)
    return "; ".join(sorted({" < ".join(place.split()) for place in found}))[:1500]
