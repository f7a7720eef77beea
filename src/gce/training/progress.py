"""Progress of a fit: a progress bar, and log messages."""

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

from gce._utils.optional import import_optional
from gce._utils.text import escape_line
from gce.frank_wolfe.step import Step
from gce.training.callbacks import FamilyTurn, MemberMeans, TimeLimit

logger = logging.getLogger("gce")


def shows_progress_bar(verbose: Any) -> bool:
    """Whether a progress bar is shown.

    Parameters
    ----------
    verbose : bool, int or "auto"
        "auto": if standard error is a terminal, or in notebooks, and rich is installed; but not in worker processes and
        threads, whose bars would overwrite each other.
    """
    if isinstance(verbose, str) and verbose == "auto":
        first = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
        return first and _can_draw()
    if verbose:
        import_optional("rich.progress", "rich")
    return bool(verbose)


def _is_terminal(stream: Any) -> bool:
    # Python without a console has no streams
    return stream is not None and stream.isatty()


def _can_draw() -> bool:
    """Whether there is a terminal or notebook, and rich is installed."""
    terminal = _is_terminal(sys.stderr)
    # rich, which detects notebooks, is imported only where there can be one
    if not (terminal or "IPython" in sys.modules) or find_spec("rich") is None:
        return False
    return terminal or import_module("rich.console").Console().is_jupyter


class Log:
    """Callback that logs a fit through ``logging`` (logger "gce"); a context manager.

    One message per family after its last round, and one every ten rounds, have level INFO; all other rounds have level
    DEBUG.
    """

    #: Rounds of a family between messages of level INFO.
    every = 10

    def __init__(self) -> None:
        self._means = MemberMeans()
        self._last: Step | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._log_family()

    def __call__(self, step: Step) -> bool:
        if self._last is None or step.family != self._last.family:
            seconds = self._log_family()
            self._first, self._before, self._best = step.own_t, seconds, math.inf
        means = self._means(step)
        self._last, self._best = step, min(self._best, means.get("validation", math.inf))
        level = logging.DEBUG if step.own_t % self.every else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "%s", describe_step(step, means))
        return False

    def _log_family(self) -> float:
        """Log the result of the last family; returns the seconds until then."""
        if self._last is None:
            return 0.0
        rounds = self._last.own_t - self._first + 1
        parts = [f"{rounds} {'round' if rounds == 1 else 'rounds'} in {self._last.seconds - self._before:.1f} s"]
        if self._best < math.inf:
            parts.append(f"best validation {self._best:.4g}")
        logger.info("%s", f"{escape_line(self._last.family or 'done')}: {', '.join(parts)}")
        return self._last.seconds


class RemainingEstimate:
    """Upper estimates of the remaining rounds and seconds of a family; early stopping usually ends it sooner.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds.
    max_calls : float
        Maximum number of oracle calls of a member.
    clock : TimeLimit, optional
        Time limit of the whole fit.
    """

    #: Rounds over which durations are averaged.
    recent = 10

    def __init__(self, max_iter: int, max_calls: float, clock: TimeLimit | None = None) -> None:
        self._max_iter, self._max_calls, self._clock = max_iter, max_calls, clock
        self._ends: list[tuple[int, float]] = []

    def rounds(self, step: Step) -> int:
        """Remaining rounds if no member stops early, at the mean number of calls per round so far."""
        calls = max(int(step.calls.min()), 1)
        by_calls = (self._max_calls - calls) * step.own_t / calls
        return max(0, math.ceil(min(self._max_iter - step.own_t, by_calls)))

    def seconds(self, step: Step) -> float | None:
        """Remaining seconds at most, None before there is an estimate; to be called after every round."""
        self._ends.append((step.t, step.seconds))
        estimates = [] if self._clock is None else [max(0.0, self._clock.remaining)]
        if len(self._ends) > 1:
            # the first round is not counted: it does more; the slower of two means, since a few short rounds
            # would be too optimistic
            duration = max(self._mean_duration(self._ends[0]), self._mean_duration(self._ends[-self.recent - 1 :][0]))
            estimates.append(self.rounds(step) * duration)
        return min(estimates, default=None)

    def _mean_duration(self, since: tuple[int, float]) -> float:
        t, seconds = self._ends[-1]
        return (seconds - since[1]) / (t - since[0])


class Screen(Protocol):
    """A display of a progress bar; rich's progress bar is one."""

    def start(self) -> None:
        """Show the bar."""

    def refresh(self) -> None:
        """Update the bar."""

    def stop(self) -> None:
        """Remove the bar."""


