"""Objectives of the oracle, as functionals of an atom's outputs.

An oracle works on *unit* outputs ``u`` in [-1, 1]; an atom is ``g = bound * u``. Values are divided by
``sum(bound * |D|)``, so that each member's linear objective lies in [-1, 1] whatever the number of rows, the bound and
the loss: an optimiser then meets one scale (an unscaled D is of order 1/n and drowns in Adam's epsilon).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import torch
from torch import Tensor

from gce.bases.neural.mixture import Coefficients
from gce.losses.base import NonFiniteError, is_finite, non_finite
from gce.losses.line_search import Exact
from gce.losses.risk import Risk

if TYPE_CHECKING:
    from gce.distributed.division import Division


class Trainable(Protocol):
    """What networks can be trained on: a functional of their outputs on ``n`` training rows, with gradients.

    Attributes
    ----------
    bound : Tensor of shape (k,)
    theta : Tensor of shape (M, e)
        First values of the objective's own numbers, learned beside the networks (none for a linear objective).
    """

    bound: Tensor
    theta: Tensor

    @property
    def rows(self) -> int:
        """The number of training rows, ``n``."""

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Value and gradients on some rows, each row counted as it is in the whole.

        Parameters
        ----------
        unit : Tensor of shape (M, K, b)
            Unit outputs of all of a member's networks, rows last: ``K = k``, or ``A k`` where ``A`` atoms are trained
            at once.
        theta : Tensor of shape (M, e)
        rows : slice
            Which ``b`` rows they are.

        Returns
        -------
        terms : Tensor of shape (M, K, b) or (M, 1, 1)
            What adds up to the value: by output and row where the objective is such a sum. Adding up is left to the
            caller, who may do it once for many batches.
        gradient : Tensor of shape (M, K, b)
            Derivative in ``unit``.
        theta_gradient : Tensor of shape (M, e)
        """

    def permuted(self, order: Tensor) -> Self:
        """The same objective with its rows in another order."""

    def cast(self, dtype: torch.dtype) -> Self:
        """The same objective for networks in ``dtype``."""

    def load(self, other: Self) -> None:
        """Take the values of another objective of the same shapes, in place."""


@dataclass(frozen=True)
class Model:
    """A quadratic in an atom's outputs: ``sum D g + g^2 H / 2``, what trees and regressors are fitted to.

    Its minimum is ``-D / H``; fitting that with weights ``H`` by least squares is the same problem.

    Parameters
    ----------
    gradient, hessian : Tensor of shape (M, n, k)
        ``D`` and ``H``; a row without weight has 0 in both.
    unit : Tensor of shape (M,)
        The weight of one row.
    free : bool
        Only the direction counts, and the atom may reach its bound; otherwise it is taken at its own length.
    """

    gradient: Tensor
    hessian: Tensor
    unit: Tensor
    free: bool


class Objective(Trainable, Protocol):
    """What an oracle minimises, with one atom per member."""

    @property
    def model(self) -> Model:
        """The objective as a quadratic."""

    @property
    def form(self) -> object:
        """What two objectives must have in common for :meth:`load`."""

    def copy(self) -> Self:
        """A copy of the objective with its own memory."""

    def score(self, outs: Tensor) -> Tensor:
        """Value for each member of each of ``A`` known outputs ``(A, n, k)``, shape ``(M, A)``; not scaled."""

    def select(self, members: Tensor) -> Self:
        """The objective of some members."""

    def error(self) -> NonFiniteError | None:
        """What is wrong where no network has a finite value; None where it can only be the networks."""


