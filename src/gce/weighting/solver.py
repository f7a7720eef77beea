"""Optimal weights over a finite pool, to a given gap.

Over a finite pool the linear oracle is exact: one pass over the answers gives ``<D, g_j>`` of every model, and

    R(F) - min R  <=  max_j <D, F - g_j>,

because a convex risk lies above its tangent. Two kinds of steps serve. A pairwise one goes from the worst model in use
to the best of all. A second-order one, for losses that know their curvature, minimises the quadratic model of the risk
exactly over the simplex of the models in use and those that point best downhill, and goes there. An exact search keeps
the risk from rising in both. A second-order step that gains too little is followed by a pairwise one, so that the
convergence of these is kept.

A loss with a kink is approached through softened ones, from below: what bounds theirs from below bounds its risk too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.line_search import Exact
from gce.risk import Risk
from gce.weighting.outputs import Outputs
from gce.weighting.quadratic import best_moves

Array = NDArray[np.float64]

#: Models that may come into use in one round.
_ENTERING = 32
#: A second-order step that brings less than this share of what it promised is followed by a pairwise one.
_TRUST = 0.1
#: Softened losses are narrowed by this factor, down to this share of the residuals' size.
_NARROWER, _NARROWEST = 0.1, 1e-13
#: Rounds that together lower neither the risk by more than rounding nor the gap by a tenth: rounding has the last word.
_PATIENCE = 5
_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solution:
    """Weights over a pool, and how good they are.

    Parameters
    ----------
    weights : array of shape (P,)
        On the simplex, exactly 0 for models that are not used.
    loss : float
        The risk ``R(F)`` of the combination.
    gap : float
        ``R(F) - min R <= gap``.
    alignment : array of shape (P,)
        ``<D, g_j - F>``: how the risk begins to change when weight moves to a model. About 0 for models in use, and
        positive for those that would raise it.
    history : list of dict
        A round each: ``t``, ``loss``, ``gap``, ``used``, ``seconds``.
    reached : bool
        The gap is as small as was asked, or the loss is 0 but for rounding.
    """

    weights: Array
    loss: float
    gap: float
    alignment: Array
    history: list[dict[str, Any]] = field(repr=False)
    reached: bool

    @property
    def used(self) -> NDArray[np.intp]:
        """Models of positive weight."""
        return np.flatnonzero(self.weights)


def solve(
    risk: Risk, outputs: Outputs, tol: float = 1e-6, start: Array | None = None, max_iter: int = 1000
) -> Solution:
    """The best convex combination of models whose answers are known.

    Parameters
    ----------
    risk : Risk
        Of one member: ``weight`` of shape ``(1, n)``.
    outputs : Outputs
        Measured from the risk's offset.
    tol : float, default=1e-6
        Stop where the gap is at most ``tol`` times the risk.
    start : array of shape (P,), optional
        Weights to start from; the average of all models where None, or where no model has any.
    max_iter : int, default=1000
    """
    known = start is not None and bool(np.any(start))
    given = np.asarray(start, dtype=np.float64) if known else np.full(len(outputs), 1 / len(outputs))
    # more models in use than numbers to explain: most would leave again, one by one
    if len(outputs) == 1 or (known and np.count_nonzero(given) <= risk.y.numel()):
        return _Pursuit(risk, outputs, given).run(tol, max_iter)
    # a combination is a model too, and the average a safe one to start from: beside it only models that are worth it
    # come into use
    given = given / given.sum()
    average = outputs.combine(given)
    first = np.zeros(len(outputs) + 1)
    first[-1] = 1.0
    search = _Pursuit(risk, outputs.adding(average), first)
    found = search.run(tol, max_iter)
    own, shared = found.weights[:-1], found.weights[-1]
    if shared > 0:
        # where it stays in use it has equals, which do without it
        rest = own if own.any() else np.eye(len(own))[int(found.alignment[:-1].argmin())]
        alone = search.among(outputs, rest).run(tol, max_iter)
        if alone.reached or alone.gap < found.gap:
            return alone
    return replace(found, weights=own + shared * given, alignment=found.alignment[:-1])


def certified(risk: Risk, outputs: Outputs, weights: Array) -> Solution:
    """Given weights, with the certificate of what a better choice could bring."""
    search = _Pursuit(risk, outputs, weights)
    for smooth in search.softened():
        search.look(smooth)
    return search.solution(np.inf)


class _Pursuit:
    """The state of a search: weights, what they add up to, and the best lower bound so far."""

    def __init__(self, risk: Risk, outputs: Outputs, weights: Array) -> None:
        self.risk, self.outputs = risk, outputs
        self.lower, self.rounding = -np.inf, 0.0
        self.inner = self.alignment = np.zeros(len(outputs))
        self.history: list[dict[str, Any]] = []
        self.began = time.perf_counter()
        self.best, self.least = weights, np.inf
        self._stand(weights)
        constant = abs(float(risk.value(torch.zeros_like(self.pred)[None])))
        self.constant = constant if np.isfinite(constant) else 0.0

    def among(self, outputs: Outputs, weights: Array) -> _Pursuit:
        """Go on among other models of the same hull: what is proved holds there too."""
        other = _Pursuit(self.risk, outputs, weights)
        other.lower, other.history, other.began = self.lower, self.history, self.began
        return other

    def _stand(self, weights: Array) -> None:
        self.weights = weights / weights.sum()
        self.pred = self.outputs.combine(self.weights)
        self.loss = self._value(self.risk)
        if self.loss < self.least:
            self.best, self.least = self.weights, self.loss

    def _value(self, risk: Risk) -> float:
        return float(risk.value(self.pred[None]))

    @property
    def gap(self) -> float:
        return max(self.loss - max(self.lower, self.risk.loss.least), 0.0)

    def run(self, tol: float, max_iter: int) -> Solution:
        closest, waited = np.inf, 0
        for smooth in self.softened():
            self._descend(smooth, tol, max_iter)
            waited = 0 if self.gap < 0.9 * closest else waited + 1
            closest = min(closest, self.gap)
            if self._reached(tol) or len(self.history) > max_iter or waited == 2:
                break
        if self.least < self.loss - self.rounding:
            # a softened risk may fall while the risk itself rises
            self._stand(self.best)
        return self.solution(tol)

    def solution(self, tol: float) -> Solution:
        return Solution(self.weights, self.loss, self.gap, self.alignment, list(self.history), self._reached(tol))

    def _reached(self, tol: float) -> bool:
        if not np.isfinite(self.gap):
            return False
        # a loss that is 0 next to what the offset alone costs, or but for rounding, has no digits to ask for
        digits = max(abs(self.loss), _UNIT * self.constant)
        # a combination rounds once for every model in it, and no weights can make a loss smaller than that
        nothing = (1 + np.count_nonzero(self.weights) / 4) * self.rounding
        return bool(self.gap <= tol * digits or max(abs(self.loss), self.gap) <= nothing)

    def softened(self) -> Iterator[Risk]:
        """The risk itself, or ever narrower ones below it."""
        if self.risk.loss.soft(1.0) is None or not (width := self._residual()):
            yield self.risk
            return
        while (size := self._residual()) and width > _NARROWEST * size:
            soft = self.risk.loss.soft(width)
            assert soft is not None
            yield replace(self.risk, loss=soft)
            width = _NARROWER * min(width, self._residual())

    def _residual(self) -> float:
        """How far predictions are from targets, on average."""
        return float(self.risk.weight[0] @ (self.risk.offset + self.pred - self.risk.y).abs().mean(1))

    def _descend(self, risk: Risk, tol: float, max_iter: int) -> None:
        """Make a smooth risk small, until the gap is closed, its own gap no longer matters, or rounding decides."""
        least, closest, waited, second_order = np.inf, np.inf, 0, risk.loss.curved
        while True:
            promise, blur = self.look(risk)
            value = self.loss if risk is self.risk else self._value(risk)
            if self._reached(tol) or len(self.history) > max_iter or promise <= max(blur / 10, self.rounding):
                return
            if value < least - self.rounding or promise < 0.9 * closest:
                least, closest, waited = min(least, value), min(closest, promise), 0
            elif (waited := waited + 1) == _PATIENCE:
                return
            if second_order:
                expected = self._second_order(risk)
                gained = value - (self.loss if risk is self.risk else self._value(risk))
                second_order = gained >= _TRUST * expected
            else:
                self._pairwise(risk)
                second_order = risk.loss.curved

    def look(self, risk: Risk) -> tuple[float, float]:
        """One pass over all models: the gap of a smooth risk, and how far it lies below the true one."""
        gradient = risk.gradient(self.pred[None])[0]
        self.inner = self.outputs.inner(gradient)
        promise = max(float(self.weights @ (self.inner - self.inner.min())), 0.0)
        here = self.loss
        if risk is not self.risk:
            here = float(risk.weight[0] @ risk.loss.minorant(risk.offset + self.pred, risk.y))
        # sums of n products are right to a few units in the last place of their terms' sizes
        sizes = float((gradient.abs() * (self.pred.abs() + self.risk.offset.abs())).sum())
        self.rounding = 4 * _UNIT * (abs(self.loss) + sizes)
        bound = here - promise - self.rounding
        if risk is self.risk or bound >= self.lower:
            # at a kink slopes say little: those that prove most are kept
            self.alignment = self.inner - self.weights @ self.inner
        self.lower = max(self.lower, bound)
        self.history.append(
            {
                "t": len(self.history),
                "loss": self.loss,
                "gap": self.gap,
                "used": int(np.count_nonzero(self.weights)),
                "seconds": time.perf_counter() - self.began,
            }
        )
        return promise, self.loss - here

    def _second_order(self, risk: Risk) -> float:
        """Toward the least value of the quadratic model over some models; what it promised."""
        index = self._candidates()
        hessian, slope = self.outputs.hessian(risk, self.pred, index), self.inner[index] - self.weights @ self.inner
        moves = best_moves(hessian, slope, self.weights[index])
        expected = -float(slope @ moves + moves @ hessian @ moves / 2)
        everyone = np.zeros_like(self.weights)
        everyone[index] = moves
        self._go(risk, everyone, 1.0)
        return expected

    def _candidates(self) -> NDArray[np.intp]:
        """Models in use, and those outside that point best downhill."""
        used = self.weights > 0
        outside = np.flatnonzero(~used & (self.inner < self.weights @ self.inner))
        best = outside[np.argsort(self.inner[outside], kind="stable")[:_ENTERING]]
        return np.sort(np.concatenate([np.flatnonzero(used), best]))

    def _pairwise(self, risk: Risk) -> None:
        """From the worst model in use to the best of all."""
        best = int(self.inner.argmin())
        worst = int(np.where(self.weights > 0, self.inner, -np.inf).argmax())
        moves = np.zeros_like(self.weights)
        moves[best] += 1.0
        moves[worst] -= 1.0
        self._go(risk, moves, float(self.weights[worst]))

    def _go(self, risk: Risk, moves: Array, limit: float) -> None:
        """Search along a direction of the weights, and stand where the risk is least."""
        delta = self.outputs.combine(moves)
        longest = torch.full((1, 1), limit, dtype=torch.float64, device=delta.device)
        size = float(Exact()(risk.along(self.pred[None], delta[None], longest), len(self.history)))
        weights = self.weights + size * moves
        # a Hessian that overflows leads nowhere
        if np.isfinite(weights).all():
            self._stand(np.where(weights < _UNIT, 0.0, weights))