class NotebookScreen:
    """Display in the output of a notebook cell, where rich's own live display needs ipywidgets.

    Parameters
    ----------
    bar : rich.progress.Progress
        The bar.
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def start(self) -> None:
        self._handle = import_module("IPython.display").display(self._bar, display_id=True)

    def refresh(self) -> None:
        self._handle.update(self._bar)

    def stop(self) -> None:
        self._handle.update({"text/plain": ""}, raw=True)


class ProgressBar:
    """Callback that shows a progress bar on standard error, or in a notebook cell, by rich; a context manager.

    It shows the family, rounds over all families, and the remaining time at most; without a time limit it shows the
    number of remaining families instead of their time, which cannot be estimated before they start.

    Parameters
    ----------
    rounds : mapping of str to int
        Remaining rounds of each family, in the order of the families.
    clock : TimeLimit, optional
        Time limit of the whole fit.
    """

    #: Seconds between updates of the display.
    interval = 0.1

    def __init__(self, rounds: Mapping[str, int], clock: TimeLimit | None = None) -> None:
        self._rounds, self._clock = rounds, clock
        self._waiting = list(rounds)
        self._means = MemberMeans()

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        console = Console(file=sys.stderr)
        several = [f"{name} {i}/{len(self._rounds)}" for i, name in enumerate(self._rounds, 1)]
        # as wide as the longest, so that columns do not move
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
        # output of callbacks is printed above the bar, unless standard output is redirected
        shared = _is_terminal(sys.stdout)
        self._bar = Bar(*columns, console=console, transient=True, expand=True, redirect_stdout=shared)
        self._task = self._bar.add_task("", total=None, family="gce", left="")
        self._screen: Screen = NotebookScreen(self._bar) if console.is_jupyter else self._bar
        self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._screen.stop()

    def begin_family(self, turn: FamilyTurn) -> None:
        """Show the start of a family's rounds."""
        self._remaining = RemainingEstimate(turn.max_rounds, turn.max_calls, self._clock)
        name = next(iter(self._rounds)) if turn.family is None else turn.family
        self._waiting = self._waiting[self._waiting.index(name) + 1 :]
        if turn.family is not None:
            number = len(self._rounds) - len(self._waiting)
            self._bar.update(self._task, family=f"{escape_line(name)} {number}/{len(self._rounds)}")
        if turn.rounds_before:
            # earlier families may have stopped long before their limits
            done = turn.rounds_before + turn.max_rounds - self._rounds[name]
            self._bar.update(self._task, completed=done, total=done + self._rounds[name] + self._rounds_waiting)
        left = self._format_remaining(None if self._clock is None else max(0.0, self._clock.remaining))
        self._bar.update(self._task, description="first round", left=left)
        self._draw()

    def __call__(self, step: Step) -> bool:
        left = self._remaining.rounds(step) + self._rounds_waiting
        self._bar.update(
            self._task,
            completed=step.t,
            total=step.t + left,
            description="  ".join(step_metrics(step, self._means(step))),
            left=self._format_remaining(self._remaining.seconds(step)),
        )
        if time.monotonic() - self._drawn >= self.interval:
            self._draw()
        return False

    @property
    def _rounds_waiting(self) -> int:
        return sum(self._rounds[name] for name in self._waiting)

    def _draw(self) -> None:
        self._screen.refresh()
        self._drawn = time.monotonic()

    def _format_remaining(self, seconds: float | None) -> str:
        """The remaining time, as far as it can be estimated."""
        more = len(self._waiting)
        if self._clock is not None and more:
            seconds, more = max(0.0, self._clock.remaining), 0
        families = f"{more} {'family' if more == 1 else 'families'}"
        if seconds is None:
            return f"{families} to come" if more else ""
        return (
            f"at most {format_duration(seconds)} + {families}" if more else f"at most {format_duration(seconds)} left"
        )


def format_duration(seconds: float) -> str:
    """A duration in seconds as hours, minutes and seconds, rounded up.

    Examples
    --------
    >>> format_duration(6.2), format_duration(760), format_duration(11100)
    ('0:07', '12:40', '3:05:00')
    """
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe_step(step: Step, means: Mapping[str, float]) -> str:
    """A round on one line, with the means of all members: those that stopped keep their last values."""
    if step.family is None:
        name = f"round {step.t}"
    else:
        # whoever named the family may not be who reads the log
        name = f"{escape_line(step.family)} round {step.own_t} ({step.t} in all)"
    return "  ".join([name, *step_metrics(step, means)])


def step_metrics(step: Step, means: Mapping[str, float]) -> list[str]:
    """Formatted metrics of a round, as they are in ``history_``."""
    parts = [f"risk {means['risk']:.4g}"]
    if step.validation is not None:
        parts.insert(0, f"validation {means['validation']:.4g}")
    if step.certified:
        parts.append(f"suboptimality <= {means['suboptimality']:.3g}")
    else:
        parts.append(f"gap >= {means['gap_lower']:.3g}")
    if len(step.members) > 1:
        parts.append(f"members {len(step.members)}")
    return parts
