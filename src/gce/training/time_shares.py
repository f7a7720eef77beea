"""Time limits of a fit of several families: which are begun, and how long each may take.

What cannot be known beforehand is measured on a subsample of the rows: the shortest round of each family, and what
follows the last round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
import torch

from gce.bases.context import FitContext
from gce.frank_wolfe.algorithms import Boosting
from gce.training.calibration import HeldOutScores
from gce.training.callbacks import EarlyStopping, FamilyTimeLimit, TimeLimit
from gce.training.family_fit import FamilyFit, Method
from gce.training.family_weights import closing_columns, select_held_out, weigh_families
from gce.training.plan import FamilyPlan
from gce.training.problem import Problem

#: The subsample is one row in ``_EVERY``, as long as at least ``_ENOUGH`` are left: they are then trained in batches,
#: as all rows are.
_EVERY, _ENOUGH = 32, 5500
#: One row in so many of the subsample measures the part of the end of a fit that does not depend on the rows.
_FEWER = 16
#: How much slower, per row, steps over many rows are than over few, which stay in the processor's cache.
_SLOWER = 1.5

#: A family that seems to take this many times its share is not measured again.
_HOPELESS = 8

#: Where boosting has time for few rounds its steps are longer, so that they add up to ``_FULL_STEPS`` full ones if each
#: takes at most ``_LONGEST_STEP`` (the 100 rounds of 0.1 of LightGBM's default add up to 10).
_FULL_STEPS, _LONGEST_STEP = 15.0, 0.3

Calibrate = Callable[[HeldOutScores], object]


class TimeShares:
    """The families of a fit, each with its share of the time that is left.

    Parameters
    ----------
    families : tuple of FamilyPlan
        In the order in which they are fitted.
    fits : dict of FamilyFit
    clock : TimeLimit or None
    context : FitContext
        Its deadline is that of the current family.
    """

    def __init__(
        self,
        families: tuple[FamilyPlan, ...],
        fits: dict[str, FamilyFit],
        clock: TimeLimit | None,
        context: FitContext,
    ) -> None:
        self._families, self._fits = {family.name: family for family in families}, fits
        self._clock, self._context = clock, context
        self._costs = dict.fromkeys(self._families, 0.0)
        #: Seconds of a round after the first, which includes what is done once; of boosting, where they are measured.
        self._paces: dict[str, float] = {}
        self._waiting = [name for name in self._families if self._continues(name)]

    def measure(self, problem: Problem, calibrate: Calibrate) -> None:
        """Measure families and the end of the fit, and skip families that cannot end in their share.

        Parameters
        ----------
        problem : Problem
            That of the fit.
        calibrate : callable
            The last step of a fit, called with held-out rows.
        """
        every = min(_EVERY, problem.train_rows // _ENOUGH)
        if self._clock is None or every < 2 or problem.y.device.type != "cpu":
            return
        few = {
            name: replace(self._families[name], problem=_subsample(self._families[name].problem, every))
            for name in self._waiting
            if self._can_be_measured(name)
        }
        if not all(family.problem.train.any(1).all() for family in few.values()):
            return
        fits = {}
        for name, family in few.items():
            fits[name], seconds = _shortest_round(family)
            self._costs[name] = _SLOWER * every * seconds
            if family.automatic and isinstance(family.method.algorithm, Boosting):
                self._paces[name] = every * _usual_round(family)
            share = self._clock.remaining_for_rounds / len(few)
            if share < self._costs[name] < _HOPELESS * share:
                # the first measurement may include what is done once
                fits[name], seconds = _shortest_round(family)
                self._costs[name] = _SLOWER * every * seconds
        if fits:
            first = next(iter(few.values())).problem
            self._clock.reserve = _closing_seconds(first, list(fits.values()), every, calibrate)
        self._skip_slow_families(self._clock)

    def _can_be_measured(self, name: str) -> bool:
        """Whether a family can be fitted to a part of the rows: given models may be defined on all rows only."""
        family = self._families[name]
        return not family.method.basis.exact and family.problem.division is None

    def _skip_slow_families(self, clock: TimeLimit) -> None:
        """Skip families that are too slow for their share, the slowest first; the first family is always fitted."""
        while self._waiting[1:]:
            slowest = max(self._waiting[1:], key=self._costs.__getitem__)
            if self._costs[slowest] <= clock.remaining_for_rounds / len(self._waiting):
                return
            self._waiting.remove(slowest)

    def begin(self, name: str) -> list[FamilyTimeLimit] | None:
        """The callback that ends a family in time, if it needs one; None where the family is skipped."""
        self._context.set_deadline(math.inf)
        if self._clock is None or not self._continues(name):
            return []
        planned = name in self._waiting
        # the fit must return a model, however late it is
        nothing = not any(fit.rounds for fit in self._fits.values())
        own = self._clock.family_limit(max(1, len(self._waiting)))
        if planned:
            self._waiting.remove(name)
        if not nothing and (not planned or own.remaining <= self._costs[name]):
            (self._clock.cut_short if self._fits[name].rounds else self._clock.skipped).append(name)
            return None
        self._context.set_deadline(own.end)
        return [own]

    def method(self, name: str) -> Method:
        """How a family is fitted: by longer steps where its share of the time allows few of them.

        Parameters
        ----------
        name : str

        Returns
        -------
        Method
        """
        method = self._families[name].method
        pace, algorithm = self._paces.get(name, 0.0), method.algorithm
        if self._clock is None or pace == 0 or not isinstance(algorithm, Boosting):
            return method
        rounds = (self._context.deadline - time.monotonic()) / pace
        rate = min(_LONGEST_STEP, _FULL_STEPS / max(1.0, rounds))
        if rate <= algorithm.learning_rate:
            return method
        self._clock.shortcuts.append(f"{name} took longer steps")
        return replace(method, algorithm=Boosting(rate))

    def end(self, name: str, limits: list[FamilyTimeLimit]) -> None:
        """Record whether a family would have continued."""
        stopped = any(limit.stopped for limit in limits) and self._continues(name)
        if self._clock is not None and (stopped or self._context.cut_short):
            self._clock.cut_short.append(name)

    def _continues(self, name: str) -> bool:
        family = self._families[name]
        return self._fits[name].continues(family.max_iter, family.max_calls)


def _closing_seconds(problem: Problem, fits: list[FamilyFit], every: int, calibrate: Calibrate) -> float:
    """Seconds that the end of a fit will take, for ``every`` times as many rows."""
    fewer = _subsample(problem, _FEWER)
    least = [copy(fit) for fit in fits]
    for fit in least:
        assert fit.best_outputs is not None
        fit.best_outputs = fit.best_outputs[:, ::_FEWER]
    seconds = []
    # what is loaded in a first call is no measure
    for subset, given in ((fewer, least), (fewer, least), (problem, fits)):
        began, total = time.monotonic(), np.ones(subset.members)
        found = weigh_families(given, subset, total)
        closing_columns([fit.record for fit in given], found, subset)
        calibrate(select_held_out(found.pred, subset, total))
        seconds.append(time.monotonic() - began)
    _, fixed, whole = seconds
    return _SLOWER * (fixed + every * max(0.0, whole - fixed))


def _subsample(problem: Problem, every: int) -> Problem:
    """A problem of one row in ``every``."""
    rows = torch.arange(0, len(problem.y), every)
    train, held_out = problem.train[:, rows], problem.held_out[:, rows]
    return replace(problem, X=problem.X[rows], y=problem.y[rows], train=train, held_out=held_out)


def _shortest_round(family: FamilyPlan) -> tuple[FamilyFit, float]:
    """A family after its shortest possible round, and the seconds it took."""
    problem = family.problem
    fit = FamilyFit(family.name, problem.members, EarlyStopping(None, 0.0))
    began = time.monotonic()
    fit.run(problem, family.method, max_iter=1, max_calls=1, context=FitContext(deadline=began))
    return fit, time.monotonic() - began


def _usual_round(family: FamilyPlan) -> float:
    """The seconds that the second round of a family takes."""
    fit = FamilyFit(family.name, family.problem.members, EarlyStopping(None, 0.0))
    context = FitContext(deadline=time.monotonic())
    fit.run(family.problem, family.method, max_iter=2, max_calls=2, context=context)
    return fit.seconds - fit.rounds[0].seconds
