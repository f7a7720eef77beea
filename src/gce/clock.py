"""Time that runs out: whether one more of the same still ends before an end on the clock of ``time.monotonic``."""

from __future__ import annotations

import time


class Pace:
    """What the last of several like steps took, and whether there is time for another.

    Parameters
    ----------
    end : float
        On the clock of ``time.monotonic``; infinite: there is always time.
    """

    def __init__(self, end: float) -> None:
        self.end, self._last = end, time.monotonic()
        self.took = 0.0

    @property
    def left(self) -> float:
        """Seconds until the end, negative beyond it."""
        return self.end - time.monotonic()

    def spent(self, after: float = 0.0) -> bool:
        """To be asked after each step: whether another one like it, and ``after`` seconds, would go beyond the end."""
        now = time.monotonic()
        self.took, self._last = now - self._last, now
        return now + self.took + after > self.end
