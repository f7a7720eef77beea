"""Several families in one ensemble: their weights are solved on the rows held out.

An average of convex combinations is a convex combination: the families' ensembles, each times its weight, are the
ensemble. The weights solve a small convex problem over known predictions, so that they come with a certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble, drop_zero_atoms
from gce.frank_wolfe.simplex import Outputs, Solution, solve_simplex
from gce.frank_wolfe.step import Step
from gce.losses import Loss, NonFiniteError
from gce.losses.risk import Risk
from gce.training.calibration import HeldOutScores, evidence_rows, gather_held_out
from gce.training.family_fit import FamilyFit
from gce.training.problem import Problem
from gce.training.rounds import FamilyRecord, FamilySummary, factors_of

Array = NDArray[np.float64]

#: The gap, relative to the loss, to which family weights are solved: so few are found to the last digits that matter,
#: and samples of weight 2 then have the same effect as two samples.
TOL = 1e-12
#: The part of the held-out loss that an ensemble of fewer rounds may cost.
TOLERATED = 0.005
#: The part that an ensemble of fewer families may cost: half a percent was lost on test rows too, up to 0.3 %.
FEWER_FAMILIES = 0.001
#: Why a family has no weight.
_WEIGHTLESS = "its best weight on the held-out rows is 0"
_USELESS = "the held-out loss is about the same without it"


@dataclass(frozen=True, eq=False)
class WeightedFamilies:
    """The weights of families that have rounds.

    Parameters
    ----------
    weights : dict of float
        By the family's name; what is left of 1 is the zero function's.
    gap : float or None
        Certificate: the held-out loss is at most this far above the least of all weights of the families that have
        one. None where nothing was held out, or rounds have weights of their own.
    pred : Tensor of shape (M, N, k)
        Weighted predictions of the members at their best rounds, measured from the offset.
    rounds : dict of Tensor of shape (M, T), optional
        Where rounds have weights of their own (:mod:`gce.training.round_weights`), the factors of their members'
        weights, by the family's name.
    n_atoms : list of int, optional
        How many atoms each member then has.
    scores : HeldOutScores, optional
        Held-out scores by weights that a row had no part in: the few weights of families need none of their own.
    dropped : dict of str
        By the name of each family of weight 0 the reason.
    """

    weights: dict[str, float]
    gap: float | None
    pred: Tensor
    rounds: dict[str, Tensor] | None = None
    n_atoms: list[int] | None = None
    scores: HeldOutScores | None = None
    dropped: Mapping[str, str] = field(default_factory=dict)

    def held_out(self, problem: Problem, total: Array) -> HeldOutScores:
        """Scores by which predictions are calibrated."""
        return select_held_out(self.pred, problem, total) if self.scores is None else self.scores


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
    if not problem.held_out.any():
        return _weighted(preds, dict.fromkeys(preds, 1 / len(preds)), None)
    rows = [select_held_out(pred, problem, total) for pred in preds.values()]
    try:
        found = solve_weights(problem.loss, problem.offset, rows)
    except NonFiniteError as error:
        raise NonFiniteError(f"after the rounds of the families {', '.join(map(repr, preds))}: {error}") from error
    weighted = _weighted(preds, dict(zip(preds, found.weights[1:].tolist(), strict=True)), found.gap)
    return replace(weighted, dropped={name: _WEIGHTLESS for name, weight in weighted.weights.items() if weight == 0})


def _weighted(preds: Mapping[str, Tensor], weights: dict[str, float], gap: float | None) -> WeightedFamilies:
    pred = sum(weight * preds[name] for name, weight in weights.items())
    assert isinstance(pred, Tensor)
    return WeightedFamilies(weights, gap, pred)


def drop_families(
    fits: Sequence[FamilyFit], found: WeightedFamilies, problem: Problem, total: Array
) -> WeightedFamilies:
    """Leave out families that next to nothing is lost without: they cost time and memory in every prediction.

    One after another, the least useful first, with the weights of the others solved again; while the held-out loss is
    at most a thousandth above that of all families, and by no more than a standard error of the difference.

    Parameters
    ----------
    fits : sequence of FamilyFit
    found : WeightedFamilies
        The weights of all families.
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    WeightedFamilies
    """
    preds = {fit.name: best_outputs(fit, problem) for fit in fits if found.weights[fit.name] > 0}
    if len(preds) < 2 or not problem.held_out.any():
        return found
    rows = {name: select_held_out(pred, problem, total) for name, pred in preds.items()}
    whole = select_held_out(found.pred, problem, total)
    losses, share = problem.loss.value(whole.pred, whole.y), whole.weight / whole.weight.sum()
    allowed = (1 + FEWER_FAMILIES) * float(share @ losses)
    while len(preds) > 1:
        best, solution, name = min(
            (_without(name, rows, problem) for name in preds), key=lambda candidate: candidate[1].loss
        )
        more = problem.loss.value(best, whole.y) - losses
        mean = float(share @ more)
        error = float((share @ (more - mean) ** 2) / evidence_rows(whole.weight)) ** 0.5
        if solution.loss > allowed or mean > error:
            break
        del preds[name], rows[name]
        weights = dict(zip(preds, solution.weights[1:].tolist(), strict=True))
        dropped = {**found.dropped, name: _USELESS}
        dropped |= {other: _WEIGHTLESS for other, weight in weights.items() if weight == 0}
        found = replace(_weighted(preds, weights, solution.gap), dropped=dropped)
    return replace(found, weights={fit.name: found.weights.get(fit.name, 0.0) for fit in fits})


def _without(name: str, rows: Mapping[str, HeldOutScores], problem: Problem) -> tuple[Tensor, Solution, str]:
    """Held-out scores and weights of all families but one."""
    others = [own for other, own in rows.items() if other != name]
    solution = solve_weights(problem.loss, problem.offset, others)
    parts = zip(solution.weights[1:].tolist(), others, strict=True)
    pred = problem.offset + sum(weight * (own.pred - problem.offset) for weight, own in parts)
    return pred, solution, name


def best_outputs(fit: FamilyFit, problem: Problem) -> Tensor:
    """Each member's predictions at its best round on all rows, ``(M, N, k)``, measured from the offset."""
    if fit.best_outputs is not None and not fit.divided:
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


