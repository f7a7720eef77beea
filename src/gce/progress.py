"""What a fit shows while it runs: a bar, and lines of a log."""

from __future__ import annotations

import logging
import math
import multiprocessing
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, Self

from gce.algorithms import Step
from gce.callbacks import Means, TimeLimit, Turn
from gce.extras import extra

logger = logging.getLogger("gce")


def drawn(verbose: Any) -> bool:
    """Whether a bar is drawn.

    Parameters
    ----------
    verbose : bool, int or "auto"
        "auto": where standard error is a terminal, and in notebooks, if rich is installed. Processes and threads that
        work for others stay silent: their bars would be drawn over each other.
    """
    if isinstance(verbose, str) and verbose == "auto":
        first = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
        return first and _drawable()
    if verbose:
        extra("rich.progress", "rich")
    return bool(verbose)


def _terminal(stream: Any) -> bool:
    # a windowed Python has no streams at all
    return stream is not None and stream.isatty()


def _drawable() -> bool:
    """Whether there is a screen, and rich to draw on it."""
    terminal = _terminal(sys.stderr)
    # rich, which knows notebooks, need not be asked where there cannot be one
    if not (terminal or "IPython" in sys.modules) or find_spec("rich") is None:
        return False
    return terminal or import_module("rich.console").Console().is_jupyter


class Log:
    """A fit in lines, through ``logging`` (logger "gce"); a context manager.

    A line a family, when its rounds are over, and one every ten rounds are of level INFO; those of all other rounds are
    of level DEBUG.
    """

    #: Rounds of a family from one line of level INFO to the next.
    every = 10

    def __init__(self) -> None:
        self._means = Means()
        self._last: Step | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._close()

    def __call__(self, step: Step) -> bool:
        if self._last is None or step.family != self._last.family:
            seconds = self._close()
            self._first, self._before, self._best = step.own_t, seconds, math.inf
        self._last, self._best = step, min(self._best, self._means(step).get("validation", math.inf))
        level = logging.DEBUG if step.own_t % self.every else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "%s", describe(step))
        return False

    def _close(self) -> float:
        """Say what the last family came to; the seconds until then."""
        if self._last is None:
            return 0.0
        rounds = self._last.own_t - self._first + 1
        parts = [f"{rounds} {'round' if rounds == 1 else 'rounds'} in {self._last.seconds - self._before:.1f} s"]
        if self._best < math.inf:
            parts.append(f"best validation {self._best:.4g}")
        logger.info("%s", f"{self._last.family or 'done'}: {', '.join(parts)}")
        return self._last.seconds


class Remaining:
    """Rounds and seconds that a family can still take; early stopping usually ends it sooner.

    Parameters
    ----------
    max_iter : int
        Rounds at most.
    max_calls : float
        Oracle calls of a member at most.
    clock : TimeLimit, optional
        The whole fit's.
    """

    #: Rounds whose mean says what the next ones take.
    recent = 10

    def __init__(self, max_iter: int, max_calls: float, clock: TimeLimit | None = None) -> None:
        self._max_iter, self._max_calls, self._clock = max_iter, max_calls, clock
        self._ends: list[tuple[int, float]] = []

    def rounds(self, step: Step) -> int:
        """Rounds left where every member goes on to its last call, at the calls a round made so far."""
        calls = max(int(step.calls.min()), 1)
        by_calls = (self._max_calls - calls) * step.own_t / calls
        return max(0, math.ceil(min(self._max_iter - step.own_t, by_calls)))

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


class Screen(Protocol):
    """Where a bar is drawn; rich's own bar is one."""

    def start(self) -> None:
        """Begin to draw."""

    def refresh(self) -> None:
        """Draw how things stand."""

    def stop(self) -> None:
        """Take the bar away."""


