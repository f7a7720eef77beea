"""The risk, a loss with its targets and sample weights, and the risk along a line.

Targets are kept here and nowhere else. Scores are relative to the offset ``c``, the constant around which the hull
lies: ``pred = f - c`` is the weighted sum of the atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gce.losses.base import Loss, NonFiniteError, check_shape, is_finite, non_finite
from gce.losses.regression import typical_distance

if TYPE_CHECKING:
    from gce.distributed.division import Division


#: Width of smoothed kinks, relative to the median distance of targets from the offset: chosen among 0.02 to 0.3 by the
#: held-out pinball loss of boston, concrete and kin8nm.
KINK_WIDTH = 0.1


@dataclass(frozen=True)
class Risk:
    """Weighted mean loss of ``M`` members over the same ``n`` rows.

    Parameters
    ----------
    loss : Loss
        The loss of a row.
    y : Tensor of shape (n, k)
        Targets.
    weight : Tensor of shape (M, n)
        Each member's sample weights, which sum to 1; 0 for rows that the member does not train on.
    offset : Tensor of shape (k,)
        Constant scores.
    count : Tensor of shape (M,), optional
        Effective number of rows of each member; by default its rows of positive weight.
    division : Division, optional
        The rows are those of some processes, and these are one's own. Default: they are all there are.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Squared
    >>> from gce.losses.risk import Risk
    >>> y = torch.tensor([[0.0], [4.0]])
    >>> risk = Risk(Squared(), y, weight=torch.full((1, 2), 0.5), offset=torch.tensor([2.0]))
    >>> risk.value(torch.zeros(1, 2, 1))
    tensor([4.])
    """

    loss: Loss
    y: Tensor
    weight: Tensor
    offset: Tensor
    count: Tensor | None = None
    division: Division | None = None

    @property
    def unit(self) -> Tensor:
        """Weight of one row for each member, ``(M,)``."""
        if self.count is not None:
            return 1 / self.count
        used = self.weight > 0
        return 1 / (used.sum(1).double() if self.division is None else self.division.sum_rows(used.double()))

    def value(self, pred: Tensor) -> Tensor:
        """Risk of each member's scores ``(M, n, k)``, shape ``(M,)``.

        Parameters
        ----------
        pred : Tensor of shape (M, n, k)
            Scores of each member.

        Returns
        -------
        Tensor of shape (M,)
        """
        if self.division is None:
            return self._costs(pred).sum(-1)
        costs = self.division.sum_shards(
            lambda own: self.rows(own)._costs(pred[:, own]).double().sum(-1), pred.shape[:1]
        )
        return costs.to(pred.dtype)

    def _costs(self, pred: Tensor) -> Tensor:
        """What each row adds to the risk, ``(M, n)``."""
        # a row of weight 0 may have any score, even one whose loss overflows: 0 * inf is not 0
        cost = self.loss.value(self.offset + pred, self.y)
        check_shape(self.loss, "value", cost, pred, self.y)
        return torch.where(self.weight > 0, self.weight * cost, 0.0)

    def sum_rows(self, values: Tensor) -> Tensor:
        """The sum of values ``(M, n, k)`` over outputs and rows, of all processes, shape ``(M,)``.

        Parameters
        ----------
        values : Tensor of shape (M, n, k)
            Of each member.

        Returns
        -------
        Tensor of shape (M,)
        """
        if self.division is None:
            return values.sum((1, 2))
        return self.division.sum_rows(values.flatten(1), values.shape[2])

    def inner_by_output(self, gradient: Tensor, pred: Tensor) -> Tensor:
        """``<D, F>`` of each output, the sum over the rows of all processes, shape ``(M, k)``.

        Parameters
        ----------
        gradient, pred : Tensor of shape (M, n, k)
            ``D`` and ``F`` of each member.

        Returns
        -------
        Tensor of shape (M, k)
        """
        if self.division is None:
            return (gradient * pred).sum(1)
        return self.division.sum_shards(lambda own: (gradient[:, own] * pred[:, own]).sum(1), pred[:, 0].shape)

    def gradient(self, pred: Tensor) -> Tensor:
        """Functional gradient ``D`` at scores ``(M, n, k)``, of the same shape: 0 on rows without weight.

        Parameters
        ----------
        pred : Tensor of shape (M, n, k)
            Scores of each member.

        Returns
        -------
        Tensor of shape (M, n, k)
        """
        if self.division is not None:
            return self.division.by_shard(lambda own: self.rows(own).gradient(pred[:, own]))
        gradient = self.loss.gradient(self.offset + pred, self.y)
        check_shape(self.loss, "gradient", gradient, pred, self.y)
        return self.weight[..., None] * gradient

    def curvature(self, pred: Tensor) -> Tensor:
        """Diagonal of the Hessian or of a majorizer, of the shape of scores; sample weights for a loss with kinks.

        Parameters
        ----------
        pred : Tensor of shape (M, n, k)
            Scores of each member.

        Returns
        -------
        Tensor of shape (M, n, k)
        """
        if self.division is not None:
            return self.division.by_shard(lambda own: self.rows(own).curvature(pred[:, own]))
        weight = self.weight[..., None]
        if not self.smooth:
            return weight.expand_as(pred)
        if self.loss.quadratic:
            # the Hessian is constant: the scores of one member suffice
            found = self.loss.majorizer(self.offset + pred[0], self.y)
            check_shape(self.loss, "majorizer", found, self.y, self.y)
        else:
            found = self.loss.majorizer(self.offset + pred, self.y)
            check_shape(self.loss, "majorizer", found, pred, self.y)
        hessian = weight * found
        if not is_finite(hessian):
            raise self.non_finite("Hessian", hessian, pred)
        return hessian.expand_as(pred)

    def non_finite(self, what: str, values: Tensor, pred: Tensor, where: str = "") -> NonFiniteError:
        """The error of a fit in which some values at scores ``(M, n, k)`` are infinite or NaN.

        Parameters
        ----------
        what : str
            Their name.
        values : Tensor
            The values.
        pred : Tensor of shape (M, n, k)
            Scores of each member.
        where : str, default=""
            The part of the fit.

        Returns
        -------
        NonFiniteError
        """
        return non_finite(what, values, self.loss, self.offset + pred, self.y, where)

    @property
    def smooth(self) -> bool:
        """Whether the loss is twice differentiable everywhere."""
        try:
            return self.loss.has_hessian and math.isfinite(self.loss.smoothness(1.0))
        except NotImplementedError:
            return False

    @cached_property
    def modelled(self) -> Risk | None:
        """What boosted trees are grown for: of a loss with kinks a smooth minorant; None where there is no curvature.

        Gradients and curvatures are scaled so that the latter are of order 1 (:meth:`Loss.step_scale`).
        """
        kinked = self.loss.smoothed(1.0) is not None
        if self.division is not None and kinked:
            raise ValueError(f"rows that are divided need a smooth loss, got {self.loss}")
        if not (kinked or self.smooth):
            return None
        if self.division is not None or type(self.loss).step_scale is Loss.step_scale:
            return self
        spread = self._spread()
        scale, soft = self.loss.step_scale(spread), self.loss.smoothed(KINK_WIDTH * spread)
        if soft is None and bool((scale == 1).all()):
            return self
        loss = self.loss if soft is None else soft
        return ScaledRisk(loss, self.y, self.weight, self.offset, self.count, self.division, scale=scale)

    def _spread(self) -> Tensor:
        """How far targets are from the offset, ``(k,)``."""
        found = typical_distance(self.y, self.offset, self.weight.sum(0))
        # of a constant target a kink is as narrow as rounding
        return torch.where(found > 0, found, 1e-9 * (1 + self.offset.abs()))

    def along(self, pred: Tensor, d: Tensor, limit: Tensor) -> Line:
        """The risk along ``pred + size * d`` for scores ``(M, n, k)`` and step sizes up to ``limit`` ``(M, J)``.

        Parameters
        ----------
        pred : Tensor of shape (M, n, k)
            Scores of each member.
        d : Tensor of shape (M, n, k)
            The direction.
        limit : Tensor of shape (M, J)
            The largest step sizes.

        Returns
        -------
        Line
        """
        return Line(self, pred, d, limit)

    def select(self, members: Tensor) -> Risk:
        """The risk of some members, given by their indices.

        Parameters
        ----------
        members : Tensor of shape (m,)
            Indices of the members.

        Returns
        -------
        Risk
        """
        count = None if self.count is None else self.count[members]
        return Risk(self.loss, self.y, self.weight[members], self.offset, count, self.division)

    def rows(self, index: Tensor | slice) -> Risk:
        """The part of the sum over some of one's own rows (its weights no longer sum to 1).

        Parameters
        ----------
        index : Tensor or slice
            The rows.

        Returns
        -------
        Risk
        """
        return Risk(self.loss, self.y[index], self.weight[:, index], self.offset, self.count)

    def copy(self) -> Risk:
        """A copy that shares no memory."""
        return Risk(self.loss, self.y.clone(), self.weight.clone(), self.offset.clone(), self.count, self.division)

    def load(self, other: Risk) -> None:
        """Copy the targets, weights and offset of another risk of the same shapes into this one's memory."""
        for mine, theirs in ((self.y, other.y), (self.weight, other.weight), (self.offset, other.offset)):
            mine.copy_(theirs)


