"""Predictions of a pool of models on the same rows, and the sums over them that optimisation needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.losses.base import check_root, is_finite
from gce.losses.risk import Risk

Array = NDArray[np.float64]

#: Numbers in a block of weighted predictions while a Hessian is accumulated: they stay in the cache.
_BLOCK = 1 << 19


class Outputs:
    """Predictions of ``P`` models on ``n`` rows, neither copied nor stacked.

    Parameters
    ----------
    predictions : sequence of P Tensors of shape (n, k)
        float64 or float32; sums are float64.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from gce.frank_wolfe.simplex import Outputs
    >>> outputs = Outputs([torch.zeros(2, 1), torch.ones(2, 1)])
    >>> outputs.combine(np.array([0.25, 0.75])).squeeze().tolist()
    [0.75, 0.75]
    """

    def __init__(self, predictions: Sequence[Tensor]) -> None:
        self.predictions = tuple(predictions)
        if not self.predictions:
            raise ValueError("expected at least one model to combine")

    def __len__(self) -> int:
        return len(self.predictions)

    def select(self, index: Sequence[int] | NDArray[np.intp]) -> Outputs:
        """The models with some indices."""
        return Outputs([self.predictions[j] for j in index])

    def append(self, prediction: Tensor) -> Outputs:
        """These models and one more, with predictions ``(n, k)``."""
        return Outputs([*self.predictions, prediction])

    def combine(self, weights: Array) -> Tensor:
        """``sum_j weights_j prediction_j`` in the order of ``j``, ``(n, k)``; models of weight 0 are skipped.

        Parameters
        ----------
        weights : array of shape (P,)
            The weights.

        Returns
        -------
        Tensor of shape (n, k)
        """
        total = torch.zeros_like(self.predictions[0], dtype=torch.float64)
        for j in np.flatnonzero(weights):
            total.add_(self.predictions[j], alpha=float(weights[j]))
        return total

    def inner(self, gradient: Tensor) -> Array:
        """``<D, prediction_j>`` of every model, ``(P,)``, for a gradient ``D`` of shape ``(n, k)``.

        Parameters
        ----------
        gradient : Tensor of shape (n, k)
            The gradient.

        Returns
        -------
        array of shape (P,)
        """
        flat = gradient.flatten()
        return torch.stack([torch.dot(own.double().flatten(), flat) for own in self.predictions]).cpu().numpy()

    def hessian(self, risk: Risk, pred: Tensor, index: NDArray[np.intp]) -> Array:
        """Hessian of the risk in the weights of some models, for changes of the weights that sum to 0.

        As changes sum to 0, predictions may be taken relative to any point: relative to ``pred`` their differences keep
        their digits.

        Parameters
        ----------
        risk : Risk
            Risk of one member.
        pred : Tensor of shape (n, k)
            Where the Hessian is computed.
        index : array of shape (A,)
            Indices of the models.

        Returns
        -------
        array of shape (A, A)

        Raises
        ------
        NonFiniteError
            A number of the Hessian is infinite or NaN.
        """
        total = pred.new_zeros(len(index), len(index))
        scale = risk.weight[0].sqrt()[:, None]
        for rows in self._blocks(len(index)):
            relative = torch.stack([self.predictions[j][rows] for j in index]).double() - pred[rows]
            root = risk.loss.hessian_root(risk.offset + pred[rows], risk.y[rows], relative)
            check_root(risk.loss, root, relative)
            # a row of weight 0 may have an infinite Hessian: 0 * inf is not 0
            root = torch.where(scale[rows] > 0, scale[rows] * root, 0.0).flatten(1)
            total.addmm_(root, root.T)
        if not is_finite(total):
            raise risk.non_finite("Hessian", total, pred[None], f"weights of {len(self)} models")
        return total.cpu().numpy()

    def _blocks(self, models: int) -> Iterator[slice]:
        rows, outputs = self.predictions[0].shape
        step = max(1, _BLOCK // (models * outputs))
        for first in range(0, rows, step):
            yield slice(first, min(first + step, rows))


class QuadraticOutputs(Outputs):
    """Predictions under a quadratic risk, whose constant Hessian is computed once.

    Parameters
    ----------
    predictions : sequence of P Tensors of shape (n, k)
        Predictions of the models.
    matrix : array of shape (P, P)
        The Hessian for changes of the weights that sum to 0.
    """

    def __init__(self, predictions: Sequence[Tensor], matrix: Array) -> None:
        super().__init__(predictions)
        self.matrix = matrix

    @classmethod
    def from_risk(cls, risk: Risk, outputs: Outputs, pred: Tensor) -> QuadraticOutputs:
        """Compute the Hessian with predictions relative to ``pred`` ``(n, k)``.

        Parameters
        ----------
        risk : Risk
            A quadratic risk of one member.
        outputs : Outputs
            Predictions of the models.
        pred : Tensor of shape (n, k)
            Where the Hessian is computed.

        Returns
        -------
        QuadraticOutputs
        """
        return cls(outputs.predictions, outputs.hessian(risk, pred, np.arange(len(outputs))))

    def select(self, index: Sequence[int] | NDArray[np.intp]) -> QuadraticOutputs:
        chosen = np.asarray(index, dtype=np.intp)
        return QuadraticOutputs([self.predictions[j] for j in chosen], self.matrix[np.ix_(chosen, chosen)])

    def hessian(self, risk: Risk, pred: Tensor, index: NDArray[np.intp]) -> Array:
        return self.matrix[np.ix_(index, index)]
