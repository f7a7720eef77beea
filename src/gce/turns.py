"""Families in turn, where time is limited: who is begun, and how long each may take.

What cannot be known beforehand is rehearsed on a few of the rows: each family's shortest round, and what comes after
the last one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from gce.calibration import HeldOut
from gce.callbacks import EarlyStopping, FamilyTimeLimit, TimeLimit
from gce.families import Family
from gce.fitting import Fit, Problem
from gce.mixing import MixedFit
from gce.settings import users_line

#: One row in so many is rehearsed with, where that leaves enough of them to be trained on as all rows are.
_EVERY, _ENOUGH = 32, 5500
#: One row in so many of those tells what the end of a fit takes whatever its rows.
_FEWER = 16
#: By how much steps over many rows are slower, row by row, than over few, which stay in the processor's cache.
_SLOWER = 1.5

#: A family that seems to take so many times its share is not looked at again.
_HOPELESS = 8

Calibrate = Callable[[HeldOut], None]


class Turns:
    """The families of a fit, each with its share of the time that is left.

    Parameters
    ----------
    families : dict of Family
        In the order in which they are fitted.
    fits : dict of Fit
    max_iter : int
    clock : list of TimeLimit
        One limit or none.
    """

    def __init__(
        self, families: dict[str, Family], fits: dict[str, Fit], max_iter: int, clock: list[TimeLimit]
    ) -> None:
        self._families, self._fits, self._max_iter, self._clock = families, fits, max_iter, clock
        self._costs = dict.fromkeys(families, 0.0)
        self._waiting = [name for name in families if self._goes_on(name)]

    def rehearse(self, problem: Problem, calibrate: Calibrate) -> None:
        """Find out what families and the end of the fit take, and leave out families that cannot end in their share.

        Parameters
        ----------
        problem : Problem
            That of the fit.
        calibrate : callable
            Learns from held-out rows what answers are worth: the last thing of a fit.
        """
        every = min(_EVERY, problem.train_rows // _ENOUGH)
        if not self._clock or every < 2 or problem.y.device.type != "cpu":
            return
        few = {
            name: replace(self._families[name], problem=_thinned(self._families[name].problem, every))
            for name in self._waiting
            if not self._families[name].method.basis.exact  # given models may know all rows alone
        }
        if not all(family.problem.train.any(1).all() for family in few.values()):
            return
        fits = {}
        for name, family in few.items():
            fits[name], seconds = _shortest(family)
            self._costs[name] = _SLOWER * every * seconds
            share = self._clock[0].spare / len(few)
            if share < self._costs[name] < _HOPELESS * share:
                # loops may have been compiled: a second time tells
                fits[name], seconds = _shortest(family)
                self._costs[name] = _SLOWER * every * seconds
        if fits:
            self._clock[0].reserve = _closing(next(iter(few.values())).problem, fits, every, calibrate)
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave out what is too long for its share, the longest first; the first family is always begun."""
        limit = self._clock[0]
        while self._waiting[1:]:
            longest = max(self._waiting[1:], key=self._costs.__getitem__)
            if self._costs[longest] <= limit.spare / len(self._waiting):
                return
            self._waiting.remove(longest)

    def begin(self, name: str) -> list[FamilyTimeLimit] | None:
        """The callback that ends a family in time, if it needs one; None where it is not to be begun."""
        if not self._clock or not self._goes_on(name):
            return []
        limit, planned = self._clock[0], name in self._waiting
        # a model must come back, however late it is
        nothing = not any(fit.rounds for fit in self._fits.values())
        own = limit.share(max(1, len(self._waiting)))
        if planned:
            self._waiting.remove(name)
        if not nothing and (not planned or own.left <= self._costs[name]):
            (limit.cut if self._fits[name].rounds else limit.skipped).append(name)
            return None
        self._families[name].method.basis.hurried(own.end)
        return [own]

    def end(self, name: str, limits: list[FamilyTimeLimit]) -> None:
        """Take down whether a family would have gone on."""
        stopped = any(limit.stopped for limit in limits) and self._goes_on(name)
        if self._clock and (stopped or self._families[name].method.basis.rushed):
            self._clock[0].cut.append(name)

    def _goes_on(self, name: str) -> bool:
        return self._fits[name].goes_on(self._max_iter, self._families[name].calls)


def _closing(problem: Problem, fits: dict[str, Fit], every: int, calibrate: Calibrate) -> float:
    """Seconds that the end of a fit to so many times the rows will take."""
    least = {name: copy(fit) for name, fit in fits.items()}
    for name, fit in least.items():
        known = fits[name].at_best
        assert known is not None
        fit.at_best = known[:, ::_FEWER]
    seconds = []
    # what is loaded and compiled in a first call is no measure
    for some, given in ((_thinned(problem, _FEWER), least), (_thinned(problem, _FEWER), least), (problem, fits)):
        began = time.monotonic()
        calibrate(MixedFit(given).close(some, np.ones(len(some.train))))
        seconds.append(time.monotonic() - began)
    _, fixed, whole = seconds
    return _SLOWER * (fixed + every * max(0.0, whole - fixed))


def _thinned(problem: Problem, every: int) -> Problem:
    """A problem of some of the rows."""
    some = torch.arange(0, len(problem.y), every)
    train, held_out = problem.train[:, some], problem.held_out[:, some]
    return replace(problem, X=problem.X[some], y=problem.y[some], train=train, held_out=held_out)


def _shortest(family: Family) -> tuple[Fit, float]:
    """The shortest round of a family, and its seconds."""
    problem, basis = family.problem, copy(family.method.basis)
    fit = Fit(len(problem.train), EarlyStopping(None, 0.0))
    metric = problem.held_out_loss if problem.held_out.any() else None
    began = time.monotonic()
    basis.hurried(began)
    fit.run(problem, replace(family.method, basis=basis), max_iter=1, max_calls=1, metric=metric)
    return fit, time.monotonic() - began


def warn_of(clock: list[TimeLimit]) -> None:
    """Say where time ran out."""
    for limit in clock:
        if limit.told:
            warnings.warn(limit.told, ConvergenceWarning, stacklevel=users_line())
