"""Smaller and smaller ensembles: which model can best be spared, again and again, with optimal weights each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gce.risk import Risk
from gce.weighting.outputs import Outputs
from gce.weighting.solver import Solution, solve

#: How many of the models that look easiest to spare are tried: of many models any of these will do.
_TRIED, _MANY = 3, 32
#: Relative to the mean of the diagonal: equal models would make the system singular.
_RIDGE = 1e-12


def shrinking(
    risk: Risk, outputs: Outputs, solution: Solution, tol: float = 1e-6, free: Sequence[int] = ()
) -> list[Solution]:
    """Optimal weights for ever smaller sets of models, from those in use down to one.

    Each set is the one before without the model that is missed least among a few that look so. The set of one has the
    best model of all, be it in the set before or not; sets that are worse are left out. Gaps are within each set.

    Models that are ``free``, such as a constant, count for nothing: they stay available to every set, and the path ends
    with them alone.
    """
    path = [solution]
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


def _easiest(risk: Risk, outputs: Outputs, solution: Solution, free: Sequence[int]) -> NDArray[np.intp]:
    """Models in use that are missed least, by the quadratic model of the risk.

    Where the weights of ``S`` models are optimal, taking ``w_j`` to 0 while the others adjust costs
    ``w_j^2 / (2 (K^-1)_jj)``, ``K`` the Hessian bordered by ones (the weights keep their sum): the optimal brain
    surgeon's formula (Hassibi and Stork, 1993). That the others may not fall below 0 is left to the exact solution.
    """
    used, counted = solution.used, _counted(solution, free)
    weights, tried = solution.weights[used], _TRIED if len(used) <= _MANY else 1
    if not risk.loss.curved or risk.loss.soft(1.0) is not None:
        return counted[np.argsort(solution.weights[counted], kind="stable")[:tried]]
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    size = max(float(np.trace(hessian)) / len(used), np.finfo(np.float64).tiny)
    bordered = np.ones((len(used) + 1, len(used) + 1))
    bordered[:-1, :-1] = hessian / size + _RIDGE * np.eye(len(used))
    bordered[-1, -1] = 0.0
    stiffness = np.diag(np.linalg.inv(bordered))[:-1]
    cost = weights**2 / np.maximum(stiffness, np.finfo(np.float64).tiny)
    order = used[np.argsort(cost, kind="stable")]
    return order[np.isin(order, counted)][:tried]


def _best_alone(risk: Risk, outputs: Outputs, tol: float, free: Sequence[int]) -> Solution:
    """The best model, beside those that are free."""
    if free:
        others = np.setdiff1d(np.arange(len(outputs)), free)
        return min((_among(risk, outputs, np.array([*free, j]), tol) for j in others), key=lambda found: found.loss)
    singles = [float(risk.value(answer.double()[None])) for answer in outputs.answers]
    return _among(risk, outputs, np.array([np.argmin(singles)]), tol)