@dataclass(frozen=True)
class ScaledRisk(Risk):
    """A risk whose gradients and curvatures are multiplied by a factor for each output.

    Parameters
    ----------
    scale : Tensor of shape (k,)
        The factors.
    """

    scale: Tensor = field(kw_only=True)

    def gradient(self, pred: Tensor) -> Tensor:
        return self.scale * super().gradient(pred)

    def curvature(self, pred: Tensor) -> Tensor:
        return self.scale * super().curvature(pred)

    def select(self, members: Tensor) -> ScaledRisk:
        own = super().select(members)
        return ScaledRisk(own.loss, own.y, own.weight, own.offset, own.count, own.division, scale=self.scale)


@dataclass(frozen=True)
class Line:
    """The risk along a direction: a convex function of each member's step size.

    With ``J > 1`` each output has its own simplex and step size; the loss is then a sum over outputs, so that the
    derivative with respect to one step size does not depend on the others.

    Parameters
    ----------
    risk : Risk
        The risk.
    pred : Tensor of shape (M, n, k)
        Scores at step size 0.
    d : Tensor of shape (M, n, k)
        The direction.
    limit : Tensor of shape (M, J)
        The largest step sizes.
    """

    risk: Risk
    pred: Tensor
    d: Tensor
    limit: Tensor

    @property
    def quadratic(self) -> bool:
        """Whether the risk is quadratic along the line."""
        return self.risk.loss.quadratic

    # what does not depend on the step size is computed once: a search evaluates a dozen sizes

    @cached_property
    def _base(self) -> Tensor:
        return self.risk.offset + self.pred

    @cached_property
    def _weighted_direction(self) -> Tensor:
        return self.risk.weight[..., None] * self.d

    def value(self, size: Tensor) -> Tensor:
        """Risk at step sizes ``(M, J)``, shape ``(M,)``.

        Parameters
        ----------
        size : Tensor of shape (M, J)
            Step sizes.

        Returns
        -------
        Tensor of shape (M,)
        """
        return self.risk.value(self.pred + size[:, None] * self.d)

    def slope(self, size: Tensor) -> Tensor:
        """Derivative of the risk with respect to each step size, shape ``(M, J)``.

        Parameters
        ----------
        size : Tensor of shape (M, J)
            Step sizes.

        Returns
        -------
        Tensor of shape (M, J)
        """
        division = self.risk.division
        if division is None:
            by_output = self._slope_by_output(size)
        else:
            by_output = division.sum_shards(lambda rows: self._rows(rows)._slope_by_output(size), self.d[:, 0].shape)
        return by_output.sum(-1, keepdim=True) if self.limit.shape[1] == 1 else by_output

    def _slope_by_output(self, size: Tensor) -> Tensor:
        here = torch.addcmul(self._base, size[:, None], self.d)
        gradient, along = self.risk.loss.gradient(here, self.risk.y), self._weighted_direction
        found = (gradient * along).sum(1)
        if found.isnan().any():
            # a row of weight 0 may have an infinite gradient: 0 * inf is not 0
            found = torch.where(along == 0, 0.0, gradient * along).sum(1)
        return found

    def _rows(self, rows: slice) -> Line:
        """The part of the sum over some of one's own rows."""
        return Line(self.risk.rows(rows), self.pred[:, rows], self.d[:, rows], self.limit)
