"""Losses: what one row costs, and how that cost changes with the score.

Every loss is stateless and works on raw scores ``pred`` of shape ``(..., n, k)`` against targets ``y`` of shape
``(n, k)`` (numbers for regression, 0/1 for two classes, one-hot rows for more). A user's own loss subclasses
:class:`Loss` and needs only ``value``; its gradient then comes from automatic differentiation.

Frank-Wolfe's O(1/t) rate asks for a smooth risk. Where ``smoothness`` is infinite (absolute error, pinball,
``q < 2``) the duality gap still bounds the suboptimality, because that needs convexity alone, but convergence of the
iterates is not claimed.
"""

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
    """

    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool] = False

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        """Cost of each row, shape ``(..., n)``."""
        raise NotImplementedError(f"{type(self).__name__} must define value(pred, y)")

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        """Derivative of each row's cost in its scores, shape ``(..., n, k)``."""
        with torch.enable_grad():
            leaf = pred.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.value(leaf, y).sum(), leaf)
        return slope

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

    def lipschitz(self, bound: float) -> float:
        """Lipschitz constant in the score while scores and targets stay in ``[-bound, bound]``."""
        raise NotImplementedError(f"{type(self).__name__} does not know its Lipschitz constant")

    def smoothness(self, bound: float) -> float:
        """Lipschitz constant of the gradient on ``[-bound, bound]``; infinite where the loss has a kink."""
        raise NotImplementedError(f"{type(self).__name__} does not know its smoothness")


class ResidualLoss(Loss):
    """A loss ``phi(pred - y)``, averaged over the outputs; a subclass gives ``phi`` and ``slope``."""

    separable: ClassVar[bool] = True

    def phi(self, residual: Tensor) -> Tensor:
        raise NotImplementedError

    def slope(self, residual: Tensor) -> Tensor:
        raise NotImplementedError

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.phi(pred - y).mean(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.slope(pred - y) / y.shape[-1]


class Squared(ResidualLoss):
    """``(f - y)^2``: the mean."""

    quadratic: ClassVar[bool] = True

    def phi(self, residual: Tensor) -> Tensor:
        return residual.square()

    def slope(self, residual: Tensor) -> Tensor:
        return 2 * residual

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

    def __init__(self, q: float = 1.0) -> None:
        self.q = q

    def _exponent(self) -> float:
        if not self.q >= 1:
            raise ValueError(f"Power loss needs q >= 1 to be convex, got q={self.q!r}")
        return float(self.q)

    def phi(self, residual: Tensor) -> Tensor:
        return residual.abs() ** self._exponent()

    def slope(self, residual: Tensor) -> Tensor:
        q = self._exponent()
        return q * residual.sign() * residual.abs() ** (q - 1)

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

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def _width(self) -> float:
        if not self.delta > 0:
            raise ValueError(f"PseudoHuber needs delta > 0, got delta={self.delta!r}")
        return float(self.delta)

    def phi(self, residual: Tensor) -> Tensor:
        delta = self._width()
        # sqrt(1 + s) - 1 = s / (sqrt(1 + s) + 1) keeps the digits of a small residual
        s = (residual / delta).square()
        return delta**2 * s / ((1 + s).sqrt() + 1)

    def slope(self, residual: Tensor) -> Tensor:
        return residual / (1 + (residual / self._width()).square()).sqrt()

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

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile

    def _level(self) -> float:
        if not 0 < self.quantile < 1:
            raise ValueError(f"Quantile loss needs 0 < quantile < 1, got quantile={self.quantile!r}")
        return float(self.quantile)

    def phi(self, residual: Tensor) -> Tensor:
        level = self._level()
        return torch.maximum((1 - level) * residual, -level * residual)

    def slope(self, residual: Tensor) -> Tensor:
        level = self._level()
        return (1 - level) * (residual > 0).to(residual.dtype) - level * (residual < 0).to(residual.dtype)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return weighted_quantile(y, weight, self._level())

    def lipschitz(self, bound: float) -> float:
        return max(self._level(), 1 - self._level())

    def smoothness(self, bound: float) -> float:
        return math.inf


class Logistic(Loss):
    """``log(1 + exp(-+f))`` for two classes coded 0 and 1, one score: the log-odds of class 1."""

    separable: ClassVar[bool] = True

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        return (torch.logaddexp(pred, torch.zeros_like(pred)) - y * pred).sum(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - y, without the digits that it loses where p is close to y
        return (1 - y) * torch.sigmoid(pred) - y * torch.sigmoid(-pred)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        one = (weight[:, None] * y).sum(0)
        return torch.log(one) - torch.log(weight.sum() - one)

    def predict(self, pred: Tensor) -> Tensor:
        return torch.cat([torch.sigmoid(-pred), torch.sigmoid(pred)], -1)

    def lipschitz(self, bound: float) -> float:
        return 1.0

    def smoothness(self, bound: float) -> float:
        return 0.25


class CrossEntropy(Loss):
    """``log sum_j exp(f_j) - f_y`` for three classes or more, a score a class; targets are one-hot.

    Its constants are those of the Euclidean norm: the gradient ``p - e_y`` has length at most sqrt(2), and the
    Hessian ``diag(p) - pp'`` no eigenvalue above 1/2.
    """

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        return torch.logsumexp(pred, -1) - (y * pred).sum(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - e_y, without the digits that it loses where p is close to e_y: there it is what the other classes have
        others = (1 - y) * torch.softmax(pred, -1)
        return others - y * others.sum(-1, keepdim=True)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        # the scores are free up to one number: centred, they ask least of the bound
        log_prior = torch.log((weight[:, None] * y).sum(0) / weight.sum())
        return log_prior - log_prior.mean()

    def predict(self, pred: Tensor) -> Tensor:
        return torch.softmax(pred, -1)

    def lipschitz(self, bound: float) -> float:
        return math.sqrt(2)

    def smoothness(self, bound: float) -> float:
        return 0.5


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
