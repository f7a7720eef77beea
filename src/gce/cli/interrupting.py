"""Ctrl-C during a fit: the first stops it and keeps the best model so far, the second aborts."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Self

from gce.cli.rendering import say
from gce.frank_wolfe.step import Step

_SHOW_CURSOR = b"\x1b[?25h"
_MESSAGE = "interrupted: stopping after this round and keeping the best model so far; Ctrl-C again aborts"


class Interruption:
    """A callback that stops a fit after the round in which Ctrl-C was pressed; a context manager.

    Attributes
    ----------
    requested : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def __call__(self, step: Step) -> bool:
        return self.requested

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        # The system's own handler: Python's would wait for compiled loops to return. It does not restore the cursor
        # that a progress bar hides.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)
        try:
            say(_MESSAGE)
        except RuntimeError:
            # the signal interrupted another write, and the buffer is not reentrant
            os.write(sys.stderr.fileno(), f"\n{_MESSAGE}\n".encode())
