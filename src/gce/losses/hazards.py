"""Losses of times until an event, some of them censored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gce._utils.params import Rule, Rules, check_parameters, count, is_number
from gce.losses import links
from gce.losses.base import Loss

#: Half the width of the hull: hazards from 1/150 to 150 times the overall one.
_BOUND = 5.0
#: Newton's steps to the best constants, and halvings of one of them.
_STEPS, _HALVINGS = 50, 40


def _are_ends(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return False
    if not all(is_number(end) and 0 < end < math.inf for end in value):
        return False
    return all(low < high for low, high in pairwise(value))


def weighted_sum(hazards: Tensor, weight: Tensor) -> Tensor:
    """Hazards ``(..., n, K)`` times a matrix ``(K, m)``, with the same bits whatever rows are beside a row.

    Parameters
    ----------
    hazards : Tensor of shape (..., n, K)
        Hazards of intervals.
    weight : Tensor of shape (K, m)
        What each counts.

    Returns
    -------
    Tensor of shape (..., n, m)
    """
    total = hazards[..., :1] * weight[0]
    for j in range(1, len(weight)):
        total = total + hazards[..., j : j + 1] * weight[j]
    return total


class Hazards(Loss):
    """Negative log-likelihood of right-censored times with hazards that are constant within intervals.

    A row's target is its time ``u``, with a minus sign where the row was censored then. Its hazard in interval ``j`` is
    ``h_j = exp(sum_b f_b P_b(s_j))`` with Legendre's polynomials ``P_b`` of the interval's place ``s_j`` in [-1, 1]:
    ``f_0`` is the logarithm of the hazard in the middle, ``f_1`` how it grows. With ``E_j`` the time that the row spent
    in the interval, the loss is ``sum_j E_j h_j``, less ``1 + log(E_j h_j)`` of the interval of the event: exponentials
    of linear functions of the scores less a linear one, and so convex. It is 0 at least, because ``x >= 1 + log(x)``.

    With one score hazards are proportional: the loss is ``u exp(f)``, less ``1 + f + log(u)`` where there was an event.
    :class:`gce.GCESurvival` gives it times on the scale of the cumulative hazard of all rows, where a hazard of 1 at
    all times is that of an average row, whatever the unit of time and the shape of the baseline.

    Parameters
    ----------
    ends : sequence of float, default=(1.0,)
        The ends of the intervals, increasing; the first begins at 0, and the last goes on beyond its end.
    degree : int, default=0
        The degree of the polynomials; there is one score more than that.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Hazards
    >>> Hazards().value(torch.zeros(2, 1), torch.tensor([[2.0], [-3.0]]))
    tensor([0.3069, 3.0000])
    >>> Hazards(ends=(1.0, 2.0), degree=1).value(torch.zeros(1, 2), torch.tensor([[2.0, 0.0]]))
    tensor([1.])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0
    link: ClassVar[str] = "log"

    parameter_rules: ClassVar[Rules] = {
        "ends": Rule(_are_ends, "increasing positive numbers, such as (0.5, 1.0)"),
        "degree": count(0, 1000),
    }

    def __init__(self, ends: Sequence[float] = (1.0,), degree: int = 0) -> None:
        self.ends = ends
        self.degree = degree

    @property
    def has_means(self) -> bool:  # type: ignore[override]
        return self.degree == 0

    def powers(self, like: Tensor) -> Tensor:
        """Legendre's polynomials at the places of the intervals, ``(K, k)``.

        Parameters
        ----------
        like : Tensor
            Its type and device.
        """
        check_parameters(self)
        intervals = len(self.ends)
        if self.degree >= intervals:
            raise ValueError(
                f"degree={self.degree} needs at least {self.degree + 1} intervals, but ends has {intervals}"
            )
        place = (2 * torch.arange(intervals, dtype=like.dtype, device=like.device) + 1) / intervals - 1
        columns = [torch.ones_like(place), place]
        for b in range(1, self.degree):
            columns.append(((2 * b + 1) * place * columns[b] - b * columns[b - 1]) / (b + 1))
        return torch.stack(columns[: self.degree + 1], 1)

    def hazards(self, pred: Tensor) -> Tensor:
        """The hazards of the intervals, ``(..., n, K)``.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        """
        # one score after another, so that a row has the same bits whatever rows are beside it
        logs = torch.zeros_like(pred[..., :1])
        for b, power in enumerate(self.powers(pred).T):
            logs = logs + pred[..., b : b + 1] * power
        return links.exp(logs)

    def interval(self, u: Tensor) -> Tensor:
        """The interval of times of any shape, as an index.

        Parameters
        ----------
        u : Tensor
            Times.
        """
        ends = torch.tensor(list(map(float, self.ends)), dtype=u.dtype, device=u.device)
        return torch.searchsorted(ends[:-1], u.contiguous())

    def _seen(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The time that rows spent in each interval, and whether the event was there, both ``(n, K)``."""
        u = y[:, :1].abs()
        ends = torch.tensor(list(map(float, self.ends)), dtype=y.dtype, device=y.device)
        begin, end = torch.cat([ends.new_zeros(1), ends[:-1]]), torch.cat([ends[:-1], ends.new_full((1,), math.inf)])
        there = self.interval(u) == torch.arange(len(ends), device=y.device)
        return (torch.minimum(u, end) - begin).clamp(min=0), (there & (y[:, :1] > 0)).to(y.dtype)

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        if len(self.ends) == 1:
            pred, y = pred[..., 0], y[:, 0]
            return y.abs() * pred.exp() - torch.where(y > 0, 1 + pred + y.abs().log(), 0.0)
        spent, event = self._seen(y)
        logs = pred @ self.powers(pred).T
        least = torch.where(event > 0, 1 + spent.log(), 0.0).sum(-1)
        return (spent * logs.exp() - event * logs).sum(-1) - least

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        if len(self.ends) == 1:
            return y.abs() * pred.exp() - (y > 0).to(pred.dtype)
        (spent, event), powers = self._seen(y), self.powers(pred)
        return (spent * (pred @ powers.T).exp() - event) @ powers

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        if len(self.ends) == 1:
            return y.abs() * pred.exp()
        powers = self.powers(pred)
        return (self._seen(y)[0] * (pred @ powers.T).exp()) @ powers.square()

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        powers = self.powers(pred)
        return (self._seen(y)[0] * (pred @ powers.T).exp()).sqrt() * (d @ powers.T)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        spent, event = ((weight[:, None] * each).sum(0) for each in self._seen(y))
        best = y.new_zeros(self.degree + 1)
        best[0] = (event.sum() / spent.sum()).log()
        if self.degree == 0:
            return best
        powers = self.powers(y)

        def cost(scores: Tensor) -> Tensor:
            logs = powers @ scores
            return (spent * logs.exp() - event * logs).sum()

        # convex in a few numbers: Newton's method with steps that are halved until they lower the cost
        for _ in range(_STEPS):
            hazard = spent * (powers @ best).exp()
            step = torch.linalg.lstsq((powers.T * hazard) @ powers, (powers.T @ (hazard - event))[:, None]).solution[
                :, 0
            ]
            here = cost(best)
            for _ in range(_HALVINGS):
                if cost(best - step) < here:
                    best = best - step
                    break
                step = step / 2
            else:
                break
        return best

    def default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        return torch.full_like(offset, _BOUND)

    def means(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        # events per unit of time: the mean of 1 / u over events and 0 over others, weighted by time
        u = y.abs()
        return torch.where(y > 0, 1 / u.clamp(min=torch.finfo(u.dtype).tiny), 0.0), weight * u[:, 0]

    def predict(self, pred: Tensor) -> Tensor:
        """Risks ``(..., n, 1)``: cumulative hazards at the ends of the intervals, on average over these.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        """
        return self.risk(self.hazards(pred))

    def risk(self, hazards: Tensor) -> Tensor:
        """Risks ``(..., n, 1)`` from the hazards of the intervals, in which they are linear.

        Parameters
        ----------
        hazards : Tensor of shape (..., n, K)
            Hazards.
        """
        ends = torch.tensor([0.0, *map(float, self.ends)], dtype=hazards.dtype, device=hazards.device)
        # an interval counts at its own end and at all later ones
        share = torch.arange(len(self.ends), 0, -1, dtype=hazards.dtype, device=hazards.device) / len(self.ends)
        return weighted_sum(hazards, (ends.diff() * share)[:, None])

    # scores and times are within [-bound, bound], Legendre's polynomials within [-1, 1]

    def lipschitz(self, bound: float) -> float:
        k = self.degree + 1
        return math.sqrt(k) * (1 + bound * math.exp(k * bound))

    def smoothness(self, bound: float) -> float:
        k = self.degree + 1
        return k * bound * math.exp(k * bound)
