"""Greedy convex ensembles: the algorithms' loop behind scikit-learn's contract."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gce.active_set import ActiveSet
from gce.algorithms import ALGORITHMS, Algorithm, Boosting
from gce.base import Array, Way
from gce.basis import Basis
from gce.basis.base import Habit
from gce.calibration import HeldOut
from gce.callbacks import Callback, EarlyStopping, TimeLimit, Together, Watchers
from gce.families import Family, chosen, for_trees
from gce.fitting import Fit, Keep, Method, Metric, Problem, Round
from gce.hooks import FitTask, with_callbacks
from gce.line_search import LINE_SEARCHES, LineSearch
from gce.mixing import MixedFit, Trial, held_out, turn
from gce.native import alone, limited
from gce.parameters import (
    AUTO,
    FLAG,
    NONE,
    Rule,
    Rules,
    at_least,
    check_parameters,
    count,
    instance,
    is_iterable,
    shown,
)
from gce.progress import Log, Progress, drawn
from gce.reading import Given
from gce.settings import look_up
from gce.storage.checkpoints import Checkpoint, Series, Trail, opened
from gce.storage.fingerprints import fingerprint
from gce.streams import Streams
from gce.surgery import Editable
from gce.theory.report import BoundReport, bound_report
from gce.turns import Turns, warn_of


class GreedyConvexEnsemble(Editable):
    """A greedy convex ensemble, whatever its task: see its subclasses."""

    #: The signs that the atoms of ``_fit`` keep.
    _kept: list[int] | None = None
    #: The last fit was cut short by ``time_limit``.
    _cut_short: bool = False

    algorithm: str | Algorithm
    basis: Any
    line_search: str | LineSearch
    max_atoms: int | str
    max_iter: int
    tol: float
    n_iter_no_change: int | str | None
    time_limit: float | None
    callbacks: Iterable[Callback] | None
    verbose: bool | str
    warm_start: bool

    parameter_rules: ClassVar[Rules] = {
        "algorithm": instance("a name or an Algorithm object", str, Algorithm),
        "basis": instance("a name, a Basis object or several of these", str, Basis, Sequence, Mapping),
        "line_search": instance("a name or a LineSearch object", str, LineSearch),
        "max_atoms": AUTO | count(1),
        "max_iter": count(1),
        "tol": at_least(0),
        "n_iter_no_change": AUTO | count(1) | NONE,
        "time_limit": at_least(0) | NONE,
        "callbacks": Rule(is_iterable, "a list of callables") | NONE,
        "verbose": AUTO | FLAG | count(0) | NONE,
        "warm_start": FLAG,
    }

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X : array-like, Tensor, data frame or sparse matrix of shape (n, d)
            Numbers, booleans, text and categories; gaps (NaN, None, null) anywhere. Frames of pandas, polars, pyarrow
            and whatever else narwhals reads. scipy's sparse matrices and arrays (numbers without gaps) stay sparse;
            they are fitted on the CPU.
        y : array-like, Tensor, series or frame of shape (n,), or (n, k) for several regression targets
        sample_weight : array-like of shape (n,), optional
            A row of weight 0 is a row that is not there.
        groups : array-like of shape (n,), optional
            Rows of one group are never both trained on and held out by a member. Handed to ``cv`` where that is a
            splitter.
        X_val, y_val, sample_weight_val : optional
            Rows to watch for early stopping; all rows of ``X`` are then trained on, by one member.
        checkpoint : str or Path, optional
            A folder of its own, to which every round is written when it ends. The same call after an interruption goes
            on from there and ends in the same model, to the last bit on a CPU; after the fit it returns the model at
            once. Limits (``max_iter``, ``max_atoms``, ``time_limit``, ``tol``, ``n_iter_no_change``) may differ from
            call to call and hold from then on; with ``random_state=None`` the folder's seed is taken. The folder alone
            says where to go on, whatever ``warm_start`` is. A folder of another fit is
            refused, and so is one that another process is fitting in.

        Returns
        -------
        self
        """
        check_parameters(self)
        drawn(self.verbose)  # a bar that cannot be drawn is refused before any work is done
        given = Given(X, y, sample_weight, groups, X_val, y_val, sample_weight_val)
        with nullcontext() if checkpoint is None else opened(checkpoint) as folder:
            return self._fit_by(self._way(folder), given)

    def _way(self, folder: Checkpoint | None = None) -> Way:
        clock = [] if self.time_limit is None else [TimeLimit(self.time_limit)]
        learn = partial(self._learn, max_iter=self.max_iter, clock=clock)
        # threads that wait for each other take far longer where others want the processor too
        way = partial(Way, within=alone if clock else nullcontext, after=partial(warn_of, clock))
        if folder is not None:
            seed = folder.seed if self.random_state is None else None
            return way(partial(learn, begin=partial(self._begin_in, folder)), seed=seed)
        if self.warm_start and hasattr(self, "gap_"):
            raise ValueError("an edited model has no rounds to go on from: set warm_start=False and fit anew")
        if self.warm_start and hasattr(self, "_fit"):
            return way(partial(learn, begin=self._go_on), resume=True, seed=self._seed)
        return way(partial(learn, begin=self._begin))

    def _families(self, problem: Problem, streams: Streams) -> dict[str, Family]:
        """What is fitted, by name."""
        signs, (rows, outputs) = self._signs(), problem.y[: problem.train_rows].shape
        plain = signs is None and for_trees(problem.X) and self.algorithm == "auto"
        bases = chosen(self.basis, rows, problem.X.shape[1], outputs, plain)
        kept = {name: basis if signs is None else basis.monotone(signs) for name, basis in bases.items()}
        return {name: self._family(problem, basis, streams) for name, basis in kept.items()}

    def _family(self, problem: Problem, basis: Basis, streams: Streams) -> Family:
        habit = basis.habit
        method = Method(
            self._algorithm(habit),
            basis,
            look_up("line_search", _or(self.line_search, habit.line_search), LINE_SEARCHES, LineSearch),
            streams,
        )
        calls = np.inf if basis.exact else _or(self.max_atoms, habit.calls)
        # given models say what they say: a wider hull would not make them any longer
        if method.algorithm.keeps and self.bound is None and not basis.exact:
            # a limit that is drawn tighter or loosened must not change the rounds before it
            room = method.algorithm.room(max(calls, habit.calls))
            problem = replace(problem, bound=room * problem.bound)
        return Family(problem, method, calls, _or(self.n_iter_no_change, habit.patience))

    def _algorithm(self, habit: Habit) -> Algorithm:
        if self.algorithm != "auto":
            return look_up("algorithm", self.algorithm, ALGORITHMS, Algorithm)
        algorithm = look_up("algorithm", habit.algorithm, ALGORITHMS, Algorithm)
        return algorithm.set_params(shrinkage=habit.shrinkage) if isinstance(algorithm, Boosting) else algorithm

    def _begin(self, problem: Problem, streams: Streams) -> dict[str, Trail]:
        """A fit of no rounds."""
        fits = {}
        for name, family in self._families(problem, streams).items():
            kind = Together if family.method.algorithm.keeps else EarlyStopping
            fit = fits[name] = Fit(len(streams.names), kind(family.patience, self.tol))
            fit.roomy = family.problem is not problem
        self._fit = MixedFit(fits) if len(fits) > 1 else next(iter(fits.values()))
        self._kept = self._kept_signs()
        return {}

    def _go_on(self, problem: Problem, streams: Streams) -> dict[str, Trail]:
        """The last fit."""
        members, keep = len(streams.names), self._kept_signs()
        if self._fit.members != members:
            raise ValueError(f"warm_start goes on with {self._fit.members} members, but cv now gives {members}")
        if self._kept != keep:
            raise ValueError(
                f"warm_start goes on with atoms of signs {self._kept}, which monotonic_cst={self.monotonic_cst!r} "
                "cannot change: set warm_start=False and fit anew"
            )
        names = list(self._families(problem, streams))
        # a class alone may be followed by another, whose atoms stand beside its own
        known = list(self._fit.fits) if isinstance(self._fit, MixedFit) else names[-1:]
        if names != known:
            told = ", ".join(known) if len(known) > 1 else "one class of atoms"
            raise ValueError(
                f"warm_start goes on with {told}, but basis={self.basis!r} asks for {', '.join(names)}: set "
                "warm_start=False and fit anew"
            )
        if isinstance(self._fit, MixedFit):
            # rounds to come change what families came to
            self._fit.closing = None
        for fit in self._fit.fits.values() if isinstance(self._fit, MixedFit) else [self._fit]:
            # scores belong to rows, and these may be others
            fit.at_best = None
        return {}

    def _begin_in(self, folder: Checkpoint, problem: Problem, streams: Streams) -> dict[str, Trail]:
        """The fit in a folder, which may have no rounds yet."""
        self._begin(problem, streams)
        folder.claim(fingerprint(self, problem, streams), streams)
        trails, families = {}, self._families(problem, streams)
        for number, ((name, family), fit) in enumerate(
            zip(families.items(), self._fits(families).values(), strict=True)
        ):
            # a name of the user's own may be none for a file
            own = f"{number + 1}-{re.sub('[^A-Za-z0-9_]', '', name)}-" if len(families) > 1 else ""
            series = Series(folder, own, (len(problem.X), problem.X.shape[1]), family.problem.bound.cpu())
            standing = series.replay(fit)
            for atoms in fit.atoms:
                atoms.to(problem.X.device)
            keep: Keep = series.keep
            if len(families) > 1:
                keep = partial(series.keep_best, fit)
                best = series.best(fit) if fit.rounds else None
                fit.at_best = None if best is None else best.to(problem.y.device)
            trails[name] = Trail(standing, keep)
        return trails

    def _fits(self, families: dict[str, Family]) -> dict[str, Fit]:
        """The fit of each family."""
        return self._fit.fits if isinstance(self._fit, MixedFit) else dict(zip(families, [self._fit], strict=True))

    def _kept_signs(self) -> list[int] | None:
        signs = self._signs()
        return None if signs is None else signs.tolist()

    def _learn(
        self,
        problem: Problem,
        metric: Metric | None,
        streams: Streams,
        task: FitTask,
        max_iter: int,
        clock: list[TimeLimit],
        begin: Callable[[Problem, Streams], dict[str, Trail]],
    ) -> None:
        families, trails = self._families(problem, streams), begin(problem, streams)
        fits = self._fits(families)
        task.begin(sum(family.rounds(max_iter) for family in families.values()))
        with ExitStack() as stack:
            watchers = Watchers([*self._own_callbacks(), stack.enter_context(Log())])
            if task.watched:
                watchers.add(stack.enter_context(task.rounds(partial(self._fitted, problem))))
            if drawn(self.verbose):
                to_come = {name: max(0, own.rounds(max_iter) - fits[name].rounds) for name, own in families.items()}
                bar = stack.enter_context(Progress(to_come, *clock))
                watchers.greet(bar.begin)
                watchers.add(bar)
            turns = Turns(families, fits, max_iter, clock)
            turns.rehearse(problem, copy(self)._calibrate)
            for number, (name, family) in enumerate(families.items()):
                fit, trail = fits[name], trails.get(name, Trail())
                before = [other for other in list(fits.values())[:number] if other.rounds]
                fit.stopping.n_iter_no_change, fit.stopping.tol = family.patience, self.tol
                trial = Trial(fit, before, problem, family.method.basis.habit.trial)
                if trial.lost or (limits := turns.begin(name)) is None:
                    continue
                watchers.begin(turn(name, fits, family.rounds(max_iter), family.calls))
                fit.run(
                    family.problem,
                    family.method,
                    max_iter=max_iter,
                    max_calls=family.calls,
                    metric=metric,
                    callbacks=[*limits, trial, watchers],
                    standing=trail.standing,
                    keep=None if trail.keep is None else partial(_keep_whole, trail.keep, family.method.basis),
                )
                turns.end(name, limits)
                if watchers.stopped:
                    break
        self.__dict__.pop("_cut_short", None)
        if any(limit.told for limit in clock):
            self._cut_short = True
        if not isinstance(self._fit, MixedFit):
            self.__dict__.update(self._fitted(problem))

    def _fitted(self, problem: Problem) -> dict[str, Any]:
        """What a fit leaves behind after its latest round."""
        ensemble = self._fit.ensemble(problem.offset)
        return {
            "history_": list(self._fit.history),
            "n_iter_": self._fit.rounds,
            "ensemble_": ensemble,
            "bound_": ensemble.bound.cpu().numpy(),
        }

    def _held_out(self, problem: Problem, total: Array) -> HeldOut:
        if not isinstance(self._fit, MixedFit):
            known = self._fit.at_best if self.time_limit is not None else None
            return super()._held_out(problem, total) if known is None else held_out(known, problem, total)
        rows = self._fit.close(problem, total)
        self.__dict__.update(self._fitted(problem))
        return rows

    def _own_callbacks(self) -> list[Callback]:
        given = [] if self.callbacks is None else list(self.callbacks)
        if not all(map(callable, given)):
            raise ValueError(f"callbacks must be a list of callables, got {shown(given)}")
        return given

    def bound_report(self, X: Any, y: Any, delta: float = 0.05, **given: Any) -> BoundReport:
        """What theory says about the risk on new rows, with the reasons why it is no certificate.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The rows the model was fitted on.
        y : array-like of shape (n,)
        delta : float, default=0.05
            The bounds hold with probability ``1 - delta``, each on its own.
        **given
            ``X_held_out``, ``y_held_out``, ``draws``, ``oracle``, ``D``, ``random_state``: see
            :func:`gce.theory.bound_report`.

        Returns
        -------
        BoundReport
            An object that renders itself, as text and in notebooks.
        """
        if self._guests:
            raise ValueError(
                f"{self._guests[0].foreign} is not of the class of atoms that a bound report is about: remove it first"
            )
        return bound_report(self, X, y, delta, **given)

    def _staged_scores(self, X: Any) -> Iterator[Tensor]:
        """Raw scores after each round, each member standing still from its best round on."""
        rows = self._rows(self._checked(X))
        if hasattr(self, "gap_"):
            raise ValueError(
                "an edited model has no rounds, and no predictions after each: ask the model it was made of"
            )
        with torch.no_grad(), limited(self.n_jobs):
            ensemble, path = self._fit.stages(self.ensemble_.offset)
            outputs = ensemble.outputs(rows)
        for weights in path:
            yield ensemble.offset + torch.einsum("ak,ank->nk", weights.expand(-1, outputs.shape[2]), outputs)


def _keep_whole(keep: Keep, basis: Basis, news: Round, active: ActiveSet) -> None:
    """Keep a round, unless time ran out while its atoms were made: the next call makes them to the end."""
    if not basis.rushed:
        keep(news, active)


def _or(given: Any, habit: Any) -> Any:
    """What the user gave, or what suits the class."""
    return habit if isinstance(given, str) and given == "auto" else given
