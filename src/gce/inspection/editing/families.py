"""The families of an ensemble as a problem over one simplex: what each of them is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.frank_wolfe.simplex import Outputs
from gce.inspection.atom_families import atom_families
from gce.inspection.editing.edit_data import EditData, own_rows
from gce.inspection.editing.simplex_problem import TOL, SimplexProblem
from gce.inspection.explanation import Explanation, explain
from gce.losses.risk import Risk
from gce.training.calibration import HeldOutScores, gather_held_out
from gce.training.result import FitResult

#: What the zero function is called beside families.
_ZERO = "offset"
#: Weights below this are rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Family:
    """A family, or an external model: its weight, its number of atoms, and its part of each member's scores.

    ``part`` maps a member and row indices ``(h,)`` to ``(h, k)``; parts of all families sum to the score without the
    offset. That of a family of weight 0 is its own prediction.
    """

    name: str
    weight: float
    n_atoms: int
    part: Callable[[int, Tensor], Tensor]

    def output(self, m: int, rows: Tensor) -> Tensor:
        """The prediction that the weight multiplies.

        Where members weigh a family differently, as after an edit, it is divided by the mean of its weights, so that
        the weighted sum of all outputs is the model.
        """
        return self.part(m, rows) / (self.weight or 1.0)


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
    families = list(_families(result, data))
    rest = 1 - sum(family.weight for family in families)
    if rest > _ROUNDING:
        nothing = torch.zeros_like(data.problem.y)
        families.append(_Family(_ZERO, rest, 0, lambda _, rows: nothing[rows]))
    problem = _simplex_problem(result, families, data)
    found = explain(problem.names, problem.risk, problem.outputs, problem.certified(), TOL, unit="family")
    return replace(found, n_atoms=np.array([family.n_atoms for family in families]))


def _simplex_problem(result: FitResult, families: list[_Family], data: EditData) -> SimplexProblem:
    problem, total = data.problem, data.held_out_total
    if not problem.held_out.any(1).all():
        problem, total = replace(problem, held_out=own_rows(result, problem)), np.ones(problem.members)
    rows: list[HeldOutScores] = [gather_held_out(problem, total, family.output) for family in families]
    first = rows[0]
    risk = Risk(problem.loss, first.y, (first.weight / first.weight.sum())[None], problem.offset)
    weights = np.array([family.weight for family in families])
    return SimplexProblem(
        tuple(family.name for family in families), Outputs([own.pred for own in rows]), risk, weights / weights.sum()
    )


def _families(result: FitResult, data: EditData) -> Iterator[_Family]:
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
            scale = 1 if result.one_simplex else ensemble.members
            yield _Family(name, weight, len(own), _part(ensemble.select(chosen), scale, result.one_simplex, data))
        elif name in records:
            alone = records[name].ensemble(ensemble.offset)  # type: ignore[union-attr]
            yield _Family(name, 0.0, 0, _part(alone, alone.members, result.one_simplex, data))
    for model in result.external:
        pred = data.external[model.name]

        def part(m: int, rows: Tensor, shares: np.ndarray = model.weights, pred: Tensor = pred) -> Tensor:
            return (float(shares[m]) if shares.any() else 1.0) * pred[rows]

        yield _Family(model.name, float(model.weight), 0, part)


def _part(some: ConvexEnsemble, scale: int, together: bool, data: EditData) -> Callable[[int, Tensor], Tensor]:
    """The part of the scores that some atoms give, by member, or that of all members where they share a simplex."""

    def part(m: int, rows: Tensor) -> Tensor:
        own = some if together else some.select(some.origin[:, 0] == m)
        if not len(own):
            return torch.zeros_like(data.problem.y[rows])
        return scale * (own(data.problem.X[rows]) - some.offset)

    return part