class Notebook:
    """A bar in the output of a notebook's cell. rich's own live display needs ipywidgets there.

    Parameters
    ----------
    bar : rich.progress.Progress
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def start(self) -> None:
        self._handle = import_module("IPython.display").display(self._bar, display_id=True)

    def refresh(self) -> None:
        self._handle.update(self._bar)

    def stop(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)


class Progress:
    """A bar on standard error, or in the output of a notebook's cell, drawn by rich; a context manager.

    It shows the family, rounds over all families, and how long the fit can still take at most; where the families to
    come have no limit of time, it says how many they are: what they take is not known before they begin.

    Parameters
    ----------
    rounds : mapping of str to int
        Rounds that each family can still have, in the order of their turns.
    clock : TimeLimit, optional
        The whole fit's.
    """

    #: Seconds from one picture to the next.
    interval = 0.1

    def __init__(self, rounds: Mapping[str, int], clock: TimeLimit | None = None) -> None:
        self._rounds, self._clock = rounds, clock
        self._to_come = list(rounds)

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        console = Console(file=sys.stderr)
        several = [f"{name} {i}/{len(self._rounds)}" for i, name in enumerate(self._rounds, 1)]
        # as wide as the longest, so that nothing moves from family to family
        width = max(map(len, several)) if len(several) > 1 else 3
        family = Column(no_wrap=True, width=min(width, 24))
        counts = Column(no_wrap=True, justify="right", min_width=2 * len(str(sum(self._rounds.values()))) + 1)
        columns = (
            TextColumn("{task.fields[family]}", style="bold", markup=False, table_column=family),
            BarColumn(bar_width=10),
            MofNCompleteColumn(table_column=counts),
            TextColumn("{task.fields[left]}", style="progress.remaining", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1)),
        )
        # what callbacks print belongs above the bar, but not where standard output goes elsewhere
        shared = _terminal(sys.stdout)
        self._bar = Bar(*columns, console=console, transient=True, expand=True, redirect_stdout=shared)
        self._task = self._bar.add_task("", total=None, family="gce", left="")
        self._screen: Screen = Notebook(self._bar) if console.is_jupyter else self._bar
        self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._screen.stop()

    def begin(self, turn: Turn) -> None:
        """A family's turn has come."""
        self._remaining = Remaining(turn.rounds, turn.calls, self._clock)
        name = next(iter(self._rounds)) if turn.family is None else turn.family
        self._to_come = self._to_come[self._to_come.index(name) + 1 :]
        if turn.family is not None:
            number = len(self._rounds) - len(self._to_come)
            self._bar.update(self._task, family=f"{name} {number}/{len(self._rounds)}")
        if turn.others:
            # the families before this one may have ended long before their limits
            done = turn.others + turn.rounds - self._rounds[name]
            self._bar.update(self._task, completed=done, total=done + self._rounds[name] + self._rounds_to_come)
        left = self._left(None if self._clock is None else max(0.0, self._clock.left))
        self._bar.update(self._task, description="first round", left=left)
        self._draw()

    def __call__(self, step: Step) -> bool:
        left = self._remaining.rounds(step) + self._rounds_to_come
        self._bar.update(
            self._task,
            completed=step.t,
            total=step.t + left,
            description="  ".join(figures(step)),
            left=self._left(self._remaining.seconds(step)),
        )
        if time.monotonic() - self._drawn >= self.interval:
            self._draw()
        return False

    @property
    def _rounds_to_come(self) -> int:
        return sum(self._rounds[name] for name in self._to_come)

    def _draw(self) -> None:
        self._screen.refresh()
        self._drawn = time.monotonic()

    def _left(self, seconds: float | None) -> str:
        """What is known of the time to come."""
        more = len(self._to_come)
        if self._clock is not None and more:
            seconds, more = max(0.0, self._clock.left), 0
        families = f"{more} {'family' if more == 1 else 'families'}"
        if seconds is None:
            return f"{families} to come" if more else ""
        return f"at most {span(seconds)} + {families}" if more else f"at most {span(seconds)} left"


def span(seconds: float) -> str:
    """Seconds for people, rounded up: ``0:07``, ``12:40``, ``3:05:00``."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe(step: Step) -> str:
    """A round in one line."""
    name = f"round {step.t}" if step.family is None else f"{step.family} round {step.own_t} ({step.t} in all)"
    return "  ".join([name, *figures(step)])


def figures(step: Step) -> list[str]:
    """What a round reached, in words and numbers."""
    parts = [f"risk {step.risk.mean():.4g}"]
    if step.validation is not None:
        parts.insert(0, f"validation {step.validation.mean():.4g}")
    parts.append(f"{'gap' if step.certified else 'gap >='} {step.gap.mean():.3g}")
    if len(step.members) > 1:
        parts.append(f"members {len(step.members)}")
    return parts
