"""What all models share: from a user's table to a problem, and back to predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from gce import scoring as answers
from gce.calibration import HeldOut
from gce.ensemble import ConvexEnsemble
from gce.fitting import Metric, Problem
from gce.hooks import FitTask, Support, with_callbacks
from gce.losses import Loss
from gce.members import Members, Rows, from_splits, splits_for, with_validation
from gce.native import limited, torch_threads
from gce.parameters import (
    AUTO,
    FINITE,
    JOBS,
    NONE,
    SCORING,
    SEED,
    Rule,
    Rules,
    among,
    instance,
    within,
)
from gce.reading import Given, Reading, counted_alike, measured, row_weights
from gce.rows import WRITTEN_AT_ONCE, Inputs, Matrix, SparseRows, for_training, on_device, stacked
from gce.settings import (
    as_bound,
    as_numpy,
    check_owners,
    draw_seed,
    find_device,
    support_first,
    taken,
    users_line,
)
from gce.streams import Streams
from gce.table import Schema, Table, as_targets
from gce.table.encoder import Encoder
from gce.writing import Writing

Array = NDArray[np.float64]

_ROWS_AT_ONCE = 65_536
#: Numbers of rows that are scaled at a time, were they written out.
_NUMBERS_AT_ONCE = 1 << 26

Learn = Callable[[Problem, Metric | None, Streams, FitTask], None]


@dataclass(frozen=True)
class Way:
    """A way of learning, ready to go.

    Parameters
    ----------
    learn : callable
        Called with the problem.
    resume : bool
        It goes on from the model's last fit.
    seed : int or None
        That of the fit it goes on from; None: to be drawn.
    within : callable
        Makes the context in which tensors are worked on.
    after : callable
        Called when the model is fitted.
    """

    learn: Learn
    resume: bool = False
    seed: int | None = None
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    after: Callable[[], None] = lambda: None


class ConvexModel(Writing, Support, Reading):
    """A convex combination of models around an offset, whatever its task and however it is learned.

    Parameters
    ----------
    loss, bound, offset, categorical_features, scale, clip, monotonic_cst, cv, validation_fraction, scoring, device,
    n_jobs, random_state
        See the subclasses, whose signatures they belong to.
    """

    loss: str | Loss
    bound: float | ArrayLike | None
    offset: float | str
    categorical_features: Any
    scale: str
    clip: float | None
    monotonic_cst: Mapping[str, int] | ArrayLike | None
    cv: Any
    validation_fraction: float | None
    scoring: Any
    device: str
    n_jobs: int | None
    random_state: Any
    ensemble_: ConvexEnsemble

    #: What is not here (columns, splits) is checked where the rows are known.
    parameter_rules: ClassVar[Rules] = {
        "loss": instance("a name or a Loss object", str, Loss),
        "offset": AUTO | FINITE,
        "scale": among("auto", "each", "common", "robust"),
        "clip": Rule(within(0, np.inf, "(]").accepts, "positive") | NONE,
        "validation_fraction": within(0, 1, "()") | NONE,
        "scoring": SCORING,
        "device": instance("the name of a torch device", str, torch.device),
        "n_jobs": JOBS,
        "random_state": SEED,
    }

    # What the ways of learning do differently.

    def _way(self) -> Way:
        """How it will be learned: parameters are checked, and clocks started, before any data is touched."""
        raise NotImplementedError

    # What the two tasks do differently.

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        """Check targets; ``(n, k)`` numbers for the loss, and class codes to stratify by."""
        raise NotImplementedError

    def _encode_like(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        """The same for a fit that goes on: refuse other targets than it began with."""
        raise NotImplementedError

    def _encode_y_val(self, y: Any) -> Array:
        raise NotImplementedError

    def _pick_loss(self, outputs: int) -> Loss:
        raise NotImplementedError

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        raise NotImplementedError

    def _factors(self, target: Array, weight: Array) -> Array | float:
        """What rows ``(n,)`` count beside their sample weights."""
        return 1.0

    def _calibrate(self, rows: HeldOut) -> None:
        """Learn from rows that were held out what answers are worth."""
        raise NotImplementedError

    def _calibrate_unseen(self, problem: Problem) -> None:
        """Say what answers are worth where no row could be held out; nothing to say of numbers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an object, such as ``basis__hidden``, where the object itself was given."""
        check_owners(self, params)
        super().set_params(**params)
        return self

    # Fitting.

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

        Returns
        -------
        self
        """
        return self._fit_by(self._way(), Given(X, y, sample_weight, groups, X_val, y_val, sample_weight_val))

    def _fit_by(self, way: Way, given: Given) -> Self:
        """Fit in a way of learning."""
        find_device(self.device)
        task = FitTask(self, given.X, given.y, given.sample_weight)
        schema, rows = self._take(given, like=way.resume)
        seed = draw_seed(self.random_state) if way.seed is None else way.seed
        members, X, target = self._members(rows, seed, self._check_validation(schema, given))
        with torch.no_grad(), torch_threads(self.n_jobs), limited(self.n_jobs), way.within():
            if not way.resume:
                self._start(schema, rows, seed)
            self._folds = list(members.names)
            problem, metric = self._problem(X, target, members, given.sample_weight is not None)
            way.learn(problem, metric, Streams(seed, members.names), task)
            unseen = self._held_out(problem, members.held_out_total)
            self._calibrate(unseen)
            if len(unseen.y) == 0:
                self._calibrate_unseen(problem)
        task.end()
        way.after()
        return self

    def _take(self, given: Given, like: bool) -> tuple[Schema, Rows]:
        """Rows of positive weight, coded: like those of the last fit, or as the first thing of a new one."""
        sheet, y = self._read_both(as_numpy(given.X), as_targets(as_numpy(given.y)), reset=not like)
        weight = row_weights(given.sample_weight, y)
        kept = np.flatnonzero(weight)
        if len(kept) == 0:
            raise ValueError("all sample weights are zero: there is no row to fit")
        sheet, weight = sheet.take(kept), weight[kept]
        if not like:
            # a fit that breaks off must not leave an old ensemble behind a new table
            for name in ("ensemble_", "_fit", "gap_", "_joint", "_guests"):
                self.__dict__.pop(name, None)
        schema = self.table_.schema if like else Schema.learn(sheet, weight, self.categorical_features)
        if not like and schema.lost is not None:
            warnings.warn(schema.lost, UserWarning, stacklevel=users_line())
        X, (target, codes) = schema.code(sheet), self._encode_like(y[kept]) if like else self._encode_y(y[kept])
        weight = counted_alike(measured(weight * self._factors(target, weight)))
        return schema, Rows(X, target, codes, weight, kept, self._check_groups(given.groups, len(y), kept), len(y))

    def _check_validation(self, schema: Schema, given: Given) -> tuple[Matrix, Array, Array] | None:
        """Rows given for validation, encoded as the training rows are."""
        X_val, y_val, weight_val = given.X_val, given.y_val, given.sample_weight_val
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together")
        if X_val is None:
            if weight_val is not None:
                raise ValueError("sample_weight_val needs X_val and y_val")
            return None
        if not (self.cv is None or (isinstance(self.cv, str) and self.cv == "auto")):
            raise ValueError(f"X_val and cv={self.cv!r} both say what to hold out: give one of them")
        rows = self._judged(schema, X_val, y_val, weight_val)
        if not rows[2].any():
            raise ValueError("all of sample_weight_val is zero: there is nothing to watch")
        return rows

    def _judged(self, schema: Schema, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array]:
        """Rows to judge by, coded, with targets ``(n, k)`` and weights ``(n,)``; they need not have all classes."""
        X, y = schema.code(self._read(X)), as_targets(as_numpy(y))
        check_consistent_length(X, y)
        weight, target = row_weights(sample_weight, X), self._encode_y_val(np.asarray(y))
        return X, target, measured(weight * self._factors(target, weight))

    def _members(
        self, rows: Rows, seed: int, validation: tuple[Matrix, Array, Array] | None
    ) -> tuple[Members, Matrix, Array]:
        """The members, and the rows and targets they stand on (given validation rows last)."""
        X, target, codes, weight = rows.X, rows.target, rows.codes, rows.weight
        if validation is not None:
            X_val, target_val, weight_val = validation
            if target_val.shape[1] != target.shape[1]:
                raise ValueError(f"y_val has {target_val.shape[1]} target(s), but y has {target.shape[1]}")
            members = with_validation(X, weight, X_val, weight_val)
            return members, stacked(X, X_val), np.concatenate([target, target_val])
        members = from_splits(X, weight, splits_for(self.cv, self.validation_fraction, rows, seed))
        if codes is not None:
            for m, (train, held_out) in enumerate(zip(members.train, members.held_out, strict=True)):
                lacking = np.setdiff1d(codes[held_out > 0], codes[train > 0])
                if len(lacking):
                    raise ValueError(
                        f"classes {self.classes_[lacking].tolist()} are in the validation rows of split {m} but not in "
                        "its training rows: give every class more rows, use fewer folds or another cv"
                    )
        return members, X, target

    def _start(self, schema: Schema, rows: Rows, seed: int) -> None:
        """What a fit settles once: the table, the loss, the hull's centre and bound."""
        self._seed, self.n_samples_fit_ = seed, len(rows.target)
        target, weight, clip = rows.target, rows.weight, np.inf if self.clip is None else float(self.clip)
        self.table_ = Table(schema, Encoder.learn(rows.X, weight, schema, self.scale, clip))
        y = torch.from_numpy(target)
        self.loss_ = self._pick_loss(target.shape[1])
        if isinstance(self.offset, str) and self.offset == "auto":
            centre = self.loss_.start(y, torch.from_numpy(weight))
        else:
            centre = torch.full((target.shape[1],), float(self.offset), dtype=torch.float64)
        self.offset_, self.bound_ = centre.numpy(), self._reach(y, weight, centre).numpy()

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        """The hull's bound for each output, ``(k,)``."""
        bound = self._default_bound(y, centre) if self.bound is None else as_bound(self.bound, y.shape[1])
        self._warn_of_bound(y, centre, bound)
        return bound

    def _warn_of_bound(self, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Say where the hull cannot reach the targets; nothing to say for classes."""

    def _problem(self, X: Matrix, target: Array, members: Members, weighted: bool) -> tuple[Problem, Metric | None]:
        device = find_device("cpu" if self.device == "auto" and isinstance(X, SparseRows) else self.device)
        order = support_first(members.train)
        self.table_.check_reach(X)
        problem = Problem(
            self.loss_,
            for_training(on_device(self.table_.transform(taken(X, order)), device)),
            *(
                torch.from_numpy(array).to(device)
                for array in (
                    target[order],
                    taken(members.train, order, axis=1),
                    taken(members.held_out, order, axis=1),
                    self.offset_,
                    self.bound_,
                    members.count,
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
        return torch.from_numpy(self.table_.signs(self.monotonic_cst))

    def _decode(self, target: Array) -> NDArray[Any]:
        """Encoded targets as the user knows them, for scorers."""
        raise NotImplementedError

    # Predicting.

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ensemble_")

    def _checked(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return self.table_.coded(self._read(X))

    def _rows(self, X: Matrix) -> Inputs:
        return on_device(self.table_.transform(X), self.ensemble_.offset.device)

    def _scores(self, X: Any) -> Tensor:
        """Raw scores, ``(n, k)``."""
        return self._scored(self._checked(X))

    def _scored(self, X: Matrix) -> Tensor:
        """Raw scores of coded rows, ``(n, k)``; beside them and ``X`` only some rows are held at a time."""
        with torch.no_grad(), limited(self.n_jobs):
            step = _ROWS_AT_ONCE
            # sparse rows stay so, unless there are flags beside them
            if not isinstance(X, SparseRows) or len(self.table_.encoder.flagged):
                at_once = WRITTEN_AT_ONCE if isinstance(X, SparseRows) else _NUMBERS_AT_ONCE
                step = min(step, max(1, at_once // max(X.shape[1], 1)))
            blocks = (X[first : first + step] for first in range(0, len(X), step))
            found = torch.cat([self.ensemble_(self._rows(block)) for block in blocks])
        if not found.isfinite().all():
            self.table_.check_reach(X)
        return found

    def _held_out(self, problem: Problem, total: Array) -> HeldOut:
        """Each member's raw scores on the rows it held out, with a total weight ``(M,)``: what a model says about rows
        it did not learn from.
        """
        parts = [HeldOut(*(t[:0] for t in (problem.y, problem.y, problem.held_out[0])))]
        for m, weight in enumerate(problem.held_out):
            rows = weight.nonzero().flatten()
            if len(rows):
                member = self.ensemble_.of_member(m)
                pred = torch.cat([member(problem.X[some]) for some in rows.split(_ROWS_AT_ONCE)])
                parts.append(HeldOut(pred, problem.y[rows], weight[rows] * total[m]))
        return HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))
