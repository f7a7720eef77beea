"""When to stop, what to show. A callback maps a :class:`~gce.algorithms.Step` to "stop?"."""

from __future__ import annotations

import logging
import math
import sys
import time
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
        self._risks: dict[int, list[float]] = {}

    def __call__(self, step: Step) -> list[int]:
        """The members that are done."""
        risks = step.risk.tolist()
        values = None if step.validation is None else step.validation.tolist()
        if values is not None and any(map(math.isnan, values)):
            raise ValueError(
                f"the validation values of round {step.t} are {values}, and NaN is neither better nor worse than a "
                "number: scoring must give numbers on every member's held-out rows"
            )
        self.note(step.t, step.members, risks, values)
        done = []
        for m, risk, gap in zip(step.members, risks, step.gap.tolist(), strict=True):
            nothing_left = risk <= self.spent * self._risks[m][0]
            if self._stale(m, step.t) or self._flat(m) or nothing_left or gap <= self.tol * abs(risk):
                done.append(m)
        return done

    def note(self, t: int, members: list[int], risks: list[float], values: list[float] | None) -> None:
        """Take down a round's risks and validation values of some members; nothing is judged."""
        for i, m in enumerate(members):
            self._risks.setdefault(m, []).append(risks[i])
            value = -math.inf if values is None else values[i]
            # the first round is the best so far whatever its value, which may be infinite
            if values is None or m not in self.best or value < self.best[m]:
                self.best[m], self.best_round[m] = value, t

    def _stale(self, m: int, t: int) -> bool:
        return self.n_iter_no_change is not None and t - self.best_round.get(m, 0) >= self.n_iter_no_change

    def _flat(self, m: int) -> bool:
        rounds, risks = self.n_iter_no_change, self._risks[m]
        if rounds is None or len(risks) <= rounds:
            return False
        return risks[-1 - rounds] - risks[-1] <= self.tol * abs(risks[-1])


class Together(EarlyStopping):
    """All members stand at one round, the best by their mean validation value, and are done together.

    Where steps are short and many, a member's own held-out rows are too few to say which of many rounds is best.
    """

    def __call__(self, step: Step) -> list[int]:
        done = super().__call__(step)
        return done if len(done) == len(step.members) else []

    def note(self, t: int, members: list[int], risks: list[float], values: list[float] | None) -> None:
        mean = None if values is None else [sum(values) / len(values)] * len(values)
        super().note(t, members, risks, mean)


class TimeLimit:
    """Stop after so many seconds; the best round so far is kept.

    Parameters
    ----------
    seconds : float
        Counted from the object's making.

    Attributes
    ----------
    end : float
        On the clock of ``time.monotonic``.
    """

    def __init__(self, seconds: float) -> None:
        self._last = time.monotonic()
        self.end = self._last + seconds

    def part(self, share: float) -> TimeLimit:
        """A limit that leaves the rest of what is left to others."""
        return TimeLimit(share * self.left)

    @property
    def left(self) -> float:
        """Seconds until the limit, negative beyond it."""
        return self.end - time.monotonic()

    def __call__(self, step: Step) -> bool:
        # a round like the last one would end beyond the limit by more than it now is short of it
        now = time.monotonic()
        pace, self._last = now - self._last, now
        return self.left <= pace / 2


class Log:
    """One line a round through ``logging`` (logger "gce", level INFO)."""

    def __call__(self, step: Step) -> bool:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", describe(step))
        return False


class Watchers:
    """Callbacks that hear of every round, and whether one of them has said stop.

    Parameters
    ----------
    callbacks : list of callables
    """

    def __init__(self, callbacks: list[Callback]) -> None:
        self._callbacks, self.stopped = callbacks, False

    def add(self, callback: Callback) -> None:
        """One more."""
        self._callbacks.append(callback)

    def __call__(self, step: Step) -> bool:
        # every callback hears of every round, whatever an earlier one says
        said = [bool(callback(step)) for callback in self._callbacks]
        self.stopped |= any(said)
        return self.stopped


class Remaining:
    """Rounds and seconds that a fit can still take; early stopping usually ends it sooner.

    Parameters
    ----------
    max_iter : int
        Rounds at most.
    max_calls : float
        Oracle calls of a member at most.
    clock : TimeLimit, optional
    """

    #: Rounds whose mean says what the next ones take.
    recent = 10

    def __init__(self, max_iter: int, max_calls: float, clock: TimeLimit | None = None) -> None:
        self._max_iter, self._max_calls, self._clock = max_iter, max_calls, clock
        self._ends: list[tuple[int, float]] = []

    def rounds(self, step: Step) -> int:
        """Rounds left where every member goes on to its last call, at the calls a round made so far."""
        calls = max(int(step.calls.min()), 1)
        by_calls = (self._max_calls - calls) * step.t / calls
        return max(0, math.ceil(min(self._max_iter - step.t, by_calls)))

    def seconds(self, step: Step) -> float | None:
        """Seconds left at most, None where nothing is known yet; to be asked after every round."""
        self._ends.append((step.t, step.seconds))
        known = [] if self._clock is None else [max(0.0, self._clock.left)]
        if len(self._ends) > 1:
            # The first round is no measure, it may compile the loops. The slower of two paces: a few short rounds
            # would promise too much.
            pace = max(self._pace(self._ends[0]), self._pace(self._ends[-self.recent - 1 :][0]))
            known.append(self.rounds(step) * pace)
        return min(known, default=None)

    def _pace(self, since: tuple[int, float]) -> float:
        t, seconds = self._ends[-1]
        return (seconds - since[1]) / (t - since[0])


class Progress:
    """A bar on standard error, drawn by rich; a context manager.

    Parameters
    ----------
    remaining : Remaining
    """

    def __init__(self, remaining: Remaining) -> None:
        self._remaining = remaining

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        columns = (
            TextColumn("[bold]gce"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", style="progress.remaining", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1)),
        )
        self._bar = Bar(*columns, console=Console(file=sys.stderr), transient=True, expand=True)
        self._task = self._bar.add_task("first round", total=None, left="")
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, step: Step) -> bool:
        seconds = self._remaining.seconds(step)
        self._bar.update(
            self._task,
            completed=step.t,
            total=step.t + self._remaining.rounds(step),
            description="  ".join(figures(step)),
            left="" if seconds is None else f"at most {span(seconds)} left",
        )
        return False


def span(seconds: float) -> str:
    """Seconds for people, rounded up: ``0:07``, ``12:40``, ``3:05:00``."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe(step: Step) -> str:
    """A round in one line."""
    return "  ".join([f"round {step.t}", *figures(step)])


def figures(step: Step) -> list[str]:
    """What a round reached, in words and numbers."""
    parts = [f"risk {step.risk.mean():.4g}"]
    if step.validation is not None:
        parts.append(f"validation {step.validation.mean():.4g}")
    parts.append(f"{'gap' if step.certified else 'gap >='} {step.gap.mean():.3g}")
    if len(step.members) > 1:
        parts.append(f"members {len(step.members)}")
    return parts
