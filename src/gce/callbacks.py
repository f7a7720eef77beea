"""When to stop, and who hears of a round. A callback maps a :class:`~gce.algorithms.Step` to "stop?"."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from gce.algorithms import Step
from gce.clock import Pace

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
    """The seconds of a whole fit: what comes before its first round and after its last one counts too.

    Parameters
    ----------
    seconds : float
        Counted from the object's making.

    Attributes
    ----------
    end : float
        On the clock of ``time.monotonic``.
    reserve : float
        Seconds that are kept for what comes after the last round.
    cut, skipped : list of str
        Families that were cut short, and those that were not begun.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.reserve = 0.0
        self.cut: list[str] = []
        self.skipped: list[str] = []

    def share(self, families: int) -> FamilyTimeLimit:
        """A limit for the first of so many families that are still to come; what it leaves goes to the others."""
        return FamilyTimeLimit(time.monotonic() + self.spare / families)

    @property
    def left(self) -> float:
        """Seconds until the limit, negative beyond it."""
        return self.end - time.monotonic()

    @property
    def spare(self) -> float:
        """Seconds left for rounds."""
        return self.left - self.reserve

    @property
    def told(self) -> str:
        """Which families the limit kept from their end, in one sentence; empty where it kept none."""
        parts = [
            f"{_listed(names)} {'was' if len(names) == 1 else 'were'} {what}"
            for names, what in ((self.cut, "cut short"), (self.skipped, "not begun"))
            if names
        ]
        advice = "a larger time_limit may give a better model"
        return f"time_limit={self.seconds:g} ended the fit early: {' and '.join(parts)}; {advice}" if parts else ""


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


class FamilyTimeLimit(Pace):
    """A callback that ends a family's rounds where another one like the last would end too late.

    Parameters
    ----------
    end : float
        On the clock of ``time.monotonic``.

    Attributes
    ----------
    stopped : bool
        It has said stop.
    """

    stopped = False

    def __call__(self, step: Step) -> bool:
        self.stopped = self.spent()
        if step.t == 1:
            # what is done once, before the first round, is not done again in the second
            self.stopped = self.left < min(self.took, step.seconds)
        return self.stopped


class Turn(NamedTuple):
    """A family's turn in a fit, as callbacks are told of it.

    Parameters
    ----------
    family : str or None
        None where a single family is fitted.
    others : int
        Rounds that other families have had.
    seconds : float
        What those took.
    rounds : int
        Rounds of this family at most, those that it has had included.
    calls : float
        Oracle calls of a member at most.
    """

    family: str | None
    others: int
    seconds: float
    rounds: int
    calls: float

    def place(self, step: Step) -> Step:
        """A round of this family as a round of the whole fit."""
        t, seconds = self.others + step.t, self.seconds + step.seconds
        return replace(step, t=t, seconds=seconds, family=self.family, others=self.others)


class Watchers:
    """Callbacks that hear of every round, and whether one of them has said stop.

    Parameters
    ----------
    callbacks : list of callables
    """

    def __init__(self, callbacks: list[Callback]) -> None:
        self._callbacks, self.stopped = callbacks, False
        self._greeters: list[Callable[[Turn], None]] = []

    def add(self, callback: Callback) -> None:
        """One more."""
        self._callbacks.append(callback)

    def greet(self, told: Callable[[Turn], None]) -> None:
        """Have ``told`` called when a family's turn begins."""
        self._greeters.append(told)

    def begin(self, turn: Turn) -> None:
        """The rounds that follow are this family's."""
        self._turn = turn
        for told in self._greeters:
            told(turn)

    def __call__(self, step: Step) -> bool:
        placed = self._turn.place(step)
        # every callback hears of every round, whatever an earlier one says
        said = [bool(callback(placed)) for callback in self._callbacks]
        self.stopped |= any(said)
        return self.stopped


class Means:
    """A round's numbers, means over all members, as they stand in ``history_``: one that is done stands still."""

    def __init__(self) -> None:
        self._last: dict[str | None, dict[str, dict[int, float]]] = {}

    def __call__(self, step: Step) -> dict[str, float]:
        """The mean of each of the round's numbers."""
        columns = {"risk": step.risk, "gap" if step.certified else "gap_lower": step.gap, "size": step.size.mean(1)}
        if step.validation is not None:
            columns["validation"] = step.validation
        if step.own_t == 1:
            self._last[step.family] = {}
        last = self._last.setdefault(step.family, {})
        for name, values in columns.items():
            last.setdefault(name, {}).update(zip(step.members, values.tolist(), strict=True))
        return {name: sum(own.values()) / len(own) for name, own in last.items()}
