"""Objectives: what an oracle is asked to minimise, as a functional of an atom's outputs.

An oracle works on *unit* outputs ``u`` in [-1, 1]; an atom is ``g = bound * u``. Values are divided by
``sum(bound * |D|)``, so that each member's linear objective lies in [-1, 1] whatever the number of rows, the bound and
the loss: an optimiser then meets one scale (an unscaled D is of order 1/n and drowns in Adam's epsilon).
"""

from __future__ import annotations

from copy import copy
from typing import Protocol, Self

import torch
from torch import Tensor

from gce.line_search import Exact
from gce.risk import Risk


class Objective(Protocol):
    """A functional of the outputs of ``M`` atoms on ``n`` training rows.

    Attributes
    ----------
    bound : Tensor of shape (k,)
    theta : Tensor of shape (M, e)
        First values of the objective's own numbers, learned beside the atom (none for a linear objective).
    """

    bound: Tensor
    theta: Tensor

    @property
    def rows(self) -> int:
        """How many training rows there are, ``n``."""

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Value and slopes on some rows, each row counted as it is in the whole.

        Parameters
        ----------
        unit : Tensor of shape (M, k, b)
            Unit outputs, rows last.
        theta : Tensor of shape (M, e)
        rows : slice
            Which ``b`` rows they are.

        Returns
        -------
        terms : Tensor of shape (M, k, b) or (M, 1, 1)
            What adds up to the value: by output and row where the objective is such a sum. Adding up is left to the
            caller, who may do it once for many batches.
        slope : Tensor of shape (M, k, b)
            Derivative in ``unit``.
        theta_slope : Tensor of shape (M, e)
        """

    def permuted(self, order: Tensor) -> Objective:
        """The same objective with its rows in another order."""

    def score(self, outs: Tensor) -> Tensor:
        """Value for each member of each of ``A`` known outputs ``(A, n, k)``, shape ``(M, A)``; not scaled."""

    def select(self, members: Tensor) -> Objective:
        """The objective of some members only."""

    def cast(self, dtype: torch.dtype) -> Objective:
        """The same objective for an oracle that works in ``dtype``."""

    @property
    def form(self) -> object:
        """What two objectives must have in common for the one to be loaded into the other."""

    def copy(self) -> Self:
        """The same objective in memory of its own."""

    def load(self, other: Self) -> None:
        """Become another objective of the same shapes, in the same memory."""


class Linear:
    """``<D, g>``: the linear minimisation oracle of Frank-Wolfe.

    Parameters
    ----------
    gradient : Tensor of shape (M, n, k)
    bound : Tensor of shape (k,)
    separate : bool, default=False
        Each output has a model of its own, and so a scale of its own: what one target is does not touch another.
    """

    def __init__(self, gradient: Tensor, bound: Tensor, separate: bool = False) -> None:
        self.gradient, self.bound, self.separate = gradient, bound, separate
        self.theta = gradient.new_zeros(len(gradient), 0)
        weighed = (gradient * bound).transpose(1, 2).contiguous()
        self._slope = weighed / _scale(gradient, bound, separate)[..., None]

    @property
    def rows(self) -> int:
        return self.gradient.shape[1]

    @property
    def slope(self) -> Tensor:
        """The objective's derivative in the unit outputs, ``(M, k, n)``: the same wherever they are."""
        return self._slope

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        slope = self._slope[:, :, rows]
        return slope * unit, slope, torch.zeros_like(theta)

    def permuted(self, order: Tensor) -> Linear:
        other = copy(self)
        other._slope = self._slope[:, :, order]
        return other

    def score(self, outs: Tensor) -> Tensor:
        return self.gradient.flatten(1) @ outs.flatten(1).to(self.gradient.dtype).T

    def select(self, members: Tensor) -> Linear:
        other = copy(self)
        other.gradient, other._slope, other.theta = self.gradient[members], self._slope[members], self.theta[members]
        return other

    def cast(self, dtype: torch.dtype) -> Linear:
        # the division happened in float64: D of order 1/n would lose digits in float32
        other = copy(self)
        other._slope, other.theta = self._slope.to(dtype), self.theta.to(dtype)
        return other

    @property
    def form(self) -> object:
        return type(self)

    def copy(self) -> Linear:
        other = copy(self)
        other._slope = self._slope.clone()
        return other

    def load(self, other: Linear) -> None:
        self._slope.copy_(other._slope)


