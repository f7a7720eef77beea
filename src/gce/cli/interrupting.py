"""Ctrl-C during a fit: the first one keeps the best so far, a second one aborts at once."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Self

from gce.algorithms import Step
from gce.cli.rendering import say

_SHOW_CURSOR = b"\x1b[?25h"
_KEPT = "interrupted: the best so far is kept after this round; Ctrl-C again aborts"


class Interruption:
    """A callback that stops a fit after the round in which Ctrl-C was pressed; a context manager.

    Attributes
    ----------
    pressed : bool
    """

    def __init__(self) -> None:
        self.pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def __call__(self, step: Step) -> bool:
        return self.pressed

    def _press(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        # The system's own answer: compiled loops would keep Python's waiting. Nobody is left then to bring back the
        # cursor that a bar hides.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)
        try:
            say(_KEPT)
        except RuntimeError:
            # the signal came in the middle of another line, whose buffer cannot be entered twice
            os.write(sys.stderr.fileno(), f"\n{_KEPT}\n".encode())
