"""Losses with a kink, softened: nowhere above the loss they stand for, and curved."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gce.losses.base import ResidualLoss


class SoftPower(ResidualLoss):
    """``(r^2 + width^2)^(q/2) - width^q``, for ``1 <= q < 2``: nowhere above ``|r|^q``, because ``t^(q/2)`` is
    subadditive, and with a second derivative everywhere.
    """

    curved: ClassVar[bool] = True

    def __init__(self, q: float, width: float) -> None:
        self.q = q
        self.width = width

    def phi(self, residual: Tensor) -> Tensor:
        return (residual.square() + self.width**2) ** (self.q / 2) - self.width**self.q

    def slope(self, residual: Tensor) -> Tensor:
        return self.q * residual * (residual.square() + self.width**2) ** (self.q / 2 - 1)

    def bend(self, residual: Tensor) -> Tensor:
        square, width = residual.square(), self.width**2
        return self.q * ((self.q - 1) * square + width) * (square + width) ** (self.q / 2 - 2)

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        # at q = 1 slopes lie within [-1, 1], and |r| >= slope * r for every r: a line through the kink itself
        residual = pred - y
        return (self.slope(residual) * residual).mean(-1) if self.q == 1 else self.value(pred, y)


class SoftQuantile(ResidualLoss):
    """The pinball loss ``|r|/2 + (1/2 - quantile) r`` with its absolute value softened."""

    curved: ClassVar[bool] = True

    def __init__(self, quantile: float, width: float) -> None:
        self.quantile = quantile
        self.width = width

    def phi(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).phi(residual) / 2 + (0.5 - self.quantile) * residual

    def slope(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).slope(residual) / 2 + (0.5 - self.quantile)

    def bend(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).bend(residual) / 2

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        residual = pred - y
        return (self.slope(residual) * residual).mean(-1)
