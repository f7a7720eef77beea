"""Edits of a fitted ensemble: functions from one result to another, in which weights are re-optimised.

Nothing is trained again, and the result that is given is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gce.inspection.editing.edit_data import EditData, atom_names, rows_remark, simplex_problems, with_weights
from gce.inspection.editing.naming import check_known, is_zero
from gce.inspection.editing.pruning import choose, path_step, prune_together
from gce.inspection.editing.simplex_problem import TOL
from gce.inspection.explanation import Explanation, PathStep, explain
from gce.training.external_models import ExternalModel
from gce.training.result import FitResult


def check_removable(result: FitResult, names: str | Iterable[str]) -> list[str]:
    """Names of atoms and external models that can be removed."""
    known = atom_names(result)
    removed = check_known(names, known)
    for name in removed:
        if is_zero(name):
            raise ValueError(f"{name!r} is the zero function around the offset, which is always there")
    if not {name for name in known if not is_zero(name)} - set(removed):
        raise ValueError(f"without {', '.join(removed)} only the offset would be left: keep at least one atom")
    return removed


def remove(result: FitResult, names: Iterable[str], data: EditData) -> FitResult:
    """Remove atoms and external models, and re-optimise the weights of the others."""
    removed = list(names)
    problems = [problem.without(removed) for problem in simplex_problems(result, data)]
    return with_weights(result, data, problems, [problem.solved() for problem in problems])


def add(result: FitResult, model: ExternalModel) -> FitResult:
    """Add an external model of weight zero: :func:`reoptimize` gives it the weight it deserves."""
    return replace(result, external=(*result.external, model))


def reoptimize(result: FitResult, data: EditData) -> FitResult:
    """Re-optimise the weights of all atoms and external models."""
    problems = simplex_problems(result, data)
    return with_weights(result, data, problems, [problem.solved() for problem in problems])


def prune(result: FitResult, data: EditData, k: int | None, tol: float | None) -> FitResult:
    """The largest ensemble of at most ``k`` atoms on the pruning path, or the smallest within ``tol`` of the best."""
    problems = simplex_problems(result, data)
    edited = with_weights(result, data, problems, choose(problems, prune_together(problems), k, tol))
    # an atom without weight is gone; an external model that add gave no weight is kept there, to show that it got none
    return replace(edited, external=tuple(model for model in edited.external if model.weight > 0))


def pruning_steps(result: FitResult, data: EditData) -> tuple[PathStep, ...]:
    """Every size of the pruning path, from the best weights over all atoms down to one atom."""
    problems = simplex_problems(result, data)
    return tuple(path_step(problems, point) for point in prune_together(problems))


def explain_weights(result: FitResult, data: EditData) -> Explanation:
    """What each atom is worth, on the rows of its member."""
    problems = simplex_problems(result, data)
    parts = [
        replace(
            explain(problem.names, problem.risk, problem.outputs, problem.certified(), TOL, unit="atom"),
            free=problem.free,
        )
        for problem in problems
    ]
    joined = Explanation.joined(parts, [1 / len(parts)] * len(parts))
    if len(parts) == 1:
        return replace(joined, remarks=(rows_remark(result, data.problem),))
    return replace(
        joined,
        remarks=(
            f"Each of the {len(parts)} members is explained on rows of its fit, and losses are means over members. The "
            "others of an atom are those of its member.",
        ),
    )
