"""Risk: a loss bound to targets and row weights, and the same along a line.

Targets live here and nowhere else. Scores are measured from the offset ``c``, the constant around which the hull
lies: ``pred = f - c`` is what the atoms add up to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gce.losses import Loss


@dataclass(frozen=True)
class Risk:
    """Weighted mean loss of ``M`` members over the same ``n`` rows.

    Parameters
    ----------
    loss : Loss
    y : Tensor of shape (n, k)
    weight : Tensor of shape (M, n)
        Each member's row weights, summing to 1; 0 where the member does not see the row.
    offset : Tensor of shape (k,)
    count : Tensor of shape (M,), optional
        How many rows each member's weights stand for; default: as many as have weight.
    """

    loss: Loss
    y: Tensor
    weight: Tensor
    offset: Tensor
    count: Tensor | None = None

    @property
    def unit(self) -> Tensor:
        """What one row weighs, ``(M,)``."""
        return 1 / ((self.weight > 0).sum(1).double() if self.count is None else self.count)

    def value(self, pred: Tensor) -> Tensor:
        """Risk of each member's scores ``(M, n, k)``, shape ``(M,)``."""
        # a row without weight may carry any score, even one whose loss overflows: 0 * inf is not 0
        cost = self.loss.value(self.offset + pred, self.y)
        return torch.where(self.weight > 0, self.weight * cost, 0.0).sum(-1)

    def gradient(self, pred: Tensor) -> Tensor:
        """Functional gradient ``D``, shape ``(M, n, k)``: 0 on rows that a member does not see."""
        return self.weight[..., None] * self.loss.gradient(self.offset + pred, self.y)

    def curvature(self, pred: Tensor) -> Tensor:
        """What each score alone bends the risk by, shape ``(M, n, k)``; of a loss with kinks the row weights."""
        weight = self.weight[..., None]
        if not self.smooth:
            return weight.expand_as(pred)
        if self.loss.quadratic:
            # the same everywhere: one member's scores will do
            return (weight * self.loss.curvature(self.offset + pred[0], self.y)).expand_as(pred)
        return weight * self.loss.curvature(self.offset + pred, self.y)

    @property
    def smooth(self) -> bool:
        """Whether the loss has a curvature everywhere."""
        try:
            return self.loss.curved and math.isfinite(self.loss.smoothness(1.0))
        except NotImplementedError:
            return False

    def along(self, pred: Tensor, d: Tensor, limit: Tensor) -> Line:
        """The risk along ``pred + size * d`` for sizes up to ``limit`` of shape ``(M, J)``."""
        return Line(self, pred, d, limit)

    def select(self, members: Tensor) -> Risk:
        """The risk of some members only."""
        count = None if self.count is None else self.count[members]
        return Risk(self.loss, self.y, self.weight[members], self.offset, count)

    def rows(self, index: Tensor | slice) -> Risk:
        """The part of the sum that belongs to some rows (its weights no longer sum to 1)."""
        return Risk(self.loss, self.y[index], self.weight[:, index], self.offset, self.count)

    def copy(self) -> Risk:
        """The same risk in memory of its own."""
        return Risk(self.loss, self.y.clone(), self.weight.clone(), self.offset.clone(), self.count)

    def load(self, other: Risk) -> None:
        """Become the risk of other targets and weights of the same shapes, in the same memory."""
        for mine, theirs in ((self.y, other.y), (self.weight, other.weight), (self.offset, other.offset)):
            mine.copy_(theirs)


@dataclass(frozen=True)
class Line:
    """The risk along a direction: a convex function of each member's step size.

    With ``J > 1`` the outputs have simplices and step sizes of their own; the loss is then a sum over outputs, so
    that the slope in one size does not depend on the others.
    """

    risk: Risk
    pred: Tensor
    d: Tensor
    limit: Tensor

    @property
    def quadratic(self) -> bool:
        return self.risk.loss.quadratic

    # What all sizes share is computed once: a search asks a dozen times.

    @cached_property
    def _base(self) -> Tensor:
        return self.risk.offset + self.pred

    @cached_property
    def _weighed(self) -> Tensor:
        return self.risk.weight[..., None] * self.d

    def value(self, size: Tensor) -> Tensor:
        """Risk at sizes ``(M, J)``, shape ``(M,)``."""
        return self.risk.value(self.pred + size[:, None] * self.d)

    def slope(self, size: Tensor) -> Tensor:
        """Derivative of the risk in each size, shape ``(M, J)``."""
        here = torch.addcmul(self._base, size[:, None], self.d)
        by_output = (self.risk.loss.gradient(here, self.risk.y) * self._weighed).sum(1)
        return by_output.sum(-1, keepdim=True) if self.limit.shape[1] == 1 else by_output
