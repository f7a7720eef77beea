"""Several families in one ensemble: their weights are solved on the rows held out.

An average of convex combinations is a convex combination: the families' ensembles, each times its weight, are the
ensemble. The weights solve a small convex problem over known predictions, so that they come with a certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble, drop_zero_atoms
from gce.frank_wolfe.simplex import Outputs, Solution, solve_simplex
from gce.frank_wolfe.step import Step
from gce.losses import Loss
from gce.losses.risk import Risk
from gce.training.calibration import HeldOutScores, gather_held_out
from gce.training.family_fit import FamilyFit
from gce.training.problem import Problem
from gce.training.rounds import FamilyRecord

Array = NDArray[np.float64]

#: The gap, relative to the loss, to which family weights are solved: so few are found to the last digits that matter,
#: and samples of weight 2 then have the same effect as two samples.
TOL = 1e-12


@dataclass(frozen=True, eq=False)
class WeightedFamilies:
    """The weights of families that have rounds.

    Parameters
    ----------
    weights : dict of float
        By the family's name; what is left of 1 is the zero function's.
    gap : float
        Certificate: the held-out loss is at most this far above the least possible.
    pred : Tensor of shape (M, N, k)
        Weighted predictions of the members at their best rounds, measured from the offset.
    """

    weights: dict[str, float]
    gap: float
    pred: Tensor


def weigh_families(fits: Sequence[FamilyFit], problem: Problem, total: Array) -> WeightedFamilies:
    """Solve the weights of fitted families on the rows held out; equal weights where there are none.

    Parameters
    ----------
    fits : sequence of FamilyFit
        Those that have rounds.
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    WeightedFamilies
    """
    preds = {fit.name: best_outputs(fit, problem) for fit in fits}
    weights, gap = dict.fromkeys(preds, 1 / len(preds)), 0.0
    if problem.held_out.any():
        rows = [select_held_out(pred, problem, total) for pred in preds.values()]
        found = solve_weights(problem.loss, problem.offset, rows)
        gap, (_, *solved) = found.gap, found.weights.tolist()
        weights = dict(zip(preds, solved, strict=True))
    pred = sum(weight * preds[name] for name, weight in weights.items())
    assert isinstance(pred, Tensor)
    return WeightedFamilies(weights, gap, pred)


def best_outputs(fit: FamilyFit, problem: Problem) -> Tensor:
    """Each member's predictions at its best round on all rows, ``(M, N, k)``, measured from the offset."""
    if fit.best_outputs is not None:
        return fit.best_outputs
    ensemble = fit.record.ensemble(problem.offset)
    members = [ensemble.of_member(m) for m in range(fit.members)]
    return torch.stack([member(problem.X) for member in members]) - problem.offset


def select_held_out(pred: Tensor, problem: Problem, total: Array) -> HeldOutScores:
    """Of predictions ``(M, N, k)``, measured from the offset, those on the rows that each member holds out."""
    return gather_held_out(problem, total, lambda m, rows: problem.offset + pred[m, rows])


def solve_weights(loss: Loss, offset: Tensor, held_out: Sequence[HeldOutScores]) -> Solution:
    """The best weights of the zero function and of families, by their predictions on the same held-out rows."""
    first = held_out[0]
    risk = Risk(loss, first.y, (first.weight / first.weight.sum())[None], offset)
    outputs = [(rows.pred - offset).contiguous() for rows in held_out]
    return solve_simplex(risk, Outputs([torch.zeros_like(first.pred), *outputs]), TOL)


def closing_entry(families: Sequence[FamilyRecord], columns: dict[str, list[float]], seconds: float) -> dict[str, Any]:
    """The last entry of the history of several families: the ensemble of all.

    Parameters
    ----------
    families : sequence of FamilyRecord
    columns : dict of str to list of float
        Its numbers for each member, see :func:`closing_columns`.
    seconds : float
        Since the fit began.

    Returns
    -------
    dict
    """
    members = families[0].members
    means = {name: sum(column) / members for name, column in columns.items()}
    entry = {"t": 1 + sum(len(family.rounds) for family in families), "seconds": seconds, "validation": None, **means}
    return {**entry, "running": list(range(members)), "members": columns, "family": "all"}