class Joint:
    """``R((1-a) F + a g)`` over the atom and its mixing weight ``a``: the nonlinear greedy algorithm.

    ``a = sigmoid(theta)`` is learned with the atom; a line search has the last word on it.

    Parameters
    ----------
    risk : Risk
    pred : Tensor of shape (M, n, k)
        The ensemble's scores.
    bound : Tensor of shape (k,)
    start : float
        First mixing weight, in (0, 1).
    """

    def __init__(self, risk: Risk, pred: Tensor, bound: Tensor, start: float) -> None:
        self.risk, self.pred, self.bound = risk, pred, bound
        self.theta = torch.full_like(pred[:, :1, 0], start).logit()
        self._scale = _scale(risk.gradient(pred), bound)[:, 0]
        self._dtype = pred.dtype

    @property
    def rows(self) -> int:
        return self.pred.shape[1]

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        risk, pred = self.risk.rows(rows), self.pred[:, rows]
        mix = torch.sigmoid(theta.to(pred.dtype))[..., None]
        toward = self.bound * unit.transpose(1, 2).to(pred.dtype) - pred
        mixed = pred + mix * toward
        change = (risk.value(mixed) - risk.value(pred)) / self._scale
        slope = risk.gradient(mixed) / self._scale[:, None, None]
        theta_slope = (slope * toward).sum((1, 2))[:, None] * (mix * (1 - mix))[:, 0]
        unit_slope = (slope * mix * self.bound).transpose(1, 2).contiguous()
        return change[:, None, None].to(self._dtype), unit_slope.to(self._dtype), theta_slope.to(self._dtype)

    def permuted(self, order: Tensor) -> Joint:
        other = copy(self)
        other.risk, other.pred = self.risk.rows(order), self.pred[:, order]
        return other

    def score(self, outs: Tensor) -> Tensor:
        limit = torch.ones_like(self._scale)[:, None]
        scores = []
        for out in outs.to(self.pred.dtype):
            line = self.risk.along(self.pred, out - self.pred, limit)
            scores.append(line.value(Exact()(line, 1)))
        return torch.stack(scores, 1)

    def select(self, members: Tensor) -> Joint:
        other = copy(self)
        other.risk, other.pred = self.risk.select(members), self.pred[members]
        other.theta, other._scale = self.theta[members], self._scale[members]
        return other

    def cast(self, dtype: torch.dtype) -> Joint:
        other = copy(self)
        other._dtype, other.theta = dtype, self.theta.to(dtype)
        return other

    @property
    def form(self) -> object:
        return type(self), type(self.risk.loss), self.risk.loss.get_params(), self.bound.tolist()

    def copy(self) -> Joint:
        other = copy(self)
        other.risk, other.pred, other._scale = self.risk.copy(), self.pred.clone(), self._scale.clone()
        return other

    def load(self, other: Joint) -> None:
        self.risk.load(other.risk)
        self.pred.copy_(other.pred)
        self._scale.copy_(other._scale)


def _scale(gradient: Tensor, bound: Tensor, separate: bool = False) -> Tensor:
    """``sum(bound * |D|)`` of each member, ``(M, 1)``, or output, ``(M, k)``; 1 where D is 0, to be divided by."""
    scale = (gradient.abs() * bound).sum(1)
    scale = scale if separate else scale.sum(1, keepdim=True)
    return torch.where(scale > 0, scale, 1.0)
