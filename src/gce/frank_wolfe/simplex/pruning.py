"""Backward elimination: ever smaller sets of models, each with optimal weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from gce.frank_wolfe.simplex.elimination import constrained_inverse, eliminate_models, removal_costs
from gce.frank_wolfe.simplex.outputs import Outputs, QuadraticOutputs
from gce.frank_wolfe.simplex.solver import Solution, solve_simplex
from gce.losses.line_search import Exact
from gce.losses.risk import Risk

#: How many of the models with the least removal costs are tried, and the number of models beyond which only one is.
_TRIED, _MANY = 3, 32
#: Above this number of models, one in so many is eliminated at a time.
_CROWD, _ONE_IN = 64, 16


def backward_elimination(
    risk: Risk, outputs: Outputs, solution: Solution, tol: float = 1e-6, free: Sequence[int] = ()
) -> list[Solution]:
    """Optimal weights for ever smaller sets of models, from those in use down to one.

    Each step removes, of the few models with the least estimated removal costs, the one whose removal raises the risk
    least; from many models several are removed at once. The set of one is the best single model, whether it was in
    earlier sets or not; sets that are worse than it are dropped.

    Parameters
    ----------
    risk : Risk
        Risk of one member.
    outputs : Outputs
        Predictions of the pool, relative to the risk's offset.
    solution : Solution
        Optimal weights over the pool.
    tol : float, default=1e-6
        Duality gap at which optimisation stops, relative to the risk.
    free : sequence of int, default=()
        Indices of models that are not counted, such as a constant: they are available to every set, and the path ends
        with them alone.

    Returns
    -------
    list of Solution
        Starting with ``solution``. Gaps and alignments are relative to the models of each set.
    """
    path = [solution]
    if risk.loss.quadratic and len(solution.used) > _CROWD:
        outputs = QuadraticOutputs.from_risk(risk, outputs, outputs.combine(solution.weights))
    while len(_counted(path[-1], free)) > _CROWD:
        path.append(_eliminate_several(risk, outputs, path[-1], tol, free))
    while len(_counted(path[-1], free)) > 2:
        candidates = [
            solve_without(risk, outputs, path[-1], [j], tol, free) for j in _least_costly(risk, outputs, path[-1], free)
        ]
        path.append(min(candidates, key=lambda solution: solution.loss))
    if len(_counted(solution, free)) > 1:
        alone = _best_alone(risk, outputs, tol, free)
        # one removal may take others along; and sets may be worse than the best single model
        path = [step for step in path if len(_counted(step, free)) > 1 and step.loss <= alone.loss]
        path.append(alone)
    if free and len(_counted(path[-1], free)) == 1:
        path.append(_solve_among(risk, outputs, np.array(free), tol))
    return path


def solve_without(
    risk: Risk, outputs: Outputs, solution: Solution, removed: list[int], tol: float, free: Sequence[int] = ()
) -> Solution:
    """Optimal weights over the models in use without some of them, starting from the current weights.

    Parameters
    ----------
    risk : Risk
        Risk of one member.
    outputs : Outputs
        Predictions of the pool.
    solution : Solution
        Current weights.
    removed : list of int
        Indices of the models to remove.
    tol : float
        Duality gap at which optimisation stops, relative to the risk.
    free : sequence of int, default=()
        Indices of models that are available even if they are not in use.

    Returns
    -------
    Solution
    """
    kept = np.setdiff1d(np.union1d(solution.used, np.array(free, dtype=np.intp)), removed)
    return _solve_among(risk, outputs, kept, tol, solution.weights[kept])


def _solve_among(
    risk: Risk, outputs: Outputs, kept: NDArray[np.intp], tol: float, start: NDArray[np.float64] | None = None
) -> Solution:
    """Optimal weights over some models; all others have weight 0 and an alignment of NaN."""
    solution = solve_simplex(risk, outputs.select(kept), tol, start=start)
    weights, alignment = np.zeros(len(outputs)), np.full(len(outputs), np.nan)
    weights[kept], alignment[kept] = solution.weights, solution.alignment
    return replace(solution, weights=weights, alignment=alignment)


def _counted(solution: Solution, free: Sequence[int]) -> NDArray[np.intp]:
    return np.setdiff1d(solution.used, np.array(free, dtype=np.intp))


def _is_smooth(risk: Risk) -> bool:
    """Whether the risk has a quadratic model."""
    return risk.loss.has_hessian and risk.loss.smoothed(1.0) is None


def _eliminate_several(risk: Risk, outputs: Outputs, solution: Solution, tol: float, free: Sequence[int]) -> Solution:
    """Optimal weights after the removal of several models."""
    used, counted = solution.used, _counted(solution, free)
    count = len(counted) // _ONE_IN
    if not _is_smooth(risk):
        lightest = counted[np.argsort(solution.weights[counted], kind="stable")[:count]]
        return solve_without(risk, outputs, solution, lightest.tolist(), tol, free)
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    start = np.zeros(len(outputs))
    start[used] = eliminate_models(constrained_inverse(hessian), solution.weights[used], np.isin(used, free), count)
    kept = np.union1d(np.flatnonzero(start), np.array(free, dtype=np.intp))
    return _solve_among(risk, outputs, kept, tol, start[kept])


def _least_costly(risk: Risk, outputs: Outputs, solution: Solution, free: Sequence[int]) -> NDArray[np.intp]:
    """Models in use with the least removal costs under the quadratic model of the risk.

    That weights must not become negative is left to the exact solution.
    """
    used, counted = solution.used, _counted(solution, free)
    tried = _TRIED if len(used) <= _MANY else 1
    if not _is_smooth(risk):
        return counted[np.argsort(solution.weights[counted], kind="stable")[:tried]]
    hessian = outputs.hessian(risk, outputs.combine(solution.weights), used)
    cost = removal_costs(np.diag(constrained_inverse(hessian)), solution.weights[used])
    order = used[np.argsort(cost, kind="stable")]
    return order[np.isin(order, counted)][:tried]


def _best_alone(risk: Risk, outputs: Outputs, tol: float, free: Sequence[int]) -> Solution:
    """The best single model, together with the free ones."""
    if len(free) == 1:
        return _solve_among(risk, outputs, np.array([free[0], _best_partner(risk, outputs, free[0])]), tol)
    if free:
        others = np.setdiff1d(np.arange(len(outputs)), free)
        return min(
            (_solve_among(risk, outputs, np.array([*free, j]), tol) for j in others), key=lambda solution: solution.loss
        )
    singles = [float(risk.value(own.double()[None])) for own in outputs.predictions]
    return _solve_among(risk, outputs, np.array([np.argmin(singles)]), tol)


def _best_partner(risk: Risk, outputs: Outputs, one: int) -> int:
    """The model with the least risk on the segment to model ``one``, by line search."""
    pred, least = outputs.predictions[one].double()[None], np.full(len(outputs), np.inf)
    limit = torch.ones(1, 1, dtype=torch.float64, device=pred.device)
    for j, own in enumerate(outputs.predictions):
        if j != one:
            line = risk.along(pred, own.double() - pred, limit)
            least[j] = float(line.value(Exact()(line, 0)))
    return int(least.argmin())
