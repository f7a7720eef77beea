"""When to stop, what to show. A callback maps a :class:`~gce.algorithms.Step` to "stop?"."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from gce.algorithms import Step

logger = logging.getLogger("gce")

Callback = Callable[[Step], Any]


class EarlyStopping:
    """Each member's best round, and when it is done.

    A member is done after ``n_iter_no_change`` rounds without a better validation value (ties keep the earlier round)
    or without a noticeable fall of the training risk, when next to nothing of its first round's risk is left, and when
    its gap is small. Where nothing is held out, the last round is the best one.

    Parameters
    ----------
    n_iter_no_change : int or None
        None: only the gap stops.
    tol : float
        Gap, and fall of the training risk over ``n_iter_no_change`` rounds, that count as none, relative to the risk.
    """

    #: What is left of the first round's risk when there is nothing more to learn from the training rows.
    spent = 1e-6

    def __init__(self, n_iter_no_change: int | None, tol: float) -> None:
        self.n_iter_no_change, self.tol = n_iter_no_change, tol
        self.best: dict[int, float] = {}
        self.best_round: dict[int, int] = {}
        self._first: dict[int, float] = {}
        self._risks: dict[int, deque[float]] = {}

    def __call__(self, step: Step) -> list[int]:
        """The members that are done."""
        done = []
        values = step.validation.tolist() if step.validation is not None else None
        for i, (m, risk, gap) in enumerate(zip(step.members, step.risk.tolist(), step.gap.tolist(), strict=True)):
            value = -math.inf if values is None else values[i]
            if values is None or value < self.best.get(m, math.inf):
                self.best[m], self.best_round[m] = value, step.t
            nothing_left = risk <= self.spent * self._first.setdefault(m, risk)
            if self._stale(m, step.t) or self._flat(m, risk) or nothing_left or gap <= self.tol * abs(risk):
                done.append(m)
        return done

    def _stale(self, m: int, t: int) -> bool:
        return self.n_iter_no_change is not None and t - self.best_round.get(m, 0) >= self.n_iter_no_change

    def _flat(self, m: int, risk: float) -> bool:
        if self.n_iter_no_change is None:
            return False
        recent = self._risks.setdefault(m, deque(maxlen=self.n_iter_no_change + 1))
        recent.append(risk)
        return len(recent) == recent.maxlen and recent[0] - risk <= self.tol * abs(risk)


class TimeLimit:
    """Stop after so many seconds; the best round so far is kept.

    Parameters
    ----------
    seconds : float
        Counted from the object's making.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def __call__(self, step: Step) -> bool:
        return time.monotonic() >= self._end


class Log:
    """One line a round through ``logging`` (logger "gce", level INFO)."""

    def __call__(self, step: Step) -> bool:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", describe(step))
        return False


class Progress:
    """A bar on standard error, drawn by rich; a context manager.

    Parameters
    ----------
    total : int
        Rounds at most.
    """

    def __init__(self, total: int) -> None:
        self._total = total

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("[bold]gce"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._bar = Bar(*columns, console=Console(file=sys.stderr), transient=True)
        self._task = self._bar.add_task("", total=self._total)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, step: Step) -> bool:
        self._bar.update(self._task, completed=step.t, description=describe(step))
        return False


def describe(step: Step) -> str:
    """A round in one line."""
    parts = [f"round {step.t}", f"risk {step.risk.mean():.4g}"]
    if step.validation is not None:
        parts.append(f"validation {step.validation.mean():.4g}")
    parts.append(f"{'gap' if step.certified else 'gap >='} {step.gap.mean():.3g}")
    if len(step.members) > 1:
        parts.append(f"members {len(step.members)}")
    return "  ".join(parts)
