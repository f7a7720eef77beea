"""Smaller and smaller ensembles: which model can best be spared, again and again, with optimal weights each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from gce.line_search import Exact
from gce.risk import Risk
from gce.weighting.outputs import Outputs, Settled
from gce.weighting.solver import Solution, solve
from gce.weighting.thinning import compliance, missed, thinned

#: How many of the models that look easiest to spare are tried: of many models any of these will do.
_TRIED, _MANY = 3, 32
#: A crowd is more than that, and loses one in so many at a time.
_CROWD, _ONE_IN = 64, 16


def shrinking(
    risk: Risk, outputs: Outputs, solution: Solution, tol: float = 1e-6, free: Sequence[int] = ()
) -> list[Solution]:
    """Optimal weights for ever smaller sets of models, from those in use down to one.

    Each set is the one before without the model that is missed least among a few that look so; a crowd loses several at
    a time. The set of one has the best model of all, be it in the set before or not; sets that are worse are left out.
    Gaps are within each set.

    Models that are ``free``, such as a constant, count for nothing: they stay available to every set, and the path ends
    with them alone.
    """
    path = [solution]
    if risk.loss.quadratic and len(solution.used) > _CROWD:
        outputs = Settled.under(risk, outputs, outputs.combine(solution.weights))
    while len(_counted(path[-1], free)) > _CROWD:
        path.append(_thinner(risk, outputs, path[-1], tol, free))
    while len(_counted(path[-1], free)) > 2:
        spared = [without(risk, outputs, path[-1], [j], tol, free) for j in _easiest(risk, outputs, path[-1], free)]
        path.append(min(spared, key=lambda found: found.loss))
    if len(_counted(solution, free)) > 1:
        alone = _best_alone(risk, outputs, tol, free)
        # without one model several others may go at once; and sets may be worse than the best model of all
        path = [step for step in path if len(_counted(step, free)) > 1 and step.loss <= alone.loss]
        path.append(alone)
    if free and len(_counted(path[-1], free)) == 1:
        path.append(_among(risk, outputs, np.array(free), tol))
    return path


def without(
    risk: Risk, outputs: Outputs, solution: Solution, spared: list[int], tol: float, free: Sequence[int] = ()
) -> Solution:
    """Optimal weights over the models in use, or free, but for some, starting from where those stand."""
    kept = np.setdiff1d(np.union1d(solution.used, np.array(free, dtype=np.intp)), spared)
    return _among(risk, outputs, kept, tol, solution.weights[kept])


def _among(
    risk: Risk, outputs: Outputs, kept: NDArray[np.intp], tol: float, start: NDArray[np.float64] | None = None
) -> Solution:
    """Optimal weights over some models; all others have weight 0, and nothing is known of their alignment."""
    found = solve(risk, outputs.select(kept), tol, start=start)
    weights, alignment = np.zeros(len(outputs)), np.full(len(outputs), np.nan)
    weights[kept], alignment[kept] = found.weights, found.alignment
    return replace(found, weights=weights, alignment=alignment)


def _counted(solution: Solution, free: Sequence[int]) -> NDArray[np.intp]:
    return np.setdiff1d(solution.used, np.array(free, dtype=np.intp))


def _bends(risk: Risk) -> bool:
    """Whether a quadratic model of the risk says what happens to it."""
    return risk.loss.curved and risk.loss.soft(1.0) is None


def _thinner(risk: Risk, outputs: Outputs, solution: Solution, tol: float, free: Sequence[int]) -> Solution:
    """Optimal weights for a crowd that has lost some."""
    used, counted = solution.used, _counted(solution, free)
    count = len(counted) // _ONE_IN
    if not _bends(risk):
        lightest = counted[np.argsort(solution.weights[counted], kind="stable")[:count]]
        return without(risk, outputs, solution, lightest.tolist(), tol, free)
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    start = np.zeros(len(outputs))
    start[used] = thinned(compliance(hessian), solution.weights[used], np.isin(used, free), count)
    kept = np.union1d(np.flatnonzero(start), np.array(free, dtype=np.intp))
    return _among(risk, outputs, kept, tol, start[kept])


def _easiest(risk: Risk, outputs: Outputs, solution: Solution, free: Sequence[int]) -> NDArray[np.intp]:
    """Models in use that are missed least, by the quadratic model of the risk.

    That weights may not fall below 0 is left to the exact solution.
    """
    used, counted = solution.used, _counted(solution, free)
    tried = _TRIED if len(used) <= _MANY else 1
    if not _bends(risk):
        return counted[np.argsort(solution.weights[counted], kind="stable")[:tried]]
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    cost = missed(np.diag(compliance(hessian)), solution.weights[used])
    order = used[np.argsort(cost, kind="stable")]
    return order[np.isin(order, counted)][:tried]


def _best_alone(risk: Risk, outputs: Outputs, tol: float, free: Sequence[int]) -> Solution:
    """The best model, beside those that are free."""
    if len(free) == 1:
        return _among(risk, outputs, np.array([free[0], _best_beside(risk, outputs, free[0])]), tol)
    if free:
        others = np.setdiff1d(np.arange(len(outputs)), free)
        return min((_among(risk, outputs, np.array([*free, j]), tol) for j in others), key=lambda found: found.loss)
    singles = [float(risk.value(answer.double()[None])) for answer in outputs.answers]
    return _among(risk, outputs, np.array([np.argmin(singles)]), tol)


def _best_beside(risk: Risk, outputs: Outputs, one: int) -> int:
    """The model whose segment to a given one reaches lowest, which a line search tells."""
    pred, least = outputs.answers[one].double()[None], np.full(len(outputs), np.inf)
    limit = torch.ones(1, 1, dtype=torch.float64, device=pred.device)
    for j, answer in enumerate(outputs.answers):
        if j != one:
            line = risk.along(pred, answer.double() - pred, limit)
            least[j] = float(line.value(Exact()(line, 0)))
    return int(least.argmin())
