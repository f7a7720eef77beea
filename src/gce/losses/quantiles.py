"""Several quantiles at once, which never cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gce._utils.params import Rule, Rules, check_parameters, is_number
from gce.losses.base import Loss
from gce.losses.regression import weighted_quantile
from gce.losses.residual import ResidualLoss
from gce.losses.smoothed import SoftPower


def _are_levels(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return False
    if not all(is_number(level) and 0 < level < 1 for level in value):
        return False
    return all(low < high for low, high in pairwise(value))


class _PinballByOutput(ResidualLoss):
    """Pinball losses of outputs with levels of their own: ``residual`` has one output per level."""

    levels: Sequence[float]
    has_hessian: ClassVar[bool] = True

    def _tensor(self, like: Tensor) -> Tensor:
        return torch.tensor(list(map(float, self.levels)), dtype=like.dtype, device=like.device)


class Quantiles(_PinballByOutput):
    """Pinball losses of several levels, averaged: conditional quantiles that never cross.

    Each level has a raw score of its own, and predictions are the scores of a row in increasing order. Sorting never
    raises the pinball loss summed over the levels (Chernozhukov, Fernández-Val and Galichon, 2010): exchanging two
    scores that are in the wrong order lowers the sum for every target.

    Parameters
    ----------
    levels : sequence of float, default=(0.1, 0.5, 0.9)
        Levels of the quantiles, in (0, 1) and increasing.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Quantiles
    >>> loss = Quantiles([0.25, 0.75])
    >>> loss.predict(torch.tensor([[2.0, 1.0]]))
    tensor([[1., 2.]])
    >>> loss.value(torch.tensor([[0.0, 0.0]]), torch.ones(1, 2))
    tensor([0.5000])
    """

    lower_bound: ClassVar[float] = 0.0

    parameter_rules: ClassVar[Rules] = {
        "levels": Rule(_are_levels, "a list or tuple of increasing levels in (0, 1), such as (0.1, 0.5, 0.9)")
    }

    def __init__(self, levels: Sequence[float] = (0.1, 0.5, 0.9)) -> None:
        self.levels = levels

    def _tensor(self, like: Tensor) -> Tensor:
        check_parameters(self)
        return super()._tensor(like)

    @property
    def outputs_per_target(self) -> int:
        check_parameters(self)
        return len(self.levels)

    def phi(self, residual: Tensor) -> Tensor:
        level = self._tensor(residual)
        return torch.maximum((1 - level) * residual, -level * residual)

    def derivative(self, residual: Tensor) -> Tensor:
        level = self._tensor(residual)
        return (1 - level) * (residual > 0).to(residual.dtype) - level * (residual < 0).to(residual.dtype)

    def second_derivative(self, residual: Tensor) -> Tensor:
        return torch.zeros_like(residual)

    def smoothed(self, width: float | Tensor) -> Loss | None:
        return SoftQuantiles(self.levels, width)

    def step_scale(self, spread: Tensor) -> Tensor:
        return spread

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        each = self._tensor(y).tolist()
        return torch.cat([weighted_quantile(own[:, None], weight, level) for own, level in zip(y.T, each, strict=True)])

    def predict(self, pred: Tensor) -> Tensor:
        return pred.sort(-1).values

    def lipschitz(self, bound: float) -> float:
        # of the mean over levels in the Euclidean norm
        return math.sqrt(sum(max(level, 1 - level) ** 2 for level in self.levels)) / len(self.levels)

    def smoothness(self, bound: float) -> float:
        return math.inf


class SoftQuantiles(_PinballByOutput):
    """Smooth minorant of :class:`Quantiles`: absolute values are smoothed as in :class:`SoftQuantile`.

    Parameters
    ----------
    levels : sequence of float
        Levels of the quantiles.
    width : float or Tensor of shape (k,)
        Width of the smoothed kinks.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import SoftQuantiles
    >>> SoftQuantiles(levels=[0.5], width=3.0).value(torch.tensor([[4.0]]), torch.zeros(1, 1))
    tensor([1.])
    """

    def __init__(self, levels: Sequence[float], width: float | Tensor) -> None:
        self.levels = levels
        self.width = width

    def phi(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).phi(residual) / 2 + (0.5 - self._tensor(residual)) * residual

    def derivative(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).derivative(residual) / 2 + (0.5 - self._tensor(residual))

    def second_derivative(self, residual: Tensor) -> Tensor:
        return SoftPower(1, self.width).second_derivative(residual) / 2

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        return SoftPower(1, self.width).majorizer(pred, y) / 2

    def smoothness(self, bound: float) -> float:
        return SoftPower(1, self.width).smoothness(bound) / (2 * len(self.levels))

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        residual = pred - y
        return (self.derivative(residual) * residual).mean(-1)
