"""A fitted model evaluated on given rows: what every section looks at, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from gce._utils.devices import as_numpy
from gce.inspection.plotting.readings import (
    FamilyCurves,
    Shares,
    TrainingCurves,
    family_curves,
    shares,
    training_curves,
)
from gce.losses import (
    CrossEntropy,
    Gamma,
    Huber,
    Logistic,
    LogMixture,
    Loss,
    Poisson,
    Power,
    PseudoHuber,
    Quantile,
    Quantiles,
    Squared,
    Tweedie,
)
from gce.preprocessing import Frame, targets_as_array
from gce.preprocessing.frames import is_frame
from gce.preprocessing.sample_weights import check_sample_weight
from gce.preprocessing.sparse import SparseRows
from gce.preprocessing.targets import by_label
from gce.preprocessing.values import refuse_class

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What a model says of rows whose truth is known.

    Parameters
    ----------
    model : estimator
    X : as given, less the rows of weight 0
    y : array of shape (n,) or (n, k)
        Classes or numbers, in the type and shape of ``predicted``.
    target : array of shape (n, k)
        ``y`` as the loss knows it.
    weight : array of shape (n,) or None
    predicted : array of shape (n,) or (n, k)
    probability : array of shape (n, classes) or None
    """

    model: Any
    X: Any
    y: NDArray[Any]
    target: Array
    weight: Array | None
    predicted: NDArray[Any]
    probability: Array | None

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def classifies(self) -> bool:
        return self.probability is not None

    @property
    def plain(self) -> bool:
        """Whether numbers or one class per row are predicted, as most tasks do."""
        return self.y.shape == self.predicted.shape and not (self.classifies and self.y.ndim == 2)

    @property
    def temperature(self) -> float:
        """What probabilities divide raw scores by."""
        return 1.0

    @property
    def untempered(self) -> Array | None:
        """Probabilities at temperature 1, ``(n, classes)``, where they are others."""
        return None

    @property
    def has_intervals(self) -> bool:
        """Whether the model predicts intervals."""
        return False

    @property
    def levels(self) -> Sequence[float] | None:
        """The levels of a model of several quantiles."""
        return None

    def output_name(self, k: int) -> str:
        """What a reader calls an output of several."""
        return f"target {k}" if self.levels is None else f"quantile {self.levels[k]:g}"

    def mean(self, values: ArrayLike) -> float:
        """The weighted mean of one number per row."""
        return float(np.average(np.asarray(values, dtype=np.float64), weights=self.weight))

    def sample_rows(self, most: int) -> NDArray[np.intp]:
        """At most so many rows, drawn at random (the same ones each time), in their order."""
        if self.rows <= most:
            return np.arange(self.rows)
        return np.sort(np.random.default_rng(0).choice(self.rows, most, replace=False))

    def weight_of(self, rows: NDArray[np.intp]) -> Array | None:
        return None if self.weight is None else self.weight[rows]


@dataclass(frozen=True)
class Evaluation(Predictions):
    """A convex model, rows, and what the model makes of them.

    Parameters
    ----------
    sheet : Frame
        ``X`` column by column.
    coded : array of shape (n, d)
    scores : Tensor of shape (n, k)
    curves : TrainingCurves or None
        None of an edited model, which has no rounds.
    families : tuple of FamilyCurves
        Each family that has rounds by itself; none of an edited model.
    shares : Shares
    """

    sheet: Frame
    coded: Array
    scores: Tensor
    curves: TrainingCurves | None
    families: tuple[FamilyCurves, ...]
    shares: Shares

    @property
    def external(self) -> tuple[Any, ...]:
        """Models of other libraries among the atoms."""
        return self.model.result_.external

    @property
    def temperature(self) -> float:
        return float(self.model.result_.calibration.temperature)

    @property
    def has_intervals(self) -> bool:
        result = self.model.result_
        return result.target.has_intervals and len(result.calibration.residuals) > 0

    @property
    def levels(self) -> Sequence[float] | None:
        loss = self.model.loss_
        return loss.levels if isinstance(loss, Quantiles) else None

    @property
    def untempered(self) -> Array | None:
        if self.temperature == 1.0:
            return None
        return by_label(self.model.loss_.predict(self.scores).cpu().numpy(), self.model.result_.target.label_order)

    def scores_of(self, coded: Array) -> Tensor:
        """Raw scores of coded rows, ``(n, k)``."""
        return self.model.raw_predict_coded(coded)

    def losses_of(self, scores: Tensor, target: Array) -> Array:
        """Each row's loss at raw scores, ``(n,)``."""
        y = torch.as_tensor(target, dtype=scores.dtype, device=scores.device)
        return self.model.loss_.value(scores, y).cpu().numpy()


