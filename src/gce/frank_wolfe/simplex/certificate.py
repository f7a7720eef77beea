"""The warning for weights whose certificate is wider than the tolerance."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.exceptions import ConvergenceWarning

from gce._utils.numerals import format_bound
from gce._utils.warn import warn_user
from gce.frank_wolfe.simplex.solver import Solution


def warn_of_gaps(
    solutions: Sequence[Solution], tol: float, names: Sequence[str] | None = None, negligible: float = 0.0
) -> None:
    """Warn if solutions are not proved to be within the tolerance of the optimum.

    Parameters
    ----------
    solutions : sequence of Solution
    tol : float
        The relative gap to which they were to be solved.
    names : sequence of str, optional
        What the loss of each solution is called in the warning. Default: the loss of the weights.
    negligible : float, default=0.0
        Gaps up to here are within rounding, and not reported.
    """
    wide = [j for j, solution in enumerate(solutions) if not solution.converged and solution.gap > negligible]
    if not wide:
        return
    worst = max(wide, key=lambda j: solutions[j].gap - tol * abs(solutions[j].loss))
    name = "the loss of the weights" if names is None else names[worst]
    loss, gap = solutions[worst].loss, solutions[worst].gap
    others = f" ({len(wide)} of {len(solutions)} solutions)" if len(solutions) > 1 else ""
    warn_user(
        f"{name}, {loss:.6g}, is proved to be within {format_bound(gap)} of the minimum, but tol={tol:g} requires "
        f"{tol * abs(loss):.2g}{others}: use the weights if that is close enough, or set a larger tol",
        ConvergenceWarning,
    )
