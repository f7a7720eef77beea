"""Losses of non-negative numbers with a logarithmic link: counts, amounts, and sums of a random number of amounts."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce._utils.params import Rules, check_parameters, within
from gce.losses import links
from gce.losses.base import Loss

#: The least half-width of a hull: conditional means from 1/150 to 150 times the overall mean.
_LEAST_BOUND = 5.0
_TINY = 1e-300


class LogLinkLoss(Loss):
    """Half the unit deviance of a Tweedie distribution with mean ``exp(f)``, averaged over outputs.

    With ``p`` the power of the variance function, ``mu^p``, and ``mu = exp(f)`` the loss of ``1 < p < 2`` is
    ``mu^(2-p) / (2-p) + y mu^(1-p) / (p-1)`` less its value at ``mu = y``; ``p = 1`` and ``p = 2`` are its limits. Each
    term is convex in ``f``, and the loss is 0 where the mean is the target.

    A base score ``b`` of a row needs no support elsewhere: with ``mu = exp(b) exp(f)`` the loss is ``exp(b (2-p))``
    times that of ``f`` with the target ``y exp(-b)``.
    """

    separable: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0
    link: ClassVar[str] = "log"

    @property
    def variance_power(self) -> float:
        """The power of the variance function."""
        raise NotImplementedError

    def check_targets(self, y: Tensor) -> None:
        name = type(self).__name__
        wrong = y <= 0 if self.variance_power >= 2 else y < 0
        if wrong.any():
            need = "positive" if self.variance_power >= 2 else "non-negative"
            raise ValueError(f"the loss {name} needs {need} targets, but y has {float(y[wrong][0]):g}")

    def default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        reach = torch.where(y > 0, (y.log() - offset).abs(), 0.0).amax(0)
        return (4 / 3 * reach).clamp(min=_LEAST_BOUND)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        # the mean minimises every such deviance of a constant
        mean = (weight[:, None] * y).sum(0) / weight.sum()
        if not (mean > 0).all():
            name = type(self).__name__
            raise ValueError(f"the loss {name} needs a positive target, but all of y are 0: the mean has no logarithm")
        return mean.log()

    def move_base(self, y: Tensor, weight: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
        if self.variance_power < 2 and not bool((base == base[:, :1]).all()):
            raise ValueError(
                f"base_score differs between the outputs of a row, and the loss {type(self).__name__} weighs rows by "
                "it: give one base score per row, or fit one model per output"
            )
        return y * (-base).exp(), weight * ((2 - self.variance_power) * base[:, 0]).exp()

    def predict(self, pred: Tensor) -> Tensor:
        return links.exp(pred)

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        # the difference of two equal terms may round to less than 0
        return self._values(pred, y).clamp(min=0).mean(-1)

    def _values(self, pred: Tensor, y: Tensor) -> Tensor:
        """The loss of each output."""
        raise NotImplementedError

    def _derivatives(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The two terms ``mu^(2-p)`` and ``y mu^(1-p)``: the derivative is their difference."""
        raise NotImplementedError

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        mean, target = self._derivatives(pred, y)
        return (mean - target) / y.shape[-1]

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        power = self.variance_power
        mean, target = self._derivatives(pred, y)
        return ((2 - power) * mean + (power - 1) * target) / y.shape[-1]

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        return self.curvature(pred, y).sqrt() * d

    def deviance(self, pred: Tensor, y: Tensor) -> Tensor:
        """Unit deviance of each row, averaged over outputs: twice the loss.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n)
        """
        return 2 * self.value(pred, y)

    # scores are within [-bound, bound], targets within [0, bound], and each term is largest at an end

    def lipschitz(self, bound: float) -> float:
        power = self.variance_power
        return max(math.exp((2 - power) * bound), bound * math.exp((power - 1) * bound))

    def smoothness(self, bound: float) -> float:
        power = self.variance_power
        return (2 - power) * math.exp((2 - power) * bound) + (power - 1) * bound * math.exp((power - 1) * bound)


class Poisson(LogLinkLoss):
    """Poisson loss ``exp(f) - y f``, less its least value, of counts; predictions are the means ``exp(f)``.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Poisson
    >>> Poisson().value(torch.zeros(1, 1), torch.tensor([[2.0]]))
    tensor([0.3863])
    >>> Poisson().predict(torch.zeros(1, 1))
    tensor([[1.]])
    """

    @property
    def variance_power(self) -> float:
        return 1.0

    def _values(self, pred: Tensor, y: Tensor) -> Tensor:
        # y (exp(u) - 1 - u) with u = f - log(y) keeps its digits where the mean is close to the target
        u = pred - torch.where(y > 0, y, 1.0).log()
        return torch.where(y > 0, y * (torch.expm1(u) - u), pred.exp())

    def _derivatives(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return pred.exp(), y.expand_as(pred)


class Gamma(LogLinkLoss):
    """Gamma loss ``y exp(-f) + f``, less its least value, of positive amounts; predictions are the means ``exp(f)``.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Gamma
    >>> Gamma().value(torch.zeros(1, 1), torch.tensor([[2.0]]))
    tensor([0.3069])
    """

    @property
    def variance_power(self) -> float:
        return 2.0

    def _values(self, pred: Tensor, y: Tensor) -> Tensor:
        # scores alone are checked where a file is read: a target of 0 there stands for a number next to it
        u = pred - y.clamp(min=_TINY).log()
        return torch.expm1(-u) + u

    def _derivatives(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones_like(pred), y * (-pred).exp()


class Tweedie(LogLinkLoss):
    """Tweedie loss of amounts that are often 0, such as yearly claims; predictions are the means ``exp(f)``.

    Parameters
    ----------
    power : float, default=1.5
        Power of the variance function, in (1, 2): toward 1 for counts, toward 2 for amounts.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Tweedie
    >>> Tweedie(1.5).value(torch.zeros(1, 1), torch.tensor([[2.0]]))
    tensor([0.3431])
    """

    parameter_rules: ClassVar[Rules] = {"power": within(1, 2, "()")}

    def __init__(self, power: float = 1.5) -> None:
        self.power = power

    @property
    def variance_power(self) -> float:
        check_parameters(self)
        return float(self.power)

    def _values(self, pred: Tensor, y: Tensor) -> Tensor:
        power = self.variance_power
        least = y ** (2 - power) / ((2 - power) * (power - 1))
        return ((2 - power) * pred).exp() / (2 - power) + y * ((1 - power) * pred).exp() / (power - 1) - least

    def _derivatives(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        power = self.variance_power
        return ((2 - power) * pred).exp(), y * ((1 - power) * pred).exp()
