"""What all models share: from a user's table to a problem, and back to predictions."""

from __future__ import annotations

from collections.abc import Callable
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
from gce.ensemble import ConvexEnsemble
from gce.fitting import Metric, Problem
from gce.hooks import FitTask, Support, with_callbacks
from gce.losses import Loss
from gce.members import Members, from_splits, splits_for, with_validation
from gce.native import limited
from gce.settings import (
    as_bound,
    as_numpy,
    check_number,
    draw_seed,
    find_device,
    support_first,
    taken,
)
from gce.settings import threads as torch_threads
from gce.streams import Streams
from gce.table import Standardizer

Array = NDArray[np.float64]

_ROWS_AT_ONCE = 65_536


Learn = Callable[[Problem, Metric | None, Streams, FitTask], None]


class ConvexModel(Support, BaseEstimator):
    """A convex combination of models around an offset, whatever its task and however it is learned.

    Parameters
    ----------
    loss, bound, offset, scale, clip, monotonic_cst, cv, validation_fraction, scoring, device, n_jobs, random_state
        See the subclasses, whose signatures they belong to.
    """

    loss: str | Loss
    bound: float | ArrayLike | None
    offset: float | str
    scale: str
    clip: float | None
    monotonic_cst: ArrayLike | None
    cv: Any
    validation_fraction: float | None
    scoring: Any
    device: str
    n_jobs: int | None
    random_state: Any
    ensemble_: ConvexEnsemble

    # What the ways of learning do differently.

    def _prepared(self) -> Learn:
        """What is called with the problem: parameters are checked, and clocks started, before any data is touched."""
        raise NotImplementedError

    def _resumes(self) -> bool:
        """Whether this fit goes on from the last one."""
        return False

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

    @with_callbacks
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
        self._check_table()
        learn, resume = self._prepared(), self._resumes()
        task = FitTask(self, X, y, sample_weight)
        X, y = as_numpy(X), as_numpy(y)
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
        with torch.no_grad(), torch_threads(self.n_jobs), limited(self.n_jobs):
            if not resume:
                self._start(X, weight, target, seed)
            problem, metric = self._problem(X_all, target_all, members, sample_weight is not None)
            learn(problem, metric, Streams(seed, members.names), task)
        task.end()
        return self

    def _check_table(self) -> None:
        if self.clip is not None and not check_number("clip", self.clip, 0) > 0:
            raise ValueError(f"clip must be positive or None, got {self.clip!r}")
        if self.scale not in ("auto", "each", "common"):
            raise ValueError(f"scale must be 'auto', 'each' or 'common', got {self.scale!r}")
        find_device(self.device)

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

    def _start(self, X: Array, weight: Array, target: Array, seed: int) -> None:
        """What a fit settles once: scaling, loss, the hull's centre and bound."""
        self._seed = seed
        self.table_ = Standardizer.fit(X, weight, np.inf if self.clip is None else float(self.clip), self.scale)
        y = torch.from_numpy(target)
        self.loss_ = self._pick_loss(target.shape[1])
        if isinstance(self.offset, str) and self.offset == "auto":
            centre = self.loss_.start(y, torch.from_numpy(weight))
        else:
            centre = torch.full((target.shape[1],), check_number("offset", self.offset, -np.inf), dtype=torch.float64)
        self.offset_, self.bound_ = centre.numpy(), self._reach(y, weight, centre).numpy()

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        """The hull's bound for each output, ``(k,)``."""
        bound = self._default_bound(y, centre) if self.bound is None else as_bound(self.bound, y.shape[1])
        self._warn_of_bound(y, centre, bound)
        return bound

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

    def _signs(self) -> Tensor | None:
        """How predictions move with each network input, ``(d',)`` of -1, 0 and 1; None where all are free."""
        if self.monotonic_cst is None:
            return None
        signs = np.asarray(self.monotonic_cst)
        if signs.shape != (self.n_features_in_,) or not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError(
                f"monotonic_cst must have -1, 0 or 1 for each of the {self.n_features_in_} columns of X, got "
                f"{self.monotonic_cst!r}"
            )
        return torch.from_numpy(signs.astype(np.int64))

    def _decode(self, target: Array) -> NDArray[Any]:
        """Encoded targets as the user knows them, for scorers."""
        raise NotImplementedError

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
