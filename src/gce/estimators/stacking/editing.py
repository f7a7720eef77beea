"""Helpers for editing fitted stacks: which members remain, which rows match, and pruning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import _num_samples, check_consistent_length

from gce.estimators.stacking.checks import check_weights
from gce.estimators.stacking.out_of_fold import OutOfFold
from gce.estimators.stacking.problem import StackProblem
from gce.estimators.stacking.task import StackTask
from gce.frank_wolfe.simplex import Solution
from gce.inspection.editing.naming import check_known
from gce.inspection.editing.pruning import PathPoint, prune_together
from gce.inspection.editing.simplex_problem import SimplexProblem
from gce.preprocessing import targets_as_array
from gce.training.predictions import Array


def remaining_members(members: list[str], names: str | Iterable[str]) -> list[int]:
    """Indices of the members that remain when some are removed by name; at least one must."""
    removed = check_known(names, members)
    left = [j for j, name in enumerate(members) if name not in removed]
    if not left:
        raise ValueError(f"without {', '.join(removed)} the stack would have no members: keep at least one")
    return left


def restrict(solution: Solution, index: list[int]) -> Solution:
    """The solution over the members that have all the weight; its gap still bounds theirs."""
    return replace(solution, weights=solution.weights[index], alignment=solution.alignment[index])


def problem_on(task: StackTask, X: Any, y: Any, sample_weight: Any) -> StackProblem:
    """The problem of finding weights on other rows than those of the fit."""
    y = task.encode(targets_as_array(y))
    check_consistent_length(X, y)
    return task.problem(y, check_weights(sample_weight, y))


def check_same_rows(known: OutOfFold, task: StackTask, X: Any, y: Any, sample_weight: Any) -> None:
    """Refuse rows other than those that the members predicted.

    Without ``y`` only the number of rows and their weights can be compared.
    """
    n = _num_samples(X)
    if y is not None:
        same = known.problem.same_rows(problem_on(task, X, y, sample_weight))
    else:
        weight = check_weights(sample_weight, np.zeros(n))
        same = np.array_equal(np.flatnonzero(weight), known.rows)
        if same and sample_weight is not None:
            same = np.array_equal(weight[known.rows] / weight.sum(), known.problem.weight)
    if not same:
        raise ValueError(
            f"X, y or sample_weight differ: the {n} rows given are not the {len(known.rows)} rows of positive weight "
            "that the members predicted: give the same rows, or call reweight with the new ones first"
        )


def shrink(
    members: Iterable[str], out_of_fold: OutOfFold, weights: Array, tol: float
) -> tuple[list[SimplexProblem], list[PathPoint]]:
    """The best weights of ever fewer members.

    Returns
    -------
    problems : list of one SimplexProblem
    points : list of tuples of one Solution
        From all members in use down to one.
    """
    problems = [SimplexProblem(tuple(members), out_of_fold.outputs, out_of_fold.risk, weights, tol=tol)]
    with torch.no_grad():
        return problems, prune_together(problems)
