"""Regression losses: functions of the residual."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce._utils.params import Rules, check_parameters, within
from gce.losses.base import Loss
from gce.losses.residual import ResidualLoss
from gce.losses.smoothed import SoftPower, SoftQuantile


class Squared(ResidualLoss):
    """Squared error ``(f - y)^2``: the conditional mean.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Squared
    >>> Squared().value(torch.tensor([[3.0]]), torch.tensor([[1.0]]))
    tensor([4.])
    """

    quadratic: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    def phi(self, residual: Tensor) -> Tensor:
        return residual.square()

    def derivative(self, residual: Tensor) -> Tensor:
        return 2 * residual

    def second_derivative(self, residual: Tensor) -> Tensor:
        return torch.full_like(residual, 2.0)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return (weight[:, None] * y).sum(0) / weight.sum()

    def lipschitz(self, bound: float) -> float:
        return 4 * bound

    def smoothness(self, bound: float) -> float:
        return 2.0


class Power(ResidualLoss):
    """Power loss ``|f - y|^q``: the median for ``q = 1``, the mean for ``q = 2``, toward the mid-range beyond.

    Parameters
    ----------
    q : float, default=1.0
        Exponent, in [1, 100].

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Power
    >>> Power(1.5).value(torch.tensor([[4.0]]), torch.zeros(1, 1))
    tensor([8.])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    #: Convex from 1 on; beyond 100 powers of residuals overflow.
    parameter_rules: ClassVar[Rules] = {"q": within(1, 100)}

    def __init__(self, q: float = 1.0) -> None:
        self.q = q

    def _exponent(self) -> float:
        check_parameters(self)
        return float(self.q)

    def phi(self, residual: Tensor) -> Tensor:
        return residual.abs() ** self._exponent()

    def derivative(self, residual: Tensor) -> Tensor:
        q = self._exponent()
        return q * residual.sign() * residual.abs() ** (q - 1)

    def second_derivative(self, residual: Tensor) -> Tensor:
        q = self._exponent()
        return q * (q - 1) * residual.abs() ** (q - 2)

    def smoothed(self, width: float | Tensor) -> Loss | None:
        return SoftPower(self._exponent(), width) if self._exponent() < 2 else None

    def step_scale(self, spread: Tensor) -> Tensor:
        return spread ** max(2 - self._exponent(), 0.0)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return weighted_quantile(y, weight, 0.5) if self._exponent() == 1 else super().start(y, weight)

    def lipschitz(self, bound: float) -> float:
        q = self._exponent()
        return q * (2 * bound) ** (q - 1)

    def smoothness(self, bound: float) -> float:
        q = self._exponent()
        return q * (q - 1) * (2 * bound) ** (q - 2) if q >= 2 else math.inf


