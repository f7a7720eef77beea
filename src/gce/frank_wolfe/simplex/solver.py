"""Optimal convex weights over a finite pool, up to a given duality gap.

Over a finite pool the linear oracle is exact: one pass over the predictions gives ``<D, g_j>`` of every model, and

    R(F) - min R  <=  max_j <D, F - g_j>,

because a convex risk lies above its tangent. There are two kinds of steps. A pairwise step moves weight from the worst
model in use to the best of all. A second-order step, for losses with a Hessian, minimises the quadratic model of the
risk over the simplex of the models in use and of the best descent directions outside. An exact line search keeps the
risk from increasing in both. A second-order step that gains too little is followed by a pairwise one, which preserves
the convergence of pairwise steps.

A loss with a kink is approximated from below by smoothed losses, whose lower bounds are lower bounds of its risk too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.frank_wolfe.simplex.outputs import Outputs
from gce.frank_wolfe.simplex.qp import solve_simplex_qp
from gce.losses.line_search import Exact
from gce.losses.risk import Risk

Array = NDArray[np.float64]

#: Models that may enter in one iteration.
_ENTERING = 32
#: A second-order step that gains less than this share of its predicted gain is followed by a pairwise one.
_TRUST = 0.1
#: The kink of smoothed losses is narrowed by this factor, down to this share of the mean absolute residual.
_NARROWER, _NARROWEST = 0.1, 1e-13
#: Iterations without a decrease of the risk beyond rounding, or of the gap by a tenth, after which rounding dominates.
_PATIENCE = 5
_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Solution:
    """Weights over a pool, with their risk and duality gap.

    Parameters
    ----------
    weights : array of shape (P,)
        Weights on the simplex, exactly 0 for models that are not used.
    loss : float
        The risk ``R(F)`` of the combination.
    gap : float
        Duality gap: ``R(F) - min R <= gap``.
    alignment : array of shape (P,)
        ``<D, g_j - F>``: derivative of the risk when weight moves to model j. About 0 for models in use, positive for
        models that would raise the risk.
    history : list of dict
        ``t``, ``loss``, ``gap``, ``used`` and ``seconds`` of each iteration.
    converged : bool
        Whether the gap is within the tolerance, or the loss is 0 up to rounding.
    """

    weights: Array
    loss: float
    gap: float
    alignment: Array
    history: list[dict[str, Any]] = field(repr=False)
    converged: bool

    @property
    def used(self) -> NDArray[np.intp]:
        """Indices of the models of positive weight."""
        return np.flatnonzero(self.weights)


def solve_simplex(
    risk: Risk, outputs: Outputs, tol: float = 1e-6, start: Array | None = None, max_iter: int = 1000
) -> Solution:
    """Find the best convex combination of models with given predictions.

    Parameters
    ----------
    risk : Risk
        Risk of one member: ``weight`` has shape ``(1, n)``.
    outputs : Outputs
        Predictions of ``P`` models, relative to the risk's offset.
    tol : float, default=1e-6
        Stop when the duality gap is at most ``tol`` times the risk.
    start : array of shape (P,), optional
        Initial weights; by default, or if all are 0, the average of all models.
    max_iter : int, default=1000
        Maximum number of iterations.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import torch
    >>> from gce.frank_wolfe.simplex import Outputs, solve_simplex
    >>> from gce.losses import Squared
    >>> from gce.losses.risk import Risk
    >>> y = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    >>> risk = Risk(Squared(), y, weight=torch.full((1, 2), 0.5, dtype=torch.float64), offset=torch.zeros_like(y[0]))
    >>> solution = solve_simplex(risk, Outputs([torch.zeros_like(y), 2 * y]))
    >>> solution.weights.round(6).tolist(), solution.converged
    ([0.5, 0.5], True)
    """
    has_start = start is not None and bool(np.any(start))
    initial = np.asarray(start, dtype=np.float64) if has_start else np.full(len(outputs), 1 / len(outputs))
    # with more models in use than targets most would be dropped again, one by one
    if len(outputs) == 1 or (has_start and np.count_nonzero(initial) <= risk.y.numel()):
        return _Search(risk, outputs, initial).run(tol, max_iter)
    # a combination is a model too: started from the average as one model, only models that improve on it enter
    initial = initial / initial.sum()
    average = outputs.combine(initial)
    first = np.zeros(len(outputs) + 1)
    first[-1] = 1.0
    search = _Search(risk, outputs.append(average), first)
    solution = search.run(tol, max_iter)
    own, shared = solution.weights[:-1], solution.weights[-1]
    if shared > 0:
        # where the average stays in use, other combinations are as good without it
        rest = own if own.any() else np.eye(len(own))[int(solution.alignment[:-1].argmin())]
        direct = search.restart(outputs, rest).run(tol, max_iter)
        if direct.converged or direct.gap < solution.gap:
            return direct
    return replace(solution, weights=own + shared * initial, alignment=solution.alignment[:-1])


def certify_weights(risk: Risk, outputs: Outputs, weights: Array) -> Solution:
    """Compute the risk, duality gap and alignment of given weights.

    Parameters
    ----------
    risk : Risk
        Risk of one member.
    outputs : Outputs
        Predictions of ``P`` models, relative to the risk's offset.
    weights : array of shape (P,)
        Nonnegative weights, which are normalised.

    Returns
    -------
    Solution
    """
    search = _Search(risk, outputs, weights)
    for smooth in search.smoothed_risks():
        search.evaluate(smooth)
    return search.solution(np.inf)


class _Search:
    """The state of the optimisation: weights, their combination, and the best lower bound so far."""

    def __init__(self, risk: Risk, outputs: Outputs, weights: Array) -> None:
        self.risk, self.outputs = risk, outputs
        self.lower, self.rounding = -np.inf, 0.0
        self.inner = self.alignment = np.zeros(len(outputs))
        self.history: list[dict[str, Any]] = []
        self.began = time.perf_counter()
        self.best_weights, self.best_loss = weights, np.inf
        self._set_weights(weights)
        constant = abs(float(risk.value(torch.zeros_like(self.pred)[None])))
        self.constant = constant if np.isfinite(constant) else 0.0

    def restart(self, outputs: Outputs, weights: Array) -> _Search:
        """Continue over other models with the same hull, for which the lower bound holds too."""
        other = _Search(self.risk, outputs, weights)
        other.lower, other.history, other.began = self.lower, self.history, self.began
        return other

    def _set_weights(self, weights: Array) -> None:
        self.weights = weights / weights.sum()
        self.pred = self.outputs.combine(self.weights)
        self.loss = self._value(self.risk)
        if self.loss < self.best_loss:
            self.best_weights, self.best_loss = self.weights, self.loss

    def _value(self, risk: Risk) -> float:
        return float(risk.value(self.pred[None]))

    @property
    def gap(self) -> float:
        return max(self.loss - max(self.lower, self.risk.loss.lower_bound), 0.0)

    def run(self, tol: float, max_iter: int) -> Solution:
        best_gap, stalled = np.inf, 0
        for smooth in self.smoothed_risks():
            self._descend(smooth, tol, max_iter)
            stalled = 0 if self.gap < 0.9 * best_gap else stalled + 1
            best_gap = min(best_gap, self.gap)
            if self._converged(tol) or len(self.history) > max_iter or stalled == 2:
                break
        if self.best_loss < self.loss - self.rounding:
            # a smoothed risk may decrease while the risk itself increases
            self._set_weights(self.best_weights)
        return self.solution(tol)

    def solution(self, tol: float) -> Solution:
        return Solution(self.weights, self.loss, self.gap, self.alignment, list(self.history), self._converged(tol))

    def _converged(self, tol: float) -> bool:
        if not np.isfinite(self.gap):
            return False
        # a loss that is 0 beside that of the offset alone, or up to rounding, has no accurate digits
        digits = max(abs(self.loss), _UNIT * self.constant)
        # a combination is rounded once for every model in it, which bounds the attainable loss from below
        nothing = (1 + np.count_nonzero(self.weights) / 4) * self.rounding
        return bool(self.gap <= tol * digits or max(abs(self.loss), self.gap) <= nothing)

    def smoothed_risks(self) -> Iterator[Risk]:
        """The risk itself, or smoothed minorants with ever narrower kinks."""
        if self.risk.loss.smoothed(1.0) is None or not (width := self._residual()):
            yield self.risk
            return
        while (size := self._residual()) and width > _NARROWEST * size:
            soft = self.risk.loss.smoothed(width)
            assert soft is not None
            yield replace(self.risk, loss=soft)
            width = _NARROWER * min(width, self._residual())

    def _residual(self) -> float:
        """Mean absolute residual."""
        return float(self.risk.weight[0] @ (self.risk.offset + self.pred - self.risk.y).abs().mean(1))

    def _descend(self, risk: Risk, tol: float, max_iter: int) -> None:
        """Minimise a smooth risk until it has converged, its own gap no longer matters, or rounding dominates."""
        best_value, best_gap, stalled, second_order = np.inf, np.inf, 0, risk.loss.has_hessian
        while True:
            gap, below = self.evaluate(risk)
            value = self.loss if risk is self.risk else self._value(risk)
            if self._converged(tol) or len(self.history) > max_iter or gap <= max(below / 10, self.rounding):
                return
            if value < best_value - self.rounding or gap < 0.9 * best_gap:
                best_value, best_gap, stalled = min(best_value, value), min(best_gap, gap), 0
            elif (stalled := stalled + 1) == _PATIENCE:
                return
            if second_order:
                expected = self._second_order(risk)
                gained = value - (self.loss if risk is self.risk else self._value(risk))
                second_order = gained >= _TRUST * expected
            else:
                self._pairwise(risk)
                second_order = risk.loss.has_hessian

    def evaluate(self, risk: Risk) -> tuple[float, float]:
        """One pass over all models: the gap of a smooth risk, and by how much it is below the true one."""
        gradient = risk.gradient(self.pred[None])[0]
        self.inner = self.outputs.inner(gradient)
        if not (np.isfinite(self.loss) and np.isfinite(self.inner).all()):
            what, values = ("gradient", gradient) if np.isfinite(self.loss) else ("risk", torch.tensor(self.loss))
            raise self.risk.non_finite(what, values, self.pred[None], f"weights of {len(self.outputs)} models")
        gap = max(float(self.weights @ (self.inner - self.inner.min())), 0.0)
        here = self.loss
        if risk is not self.risk:
            here = float(risk.weight[0] @ risk.loss.minorant(risk.offset + self.pred, risk.y))
        # sums of n products are accurate to a few units in the last place of their terms' magnitudes
        sizes = float((gradient.abs() * (self.pred.abs() + self.risk.offset.abs())).sum())
        self.rounding = 4 * _UNIT * (abs(self.loss) + sizes)
        bound = here - gap - self.rounding
        if risk is self.risk or bound >= self.lower:
            # gradients at a kink are not informative: those with the best lower bound are kept
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
        return gap, self.loss - here

    def _second_order(self, risk: Risk) -> float:
        """Step toward the minimum of the quadratic model over some models; returns the predicted gain."""
        index = self._candidates()
        hessian, gradient = self.outputs.hessian(risk, self.pred, index), self.inner[index] - self.weights @ self.inner
        moves = solve_simplex_qp(hessian, gradient, self.weights[index])
        expected = -float(gradient @ moves + moves @ hessian @ moves / 2)
        direction = np.zeros_like(self.weights)
        direction[index] = moves
        self._line_search(risk, direction, 1.0)
        return expected

    def _candidates(self) -> NDArray[np.intp]:
        """Models in use, and the best descent directions outside."""
        used = self.weights > 0
        outside = np.flatnonzero(~used & (self.inner < self.weights @ self.inner))
        best = outside[np.argsort(self.inner[outside], kind="stable")[:_ENTERING]]
        return np.sort(np.concatenate([np.flatnonzero(used), best]))

    def _pairwise(self, risk: Risk) -> None:
        """Step from the worst model in use to the best of all."""
        best = int(self.inner.argmin())
        worst = int(np.where(self.weights > 0, self.inner, -np.inf).argmax())
        moves = np.zeros_like(self.weights)
        moves[best] += 1.0
        moves[worst] -= 1.0
        self._line_search(risk, moves, float(self.weights[worst]))

    def _line_search(self, risk: Risk, moves: Array, limit: float) -> None:
        """Move the weights along a direction to the least risk."""
        delta = self.outputs.combine(moves)
        longest = torch.full((1, 1), limit, dtype=torch.float64, device=delta.device)
        size = float(Exact()(risk.along(self.pred[None], delta[None], longest), len(self.history)))
        weights = self.weights + size * moves
        self._set_weights(np.where(weights < _UNIT, 0.0, weights))
