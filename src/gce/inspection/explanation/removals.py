"""The value of each member: the least loss of all the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gce.frank_wolfe.simplex import Outputs, Solution, solve_simplex, warn_of_gaps
from gce.inspection.explanation.explanation import Explanation
from gce.losses.risk import Risk

Array = NDArray[np.float64]

_UNIT = float(np.finfo(np.float64).eps)
#: The weight that moves to a member where the slope of a loss with kinks is measured.
_STEP = 1e-6


def explain(
    names: Sequence[str],
    risk: Risk,
    outputs: Outputs,
    solution: Solution,
    tol: float,
    seconds: Sequence[float] | None = None,
    unit: str = "member",
) -> Explanation:
    """Explain the weights of members whose predictions are known.

    The best weights are found, unless these are. For each member that they use, the weights of all the others are
    re-optimised without it; removing one that they do not use changes nothing.

    Parameters
    ----------
    names : sequence of P str
    risk : Risk
        Of one member: ``weight`` of shape ``(1, n)``.
    outputs : Outputs
        Predictions of the P members.
    solution : Solution
        Their weights.
    tol : float
        Relative gap to which the best weights, and those without a member, are solved.
    seconds : sequence of P float, optional
        Prediction time per row.
    unit : {"member", "family", "atom"}, default="member"
        What they are.

    Returns
    -------
    Explanation
    """
    with torch.no_grad():
        own = [float(risk.value(answer.double()[None])) for answer in outputs.predictions]
        best = _best(risk, outputs, solution, tol)
        without = np.full(len(outputs), best.loss if len(outputs) > 1 else np.nan)
        if len(outputs) > 1:
            used = best.used.tolist()
            solutions = [_solve_without(risk, outputs, best.weights, j, tol) for j in used]
            without[used] = [other.loss for other in solutions]
            # a loss that is 0 up to the rounding of the largest own loss has no digits to certify
            warn_of_gaps(solutions, tol, [f"the loss without {names[j]!r}" for j in used], _UNIT * max(own))
        slopes = solution.alignment if best is solution else _slopes(risk, outputs, solution)
    return Explanation(
        tuple(names),
        solution.weights,
        np.array(own),
        without,
        slopes,
        None if seconds is None else np.asarray(seconds, dtype=np.float64),
        solution.loss,
        # what the best weights prove of the least loss holds for these too
        solution.gap if best is solution else min(solution.gap, solution.loss - (best.loss - best.gap)),
        unit,
        best_loss=best.loss,
    )


def _best(risk: Risk, outputs: Outputs, solution: Solution, tol: float) -> Solution:
    """The best weights: those of the solution, if its gap says so or none are found that are better."""
    if solution.gap <= tol * abs(solution.loss):
        return solution
    best = solve_simplex(risk, outputs, tol, start=solution.weights)
    return best if best.loss < solution.loss else solution


def _slopes(risk: Risk, outputs: Outputs, solution: Solution) -> Array:
    """The slope of the loss toward each member at weights that are not the best."""
    if risk.loss.smoothed(1.0) is None:
        return solution.alignment
    # a certificate takes slopes of a smoothed loss; secants of a convex one are never below its own slopes
    pred = outputs.combine(solution.weights)
    ahead = [float(risk.value((pred + _STEP * (answer.double() - pred))[None])) for answer in outputs.predictions]
    return (np.array(ahead) - float(risk.value(pred[None]))) / _STEP


def _solve_without(risk: Risk, outputs: Outputs, weights: Array, j: int, tol: float) -> Solution:
    others = np.delete(np.arange(len(outputs)), j)
    return solve_simplex(risk, outputs.select(others), tol, start=weights[others])