class Linear:
    """``<D, g>``: the linear minimisation oracle of Frank-Wolfe.

    Parameters
    ----------
    gradient : Tensor of shape (M, n, k)
    bound : Tensor of shape (k,)
    separate : bool, default=False
        Each output has its own model, and so its own scale: targets do not affect each other.
    risk : Risk, optional
        The risk that the gradient belongs to, for sample weights. Default: equal weights.
    """

    def __init__(self, gradient: Tensor, bound: Tensor, separate: bool = False, risk: Risk | None = None) -> None:
        self.gradient, self.bound, self.separate = gradient, bound, separate
        weight = torch.full_like(gradient[..., 0], 1 / gradient.shape[1]) if risk is None else risk.weight
        self._hessian = weight[..., None].expand_as(gradient)
        self._unit = weight.new_full(weight.shape[:1], 1 / gradient.shape[1]) if risk is None else risk.unit
        self.theta = gradient.new_zeros(len(gradient), 0)
        self._unit_gradient: Tensor | None = None

    @property
    def rows(self) -> int:
        return self.gradient.shape[1]

    @property
    def model(self) -> Model:
        """Of all functions of one length ``sqrt(sum weight g^2)`` the best is ``-D / weight``: least squares on it."""
        return Model(self.gradient, self._hessian, self._unit, True)

    @property
    def unit_gradient(self) -> Tensor:
        """The objective's derivative in the unit outputs, ``(M, k, n)``: the same wherever they are."""
        # computed on first use: trees do not need it
        if self._unit_gradient is None:
            weighed = (self.gradient * self.bound).transpose(1, 2).contiguous()
            self._unit_gradient = weighed / _scale(self.gradient, self.bound, self.separate)[..., None]
        return self._unit_gradient

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        gradient = self.unit_gradient[:, :, rows]
        return gradient * unit, gradient, torch.zeros_like(theta)

    def permuted(self, order: Tensor) -> Self:
        other = copy(self)
        other._unit_gradient = self.unit_gradient[:, :, order]
        return other

    def score(self, outs: Tensor) -> Tensor:
        return self.gradient.flatten(1) @ outs.flatten(1).to(self.gradient.dtype).T

    def of_rows(self, rows: Tensor, division: Division) -> Self:
        """The objective of some of this process' rows ``(m,)``, scaled by those of all processes."""
        other = copy(self)
        other.gradient, other._hessian = self.gradient[:, rows], self._hessian[:, rows]
        weighed = other.gradient * self.bound
        scale = division.sum_rows(weighed.abs().flatten(1), len(self.bound))
        other._unit_gradient = weighed.transpose(1, 2).contiguous() / torch.where(scale > 0, scale, 1.0)[:, None, None]
        return other

    def select(self, members: Tensor) -> Self:
        other = copy(self)
        other.gradient, other.theta = self.gradient[members], self.theta[members]
        other._unit_gradient = None if self._unit_gradient is None else self._unit_gradient[members]
        other._hessian, other._unit = self._hessian[members], self._unit[members]
        return other

    def cast(self, dtype: torch.dtype) -> Self:
        # the division happened in float64: D of order 1/n would lose digits in float32
        other = copy(self)
        other._unit_gradient, other.theta = self.unit_gradient.to(dtype), self.theta.to(dtype)
        return other

    def error(self) -> NonFiniteError | None:
        return None

    @property
    def form(self) -> object:
        return type(self)

    def copy(self) -> Self:
        other = copy(self)
        other._unit_gradient = self.unit_gradient.clone()
        return other

    def load(self, other: Linear) -> None:
        self.unit_gradient.copy_(other.unit_gradient)


class Quadratic(Linear):
    """The risk to second order, ``<D, g> + <g, H g> / 2`` with the diagonal of ``H``; networks look at ``D`` alone.

    Parameters
    ----------
    risk : Risk
    pred : Tensor of shape (M, n, k)
        The ensemble's scores.
    gradient : Tensor of shape (M, n, k)
        The risk's there.
    bound : Tensor of shape (k,)
    """

    def __init__(self, risk: Risk, pred: Tensor, gradient: Tensor, bound: Tensor) -> None:
        super().__init__(gradient, bound, risk=risk)
        self._hessian = risk.curvature(pred)


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

    @property
    def model(self) -> Model:
        """To second order in ``g`` around 0, at the first mixing weight ``a``; for squared error ``-D / H`` is then
        ``(y - (1-a) F) / a`` exactly.
        """
        mix = torch.sigmoid(self.theta.to(self.pred.dtype))[..., None]
        rest = (1 - mix) * self.pred
        return Model(mix * self.risk.gradient(rest), mix.square() * self.risk.curvature(rest), self.risk.unit, False)

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        risk, pred = self.risk.rows(rows), self.pred[:, rows]
        mix = torch.sigmoid(theta.to(pred.dtype))[..., None]
        toward = self.bound * unit.transpose(1, 2).to(pred.dtype) - pred
        mixed = pred + mix * toward
        change = (risk.value(mixed) - risk.value(pred)) / self._scale
        gradient = risk.gradient(mixed) / self._scale[:, None, None]
        theta_gradient = (gradient * toward).sum((1, 2))[:, None] * (mix * (1 - mix))[:, 0]
        unit_gradient = (gradient * mix * self.bound).transpose(1, 2).contiguous()
        return change[:, None, None].to(self._dtype), unit_gradient.to(self._dtype), theta_gradient.to(self._dtype)

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

    def error(self) -> NonFiniteError | None:
        reach = self.pred.abs() + self.bound
        return self.risk.non_finite("risk or gradient", torch.full_like(reach, torch.nan), reach)

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


