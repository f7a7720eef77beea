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

    For each member in use, the weights of all the others are re-optimised without it. Removing a member of weight 0
    changes nothing.

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
        Relative gap to which the weights without a member are solved.
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
        without = np.full(len(outputs), solution.loss if len(outputs) > 1 else np.nan)
        if len(outputs) > 1:
            used = solution.used.tolist()
            solutions = [_solve_without(risk, outputs, solution.weights, j, tol) for j in used]
            without[used] = [other.loss for other in solutions]
            # a loss that is 0 up to the rounding of the largest own loss has no digits to certify
            warn_of_gaps(solutions, tol, [f"the loss without {names[j]!r}" for j in used], _UNIT * max(own))
    return Explanation(
        tuple(names),
        solution.weights,
        np.array(own),
        without,
        solution.alignment,
        None if seconds is None else np.asarray(seconds, dtype=np.float64),
        solution.loss,
        solution.gap,
        unit,
    )


def _solve_without(risk: Risk, outputs: Outputs, weights: Array, j: int, tol: float) -> Solution:
    others = np.delete(np.arange(len(outputs)), j)
    return solve_simplex(risk, outputs.select(others), tol, start=weights[others])
