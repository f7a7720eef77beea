"""Regression losses: functions of the residual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gce._utils.params import AUTO, Rule, Rules, check_parameters, within
from gce.losses.base import Loss
from gce.losses.residual import ResidualLoss
from gce.losses.smoothed import SoftPower, SoftQuantile

#: The default width of Huber's losses, as a multiple of the median distance of targets from their median: chosen among
#: 0.05 to 2.5 by the mean absolute error of concrete, energy and kin8nm in cross-validation.
AUTO_WIDTH = 1.5


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


def _are_widths(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return False
    return all(_WIDTH.accepts(width) for width in value)


#: Its square, and the square of a residual divided by it, must not overflow float64.
_WIDTH = within(1e-100, 1e100)


class _WidthLoss(ResidualLoss):
    """A loss that turns from quadratic to linear at a residual of ``delta``."""

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0

    parameter_rules: ClassVar[Rules] = {"delta": AUTO | _WIDTH | Rule(_are_widths, "a tuple of such numbers")}

    def __init__(self, delta: float | str | Sequence[float] = "auto") -> None:
        self.delta = delta

    def _width(self, like: Tensor) -> Any:
        """The width, a number, or those of the outputs, a Tensor of shape ``(k,)``."""
        widths = self._widths()
        if len(widths) not in (1, like.shape[-1]):
            targets = f"{like.shape[-1]} targets" if like.shape[-1] > 1 else "1 target"
            raise ValueError(
                f"{type(self).__name__} has {len(widths)} widths, but y has {targets}: give one number for each "
                f"target, or one for all, got delta={self.delta!r}"
            )
        return widths[0] if len(widths) == 1 else torch.tensor(widths, dtype=like.dtype, device=like.device)

    def _widths(self) -> list[float]:
        check_parameters(self)
        if isinstance(self.delta, str):
            raise ValueError(
                f"{self} has no width yet, because delta='auto' follows the targets: fit a model, whose loss_ has it, "
                "or call for_targets(y, weight), or give a number"
            )
        return list(map(float, self.delta)) if isinstance(self.delta, Sequence) else [float(self.delta)]

    def for_targets(self, y: Tensor, weight: Tensor) -> Self:
        check_parameters(self)
        if not isinstance(self.delta, str):
            # before anything is fitted
            self._width(y)
            return self
        apart = typical_distance(y, weighted_quantile(y, weight, 0.5), weight)
        # any width will do for a constant target
        width = (AUTO_WIDTH * torch.where(apart > 0, apart, 1.0)).clamp(1e-100, 1e100).tolist()
        return type(self)(width[0] if len(width) == 1 else tuple(width))

    def step_scale(self, spread: Tensor) -> Tensor:
        return (spread / self._width(spread)).clamp(min=1)

    def smoothness(self, bound: float) -> float:
        return 1.0


class PseudoHuber(_WidthLoss):
    """Pseudo-Huber loss ``delta^2 (sqrt(1 + (r/delta)^2) - 1)``: quadratic near 0, linear far away, smooth everywhere.

    Parameters
    ----------
    delta : float, tuple of float or "auto", default="auto"
        Residual at which the loss turns from quadratic to linear, in units of y; several for several targets. "auto" is
        1.5 times the median distance of the targets from their median, for each target: a model's ``loss_`` has
        the number.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import PseudoHuber
    >>> PseudoHuber(delta=2.0).value(torch.tensor([[2.0]]), torch.zeros(1, 1))
    tensor([1.6569])
    """

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width(residual)
        # sqrt(1 + s) - 1 = s / (sqrt(1 + s) + 1) avoids cancellation for small residuals
        s = (residual / delta).square()
        return delta**2 * s / ((1 + s).sqrt() + 1)

    def derivative(self, residual: Tensor) -> Tensor:
        return residual / (1 + (residual / self._width(residual)).square()).sqrt()

    def second_derivative(self, residual: Tensor) -> Tensor:
        return (1 + (residual / self._width(residual)).square()) ** -1.5

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        # phi'(r) / r: as phi(sqrt(t)) is concave, the parabola with this curvature is nowhere below the loss
        return (1 + ((pred - y) / self._width(y)).square()) ** -0.5 / y.shape[-1]

    def lipschitz(self, bound: float) -> float:
        return 2 * bound / math.sqrt(1 + (2 * bound / max(self._widths())) ** 2)


class Huber(_WidthLoss):
    """Huber loss: ``r^2 / 2`` up to ``delta``, ``delta (|r| - delta / 2)`` beyond.

    Its second derivative is 0 beyond ``delta``; :class:`PseudoHuber` is strictly convex and otherwise much the same.

    Parameters
    ----------
    delta : float, tuple of float or "auto", default="auto"
        Residual at which the loss turns from quadratic to linear, in units of y; several for several targets. "auto" is
        1.5 times the median distance of the targets from their median, for each target: a model's ``loss_`` has
        the number.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Huber
    >>> Huber(delta=2.0).value(torch.tensor([[1.0], [4.0]]), torch.zeros(2, 1))
    tensor([0.5000, 6.0000])
    """

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width(residual)
        near = residual.abs().clamp(max=delta)
        return near * (residual.abs() - near / 2)

    def derivative(self, residual: Tensor) -> Tensor:
        delta = self._width(residual)
        return residual.clamp(-delta, delta)

    def second_derivative(self, residual: Tensor) -> Tensor:
        return (residual.abs() <= self._width(residual)).to(residual.dtype)

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        # phi'(r) / r: as phi(sqrt(t)) is concave, the parabola with this curvature is nowhere below the loss
        delta = self._width(y)
        return delta / (pred - y).abs().clamp(min=delta) / y.shape[-1]

    def lipschitz(self, bound: float) -> float:
        return min(2 * bound, max(self._widths()))


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


def typical_distance(y: Tensor, centre: Tensor, weight: Tensor) -> Tensor:
    """How far targets ``(n, k)`` are from a centre ``(k,)``: the weighted median, which one outlier does not move."""
    apart = (y - centre).abs()
    middle, mean = weighted_quantile(apart, weight, 0.5), (weight[:, None] * apart).sum(0) / weight.sum()
    # most targets may be the centre
    return torch.where(middle > 0, middle, mean)