class Mixture:
    """``R(sum_i alpha_i g_i)`` over all atoms and their weights at once: the non-greedy ensemble.

    Values are divided by the risk of the offset alone: one learning rate and one weight decay fit targets of any unit.

    Parameters
    ----------
    risk : Risk
    bound : Tensor of shape (k,)
    atoms : int
    coefficients : Coefficients
        What weights are as functions of ``theta``.
    """

    def __init__(self, risk: Risk, bound: Tensor, atoms: int, coefficients: Coefficients) -> None:
        self.risk, self.bound, self.atoms, self.coefficients = risk, bound, atoms, coefficients
        self.theta = coefficients.start(atoms).to(bound.device).repeat(len(risk.weight), 1)
        nothing = bound.new_zeros(len(risk.weight), 1, len(bound)).expand(-1, len(risk.y), -1)
        alone = risk.value(nothing)
        for what, values in (("risk", alone), ("gradient", risk.gradient(nothing))):
            if not is_finite(values):
                raise non_finite(what, values, risk.loss, risk.offset, risk.y, "before the first epoch")
        #: What values are divided by, ``(M,)``.
        self.unit = torch.where(alone > 0, alone, 1.0)

    @property
    def rows(self) -> int:
        return len(self.risk.y)

    def combined(self, unit: Tensor, theta: Tensor) -> Tensor:
        """Scores ``(M, b, k)`` in float64, measured from the offset, of unit outputs ``(M, A k, b)``."""
        alpha = self.coefficients.weights(theta)
        by_atom = unit.unflatten(1, (self.atoms, -1)).flatten(2)
        mixed = torch.bmm(alpha[:, None], by_atom)[:, 0].unflatten(1, (len(self.bound), -1))
        return self.bound * mixed.transpose(1, 2).double()

    def batch(self, unit: Tensor, theta: Tensor, rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        risk, pred = self.risk.rows(rows), self.combined(unit, theta)
        value = risk.value(pred) / self.unit
        gradient = risk.gradient(pred) * self.bound / self.unit[:, None, None]
        # the gradient of each atom is the shared one times its weight
        shared = gradient.transpose(1, 2).flatten(1).to(unit.dtype)
        by_atom = unit.unflatten(1, (self.atoms, -1)).flatten(2)
        alpha = self.coefficients.weights(theta)
        theta_gradient = self.coefficients.pull(theta, torch.bmm(by_atom, shared[..., None])[..., 0])
        return value[:, None, None], (alpha[..., None] * shared[:, None]).view(unit.shape), theta_gradient

    def permuted(self, order: Tensor) -> Mixture:
        other = copy(self)
        other.risk = self.risk.rows(order)
        return other

    def cast(self, dtype: torch.dtype) -> Mixture:
        other = copy(self)
        other.theta = self.theta.to(dtype)
        return other

    def load(self, other: Mixture) -> None:
        self.risk.load(other.risk)
        self.unit.copy_(other.unit)


def _scale(gradient: Tensor, bound: Tensor, separate: bool = False) -> Tensor:
    """``sum(bound * |D|)`` of each member, ``(M, 1)``, or output, ``(M, k)``; 1 where D is 0, to be divided by."""
    scale = (gradient.abs() * bound).sum(1)
    scale = scale if separate else scale.sum(1, keepdim=True)
    return torch.where(scale > 0, scale, 1.0)
