"""What the models of a pool answer on the same rows, and the sums over them that weights are found by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.risk import Risk

Array = NDArray[np.float64]

#: Numbers that a block of weighed answers holds while a Hessian is added up: they stay in the cache.
_BLOCK = 1 << 19


class Outputs:
    """Answers of ``P`` models on ``n`` rows, each kept as it is given: nothing is copied, nothing is stacked.

    Parameters
    ----------
    answers : sequence of P Tensors of shape (n, k)
        float64 or float32; sums are float64.
    """

    def __init__(self, answers: Sequence[Tensor]) -> None:
        self.answers = tuple(answers)
        if not self.answers:
            raise ValueError("there is no model to combine: give at least one")

    def __len__(self) -> int:
        return len(self.answers)

    def select(self, index: Sequence[int] | NDArray[np.intp]) -> Outputs:
        """Some of the models."""
        return Outputs([self.answers[j] for j in index])

    def adding(self, answer: Tensor) -> Outputs:
        """These models and one more."""
        return Outputs([*self.answers, answer])

    def combine(self, weights: Array) -> Tensor:
        """``sum_j weights_j answer_j`` in the order of ``j``, ``(n, k)``; models of weight 0 are skipped."""
        total = torch.zeros_like(self.answers[0], dtype=torch.float64)
        for j in np.flatnonzero(weights):
            total.add_(self.answers[j], alpha=float(weights[j]))
        return total

    def inner(self, gradient: Tensor) -> Array:
        """``<D, answer_j>`` of every model, ``(P,)``."""
        flat = gradient.flatten()
        return torch.stack([torch.dot(answer.double().flatten(), flat) for answer in self.answers]).cpu().numpy()

    def hessian(self, risk: Risk, pred: Tensor, index: NDArray[np.intp]) -> Array:
        """Second derivative of the risk at ``pred`` along moves of some models' weights, ``(A, A)``.

        Moves sum to 0, so that answers may be measured from any point: from ``pred`` the digits of their differences
        are kept.
        """
        total = pred.new_zeros(len(index), len(index))
        scale = risk.weight[0].sqrt()[:, None]
        for rows in self._blocks(len(index)):
            answers = torch.stack([self.answers[j][rows] for j in index]).double() - pred[rows]
            root = scale[rows] * risk.loss.root(risk.offset + pred[rows], risk.y[rows], answers)
            total.addmm_(root.flatten(1), root.flatten(1).T)
        return total.cpu().numpy()

    def _blocks(self, models: int) -> Iterator[slice]:
        rows, outputs = self.answers[0].shape
        step = max(1, _BLOCK // (models * outputs))
        for first in range(0, rows, step):
            yield slice(first, min(first + step, rows))


class Settled(Outputs):
    """Answers under a quadratic risk, whose Hessian is the same everywhere: it is added up once and kept.

    Parameters
    ----------
    answers : sequence of P Tensors of shape (n, k)
    matrix : array of shape (P, P)
        The Hessian along moves that sum to 0.
    """

    def __init__(self, answers: Sequence[Tensor], matrix: Array) -> None:
        super().__init__(answers)
        self.matrix = matrix

    @classmethod
    def under(cls, risk: Risk, outputs: Outputs, pred: Tensor) -> Settled:
        """The Hessian added up with answers measured from ``pred``."""
        return cls(outputs.answers, outputs.hessian(risk, pred, np.arange(len(outputs))))

    def select(self, index: Sequence[int] | NDArray[np.intp]) -> Settled:
        chosen = np.asarray(index, dtype=np.intp)
        return Settled([self.answers[j] for j in chosen], self.matrix[np.ix_(chosen, chosen)])

    def hessian(self, risk: Risk, pred: Tensor, index: NDArray[np.intp]) -> Array:
        return self.matrix[np.ix_(index, index)]
