"""Early stopping, time limits and callbacks.

A callback is called with a :class:`~gce.frank_wolfe.algorithms.Step` after every round; returning True stops the fit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from gce._utils.clock import StepTimer
from gce._utils.params import NONE, Rules, at_least, count
from gce.frank_wolfe.step import Step

Callback = Callable[[Step], Any]

_RULES: Rules = {"n_iter_no_change": count(1) | NONE, "tol": at_least(0)}


class EarlyStopping:
    """Early stopping of each member by its validation value, training risk and gap.

    A member stops after ``n_iter_no_change`` rounds without a better validation value (ties keep the earlier round) or
    without a noticeable decrease of the training risk, when the risk is negligible beside that of the first round, and
    when it is optimal up to ``tol``: as an exact oracle has proved, or, for trained atoms, as their gap suggests.
    Without held-out rows the last round is the best one.

    Parameters
    ----------
    n_iter_no_change : int or None
        Number of rounds without improvement; None: only the gap and a negligible risk stop.
    tol : float
        Distance from the least risk, and decrease of the training risk over ``n_iter_no_change`` rounds, that count as
        none, relative to the risk.

    Attributes
    ----------
    best : dict of int to float
        Best validation value of each member.
    best_round : dict of int to int
        The round of each member's best validation value.

    Examples
    --------
    >>> from gce.training import EarlyStopping
    >>> stopping = EarlyStopping(n_iter_no_change=2, tol=1e-4)
    >>> for t, value in enumerate([0.5, 0.3, 0.4], start=1):
    ...     stopping.note(t, members=[0], risks=[1 / t], values=[value])
    >>> stopping.best_round
    {0: 2}
    """

    #: Risk that is negligible, relative to that of the first round.
    negligible_risk = 1e-6

    def __init__(self, n_iter_no_change: int | None, tol: float) -> None:
        # checked here and not by the fit: a callback is any callable, of whose parameters a fit knows nothing
        for name, value in (("n_iter_no_change", n_iter_no_change), ("tol", tol)):
            _RULES[name].check(f"{type(self).__name__}: {name}", value)
        # differences of numpy's unsigned integers are not negative
        self.n_iter_no_change, self.tol = None if n_iter_no_change is None else int(n_iter_no_change), float(tol)
        self.best: dict[int, float] = {}
        self.best_round: dict[int, int] = {}
        self._risks: dict[int, list[float]] = {}

    def __call__(self, step: Step) -> list[int]:
        """Record a round and return the members that stop.

        Parameters
        ----------
        step : Step
            The round.

        Returns
        -------
        list of int

        Raises
        ------
        ValueError
            A validation value is NaN.
        """
        risks = step.risk.tolist()
        values = None if step.validation is None else step.validation.tolist()
        if values is not None and any(map(math.isnan, values)):
            raise ValueError(
                f"the validation values of round {step.t} are {values}, and NaN cannot be compared: scoring must "
                "return numbers on every member's held-out rows, and offset and bound must be of the targets' size"
            )
        self.note(step.t, step.members, risks, values)
        done = []
        above = step.gap if step.suboptimality is None else step.suboptimality
        for m, risk, excess in zip(step.members, risks, above.tolist(), strict=True):
            negligible = risk <= self.negligible_risk * self._risks[m][0]
            if self._is_stale(m, step.t) or self._is_flat(m) or negligible or excess <= self.tol * abs(risk):
                done.append(m)
        return done

    def note(self, t: int, members: list[int], risks: list[float], values: list[float] | None) -> None:
        """Record a round without deciding whether to stop.

        Parameters
        ----------
        t : int
            The round, from 1.
        members : list of int
            Members that ran.
        risks : list of float
            Their training risks.
        values : list of float or None
            Their validation values; None without held-out rows.
        """
        for i, m in enumerate(members):
            self._risks.setdefault(m, []).append(risks[i])
            value = -math.inf if values is None else values[i]
            # the first round is the best so far even if its value is infinite
            if values is None or m not in self.best or value < self.best[m]:
                self.best[m], self.best_round[m] = value, t

    def _is_stale(self, m: int, t: int) -> bool:
        return self.n_iter_no_change is not None and t - self.best_round.get(m, 0) >= self.n_iter_no_change

    def _is_flat(self, m: int) -> bool:
        rounds, risks = self.n_iter_no_change, self._risks[m]
        if rounds is None or len(risks) <= rounds:
            return False
        return risks[-1 - rounds] - risks[-1] <= self.tol * abs(risks[-1])


class SharedEarlyStopping(EarlyStopping):
    """Early stopping of all members together, at the round of their best mean validation value.

    Where steps are short and many, the held-out rows of one member are too few to tell which round is best.

    Parameters
    ----------
    n_iter_no_change : int or None
        Number of rounds without improvement; None: only the gap and a negligible risk stop.
    tol : float
        As for :class:`EarlyStopping`.

    Examples
    --------
    >>> from gce.training import SharedEarlyStopping
    >>> stopping = SharedEarlyStopping(n_iter_no_change=2, tol=1e-4)
    >>> for t, values in enumerate([[0.5, 0.5], [0.1, 0.6], [0.4, 0.4]], start=1):
    ...     stopping.note(t, members=[0, 1], risks=[1 / t, 1 / t], values=values)
    >>> stopping.best_round
    {0: 2, 1: 2}
    """

    def __call__(self, step: Step) -> list[int]:
        stopped = super().__call__(step)
        return stopped if len(stopped) == len(step.members) else []

    def note(self, t: int, members: list[int], risks: list[float], values: list[float] | None) -> None:
        mean = None if values is None else [sum(values) / len(values)] * len(values)
        super().note(t, members, risks, mean)


class TimeLimit:
    """Time limit of a whole fit, including what precedes the first round and follows the last one.

    Parameters
    ----------
    seconds : float
        The limit, from the creation of the object.

    Attributes
    ----------
    end : float
        Deadline on the clock of ``time.monotonic``.
    reserve : float
        Seconds that are reserved for what follows the last round.
    cut_short, skipped : list of str
        Families that were stopped early, and families that were not started.
    shortcuts : list of str
        What else was done in less time than without the limit, and with another result.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.reserve = 0.0
        self.cut_short: list[str] = []
        self.skipped: list[str] = []
        self.shortcuts: list[str] = []

    def family_limit(self, families: int) -> FamilyTimeLimit:
        """The limit of the next of ``families`` remaining families; time that it does not use goes to the others.

        Parameters
        ----------
        families : int
            Number of remaining families.

        Returns
        -------
        FamilyTimeLimit
        """
        return FamilyTimeLimit(time.monotonic() + self.remaining_for_rounds / families)

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.end - time.monotonic()

    @property
    def remaining_for_rounds(self) -> float:
        """Seconds until the deadline without the reserve."""
        return self.remaining - self.reserve

    @property
    def end_of_rounds(self) -> float:
        """The deadline without the reserve, on the clock of ``time.monotonic``."""
        return self.end - self.reserve

    @property
    def ended_rounds(self) -> bool:
        """Whether families were stopped early or not started."""
        return bool(self.cut_short or self.skipped)

    @property
    def message(self) -> str:
        """A warning about all that the limit changed; empty if the model is that of a fit without a limit."""
        parts = [
            f"{_join_names(names)} {'was' if len(names) == 1 else 'were'} {what}"
            for names, what in ((self.cut_short, "cut short"), (self.skipped, "not started"))
            if names
        ]
        changes = [" and ".join(parts)] * bool(parts) + self.shortcuts
        if not changes:
            return ""
        did = "ended the fit early" if parts else "changed the fit"
        return f"time_limit={self.seconds:g} {did}: {'; '.join(changes)}; a larger time_limit may give a better model"


