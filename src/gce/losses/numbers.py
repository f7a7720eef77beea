"""Losses of numbers: functions of the residual."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce.losses.base import Loss, ResidualLoss
from gce.losses.softened import SoftPower, SoftQuantile
from gce.parameters import Rules, check_parameters, within


class Squared(ResidualLoss):
    """``(f - y)^2``: the mean."""

    quadratic: ClassVar[bool] = True
    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    def phi(self, residual: Tensor) -> Tensor:
        return residual.square()

    def slope(self, residual: Tensor) -> Tensor:
        return 2 * residual

    def bend(self, residual: Tensor) -> Tensor:
        return torch.full_like(residual, 2.0)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return (weight[:, None] * y).sum(0) / weight.sum()

    def lipschitz(self, bound: float) -> float:
        return 4 * bound

    def smoothness(self, bound: float) -> float:
        return 2.0


class Power(ResidualLoss):
    """``|f - y|^q`` for ``q >= 1``: the median at 1, the mean at 2, toward the mid-range beyond.

    Parameters
    ----------
    q : float, default=1.0
    """

    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    #: Convex from 1 on; beyond 100 the powers of residuals leave float64.
    parameter_rules: ClassVar[Rules] = {"q": within(1, 100)}

    def __init__(self, q: float = 1.0) -> None:
        self.q = q

    def _exponent(self) -> float:
        check_parameters(self)
        return float(self.q)

    def phi(self, residual: Tensor) -> Tensor:
        return residual.abs() ** self._exponent()

    def slope(self, residual: Tensor) -> Tensor:
        q = self._exponent()
        return q * residual.sign() * residual.abs() ** (q - 1)

    def bend(self, residual: Tensor) -> Tensor:
        q = self._exponent()
        return q * (q - 1) * residual.abs() ** (q - 2)

    def soft(self, width: float) -> Loss | None:
        return SoftPower(self._exponent(), width) if self._exponent() < 2 else None

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return weighted_quantile(y, weight, 0.5) if self._exponent() == 1 else super().start(y, weight)

    def lipschitz(self, bound: float) -> float:
        q = self._exponent()
        return q * (2 * bound) ** (q - 1)

    def smoothness(self, bound: float) -> float:
        q = self._exponent()
        return q * (q - 1) * (2 * bound) ** (q - 2) if q >= 2 else math.inf


class PseudoHuber(ResidualLoss):
    """``delta^2 (sqrt(1 + (r/delta)^2) - 1)``: squared near 0, absolute far away, smooth throughout.

    Parameters
    ----------
    delta : float, default=1.0
        Where it turns from squared to absolute, in units of y.
    """

    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    #: Its square, and that of a residual in units of it, stay in float64.
    parameter_rules: ClassVar[Rules] = {"delta": within(1e-100, 1e100)}

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def _width(self) -> float:
        check_parameters(self)
        return float(self.delta)

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width()
        # sqrt(1 + s) - 1 = s / (sqrt(1 + s) + 1) keeps the digits of a small residual
        s = (residual / delta).square()
        return delta**2 * s / ((1 + s).sqrt() + 1)

    def slope(self, residual: Tensor) -> Tensor:
        return residual / (1 + (residual / self._width()).square()).sqrt()

    def bend(self, residual: Tensor) -> Tensor:
        return (1 + (residual / self._width()).square()) ** -1.5

    def lipschitz(self, bound: float) -> float:
        return 2 * bound / math.sqrt(1 + (2 * bound / self._width()) ** 2)

    def smoothness(self, bound: float) -> float:
        return 1.0


class Quantile(ResidualLoss):
    """Pinball loss: the ``quantile`` of y given x.

    Parameters
    ----------
    quantile : float, default=0.5
    """

    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    parameter_rules: ClassVar[Rules] = {"quantile": within(0, 1, "()")}

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def _level(self) -> float:
        check_parameters(self)
        return float(self.quantile)

    def phi(self, residual: Tensor) -> Tensor:
        level = self._level()
        return torch.maximum((1 - level) * residual, -level * residual)

    def slope(self, residual: Tensor) -> Tensor:
        level = self._level()
        return (1 - level) * (residual > 0).to(residual.dtype) - level * (residual < 0).to(residual.dtype)

    def bend(self, residual: Tensor) -> Tensor:
        return torch.zeros_like(residual)

    def soft(self, width: float) -> Loss | None:
        return SoftQuantile(self._level(), width)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return weighted_quantile(y, weight, self._level())

    def lipschitz(self, bound: float) -> float:
        return max(self._level(), 1 - self._level())

    def smoothness(self, bound: float) -> float:
        return math.inf


def weighted_quantile(y: Tensor, weight: Tensor, level: float) -> Tensor:
    """Least value of each column of ``y`` with at least ``level`` of the weight at or below it, ``(k,)``."""
    ordered, order = y.sort(0)
    mass = weight[order].cumsum(0) / weight.sum()
    # rounding in the sum must not push the quantile one row up: repeated and weighted rows agree
    first = (mass >= level - 1e-12).to(torch.int8).argmax(0)
    return ordered.gather(0, first[None])[0]


REGRESSION: dict[str, Loss] = {
    "squared_error": Squared(),
    "absolute_error": Power(1.0),
    "pseudo_huber": PseudoHuber(),
    "quantile": Quantile(),
}
