"""The families of an ensemble as a problem over one simplex: what each of them is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.frank_wolfe.simplex import Outputs
from gce.inspection.atom_families import atom_families
from gce.inspection.editing.edit_data import EditData, own_rows, rows_remark
from gce.inspection.editing.simplex_problem import TOL, SimplexProblem
from gce.inspection.explanation import Explanation, explain
from gce.losses.risk import Risk
from gce.training.calibration import HeldOutScores, gather_held_out
from gce.training.external_models import ExternalModel
from gce.training.result import FitResult

#: What the zero function is called beside families.
_ZERO = "offset"
#: Weights below this are rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Family:
    """A family, or an external model: its weight, its number of atoms, and its part of each member's scores.

    ``part`` maps rows, a member and row indices ``(h,)`` to ``(h, k)``; parts of all families sum to the score without
    the offset. That of a family of weight 0 is its own prediction.
    """

    name: str
    weight: float
    n_atoms: int
    part: Callable[[EditData, int, Tensor], Tensor]

    def output(self, data: EditData, m: int, rows: Tensor) -> Tensor:
        """The prediction that the weight multiplies.

        Where members weigh a family differently, as after an edit, it is divided by the mean of its weights, so that
        the weighted sum of all outputs is the model.
        """
        return self.part(data, m, rows) / (self.weight or 1.0)


def explain_families(result: FitResult, data: EditData) -> Explanation:
    """What each family is worth on the rows that members held out; where there are none, on their training rows.

    Parameters
    ----------
    result : FitResult
    data : EditData

    Returns
    -------
    Explanation
    """
    families = _with_offset(result)
    problem = _simplex_problem(result, families, data)
    found = explain(problem.names, problem.risk, problem.outputs, problem.certified(), TOL, unit="family")
    counts = np.array([family.n_atoms for family in families])
    return replace(found, n_atoms=counts, remarks=_remarks(result, data, len(families) - 1), free=problem.free)


def list_families(result: FitResult) -> Explanation:
    """The weight and the number of atoms of each family, which need no rows.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    Explanation
    """
    families = _with_offset(result)
    weights = np.array([family.weight for family in families])
    counts = np.array([family.n_atoms for family in families])
    found = Explanation.of_weights([family.name for family in families], weights / weights.sum(), "family", counts)
    return replace(found, free=(len(families) - 1,), remarks=tuple(_left_out(result)))


def _remarks(result: FitResult, data: EditData, count: int) -> tuple[str, ...]:
    """On which rows a fit is explained, and what else than their loss decided its weights."""
    remarks = [rows_remark(result, data.problem)]
    if result.edited:
        return tuple(remarks)
    if not result.one_simplex and not data.problem.held_out.any(1).all() and count > 1:
        remarks.append("Where no rows are held out, families have equal weights.")
    elif result.round_weights is not None:
        remarks.append("The fit weighted single rounds instead of families; the weight of a family is their sum.")
    return (*remarks, *_left_out(result))


def _left_out(result: FitResult) -> list[str]:
    return [f"{name} is left out: {reason}." for name, reason in result.left_out]


def _with_offset(result: FitResult) -> list[_Family]:
    """Families, and last the zero function, which the weights of a fit may have too."""
    families = list(_families(result))
    rest = 1 - sum(family.weight for family in families)
    zero = _Family(
        _ZERO, rest if rest > _ROUNDING else 0.0, 0, lambda data, _, rows: torch.zeros_like(data.problem.y[rows])
    )
    return [*families, zero]


def _simplex_problem(result: FitResult, families: list[_Family], data: EditData) -> SimplexProblem:
    problem, total = data.problem, data.held_out_total
    if not problem.held_out.any(1).all():
        problem, total = replace(problem, held_out=own_rows(result, problem)), np.ones(problem.members)
    rows: list[HeldOutScores] = [gather_held_out(problem, total, partial(family.output, data)) for family in families]
    first = rows[0]
    risk = Risk(problem.loss, first.y, (first.weight / first.weight.sum())[None], problem.offset)
    weights = np.array([family.weight for family in families])
    return SimplexProblem(
        tuple(family.name for family in families),
        Outputs([own.pred for own in rows]),
        risk,
        weights / weights.sum(),
        free=(len(families) - 1,),
    )


def _families(result: FitResult) -> Iterator[_Family]:
    """Families that have atoms, or whose rounds are known, and external models."""
    atoms, ensemble = atom_families(result), result.ensemble
    known = dict(zip((family.name for family in result.families), result.family_weights, strict=True))
    records = {family.name: family for family in result.families if family.rounds}
    for name in atoms.names:
        own = atoms.members_of(name)
        if len(own):
            chosen = torch.zeros(len(ensemble), dtype=torch.bool, device=ensemble.weights.device)
            chosen[torch.from_numpy(own).to(chosen.device)] = True
            weight = known.get(name, float(ensemble.weights[chosen].sum()))
            yield _Family(name, weight, len(own), _part(ensemble.select(chosen), ensemble.members, result.one_simplex))
        elif name in records:
            alone = records[name].ensemble(ensemble.offset)  # type: ignore[union-attr]
            yield _Family(name, 0.0, 0, _part(alone, ensemble.members, result.one_simplex))
    for model in result.external:

        def part(data: EditData, m: int, rows: Tensor, model: ExternalModel = model) -> Tensor:
            return (float(model.weights[m]) if model.weights.any() else 1.0) * data.external[model.name][rows]

        yield _Family(model.name, float(model.weight), 0, part)


def _part(some: ConvexEnsemble, members: int, together: bool) -> Callable[[EditData, int, Tensor], Tensor]:
    """The part of the scores that some atoms give, by member, or that of all members where they share a simplex."""
    scale = 1 if together else members

    def part(data: EditData, m: int, rows: Tensor) -> Tensor:
        own = some if together else some.select(some.origin[:, 0] == m)
        if not len(own):
            return torch.zeros_like(data.problem.y[rows])
        return scale * (own(data.problem.X[rows]) - some.offset)

    return part