def closing_columns(
    families: Sequence[FamilyRecord], found: WeightedFamilies, problem: Problem
) -> dict[str, list[float]]:
    """The numbers of :func:`closing_entry`: by name, one per member."""
    everyone = list(range(problem.members))
    begun = [family for family in families if family.rounds]
    columns = {
        "risk": problem.risk.value(found.pred[:, : problem.train_rows]).tolist(),
        "gap_lower": [found.gap] * problem.members,
        "step_size": [0.0] * problem.members,
        "n_atoms": [sum(family.history[-1]["members"]["n_atoms"][m] for family in begun) for m in everyone],
    }
    if problem.held_out.any():
        columns["validation"] = problem.held_out_loss(found.pred, everyone).tolist()
    return columns


def mix_families(families: Sequence[FamilyRecord], weights: Mapping[str, float], offset: Tensor) -> ConvexEnsemble:
    """The ensemble of families that have rounds, each times its weight.

    What is left to the zero function is one atom per member.

    Parameters
    ----------
    families : sequence of FamilyRecord
    weights : dict of float
        By the family's name; they sum to at most 1.
    offset : Tensor of shape (k,)

    Returns
    -------
    ConvexEnsemble
    """
    ensembles = _ensembles([family for family in families if family.rounds], offset)
    used = {name: own for name, own in ensembles.items() if weights[name] > 0}
    members, first = families[0].members, next(iter(ensembles.values()))
    parts, shares, origin = [], [], []
    for name, own in used.items():
        at = 0
        for part in own.parts:
            assert isinstance(part, Atoms)
            rows = slice(at, at + len(part))
            at += len(part)
            if not isinstance(part, Zero):
                parts.append(part)
                shares.append(weights[name] * own.weights[rows])
                origin.append(own.origin[rows])
    taken = first.weights.new_zeros(members)
    for weight, source in zip(shares, origin, strict=True):
        taken.index_add_(0, source[:, 0], weight)
    device = first.offset.device
    parts.insert(0, Zero(members, len(first.offset)))
    shares.insert(0, (1 / members - taken).clamp(min=0))
    origin.insert(0, torch.stack([torch.arange(members), torch.zeros(members, dtype=torch.long)], 1).to(device))
    bound = torch.stack([own.bound for own in used.values()] or [first.bound]).amax(0)
    return drop_zero_atoms(ConvexEnsemble(parts, torch.cat(shares), torch.cat(origin), first.offset, bound))


def _ensembles(families: Sequence[FamilyRecord], offset: Tensor) -> dict[str, ConvexEnsemble]:
    """Each family's ensemble alone, its rounds counted on from family to family."""
    found, before = {}, 0
    for family in families:
        own = family.ensemble(offset)
        later = torch.where(own.origin[:, 1] > 0, own.origin[:, 1] + before, 0)
        origin = torch.stack([own.origin[:, 0], later], 1)
        parts = [part for part in own.parts if isinstance(part, Atoms)]
        found[family.name] = ConvexEnsemble(parts, own.weights, origin, offset, own.bound)
        before += len(family.rounds)
    return found


class FamilyScreening:
    """A callback that stops a family which would have next to no weight beside those fitted before it.

    Parameters
    ----------
    fit : FamilyFit
    others : list of FamilyFit
        Those before it, fitted to the end.
    problem : Problem
    rounds : int
        After how many rounds the family is screened; 0: never.
    """

    #: The weight that is worth the rest of the fit.
    min_weight = 0.05

    def __init__(self, fit: FamilyFit, others: Sequence[FamilyFit], problem: Problem, rounds: int) -> None:
        self._fit, self._others, self._problem, self._rounds = fit, others, problem, rounds

    def rejects(self) -> bool:
        """Solve the weights where the family is to be screened now, also after a pause there."""
        due = 0 < self._rounds == self._fit.n_rounds
        if not due or not self._others or not self._problem.held_out.any():
            return False
        total = np.ones(self._fit.members)
        preds = [best_outputs(fit, self._problem) for fit in (*self._others, self._fit)]
        rows = [select_held_out(pred, self._problem, total) for pred in preds]
        found = solve_weights(self._problem.loss, self._problem.offset, rows)
        return bool(found.weights[-1] < self.min_weight)

    def __call__(self, step: Step) -> bool:
        return self.rejects()
