"""Time limits: for sequences of similar steps, and for work that is either finished or given up."""

from __future__ import annotations

import time


class OutOfTimeError(Exception):
    """Work that is of no use unless it is finished was given up at its deadline."""


def check_time(deadline: float) -> None:
    """Raise :class:`OutOfTimeError` after a deadline, on the clock of ``time.monotonic``.

    Parameters
    ----------
    deadline : float
        May be infinite.
    """
    if time.monotonic() >= deadline:
        raise OutOfTimeError


class StepTimer:
    """Durations of similar steps, and whether there is time for another one.

    Parameters
    ----------
    end : float
        Deadline on the clock of ``time.monotonic``; may be infinite.

    Attributes
    ----------
    last_duration : float
        Seconds that the last step took.
    """

    def __init__(self, end: float) -> None:
        self.end, self._last = end, time.monotonic()
        self.last_duration = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.end - time.monotonic()

    def out_of_time(self, after: float = 0.0) -> bool:
        """Whether another step as long as the last one would miss the deadline; to be called after each step.

        Parameters
        ----------
        after : float, default=0.0
            Seconds that are needed after the next step.
        """
        now = time.monotonic()
        self.last_duration, self._last = now - self._last, now
        return now + self.last_duration + after > self.end