class PseudoHuber(ResidualLoss):
    """Pseudo-Huber loss ``delta^2 (sqrt(1 + (r/delta)^2) - 1)``: quadratic near 0, linear far away, smooth everywhere.

    Parameters
    ----------
    delta : float, default=1.0
        Residual at which the loss turns from quadratic to linear, in units of y.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import PseudoHuber
    >>> PseudoHuber(delta=2.0).value(torch.tensor([[2.0]]), torch.zeros(1, 1))
    tensor([1.6569])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    #: Its square, and the square of a residual divided by it, must not overflow float64.
    parameter_rules: ClassVar[Rules] = {"delta": within(1e-100, 1e100)}

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def _width(self) -> float:
        check_parameters(self)
        return float(self.delta)

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width()
        # sqrt(1 + s) - 1 = s / (sqrt(1 + s) + 1) avoids cancellation for small residuals
        s = (residual / delta).square()
        return delta**2 * s / ((1 + s).sqrt() + 1)

    def derivative(self, residual: Tensor) -> Tensor:
        return residual / (1 + (residual / self._width()).square()).sqrt()

    def second_derivative(self, residual: Tensor) -> Tensor:
        return (1 + (residual / self._width()).square()) ** -1.5

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        # phi'(r) / r: as phi(sqrt(t)) is concave, the parabola with this curvature is nowhere below the loss
        return (1 + ((pred - y) / self._width()).square()) ** -0.5 / y.shape[-1]

    def step_scale(self, spread: Tensor) -> Tensor:
        return (spread / self._width()).clamp(min=1)

    def lipschitz(self, bound: float) -> float:
        return 2 * bound / math.sqrt(1 + (2 * bound / self._width()) ** 2)

    def smoothness(self, bound: float) -> float:
        return 1.0


class Huber(ResidualLoss):
    """Huber loss: ``r^2 / 2`` up to ``delta``, ``delta (|r| - delta / 2)`` beyond.

    Its second derivative is 0 beyond ``delta``; :class:`PseudoHuber` is strictly convex and otherwise much the same.

    Parameters
    ----------
    delta : float, default=1.0
        Residual at which the loss turns from quadratic to linear, in units of y.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Huber
    >>> Huber(delta=2.0).value(torch.tensor([[1.0], [4.0]]), torch.zeros(2, 1))
    tensor([0.5000, 6.0000])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    parameter_rules: ClassVar[Rules] = {"delta": within(1e-100, 1e100)}

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def _width(self) -> float:
        check_parameters(self)
        return float(self.delta)

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width()
        near = residual.abs().clamp(max=delta)
        return near * (residual.abs() - near / 2)

    def derivative(self, residual: Tensor) -> Tensor:
        delta = self._width()
        return residual.clamp(-delta, delta)

    def second_derivative(self, residual: Tensor) -> Tensor:
        return (residual.abs() <= self._width()).to(residual.dtype)

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        # phi'(r) / r: as phi(sqrt(t)) is concave, the parabola with this curvature is nowhere below the loss
        delta = self._width()
        return delta / (pred - y).abs().clamp(min=delta) / y.shape[-1]

    def step_scale(self, spread: Tensor) -> Tensor:
        return (spread / self._width()).clamp(min=1)

    def lipschitz(self, bound: float) -> float:
        return min(2 * bound, self._width())

    def smoothness(self, bound: float) -> float:
        return 1.0


class Quantile(ResidualLoss):
    """Pinball loss: a conditional quantile.

    Parameters
    ----------
    quantile : float, default=0.5
        Level of the quantile, in (0, 1).

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Quantile
    >>> Quantile(0.9).value(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
    tensor([0.9000, 0.1000])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    parameter_rules: ClassVar[Rules] = {"quantile": within(0, 1, "()")}

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def _level(self) -> float:
        check_parameters(self)
        return float(self.quantile)

    def phi(self, residual: Tensor) -> Tensor:
        level = self._level()
        return torch.maximum((1 - level) * residual, -level * residual)

    def derivative(self, residual: Tensor) -> Tensor:
        level = self._level()
        return (1 - level) * (residual > 0).to(residual.dtype) - level * (residual < 0).to(residual.dtype)

    def second_derivative(self, residual: Tensor) -> Tensor:
        return torch.zeros_like(residual)

    def smoothed(self, width: float | Tensor) -> Loss | None:
        return SoftQuantile(self._level(), width)

    def step_scale(self, spread: Tensor) -> Tensor:
        return spread

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return weighted_quantile(y, weight, self._level())

    def lipschitz(self, bound: float) -> float:
        return max(self._level(), 1 - self._level())

    def smoothness(self, bound: float) -> float:
        return math.inf


def weighted_quantile(y: Tensor, weight: Tensor, level: float) -> Tensor:
    """Weighted quantile of each column: the least value with at least ``level`` of the weight at or below it.

    Parameters
    ----------
    y : Tensor of shape (n, k)
        Values.
    weight : Tensor of shape (n,)
        Sample weights.
    level : float
        Level of the quantile, in (0, 1).

    Returns
    -------
    Tensor of shape (k,)

    Examples
    --------
    >>> import torch
    >>> from gce.losses import weighted_quantile
    >>> weighted_quantile(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 1.0, 4.0]), 0.5)
    tensor([3.])
    """
    ordered, order = y.sort(0)
    mass = weight[order].cumsum(0) / weight.sum()
    # rounding of the sum must not move the quantile by one row: repeated and weighted rows agree
    first = (mass >= level - 1e-12).to(torch.int8).argmax(0)
    return ordered.gather(0, first[None])[0]
