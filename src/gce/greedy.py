"""Greedy convex ensembles: the algorithms' loop behind scikit-learn's contract."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gce.algorithms import ALGORITHMS, Algorithm
from gce.base import ConvexModel, Learn
from gce.basis import BASES, Basis
from gce.callbacks import Callback, EarlyStopping, Log, Progress, Remaining, TimeLimit
from gce.fitting import Fit, Method, Metric, Problem
from gce.hooks import FitTask
from gce.line_search import LINE_SEARCHES, LineSearch
from gce.losses import Loss
from gce.native import limited
from gce.settings import check_count, check_number, look_up
from gce.streams import Streams
from gce.theory.report import BoundReport, bound_report


class GreedyConvexEnsemble(ConvexModel):
    """A greedy convex ensemble, whatever its task: see its subclasses."""

    #: The signs that the atoms of ``_fit`` keep.
    _kept: list[int] | None = None

    def __init__(
        self,
        *,
        algorithm: str | Algorithm = "pairwise",
        loss: str | Loss = "auto",
        basis: str | Basis = "neural",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        line_search: str | LineSearch = "exact",
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        max_atoms: int = 100,
        max_iter: int = 1000,
        tol: float = 1e-6,
        cv: Any = "auto",
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 20,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        verbose: bool | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.loss = loss
        self.basis = basis
        self.bound = bound
        self.offset = offset
        self.line_search = line_search
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.max_atoms = max_atoms
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state

    def _prepared(self) -> Learn:
        limits = self._check_limits()
        clock = [] if self.time_limit is None else [TimeLimit(self.time_limit)]
        return partial(self._learn, limits=limits, clock=clock)

    def _resumes(self) -> bool:
        return self.warm_start and hasattr(self, "_fit")

    def _check_limits(self) -> tuple[int, int]:
        check_number("tol", self.tol, 0)
        if self.n_iter_no_change is not None:
            check_count("n_iter_no_change", self.n_iter_no_change, 1)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)
        return check_count("max_iter", self.max_iter, 1), check_count("max_atoms", self.max_atoms, 1)

    def _method(self, streams: Streams) -> Method:
        basis, signs = look_up("basis", self.basis, BASES, Basis), self._signs()
        return Method(
            look_up("algorithm", self.algorithm, ALGORITHMS, Algorithm),
            basis if signs is None else basis.monotone(signs),
            look_up("line_search", self.line_search, LINE_SEARCHES, LineSearch),
            streams,
        )

    def _learn(
        self,
        problem: Problem,
        metric: Metric | None,
        streams: Streams,
        task: FitTask,
        limits: tuple[int, int],
        clock: list[TimeLimit],
    ) -> None:
        method, members, signs = self._method(streams), len(streams.names), self._signs()
        keep = None if signs is None else signs.tolist()
        if not self._resumes():
            self._fit, self._kept = Fit(members, EarlyStopping(self.n_iter_no_change, self.tol)), keep
        elif self._fit.members != members:
            raise ValueError(f"warm_start goes on with {self._fit.members} members, but cv now gives {members}")
        elif self._kept != keep:
            raise ValueError(
                f"warm_start goes on with atoms of signs {self._kept}, which monotonic_cst={self.monotonic_cst!r} "
                "cannot change: set warm_start=False and fit anew"
            )
        max_iter, max_atoms = limits
        max_calls = np.inf if method.basis.exact else max_atoms
        self._fit.stopping.n_iter_no_change, self._fit.stopping.tol = self.n_iter_no_change, self.tol
        # an algorithm that asks the oracle every round has as many rounds as calls
        asks = type(method.algorithm).asks is Algorithm.asks
        task.begin(int(min(max_iter, max_calls)) if asks else max_iter)
        with ExitStack() as stack:
            watchers: list[Callback] = [*clock, *(self.callbacks or ()), Log()]
            if task.watched:
                watchers.append(stack.enter_context(task.rounds(partial(self._fitted, problem))))
            if self._shows_progress():
                remaining = Remaining(max_iter, max_calls, *clock)
                watchers.append(stack.enter_context(Progress(remaining)))
            self._fit.run(problem, method, max_iter=max_iter, max_calls=max_calls, metric=metric, callbacks=watchers)
        self.__dict__.update(self._fitted(problem))

    def _fitted(self, problem: Problem) -> dict[str, Any]:
        """What a fit leaves behind after its latest round."""
        return {
            "history_": list(self._fit.history),
            "n_iter_": self._fit.rounds,
            "ensemble_": self._fit.ensemble(problem.offset, problem.bound),
        }

    def _shows_progress(self) -> bool:
        if self.verbose == "auto":
            return sys.stderr.isatty() and find_spec("rich") is not None
        return bool(self.verbose)

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
        return bound_report(self, X, y, delta, **given)

    def _staged_scores(self, X: Any) -> Iterator[Tensor]:
        """Raw scores after each round, each member standing still from its best round on."""
        rows = self._rows(self._checked(X))
        with torch.no_grad(), limited(self.n_jobs):
            ensemble, path = self._fit.stages(self.ensemble_.offset, self.ensemble_.bound)
            outputs = ensemble.outputs(rows)
        for weights in path:
            yield ensemble.offset + torch.einsum("ak,ank->nk", weights.expand(-1, outputs.shape[2]), outputs)
