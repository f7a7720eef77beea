"""What each member is worth: the loss of the best weights over all the others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from gce.explaining.explanation import Explanation
from gce.explaining.numerals import above
from gce.risk import Risk
from gce.settings import users_line
from gce.weighting import Outputs, Solution, solve

Array = NDArray[np.float64]

_UNIT = float(np.finfo(np.float64).eps)


def explain(
    names: Sequence[str],
    risk: Risk,
    outputs: Outputs,
    solution: Solution,
    tol: float,
    seconds: Sequence[float] | None = None,
) -> Explanation:
    """Explain the weights of members whose answers are known.

    A member in use is taken away and the weights of all others are solved anew. To take away a member of weight 0
    changes nothing.

    Parameters
    ----------
    names : sequence of P str
    risk : Risk
        Of one member: ``weight`` of shape ``(1, n)``.
    outputs : Outputs
    solution : Solution
    tol : float
        The relative gap to which weights without a member are solved.
    seconds : sequence of P float, optional
        What a member takes to answer for one row.
    """
    with torch.no_grad():
        own = [float(risk.value(answer.double()[None])) for answer in outputs.answers]
        without = np.full(len(outputs), solution.loss if len(outputs) > 1 else np.nan)
        if len(outputs) > 1:
            spared = {int(j): _solved_without(risk, outputs, solution.weights, int(j), tol) for j in solution.used}
            without[list(spared)] = [found.loss for found in spared.values()]
            _warn_of_gaps(names, spared, tol, max(own))
    return Explanation(
        tuple(names),
        solution.weights,
        np.array(own),
        without,
        solution.alignment,
        None if seconds is None else np.asarray(seconds, dtype=np.float64),
        solution.loss,
        solution.gap,
    )


def _solved_without(risk: Risk, outputs: Outputs, weights: Array, j: int, tol: float) -> Solution:
    others = np.delete(np.arange(len(outputs)), j)
    return solve(risk, outputs.select(others), tol, start=weights[others])


def _warn_of_gaps(names: Sequence[str], spared: dict[int, Solution], tol: float, size: float) -> None:
    """Say where a loss without a member is not known as well as was asked.

    A loss that is 0 but for the rounding of ``size``, the largest of members alone, has no digits to ask for.
    """
    wide = [j for j, found in spared.items() if not found.reached and found.gap > _UNIT * size]
    if wide:
        worst = max(wide, key=lambda j: spared[j].gap)
        warnings.warn(
            f"losses without a member are not all as near the least as tol={tol:g} asks, {names[worst]!r}'s "
            f"{spared[worst].loss:.6g} is within {above(spared[worst].gap)} only: use them if that is near enough",
            ConvergenceWarning,
            stacklevel=users_line(),
        )