def closing_entry(
    families: Sequence[FamilyRecord | FamilySummary], columns: dict[str, list[float]], seconds: float
) -> dict[str, Any]:
    """The last entry of the history of several families: the ensemble of all.

    Parameters
    ----------
    families : sequence of FamilyRecord or of FamilySummary
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
    entry = {"t": 1 + sum(len(family.history) for family in families), "seconds": seconds, "validation": None, **means}
    return {**entry, "running": list(range(members)), "members": columns, "family": "all"}


def closing_columns(
    families: Sequence[FamilyRecord], found: WeightedFamilies, problem: Problem
) -> dict[str, list[float]]:
    """The numbers of :func:`closing_entry`: by name, one per member."""
    everyone = list(range(problem.members))
    begun = [family for family in families if family.rounds]
    columns = {
        "risk": problem.risk.value(found.pred[:, : problem.train_rows]).tolist(),
        "step_size": [0.0] * problem.members,
        "n_atoms": found.n_atoms
        or [sum(family.history[-1]["members"]["n_atoms"][m] for family in begun) for m in everyone],
    }
    if found.gap is not None:
        columns["weights_gap"] = [found.gap] * problem.members
    if problem.held_out.any():
        # as each family's: at the rounds and weights that these rows chose
        columns["validation"] = problem.held_out_loss(found.pred, everyone).tolist()
    return columns


def mix_families(
    families: Sequence[FamilyRecord],
    weights: Mapping[str, float],
    offset: Tensor,
    rounds: Mapping[str, Tensor] | None = None,
) -> ConvexEnsemble:
    """The ensemble of families that have rounds, each times its weight, or each of their rounds times its own.

    What is left to the zero function is one atom per member.

    Parameters
    ----------
    families : sequence of FamilyRecord
    weights : dict of float
        By the family's name; they sum to at most 1.
    offset : Tensor of shape (k,)
    rounds : dict of Tensor of shape (M, T), optional
        Instead of weights of families: by the family's name the factors of its members' weights in each round.

    Returns
    -------
    ConvexEnsemble
    """
    begun = [family for family in families if family.rounds]
    ensembles = {family.name: family.ensemble(offset) for family in begun}
    if rounds is None:
        everyone = {family.name: (family.members, len(family.rounds)) for family in begun}
        rounds = {name: offset.new_full(shape, weights[name]) for name, shape in everyone.items()}
    return mix_rounds(ensembles, rounds)


def mix_rounds(ensembles: Mapping[str, ConvexEnsemble], rounds: Mapping[str, Tensor]) -> ConvexEnsemble:
    """The ensemble of several, the weights of each times the factors ``(M, T)`` of its members and rounds."""
    first = next(iter(ensembles.values()))
    members, before = len(next(iter(rounds.values()))), 0
    parts: list[Atoms] = []
    shares, origin, bounds = [], [], []
    for name, own in ensembles.items():
        weights, found, at = own.weights * factors_of(rounds[name], own.origin), len(parts), 0
        for part in own.parts:
            assert isinstance(part, Atoms)
            born, weight = own.origin[at : at + len(part)], weights[at : at + len(part)]
            at += len(part)
            kept = (weight > 0).nonzero().flatten()
            if not isinstance(part, Zero) and len(kept):
                parts.append(part if len(kept) == len(part) else part.select(kept))
                shares.append(weight[kept])
                # rounds are counted on from family to family
                origin.append(torch.stack([born[kept, 0], born[kept, 1] + before], 1))
        bounds += [own.bound] * (len(parts) > found)
        before += rounds[name].shape[1]
    taken = first.weights.new_zeros(members)
    for weight, source in zip(shares, origin, strict=True):
        taken.index_add_(0, source[:, 0], weight)
    parts.insert(0, Zero(members, len(first.offset)))
    shares.insert(0, (1 / members - taken).clamp(min=0))
    everyone = torch.arange(members, device=taken.device)
    origin.insert(0, torch.stack([everyone, torch.zeros_like(everyone)], 1))
    bound = torch.stack(bounds or [first.bound]).amax(0)
    return drop_zero_atoms(ConvexEnsemble(parts, torch.cat(shares), torch.cat(origin), first.offset, bound))


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
    #: Why the family was stopped, if it was.
    reason: str | None = None

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
        self.reason = self.reason_of(float(found.weights[-1]), self._rounds)
        return self.reason is not None

    @classmethod
    def reason_of(cls, weight: float, rounds: int) -> str | None:
        """Why a family that has some weight after some rounds is not worth fitting to the end; None if it is."""
        if weight >= cls.min_weight:
            return None
        after = f"{rounds} round{'s' * (rounds != 1)}"
        return f"after {after} its weight was {100 * weight:.2g} %, less than {100 * cls.min_weight:g} %"

    def __call__(self, step: Step) -> bool:
        return self.rejects()
