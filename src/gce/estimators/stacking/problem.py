"""The optimisation problem of a stack: members' predictions, targets and weights as the loss takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from gce.losses import Loss
from gce.losses.risk import Risk
from gce.training.predictions import Array, ResponseMethod


@dataclass(frozen=True, eq=False)
class StackProblem:
    """The rows on which weights are solved, and how members' predictions enter the loss.

    Parameters
    ----------
    response : ResponseMethod
        What members predict.
    loss : Loss
    y : array of shape (n, k)
        Targets as the loss takes them.
    weight : array of shape (n,)
        Positive sample weights that sum to 1.
    offset : array of shape (k,)
        Subtracted from predictions. Member weights sum to 1, so it is subtracted from every combination too, and
        numbers far from 0 keep their digits.
    rows : array of shape (n,)
        Indices of these rows among those given; samples with zero weight are ignored.
    """

    response: ResponseMethod
    loss: Loss
    y: Array
    weight: Array
    offset: Array
    rows: NDArray[np.intp]

    def transform(self, prediction: Array, index: NDArray[np.intp]) -> Array:
        """Transform a member's predictions to the input of the loss.

        Parameters
        ----------
        prediction : array of shape (r, outputs)
        index : array of shape (r,)
            Indices of the predicted rows among the n.

        Returns
        -------
        array of shape (r, k)
        """
        return prediction - self.offset

    def risk(self) -> Risk:
        """The weighted mean loss of predictions on these rows."""
        weight = torch.from_numpy(self.weight)[None]
        return Risk(self.loss, torch.from_numpy(self.y), weight, torch.from_numpy(self.offset))

    def same_rows(self, other: StackProblem) -> bool:
        """Whether another problem has the same rows, targets and weights."""
        return (
            np.array_equal(self.rows, other.rows)
            and np.array_equal(self.y, other.y)
            and np.array_equal(self.weight, other.weight)
        )

    def select_rows(self, X: Any) -> Any:
        """The rows of positive weight among those given."""
        return X if len(self.rows) == _num_samples(X) else _safe_indexing(X, self.rows)


@dataclass(frozen=True, eq=False)
class TrueClassProblem(StackProblem):
    """Keeps only the probability of the true class, ``k = 1``: the log-loss of a mixture needs no other.

    Parameters
    ----------
    codes : array of shape (n,)
        The true classes, encoded as integers.
    """

    codes: NDArray[np.intp]

    def transform(self, prediction: Array, index: NDArray[np.intp]) -> Array:
        return prediction[np.arange(len(index)), self.codes[index]][:, None]

    def same_rows(self, other: StackProblem) -> bool:
        return (
            super().same_rows(other) and isinstance(other, TrueClassProblem) and np.array_equal(self.codes, other.codes)
        )


class PositiveClassProblem(StackProblem):
    """Keeps the second of two probabilities, ``k = 1``: the first is one minus it."""

    def transform(self, prediction: Array, index: NDArray[np.intp]) -> Array:
        return prediction[:, 1:]
