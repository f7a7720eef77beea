"""What the regressor and the classifier share: from a user's table to a fit, and back to predictions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from gce import scoring as answers
from gce.algorithms import ALGORITHMS, Algorithm
from gce.basis import BASES, Basis
from gce.callbacks import Callback, EarlyStopping, Log, Progress, TimeLimit
from gce.fitting import Fit, Method, Metric, Problem
from gce.line_search import LINE_SEARCHES, LineSearch
from gce.losses import Loss
from gce.members import Members, from_splits, splits_for, with_validation
from gce.native import limited
from gce.settings import (
    as_bound,
    as_numpy,
    check_count,
    check_number,
    draw_seed,
    find_device,
    look_up,
    support_first,
    taken,
)
from gce.settings import threads as torch_threads
from gce.streams import Streams
from gce.table import Standardizer

Array = NDArray[np.float64]

_ROWS_AT_ONCE = 65_536


class GreedyConvexEnsemble(BaseEstimator):
    """A greedy convex ensemble, whatever its task: see its subclasses."""

    def __init__(
        self,
        *,
        algorithm: str | Algorithm = "pairwise",
        loss: str | Loss = "auto",
        basis: str | Basis = "neural",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        line_search: str | LineSearch = "exact",
        scale: str = "auto",
        clip: float | None = 4.0,
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
        self.scale = scale
        self.clip = clip
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

    # What the two tasks do differently.

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        """Check targets; ``(n, k)`` numbers for the loss, and class codes to stratify by."""
        raise NotImplementedError

    def _encode_y_val(self, y: Any) -> Array:
        raise NotImplementedError

    def _pick_loss(self, outputs: int) -> Loss:
        raise NotImplementedError

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        raise NotImplementedError

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X : array-like or Tensor of shape (n, d)
        y : array-like or Tensor of shape (n,), or (n, k) for several regression targets
        sample_weight : array-like of shape (n,), optional
            A row of weight 0 is a row that is not there.
        X_val, y_val, sample_weight_val : optional
            Rows to watch for early stopping; all rows of ``X`` are then trained on, by one member.

        Returns
        -------
        self
        """
        limits = self._check_limits()
        time_limit = None if self.time_limit is None else TimeLimit(self.time_limit)
        X, y = as_numpy(X), as_numpy(y)
        resume = self.warm_start and hasattr(self, "_fit")
        several = self.__sklearn_tags__().target_tags.multi_output
        checks = {"dtype": np.float64, "order": "C", "multi_output": several, "y_numeric": is_regressor(self)}
        X, y = validate_data(self, X, y, reset=not resume, **checks)
        weight = _check_sample_weight(as_numpy(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(weight)
        if len(kept) == 0:
            raise ValueError("all sample weights are zero: there is no row to fit")
        X, weight = taken(X, kept), weight[kept]
        target, codes = self._encode_y(y[kept])
        seed = self._seed if resume else draw_seed(self.random_state)
        members, X_all, target_all = self._members(
            X, target, codes, weight, kept, seed, self._check_validation(X_val, y_val, sample_weight_val)
        )
        method = self._method(Streams(seed, members.names))
        with torch.no_grad(), torch_threads(self.n_jobs), limited(self.n_jobs):
            if not resume:
                self._start(X, weight, target, len(members.names), seed)
            elif self._fit.members != len(members.names):
                raise ValueError(
                    f"warm_start goes on with {self._fit.members} members, but cv now gives {len(members.names)}"
                )
            problem, metric = self._problem(X_all, target_all, members, sample_weight is not None)
            self._run(problem, method, metric, limits, [time_limit] if time_limit else [])
        return self

    def _check_limits(self) -> tuple[int, int]:
        check_number("tol", self.tol, 0)
        if self.n_iter_no_change is not None:
            check_count("n_iter_no_change", self.n_iter_no_change, 1)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)
        if self.clip is not None and not check_number("clip", self.clip, 0) > 0:
            raise ValueError(f"clip must be positive or None, got {self.clip!r}")
        if self.scale not in ("auto", "each", "common"):
            raise ValueError(f"scale must be 'auto', 'each' or 'common', got {self.scale!r}")
        find_device(self.device)
        return check_count("max_iter", self.max_iter, 1), check_count("max_atoms", self.max_atoms, 1)

    def _check_validation(self, X_val: Any, y_val: Any, weight_val: Any) -> tuple[Array, Array, Array] | None:
        """Rows given for validation, encoded as the training rows are."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        if X_val is None:
            if weight_val is not None:
                raise ValueError("sample_weight_val needs X_val and y_val")
            return None
        if not (self.cv is None or (isinstance(self.cv, str) and self.cv == "auto")):
            raise ValueError(f"X_val and cv={self.cv!r} both say what to hold out: give one of them")
        X_val = validate_data(self, as_numpy(X_val), reset=False, dtype=np.float64, order="C")
        y_val = as_numpy(y_val)
        check_consistent_length(X_val, y_val)
        weight = _check_sample_weight(as_numpy(weight_val), X_val, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("all of sample_weight_val is zero: there is nothing to watch")
        return X_val, self._encode_y_val(np.asarray(y_val)), weight

    def _members(
        self,
        X: Array,
        target: Array,
        codes: NDArray[np.intp] | None,
        weight: Array,
        kept: NDArray[np.intp],
        seed: int,
        validation: tuple[Array, Array, Array] | None,
    ) -> tuple[Members, Array, Array]:
        """The members, and the rows and targets they stand on (given validation rows last)."""
        if validation is not None:
            X_val, target_val, weight_val = validation
            members = with_validation(X, weight, X_val, weight_val)
            return members, np.concatenate([X, X_val]), np.concatenate([target, target_val])
        splits = splits_for(self.cv, self.validation_fraction, X, codes, kept, seed)
        members = from_splits(X, weight, splits)
        if codes is not None:
            for m, (train, held_out) in enumerate(zip(members.train, members.held_out, strict=True)):
                lacking = np.setdiff1d(codes[held_out > 0], codes[train > 0])
                if len(lacking):
                    raise ValueError(
                        f"classes {self.classes_[lacking].tolist()} are in the validation rows of split {m} but not in "
                        "its training rows: give every class more rows, use fewer folds or another cv"
                    )
        return members, X, target

    def _method(self, streams: Streams) -> Method:
        return Method(
            look_up("algorithm", self.algorithm, ALGORITHMS, Algorithm),
            look_up("basis", self.basis, BASES, Basis),
            look_up("line_search", self.line_search, LINE_SEARCHES, LineSearch),
            streams,
        )

    def _start(self, X: Array, weight: Array, target: Array, members: int, seed: int) -> None:
        """What a fit settles once: scaling, loss, the hull's centre and bound."""
        self._seed = seed
        self.table_ = Standardizer.fit(X, weight, np.inf if self.clip is None else float(self.clip), self.scale)
        y = torch.from_numpy(target)
        self.loss_ = self._pick_loss(target.shape[1])
        if isinstance(self.offset, str) and self.offset == "auto":
            centre = self.loss_.start(y, torch.from_numpy(weight))
        else:
            centre = torch.full((target.shape[1],), check_number("offset", self.offset, -np.inf), dtype=torch.float64)
        bound = self._default_bound(y, centre) if self.bound is None else as_bound(self.bound, target.shape[1])
        self._warn_of_bound(y, centre, bound)
        self.offset_, self.bound_ = centre.numpy(), bound.numpy()
        self._fit = Fit(members, EarlyStopping(self.n_iter_no_change, self.tol))

    def _warn_of_bound(self, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Say where the hull cannot reach the targets; nothing to say for classes."""

    def _problem(self, X: Array, target: Array, members: Members, weighted: bool) -> tuple[Problem, Metric | None]:
        device = find_device(self.device)
        order = support_first(members.train)
        problem = Problem(
            self.loss_,
            *(
                torch.from_numpy(array).to(device)
                for array in (
                    self.table_.transform(taken(X, order)),
                    target[order],
                    taken(members.train, order, axis=1),
                    taken(members.held_out, order, axis=1),
                    self.offset_,
                    self.bound_,
                )
            ),
        )
        if not members.held_out.any():
            return problem, None
        if self.scoring is None:
            return problem, problem.held_out_loss
        y, classes = self._decode(target[order]), getattr(self, "classes_", None)
        held_out = members.held_out[:, order]
        return problem, answers.ScorerMetric(self.scoring, self.loss_, problem.offset, y, held_out, classes, weighted)

    def _decode(self, target: Array) -> NDArray[Any]:
        """Encoded targets as the user knows them, for scorers."""
        raise NotImplementedError

    def _run(
        self,
        problem: Problem,
        method: Method,
        metric: Metric | None,
        limits: tuple[int, int],
        callbacks: list[Callback],
    ) -> None:
        max_iter, max_atoms = limits
        max_calls = np.inf if method.basis.exact else max_atoms
        self._fit.stopping.n_iter_no_change, self._fit.stopping.tol = self.n_iter_no_change, self.tol
        with ExitStack() as stack:
            watchers: list[Callback] = [*callbacks, *(self.callbacks or ()), Log()]
            if self._shows_progress():
                watchers.append(stack.enter_context(Progress(int(min(max_iter, max_calls)))))
            self._fit.run(problem, method, max_iter=max_iter, max_calls=max_calls, metric=metric, callbacks=watchers)
        self.history_ = self._fit.history
        self.n_iter_ = self._fit.rounds
        self.ensemble_ = self._fit.ensemble(problem.offset, problem.bound)

    def _shows_progress(self) -> bool:
        if self.verbose == "auto":
            return sys.stderr.isatty() and find_spec("rich") is not None
        return bool(self.verbose)

    # Predicting.

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_data(self, as_numpy(X), reset=False, dtype=np.float64, order="C")

    def _rows(self, X: Array) -> Tensor:
        return torch.from_numpy(self.table_.transform(X)).to(self.ensemble_.offset.device)

    def _scores(self, X: Any) -> Tensor:
        """Raw scores, ``(n, k)``; beside them and ``X`` only some rows are held at a time."""
        X = self._checked(X)
        with torch.no_grad(), limited(self.n_jobs):
            blocks = (X[first : first + _ROWS_AT_ONCE] for first in range(0, len(X), _ROWS_AT_ONCE))
            return torch.cat([self.ensemble_(self._rows(block)) for block in blocks])

    def _staged_scores(self, X: Any) -> Iterator[Tensor]:
        """Raw scores after each round, each member standing still from its best round on."""
        rows = self._rows(self._checked(X))
        with torch.no_grad(), limited(self.n_jobs):
            ensemble, path = self._fit.stages(self.ensemble_.offset, self.ensemble_.bound)
            outputs = ensemble.outputs(rows)
        for weights in path:
            yield ensemble.offset + torch.einsum("ak,ank->nk", weights.expand(-1, outputs.shape[2]), outputs)