def evaluate(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Evaluation:
    """Try a fitted model on rows; samples with zero weight are ignored."""
    check_is_fitted(model)
    X, y, weight = positive_weight_rows(as_numpy(X), np.asarray(targets_as_array(y)), sample_weight)
    result = model.result_
    sheet = model.read_rows(X)
    coded = result.table.encode(sheet)
    if isinstance(coded, SparseRows):
        raise ValueError("a report looks at dense rows, got sparse ones: give X.toarray()")
    check_consistent_length(coded, y)
    # pandas' memory is not ours to write, and torch takes none that is not
    target = np.array(result.target.encode(y))
    if target.shape[1] != len(model.offset_):
        raise ValueError(f"y has {target.shape[1]} columns, but the model was fitted to {len(model.offset_)}")
    scores = model.raw_predict(X)
    classifies = is_classifier(model)
    predicted = model.predict_from_raw(scores)
    # as the model's own predictions come, whatever the type or shape that y was given in
    # targets of several quantiles stay repeated, one for each prediction
    y = target if result.target.repeats > 1 else result.target.decode(target)
    y = y.reshape(predicted.shape) if y.size == predicted.size else y
    probability = model.probabilities(scores) if classifies else None
    given = Predictions(model, X, y, target, weight, predicted, probability)
    return Evaluation(
        **vars(given),
        sheet=sheet,
        coded=coded,
        scores=scores,
        curves=None if result.edited else training_curves(model),
        families=() if result.edited else family_curves(model),
        shares=shares(model),
    )


def positive_weight_rows(
    X: Any, y: NDArray[Any], sample_weight: ArrayLike | None
) -> tuple[Any, NDArray[Any], Array | None]:
    """Rows, targets and weights without the rows of weight 0."""
    refuse_class(X)
    if sample_weight is None:
        return X, y, None
    check_consistent_length(X, y)
    weight = check_sample_weight(sample_weight, y)
    kept = np.flatnonzero(weight)
    if len(kept) == 0:
        raise ValueError("all sample weights are zero: there is no row to report on")
    return rows_of(X, kept), y[kept], weight[kept]


def rows_of(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of what a user gave, of the same kind."""
    if is_frame(X):
        import narwhals as nw

        return nw.from_native(X, eager_only=True)[rows].to_native()
    if isinstance(X, list | tuple):
        return [X[i] for i in rows]
    return X[rows]


def name_of(loss: Loss) -> str:
    """What a reader calls a loss."""
    if isinstance(loss, Squared):
        return "squared error"
    if isinstance(loss, Logistic | CrossEntropy | LogMixture):
        return "log-loss"
    if isinstance(loss, Power):
        return "absolute error" if loss.q == 1 else f"|f - y|^{loss.q:g}"
    if isinstance(loss, Quantile):
        return f"pinball loss at {loss.quantile:g}"
    if isinstance(loss, Quantiles):
        return "mean pinball loss"
    names = {
        PseudoHuber: "pseudo-Huber loss",
        Huber: "Huber loss",
        Poisson: "half the Poisson deviance",
        Gamma: "half the gamma deviance",
        Tweedie: "half the Tweedie deviance",
    }
    return names.get(type(loss), type(loss).__name__)
