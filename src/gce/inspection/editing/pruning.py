"""From a large ensemble to a small one, step by step, and the step that is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gce._utils.params import check_count, check_number, short_repr
from gce.frank_wolfe.simplex import Solution, backward_elimination
from gce.inspection.editing.simplex_problem import SimplexProblem
from gce.inspection.explanation import PathStep

PathPoint = tuple[Solution, ...]


def check_goal(k: int | None, tol: float | None) -> None:
    """Exactly one of a size and a loss says where to stop."""
    if (k is None) == (tol is None):
        given = f"k={short_repr(k)} and tol={short_repr(tol)}"
        raise ValueError(f"give either k, a size, or tol, a relative rise of the loss, got {given}")
    if k is not None:
        check_count("k", k, 1)
    else:
        check_number("tol", tol, 0)


def prune_together(problems: Sequence[SimplexProblem]) -> list[PathPoint]:
    """Solutions of all problems, from the best weights over everything down to one atom in all.

    Each simplex shrinks along its own path; next comes the step that raises the mean loss least. Atoms that help by
    less than the gap may go together: then the last solution has none.
    """
    paths = [
        backward_elimination(problem.risk, problem.outputs, problem.solved(), problem.tol, problem.free)
        for problem in problems
    ]
    at = [0] * len(paths)
    points = [tuple(path[0] for path in paths)]
    while going := [m for m, path in enumerate(paths) if at[m] + 1 < len(path)]:
        at[min(going, key=lambda m: paths[m][at[m] + 1].loss - paths[m][at[m]].loss)] += 1
        point = tuple(path[i] for path, i in zip(paths, at, strict=True))
        if size_of(problems, point) == 0 and size_of(problems, points[-1]) == 1:
            break
        points.append(point)
    return points


def size_of(problems: Sequence[SimplexProblem], point: PathPoint) -> int:
    """How many are in use, zero functions not counted."""
    return sum(problem.size(solution) for problem, solution in zip(problems, point, strict=True))


def loss_of(point: PathPoint) -> float:
    """The mean loss of all problems."""
    return float(np.mean([solution.loss for solution in point]))


def choose(
    problems: Sequence[SimplexProblem], points: Sequence[PathPoint], k: int | None, tol: float | None
) -> PathPoint:
    """The largest of at most ``k``, or the smallest whose loss is at most ``1 + tol`` times the least."""
    if k is not None:
        return next(point for point in points if size_of(problems, point) <= k)
    assert tol is not None
    most = loss_of(points[0]) + tol * abs(loss_of(points[0]))
    return [point for point in points if loss_of(point) <= most][-1]


def path_step(problems: Sequence[SimplexProblem], point: PathPoint) -> PathStep:
    """A step as it is shown: weights are those in the whole ensemble, zero functions are left out."""
    names, weights = [], []
    for problem, solution in zip(problems, point, strict=True):
        for j in np.setdiff1d(solution.used, problem.free):
            names.append(problem.names[j])
            weights.append(solution.weights[j] / len(problems))
    gap = float(np.mean([solution.gap for solution in point]))
    return PathStep(len(names), loss_of(point), gap, tuple(names), np.array(weights))
