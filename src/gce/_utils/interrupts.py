"""Ctrl-C at moments when a process must not be interrupted."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any


class HeldInterrupts:
    """Ctrl-C takes effect at the end of the block, where this is the main thread: others never see it.

    A compiled module may end the process where its initialization is interrupted: that of onnx does.

    Examples
    --------
    >>> with HeldInterrupts():
    ...     import json
    """

    def __enter__(self) -> HeldInterrupts:
        self._held = False
        # None where the handler is not one of Python's, which could not be put back
        self._before: Any = signal.getsignal(signal.SIGINT)
        if self._before is not None:
            try:
                signal.signal(signal.SIGINT, self._hold)
            except ValueError:  # another thread
                self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        if self._held:
            signal.raise_signal(signal.SIGINT)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._held = True
