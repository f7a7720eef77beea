"""Smooth minorants of losses with a kink."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from gce.losses.residual import ResidualLoss


class SoftPower(ResidualLoss):
    """Smooth minorant ``(r^2 + width^2)^(q/2) - width^q`` of ``|r|^q`` for ``1 <= q < 2``.

    It is nowhere above ``|r|^q`` because ``t^(q/2)`` is subadditive.

    Parameters
    ----------
    q : float
        Exponent, in [1, 2).
    width : float or Tensor of shape (k,)
        Width of the smoothed kink.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import SoftPower
    >>> SoftPower(q=1.0, width=3.0).value(torch.tensor([[4.0]]), torch.zeros(1, 1))
    tensor([2.])
    """

    has_hessian: ClassVar[bool] = True

    def __init__(self, q: float, width: float | Tensor) -> None:
        self.q = q
        self.width = width

    def phi(self, residual: Tensor) -> Tensor:
        return (residual.square() + self.width**2) ** (self.q / 2) - self.width**self.q

    def derivative(self, residual: Tensor) -> Tensor:
        return self.q * residual * (residual.square() + self.width**2) ** (self.q / 2 - 1)

    def second_derivative(self, residual: Tensor) -> Tensor:
        square, width = residual.square(), self.width**2
        return self.q * ((self.q - 1) * square + width) * (square + width) ** (self.q / 2 - 2)

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        # phi'(r) / r: as phi(sqrt(t)) is concave, the parabola with this curvature is nowhere below the loss
        return self.q * ((pred - y).square() + self.width**2) ** (self.q / 2 - 1) / y.shape[-1]

    def smoothness(self, bound: float) -> float:
        # the second derivative is largest at 0, and of the narrowest kink
        return self.q * float(torch.as_tensor(self.width).min()) ** (self.q - 2)

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        # for q = 1 the derivative is in [-1, 1], and |r| >= derivative * r for every r: a line through the kink itself
        residual = pred - y
        return (self.derivative(residual) * residual).mean(-1) if self.q == 1 else self.value(pred, y)


class SoftQuantile(ResidualLoss):
    """Smooth minorant of the pinball loss ``|r|/2 + (1/2 - quantile) r``: its absolute value is smoothed.

    Parameters
    ----------
    quantile : float
        Level of the quantile, in (0, 1).
    width : float or Tensor of shape (k,)
        Width of the smoothed kink.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import SoftQuantile
    >>> SoftQuantile(quantile=0.5, width=3.0).value(torch.tensor([[4.0]]), torch.zeros(1, 1))
    tensor([1.])
    """

    has_hessian: ClassVar[bool] = True

    def __init__(self, quantile: float, width: float | Tensor) -> None:
        self.quantile = quantile
        self.width = width

    def phi(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).phi(residual) / 2 + (0.5 - self.quantile) * residual

    def derivative(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).derivative(residual) / 2 + (0.5 - self.quantile)

    def second_derivative(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).second_derivative(residual) / 2

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        return SoftPower(1, self.width).majorizer(pred, y) / 2

    def smoothness(self, bound: float) -> float:
        return SoftPower(1, self.width).smoothness(bound) / 2

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        residual = pred - y
        return (self.derivative(residual) * residual).mean(-1)
