"""What every loss can do."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor


class Loss(BaseEstimator):
    """A convex cost of one row's raw scores.

    Attributes
    ----------
    quadratic : bool
        The loss is a quadratic in ``pred``: a line search then has a closed form.
    separable : bool
        The loss is a sum over outputs, so that each output can be searched on its own.
    curved : bool
        ``root`` is known: weights over a finite pool can then be found by second-order steps.
    least : float
        No row costs less.
    """

    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    curved: ClassVar[bool] = False
    least: ClassVar[float] = -math.inf

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        """Cost of each row, shape ``(..., n)``."""
        raise NotImplementedError(f"{type(self).__name__} must define value(pred, y)")

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        """Derivative of each row's cost in its scores, shape ``(..., n, k)``."""
        with torch.enable_grad():
            leaf = pred.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.value(leaf, y).sum(), leaf)
        return slope

    def root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """A square root of each row's Hessian ``H`` times directions ``d`` of shape ``(A, n, k)``, shape ``(A, n, r)``.

        ``sum_r root(d)_r root(e)_r = d' H e`` for each row: the Hessian in the weights of many models is then one
        product of a matrix with its transpose.
        """
        raise NotImplementedError(f"{type(self).__name__} does not know its curvature")

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        """Second derivative of each row's cost in each score alone, shape ``(..., n, k)``."""
        unit = torch.eye(pred.shape[-1], dtype=pred.dtype, device=pred.device)
        one_by_one = [self.root(pred, y, e.expand_as(pred)).square().sum(-1) for e in unit]
        return torch.stack(one_by_one, -1)

    def soft(self, width: float) -> Loss | None:
        """A curved loss that is nowhere above this one and tends to it with ``width``; None where none is needed."""
        return None

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        """Where an affine function with the slope ``gradient(pred, y)`` and nowhere above the loss stands at ``pred``.

        A convex loss has its own value there. A softened one may do better for the loss it stands for.
        """
        return self.value(pred, y)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        """Best constant score under row weights ``(n,)``, shape ``(k,)``.

        The default bisects the slope of each output over the range of ``y``: exact to rounding for a sum over
        outputs of convex costs that are least at ``pred = y``. A loss of another form overrides it.
        """
        low, high = y.amin(0), y.amax(0)
        for _ in range(80):
            middle = (low + high) / 2
            slope = (weight[:, None] * self.gradient(middle.expand_as(y), y)).sum(0)
            low, high = torch.where(slope < 0, middle, low), torch.where(slope < 0, high, middle)
        return (low + high) / 2

    def predict(self, pred: Tensor) -> Tensor:
        """Inverse link: what a raw score means, ``(..., n, k)`` (the mean, or probabilities)."""
        return pred

    def log_predict(self, pred: Tensor) -> Tensor:
        """Logarithms of what is predicted, where that is probabilities."""
        return self.predict(pred).log()

    def lipschitz(self, bound: float) -> float:
        """Lipschitz constant in the score while scores and targets stay in ``[-bound, bound]``."""
        raise NotImplementedError(f"{type(self).__name__} does not know its Lipschitz constant")

    def smoothness(self, bound: float) -> float:
        """Lipschitz constant of the gradient on ``[-bound, bound]``; infinite where the loss has a kink."""
        raise NotImplementedError(f"{type(self).__name__} does not know its smoothness")


class ResidualLoss(Loss):
    """A loss ``phi(pred - y)``, averaged over the outputs; a subclass gives ``phi``, ``slope`` and perhaps ``bend``."""

    separable: ClassVar[bool] = True

    def phi(self, residual: Tensor) -> Tensor:
        raise NotImplementedError

    def slope(self, residual: Tensor) -> Tensor:
        raise NotImplementedError

    def bend(self, residual: Tensor) -> Tensor:
        """Second derivative of ``phi``."""
        raise NotImplementedError(f"{type(self).__name__} does not know its curvature")

    def root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        return self.curvature(pred, y).sqrt() * d

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.bend(pred - y) / y.shape[-1]

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        cost = self.phi(pred - y)
        return cost[..., 0] if y.shape[-1] == 1 else cost.mean(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.slope(pred - y) / y.shape[-1]
