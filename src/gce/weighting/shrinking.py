"""Smaller and smaller ensembles: which model can best be spared, again and again, with optimal weights each time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gce.risk import Risk
from gce.weighting.outputs import Outputs
from gce.weighting.solver import Solution, certified, solve

#: How many of the models that look easiest to spare are tried: of many models any of these will do.
_TRIED, _MANY = 3, 32
#: Relative to the mean of the diagonal: equal models would make the system singular.
_RIDGE = 1e-12


def shrinking(risk: Risk, outputs: Outputs, solution: Solution, tol: float = 1e-6) -> list[Solution]:
    """Optimal weights for ever smaller sets of models, from those in use down to one.

    Each set is the one before without the model that is missed least among a few that look so. The last is the best
    model of all alone, be it in the set before or not. Gaps are within each set.
    """
    path = [solution]
    while len(path[-1].used) > 2:
        spared = [without(risk, outputs, path[-1], [j], tol) for j in _easiest(risk, outputs, path[-1])]
        path.append(min(spared, key=lambda found: found.loss))
    if len(path[-1].used) == 2:
        path.append(_best_alone(risk, outputs))
    return path


def without(risk: Risk, outputs: Outputs, solution: Solution, spared: list[int], tol: float) -> Solution:
    """Optimal weights over the models in use but for some, starting from where those stand."""
    kept = np.setdiff1d(solution.used, spared)
    found = solve(risk, outputs.select(kept), tol, start=solution.weights[kept])
    weights, alignment = np.zeros(len(outputs)), np.full(len(outputs), np.nan)
    weights[kept], alignment[kept] = found.weights, found.alignment
    return replace(found, weights=weights, alignment=alignment)


def _easiest(risk: Risk, outputs: Outputs, solution: Solution) -> NDArray[np.intp]:
    """Models in use that are missed least, by the quadratic model of the risk.

    Where the weights of ``S`` models are optimal, taking ``w_j`` to 0 while the others adjust costs
    ``w_j^2 / (2 (K^-1)_jj)``, ``K`` the Hessian bordered by ones (the weights keep their sum): the optimal brain
    surgeon's formula (Hassibi and Stork, 1993). That the others may not fall below 0 is left to the exact solution.
    """
    used = solution.used
    weights, tried = solution.weights[used], _TRIED if len(used) <= _MANY else 1
    if not risk.loss.curved or risk.loss.soft(1.0) is not None:
        return used[np.argsort(weights, kind="stable")[:tried]]
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    size = max(float(np.trace(hessian)) / len(used), np.finfo(np.float64).tiny)
    bordered = np.ones((len(used) + 1, len(used) + 1))
    bordered[:-1, :-1] = hessian / size + _RIDGE * np.eye(len(used))
    bordered[-1, -1] = 0.0
    stiffness = np.diag(np.linalg.inv(bordered))[:-1]
    cost = weights**2 / np.maximum(stiffness, np.finfo(np.float64).tiny)
    return used[np.argsort(cost, kind="stable")[:tried]]


def _best_alone(risk: Risk, outputs: Outputs) -> Solution:
    singles = [float(risk.value(answer.double()[None])) for answer in outputs.answers]
    best = int(np.argmin(singles))
    weights, alignment = np.zeros(len(outputs)), np.full(len(outputs), np.nan)
    weights[best], alignment[best] = 1.0, 0.0
    found = certified(risk, outputs.select([best]), np.ones(1))
    return replace(found, weights=weights, alignment=alignment)
