"""What is predicted, numbers or classes: how targets are encoded, and how predictions are calibrated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from torch import Tensor

from gce._utils.params import is_number, look_up, short_list, short_repr
from gce._utils.warn import warn_user
from gce.losses import REGRESSION, CrossEntropy, Logistic, Loss, Ordinal, Quantiles
from gce.preprocessing import check_labels, check_magnitude, check_regression_targets, check_spread, one_hot
from gce.preprocessing.sample_weights import rescale_weights
from gce.preprocessing.targets import by_label, check_discrete, check_known_labels, sorted_labels
from gce.training import scoring
from gce.training.calibration import (
    Calibration,
    HeldOutScores,
    best_temperature,
    single_row_temperature,
    spread_residuals,
)

Array = NDArray[np.float64]

#: What both a fit and its predictions say.
CLIPPED = (
    "clip_predictions='range' cannot be used with base_score: the range of the targets is that of rows with other base "
    "scores, such as other exposures; set clip_predictions=None and fit again"
)


class Target(Protocol):
    """A prediction task whose targets are known."""

    @property
    def classes(self) -> NDArray[Any] | None:
        """The class labels in the order of their codes; None for numbers."""

    @property
    def label_order(self) -> NDArray[np.intp] | None:
        """The codes of sorted labels, whose order columns have for users; None if codes have it too."""

    @property
    def classifies(self) -> bool:
        """Whether classes or labels are predicted, with probabilities."""

    @property
    def one_dimensional(self) -> bool:
        """Whether predictions are of shape ``(n,)``."""

    @property
    def repeats(self) -> int:
        """Outputs of each target: more than 1 for several quantiles of the same numbers."""

    @property
    def has_intervals(self) -> bool:
        """Whether a prediction can have an interval around it."""

    def encode(self, y: Any) -> Array:
        """Targets ``(n, k)`` as the loss takes them; they need not have all classes."""

    def encode_more(self, y: Any) -> tuple[Target, Array, NDArray[np.intp] | None]:
        """The same for a fit that continues: targets of another kind are refused."""

    def decode(self, target: Array) -> NDArray[Any]:
        """Encoded targets as the user knows them, for scorers."""

    def summed(self, target: Array) -> tuple[Array, int | None]:
        """What statistics by category are computed of, and how many classes that has; None for numbers."""

    def predicted(self, loss: Loss, pred: Tensor) -> NDArray[Any]:
        """Predictions from raw scores ``(n, k)``: numbers, classes, labels or risks."""

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        """What ``decision_function`` makes of raw scores ``(n, k)``."""

    def pick_loss(self, given: str | Loss) -> Loss:
        """The loss by its name."""

    def default_bound(self, loss: Loss, y: Tensor, offset: Tensor) -> Tensor:
        """The hull's bound ``(k,)`` where the user gives none."""

    def output_scale(self, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        """What an output of 1 of an unbounded network means, ``(k,)``."""

    def warn_of_bound(self, loss: Loss, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Warn where the hull cannot reach the targets."""

    def row_factors(self, target: Array, weight: Array) -> Array | float:
        """Factors ``(n,)`` of the sample weights."""

    def check_monotonic(self) -> None:
        """Refuse monotonic constraints where they make no sense."""

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration | None:
        """What held-out rows say about predictions; None where they are too few to say it."""

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        """What the training rows say where none, or too few, were held out."""

    def metrics(self, loss: Loss, rows: HeldOutScores) -> dict[str, float]:
        """Metrics of the predictions from raw scores, which are divided by the temperature, by their keys."""

    def stored(self, calibration: Calibration) -> dict[str, Any]:
        """What a file keeps of the task and its calibration, by the names of ``gce.io.attributes``."""


@dataclass(frozen=True, eq=False)
class NumberTarget:
    """Numbers, one target or several.

    Parameters
    ----------
    outputs : int
    one_dimensional : bool
        Predictions are of shape ``(n,)``: ``y`` was, and the loss has one output for it.
    repeats : int, default=1
        Outputs of each target: several quantiles of the same numbers.
    limits : array of shape (2, k), optional
        The least and the greatest prediction of each output; others are clipped. Default: predictions are not clipped.
    """

    outputs: int
    one_dimensional: bool
    repeats: int = 1
    limits: Array | None = None

    classes: ClassVar[None] = None
    label_order: ClassVar[None] = None
    classifies: ClassVar[bool] = False

    @property
    def has_intervals(self) -> bool:
        """Several quantiles are the ends of intervals themselves."""
        return self.repeats == 1

    @classmethod
    def learn(cls, y: Any, loss: str | Loss = "auto") -> tuple[NumberTarget, Array, None]:
        """The task of targets ``(n,)`` or ``(n, k)``, and the targets encoded."""
        target, repeats = _numbers(y), _pick_loss(loss).outputs_per_target
        check_spread(target)
        if repeats > 1 and target.shape[1] > 1:
            raise ValueError(f"{loss!r} takes one target, but y has {target.shape[1]}: fit one model for each")
        found = cls(target.shape[1] * repeats, y.ndim == 1 and repeats == 1, repeats)
        return found, found._repeated(target), None

    def _repeated(self, target: Array) -> Array:
        return target if self.repeats == 1 else np.repeat(target, self.repeats, axis=1)

    def encode(self, y: Any) -> Array:
        return self._repeated(_numbers(y))

    def encode_more(self, y: Any) -> tuple[NumberTarget, Array, None]:
        target = _numbers(y)
        if target.shape[1] * self.repeats != self.outputs:
            had = self.outputs // self.repeats
            raise ValueError(f"the model was fitted to {had} target(s), but y now has {target.shape[1]}")
        check_spread(target)
        more = replace(self, one_dimensional=y.ndim == 1 and self.repeats == 1, limits=None)
        return more, self._repeated(target), None

    def decode(self, target: Array) -> NDArray[Any]:
        return target[:, 0] if target.shape[1] == self.repeats else target[:, :: self.repeats]

    def summed(self, target: Array) -> tuple[Array, None]:
        return target[:, :: self.repeats], None

    def clipped(self, limits: Array) -> NumberTarget:
        """The same task, whose predictions stay within limits ``(2, k)``."""
        return replace(self, limits=limits)

    def means(self, loss: Loss, pred: Tensor) -> Tensor:
        """Predictions ``(n, k)`` from raw scores, clipped to the limits if there are any.

        Clipping is the projection onto an interval. If the target lies in the interval, the prediction moves towards
        it and never past it, so that no loss rises that grows with the distance from the target on either side.
        """
        mean = loss.predict(pred)
        if self.limits is None:
            return mean
        low, high = torch.from_numpy(self.limits).to(mean)
        return mean.clamp(low, high)

    def predicted(self, loss: Loss, pred: Tensor) -> Array:
        mean = self.means(loss, pred).cpu().numpy()
        return mean[:, 0] if self.one_dimensional else mean

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        return scoring.decision_values(pred)

    def pick_loss(self, given: str | Loss) -> Loss:
        return _pick_loss(given)

    def default_bound(self, loss: Loss, y: Tensor, offset: Tensor) -> Tensor:
        return loss.default_bound(y, offset)

    def output_scale(self, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        if loss.link != "identity":
            return torch.ones_like(offset)
        share = torch.from_numpy(weight / weight.sum())
        spread = (share[:, None] * (y - offset).square()).sum(0).sqrt()
        # a constant target is the offset to rounding, whatever the network predicts
        return torch.where(spread > 0, spread, 1e-12 * (1 + offset.abs()))

    def warn_of_bound(self, loss: Loss, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        if loss.link != "identity":
            return
        beyond = ((y - offset).abs() > bound).any(1)
        if beyond.any():
            warn_user(
                f"{int(beyond.sum())} of {len(y)} targets lie farther from the offset {offset.tolist()} than "
                f"bound={bound.tolist()}: the hull cannot reach them",
                UserWarning,
            )

    def row_factors(self, target: Array, weight: Array) -> float:
        return 1.0

    def check_monotonic(self) -> None:
        """Numbers can always rise or fall."""

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration:
        residuals = spread_residuals(HeldOutScores(self.means(loss, rows.pred), rows.y, rows.weight))
        return Calibration(residuals=residuals)

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        return Calibration(residuals=np.empty((0, self.outputs)))

    def metrics(self, loss: Loss, rows: HeldOutScores) -> dict[str, float]:
        # an import of an estimator does not load it
        from gce.training.metrics import of_numbers, of_quantiles

        y, predicted, weight = (part.cpu().numpy() for part in (rows.y, self.means(loss, rows.pred), rows.weight))
        if isinstance(loss, Quantiles):
            return of_quantiles(y, predicted, np.asarray(loss.levels), weight)
        return of_numbers(y, predicted, weight)

    def stored(self, calibration: Calibration) -> dict[str, Any]:
        stored = {"residuals_": calibration.residuals, "_one_dimensional": self.one_dimensional}
        return stored if self.limits is None else {**stored, "_limits": self.limits}


def _pick_loss(given: str | Loss) -> Loss:
    return look_up("loss", "squared_error" if given == "auto" else given, REGRESSION, Loss)


def _numbers(y: Any) -> Array:
    check_regression_targets(y)
    with np.errstate(over="ignore", invalid="ignore"):  # then scikit-learn looks at each number
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if y.ndim > 2:
        raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
    check_magnitude(y)
    return y[:, None] if y.ndim == 1 else y


@dataclass(frozen=True, eq=False)
class ClassTarget:
    """Classes, two or more.

    Parameters
    ----------
    classes : array of shape (classes,)
        The labels, sorted.
    class_weight : dict, "balanced" or None
        Factors of the sample weights.
    temperature : float or "auto"
        What probabilities divide scores by; "auto" is found on held-out rows.

    Attributes
    ----------
    one_dimensional : bool
        Always True: predictions are of shape ``(n,)``.
    """

    classes: NDArray[Any]
    class_weight: Mapping[Any, float] | str | None = None
    temperature: float | str = "auto"
    one_dimensional: bool = field(default=True, init=False)
    repeats: ClassVar[int] = 1
    classifies: ClassVar[bool] = True
    has_intervals: ClassVar[bool] = False

    @classmethod
    def learn(
        cls, y: Any, class_weight: Mapping[Any, float] | str | None, temperature: float | str
    ) -> tuple[ClassTarget, Array, NDArray[np.intp]]:
        """The task of labels ``(n,)``, the labels encoded, and their codes."""
        check_labels(y)
        check_discrete(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y has one class only in rows of positive weight, {classes.tolist()}: give 2 or more")
        return cls(classes, class_weight, temperature), one_hot(codes, len(classes)), codes

    @property
    def label_order(self) -> NDArray[np.intp] | None:
        return None

    @property
    def outputs(self) -> int:
        """One score for two classes, one per class for more."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def encode(self, y: Any) -> Array:
        return one_hot(self._codes_of(y), len(self.classes))

    def _codes_of(self, y: Any) -> NDArray[np.intp]:
        """The codes of labels ``(n,)``, which must be known."""
        y = column_or_1d(y, warn=True)
        check_known_labels(y, self.classes)
        # ordinal classes may have another order than the sorted one
        order = np.argsort(self.classes, kind="stable")
        return order[np.searchsorted(self.classes, y, sorter=order)]

    def encode_more(self, y: Any) -> tuple[ClassTarget, Array, NDArray[np.intp]]:
        check_labels(y)
        found = sorted_labels(y)
        if not np.array_equal(found, np.sort(self.classes)):
            raise ValueError(
                f"the model was fitted to the classes {short_list(self.classes.tolist())}, but y now has "
                f"{short_list(found.tolist())}"
            )
        codes = self._codes_of(y)
        return self, one_hot(codes, len(self.classes)), codes

    def decode(self, target: Array) -> NDArray[Any]:
        return self.classes[self.codes(target)]

    def codes(self, target: Array) -> NDArray[np.intp]:
        """The codes of encoded classes, ``(n,)``."""
        return class_codes(target)

    def summed(self, target: Array) -> tuple[Array, int | None]:
        return self.codes(target)[:, None].astype(np.float64), len(self.classes)

    def predicted(self, loss: Loss, pred: Tensor) -> NDArray[Any]:
        return self.classes[scoring.class_codes(pred)]

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        return scoring.decision_values(pred)

    def pick_loss(self, given: str | Loss) -> Loss:
        plain = Logistic() if len(self.classes) == 2 else CrossEntropy()
        known: dict[str, Loss] = {"log_loss": plain, "ordinal": Ordinal()}
        return look_up("loss", "log_loss" if given == "auto" else given, known, Loss)

    def default_bound(self, loss: Loss, y: Tensor, offset: Tensor) -> Tensor:
        return torch.full_like(offset, 10.0)

    def output_scale(self, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        return torch.ones_like(offset)

    def warn_of_bound(self, loss: Loss, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Probabilities reach every class to some degree."""

    def row_factors(self, target: Array, weight: Array) -> Array | float:
        if self.class_weight is None:
            return 1.0
        codes = self.codes(target)
        return self._class_factors(codes, weight)[codes]

    def _class_factors(self, codes: NDArray[np.intp], weight: Array) -> Array:
        """Factors of the classes, ``(classes,)``."""
        if isinstance(self.class_weight, str):
            total = np.bincount(codes, weight, minlength=len(self.classes))
            return np.where(total > 0, total.sum() / (len(self.classes) * np.where(total > 0, total, 1.0)), 1.0)
        assert self.class_weight is not None
        known = self.classes.tolist()
        unknown = [label for label in self.class_weight if label not in set(known)]
        if unknown:
            raise ValueError(
                f"class_weight names {short_list(unknown)}, which are not among the classes {short_list(known)}"
            )
        for label, factor in self.class_weight.items():
            if not is_number(factor) or not 0 < factor <= sys.float_info.max:
                raise ValueError(
                    f"class weights must be positive numbers, got class_weight={short_repr(dict(self.class_weight))}, "
                    f"which has {short_repr(factor)} for {label!r}"
                )
        factors = [float(self.class_weight.get(label, 1.0)) for label in known]
        return rescale_weights(np.array(factors), "class weights")

    def check_monotonic(self) -> None:
        if len(self.classes) > 2:
            raise ValueError(
                f"monotonic_cst needs two classes, got {len(self.classes)}: probabilities of more cannot all increase"
            )

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration:
        if self.temperature != "auto":
            return Calibration(float(self.temperature))
        probabilistic = isinstance(loss, Logistic | CrossEntropy)
        return Calibration(best_temperature(loss, rows) if probabilistic else 1.0)

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        if self.temperature != "auto":
            return Calibration(float(self.temperature))
        # one row per class, which no fold can spare
        single = n_rows == len(self.classes) and isinstance(loss, Logistic | CrossEntropy)
        return Calibration(single_row_temperature(loss, train()) if single else 1.0)

    def again(self, class_weight: Mapping[Any, float] | str | None, temperature: float | str) -> Self:
        """The same task with other parameters."""
        return replace(self, class_weight=class_weight, temperature=temperature)

    def metrics(self, loss: Loss, rows: HeldOutScores) -> dict[str, float]:
        # an import of an estimator does not load it
        from gce.training.metrics import of_classes

        y, weight = self.decode(rows.y.cpu().numpy()), rows.weight.cpu().numpy()
        probability = by_label(loss.predict(rows.pred).cpu().numpy(), self.label_order)
        classes = by_label(self.classes, self.label_order)
        return of_classes(y, self.predicted(loss, rows.pred), probability, classes, weight)

    def stored(self, calibration: Calibration) -> dict[str, Any]:
        return {"classes_": self.classes, "temperature_": calibration.temperature}


def with_base(loss: Loss, y: Array, weight: Array, base: Array | None) -> tuple[Array, Array]:
    """Targets and weights that a loss is defined for, with a base score moved into them.

    Parameters
    ----------
    loss : Loss
    y : array of shape (n, k)
    weight : array of shape (n,)
    base : array of shape (n, k) or None

    Returns
    -------
    y : array of shape (n, k)
    weight : array of shape (n,)

    Raises
    ------
    ValueError
        The loss is not defined for a target, or takes no base score.
    """
    # torch warns of arrays that cannot be written to, as those of a data frame
    y = np.require(y, requirements="W")
    loss.check_targets(torch.from_numpy(y))
    if base is None:
        return y, weight
    moved, scaled = loss.move_base(*map(torch.from_numpy, (y, weight, base)))
    if not bool(moved.isfinite().all() and scaled.isfinite().all()):
        ends = f"{base.min():.3g} to {base.max():.3g}"
        raise ValueError(f"base_score of {ends} is beyond what float64 holds beside the targets")
    # weights count rows: another unit of exposure must not make them more
    return moved.numpy(), (scaled * (weight.sum() / scaled.sum())).numpy()


def score_names(target: Target, count: int) -> list[str]:
    """The class that each of some raw scores speaks for, or its index; of classes in an order it is above one."""
    if target.classes is None:
        return [str(j) for j in range(count)]
    if count == 1:
        return [f"{target.classes[1]}"]
    above = "above " if count < len(target.classes) else ""
    return [f"{above}{label}" for label in target.classes[:count]]


def class_codes(target: Array) -> NDArray[np.intp]:
    """The codes of encoded classes, ``(n,)``."""
    return target[:, 0].astype(np.intp) if target.shape[1] == 1 else target.argmax(1)