def _join_names(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


class FamilyTimeLimit(StepTimer):
    """Callback that stops a family when another round as long as the last one would miss the deadline.

    Parameters
    ----------
    end : float
        Deadline on the clock of ``time.monotonic``.

    Attributes
    ----------
    stopped : bool
        Whether a round was the last one in time.
    """

    stopped = False

    def __call__(self, step: Step) -> bool:
        late = self.out_of_time()
        if step.t == 1:
            # the first round includes work that is done only once
            late = self.remaining < min(self.last_duration, step.seconds)
        # a trial without time for its rounds leaves none to the family
        self.stopped |= late
        return self.stopped


class FamilyTurn(NamedTuple):
    """The start of a family's rounds, for callbacks.

    Parameters
    ----------
    family : str or None
        Name of the family; None if a single family is fitted.
    rounds_before : int
        Rounds of other families so far.
    seconds_before : float
        Seconds that those took.
    max_rounds : int
        Maximum number of rounds of this family, including those that it has had.
    max_calls : float
        Maximum number of oracle calls of a member.
    """

    family: str | None
    rounds_before: int
    seconds_before: float
    max_rounds: int
    max_calls: float

    def renumber(self, step: Step) -> Step:
        """A round of this family, numbered and timed as a round of the whole fit.

        Parameters
        ----------
        step : Step
            A round of the family.

        Returns
        -------
        Step
        """
        t, seconds = self.rounds_before + step.t, self.seconds_before + step.seconds
        return replace(step, t=t, seconds=seconds, family=self.family, others=self.rounds_before)


class CallbackList:
    """The callbacks of a fit.

    Parameters
    ----------
    callbacks : list of callables
        Called with a :class:`~gce.frank_wolfe.algorithms.Step` after every round.

    Attributes
    ----------
    stopped : bool
        Whether a callback has returned True.
    """

    def __init__(self, callbacks: list[Callback]) -> None:
        self._callbacks, self.stopped = callbacks, False
        self._on_family_begin: list[Callable[[FamilyTurn], None]] = []

    def add(self, callback: Callback) -> None:
        """Add a callback."""
        self._callbacks.append(callback)

    def on_family_begin(self, callback: Callable[[FamilyTurn], None]) -> None:
        """Add a callback that is called before the first round of every family.

        Parameters
        ----------
        callback : callable
            Called with a :class:`FamilyTurn`.
        """
        self._on_family_begin.append(callback)

    def begin_family(self, turn: FamilyTurn) -> None:
        """Start the rounds of a family.

        Parameters
        ----------
        turn : FamilyTurn
            The family.
        """
        self._turn = turn
        for callback in self._on_family_begin:
            callback(turn)

    def __call__(self, step: Step) -> bool:
        renumbered = self._turn.renumber(step)
        # every callback is called in every round, whatever an earlier one returns
        answers = [bool(callback(renumbered)) for callback in self._callbacks]
        self.stopped |= any(answers)
        return self.stopped


class MemberMeans:
    """Metrics of a round, averaged over all members as in ``history_``; stopped members keep their last values."""

    def __init__(self) -> None:
        self._last: dict[str | None, dict[str, dict[int, float]]] = {}

    def __call__(self, step: Step) -> dict[str, float]:
        """The mean of each metric of the round.

        Parameters
        ----------
        step : Step
            The round.

        Returns
        -------
        dict of str to float
        """
        columns = {
            "risk": step.risk,
            "gap" if step.certified else "gap_lower": step.gap,
            "step_size": step.step_size.mean(1),
        }
        if step.validation is not None:
            columns["validation"] = step.validation
        if step.suboptimality is not None:
            columns["suboptimality"] = step.suboptimality
        if step.own_t == 1:
            self._last[step.family] = {}
        last = self._last.setdefault(step.family, {})
        for name, values in columns.items():
            last.setdefault(name, {}).update(zip(step.members, values.tolist(), strict=True))
        means = {name: sum(values.values()) / len(values) for name, values in last.items()}
        # a gap is known only where all oracles were called
        return {name: mean for name, mean in means.items() if not math.isnan(mean)}
