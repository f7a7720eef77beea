"""scikit-learn's scorers on predictions that a fit already has: nothing is predicted twice."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names
from torch import Tensor

from gce._utils.params import is_number, short_repr
from gce.losses import Loss, Ordinal
from gce.preprocessing.targets import by_label
from gce.training.calibration import HeldOutScores

if TYPE_CHECKING:
    from gce.training.targets import Target

Scorer = Callable[..., float]


class KnownPredictions(BaseEstimator):
    """A fitted estimator for scorers that returns predictions which are already known, whatever ``X`` is.

    Parameters
    ----------
    pred : Tensor of shape (n, k)
        Raw scores.
    loss : Loss
    target : Target
    """

    def __init__(self, pred: Tensor, loss: Loss, target: Target) -> None:
        self.pred, self.loss, self.target = pred, loss, target

    @property
    def classes_(self) -> NDArray[Any]:
        classes = self.target.classes
        return np.arange(self.pred.shape[1]) if classes is None else by_label(classes, self.target.label_order)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownNumbers(RegressorMixin, KnownPredictions):
    """Known predictions of a regressor."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        return predicted_numbers(self.pred, self.loss)


class KnownClasses(ClassifierMixin, KnownPredictions):
    """Known predictions of a classifier."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        return self.target.decision(self.loss, self.pred)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return by_label(self.loss.predict(self.pred).numpy(), self.target.label_order)

    def predict(self, X: Any) -> NDArray[Any]:
        return self.target.predicted(self.loss, self.pred)


def predicted_numbers(pred: Tensor, loss: Loss) -> NDArray[np.float64]:
    """Predicted numbers, ``(n,)`` for one output and ``(n, k)`` for several."""
    mean = loss.predict(pred).cpu().numpy()
    return mean[:, 0] if mean.shape[1] == 1 else mean


def decision_values(pred: Tensor) -> NDArray[np.float64]:
    """Raw scores as scikit-learn shapes them, ``(n,)`` for two classes and ``(n, k)`` for more."""
    raw = pred.cpu().numpy()
    return raw[:, 0] if raw.shape[1] == 1 else raw


def class_codes(pred: Tensor) -> NDArray[np.intp]:
    """The class with the largest score, as a code."""
    raw = pred.cpu().numpy()
    return (raw[:, 0] > 0).astype(np.intp) if raw.shape[1] == 1 else raw.argmax(1)


def _check_arguments(scorer: Scorer) -> None:
    """Raise a ValueError for a callable that does not take a model, rows and targets."""
    try:
        taken = inspect.signature(scorer)
    except (TypeError, ValueError):  # a compiled one may not say
        return
    try:
        taken.bind(None, None, None)
    except TypeError as error:
        raise ValueError(
            f"scoring={short_repr(scorer)} takes {taken}: a scorer takes the arguments (estimator, X, y)"
        ) from error


def _known(scoring: str) -> str:
    """The name of a scorer, which must be one of scikit-learn's."""
    names = get_scorer_names()
    if scoring in names:
        return scoring
    # only errors need the names of other libraries
    from gce._utils.peer_names import value_advice

    advice = value_advice("scoring", scoring, names) or "the names are those of sklearn.metrics.get_scorer_names()"
    raise ValueError(f"unknown scoring {short_repr(scoring)}: {advice}")


class ScorerMetric:
    """A scorer as something to make small on each member's held-out rows.

    Parameters
    ----------
    scoring : str or callable
    loss : Loss
        Its inverse link gives predictions.
    offset : Tensor of shape (k,)
        Added to the predictions of members, which are measured from it.
    y : array of shape (N,) or (N, k)
        Targets as the user gave them.
    held_out : array of shape (M, N)
        Sample weights of the rows that each member holds out.
    target : Target
    weighted : bool
        Whether the scorer is given these weights.
    """

    def __init__(
        self,
        scoring: str | Scorer,
        loss: Loss,
        offset: Tensor,
        y: NDArray[Any],
        held_out: NDArray[np.float64],
        target: Target,
        weighted: bool,
    ) -> None:
        self._kind = KnownClasses if target.classifies else KnownNumbers
        self._scorer = check_scoring(None, scoring=_known(scoring) if isinstance(scoring, str) else scoring)
        self._loss, self._offset, self._y, self._target = loss, offset.cpu(), y, target
        self._held_out, self._weighted = held_out, weighted
        if isinstance(scoring, str):
            self._try(scoring)
        else:
            _check_arguments(scoring)

    def _try(self, scoring: str) -> None:
        """Judge the offset, so that a scorer of another task is refused before anything is learned."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self(torch.zeros(1, self._held_out.shape[1], len(self._offset), dtype=torch.float64), [0])
        except AttributeError as error:
            known = "predictions of another kind", "probabilities or scores of classes"
            lacking = known[not self._target.classifies]
            raise ValueError(f"scoring={scoring!r} needs {lacking}, which this model does not have") from error
        except (TypeError, ValueError) as error:
            # what takes other arguments will do so in every round
            if self._target.classifies or isinstance(error, TypeError):
                reason = str(error).splitlines()[0][:200]
                raise ValueError(f"scoring={scoring!r} cannot score the held-out rows ({reason})") from error
            # a deviance, say, that cannot judge the constant a fit starts from may well judge its rounds

    def __call__(self, pred: Tensor, members: list[int]) -> Tensor:
        """Minus the score of each member's scores ``(M, N, k)``, shape ``(M,)``."""
        values = []
        for own, m in zip(pred.cpu(), members, strict=True):
            rows = np.flatnonzero(self._held_out[m] > 0)
            weight = self._held_out[m][rows]
            known = self._kind(self._compared(self._offset + own[rows], rows, weight), self._loss, self._target)
            extra = {"sample_weight": weight} if self._weighted else {}
            value = self._scorer(known, rows[:, None], self._y[rows], **extra)
            if not is_number(value):
                raise ValueError(f"scoring returned {short_repr(value)}: it must return one number")
            values.append(-value)
        return torch.tensor(values, dtype=torch.float64)

    def _compared(self, pred: Tensor, rows: NDArray[np.intp], weight: NDArray[np.float64]) -> Tensor:
        """Raw scores ``(h, k)`` as classes are compared by them: of ordered ones at a temperature, as after the fit."""
        if not isinstance(self._loss, Ordinal):
            return pred
        y = torch.from_numpy(self._target.encode(self._y[rows]))
        found = self._target.calibrate(self._loss, HeldOutScores(pred, y, torch.from_numpy(weight)))
        return pred if found is None else pred / found.temperature
