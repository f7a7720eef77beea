"""One weight per round for all members, found on held-out rows: fewer atoms, and mostly a lower loss.

The member that holds a row out is the only one that predicts it, so that a weight which all members share has honest
evidence on every row. Weights minimise a quadratic model of the held-out risk over the simplex of all rounds of all
families, and rounds are then removed while that costs less than it is worth. Many weights on few rows fit noise. The
weights that halves of the rows ask for are therefore judged on all rows: what they gain too much on their own half they
lose on the other. Only if they gain by more than a standard error are weights of rounds used at all. Predictions are
calibrated by the scores of rows that had no part in the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.frank_wolfe.simplex.quadratic import QuadraticRisk
from gce.losses import Loss
from gce.preprocessing.mixed import telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.training.calibration import HeldOutScores, evidence_rows, predict_held_out
from gce.training.family_weights import TOLERATED, WeightedFamilies, mix_rounds, select_held_out
from gce.training.problem import Problem
from gce.training.rounds import FamilyRecord, factors_of

Array = NDArray[np.float64]

#: Held-out rows below which families have one weight each: on the small development sets weights of rounds were never
#: significantly better, and finding that out took as long as a third of a fit.
_ENOUGH = 2000
#: Held-out scores that weights are found on; of more a part is chosen by the rows' hashes.
_MOST_SCORES = 1 << 17
#: Numbers in a block of outputs of all rounds.
_BLOCK = 1 << 21
#: The part of the held-out loss that doing without deep trees may cost: they take most of the time of a prediction and
#: most bytes of a file.
_NO_DEEP_TREES = 0.02
#: How many standard errors weights of rounds must gain.
_ERRORS = 1.0
#: The quarters of the rows in each of their halves.
_HALVES = tuple(combinations(range(4), 2))


@dataclass(frozen=True, eq=False)
class _Rounds:
    """The rounds of all families that have weight in any member.

    Parameters
    ----------
    names : list of str
        The family of each round, ``(G,)``.
    times : array of shape (G,)
        Its number in the family, from 1.
    mass : array of shape (G,)
        Its weight in the family's ensemble, the mean over members.
    deep : array of shape (G,)
        Whether its atoms interpolate the rows they are trained on.
    ensembles : dict of ConvexEnsemble
        Each family alone.
    shapes : dict of (int, int)
        Members and rounds of each family.
    """

    names: list[str]
    times: NDArray[np.intp]
    mass: Array
    deep: NDArray[np.bool_]
    ensembles: dict[str, ConvexEnsemble]
    shapes: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, families: Sequence[FamilyRecord], offset: Tensor) -> _Rounds:
        ensembles = {family.name: family.ensemble(offset) for family in families}
        names, times, mass, deep = [], [], [], []
        for name, own in ensembles.items():
            born = own.origin[:, 1].cpu().numpy()
            total = np.bincount(born, own.weights.cpu().numpy())
            parts = [part for part in own.parts if isinstance(part, Atoms)]
            interpolates = any(part.interpolates for part in parts)
            for t in np.flatnonzero(total[1:] > 0) + 1:
                names.append(name)
                times.append(t)
                mass.append(total[t])
                deep.append(interpolates)
        shapes = {family.name: (family.members, len(family.rounds)) for family in families}
        columns = np.array(times, dtype=np.intp), np.array(mass), np.array(deep, dtype=bool)
        return cls(names, *columns, ensembles, shapes)

    def __len__(self) -> int:
        return len(self.names)

    def outputs(self, m: int, problem: Problem, rows: Tensor) -> Tensor:
        """Outputs of member ``m``'s atoms on some rows, ``(1 + G, n, k)``, the zero function first."""
        found = problem.y.new_zeros(1 + len(self), len(rows), problem.y.shape[1])
        X, members = problem.X[rows], problem.members
        for name, own in self.ensembles.items():
            place, mass = self._places(name), found.new_tensor(np.append(1.0, self.mass))
            first = 0
            for part in own.parts:
                assert isinstance(part, Atoms)
                born, weights = own.origin[first : first + len(part)], own.weights[first : first + len(part)]
                first += len(part)
                index = (born[:, 0] == m).nonzero().flatten()
                if isinstance(part, Zero) or not len(index):
                    continue
                at = place.to(index.device)[born[index, 1]]
                share = members * weights[index] / mass[at]
                # a member has one atom of a round at most
                found[at] += share[:, None, None] * part.select(index)(part.seen(X))
        return found

    def _places(self, name: str) -> Tensor:
        """Of each round of a family its place among the outputs, that of the zero function for round 0."""
        own = np.array(self.names) == name
        found = torch.zeros(1 + int(self.times[own].max()), dtype=torch.long)
        found[torch.from_numpy(self.times[own])] = 1 + torch.from_numpy(np.flatnonzero(own))
        return found

    def mixed(self, weights: Array) -> ConvexEnsemble:
        """The ensemble of weights ``(1 + G,)``."""
        return mix_rounds(self.ensembles, self.factors(weights))

    def factors(self, weights: Array) -> dict[str, Tensor]:
        """Weights ``(1 + G,)`` as factors ``(M, T)`` of the weights of each family's members.

        Members of unequal weights in a round may exceed the simplex: these are scaled down to it.
        """
        found = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in self.shapes.items()}
        for name, t, share, mass in zip(self.names, self.times.tolist(), weights[1:], self.mass, strict=True):
            found[name][:, t - 1] = float(share / mass)
        taken = sum(_member_totals(own, found[name]) for name, own in self.ensembles.items())
        assert isinstance(taken, Tensor)
        return {name: own / taken.clamp(min=1)[:, None] for name, own in found.items()}


def weigh_rounds(
    families: Sequence[FamilyRecord], found: WeightedFamilies, problem: Problem, total: Array
) -> WeightedFamilies | None:
    """Weights of rounds that all members share, where held-out rows say that they are better than those of families.

    Parameters
    ----------
    families : sequence of FamilyRecord
        Those that have rounds.
    found : WeightedFamilies
        The weights of the families.
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    WeightedFamilies or None
    """
    loss = problem.loss
    if not loss.has_hessian or loss.smoothed(1.0) is not None or int((problem.held_out > 0).sum()) < _ENOUGH:
        return None
    rounds, before = _Rounds.of(families, problem.offset), select_held_out(found.pred, problem, total)
    with parallel.alone():
        quarters, noise = _quadratic_risks(rounds, problem, total, before)
        candidates = _candidates(_sum(quarters), rounds, noise)

    def scores(weights: Array) -> Tensor:
        return predict_held_out(rounds.mixed(weights), problem, total).pred

    for chosen, among in candidates:
        with parallel.alone():
            halves = [_over(_sum([quarters[i] for i in pair]), among).solve() for pair in _HALVES]
        others = torch.stack([scores(_spread(own, among, len(chosen))) for own in halves])
        if _gain(loss, before, others, scores(chosen)):
            return WeightedFamilies(
                {name: float(chosen[1:][np.array(rounds.names) == name].sum()) for name in found.weights},
                _sum(quarters).gap(chosen, np.flatnonzero(chosen)),
                _predictions(rounds.mixed(chosen), problem),
                rounds.factors(chosen),
                rounds.mixed(chosen).origin[:, 0].bincount(minlength=problem.members).tolist(),
                before._replace(pred=_cross_fitted(others, problem)),
            )
    return None


def _gain(loss: Loss, before: HeldOutScores, others: Tensor, chosen: Tensor) -> bool:
    """Whether scores by weights of halves ``(6, h, k)`` gain a standard error, and those chosen ``(h, k)`` anything."""
    present, share = loss.value(before.pred, before.y), before.weight / before.weight.sum()
    gain = present - torch.stack([loss.value(pred, before.y) for pred in others]).mean(0)
    mean = float(share @ gain)
    error = float((share @ (gain - mean) ** 2) / evidence_rows(before.weight)) ** 0.5
    return mean > _ERRORS * error and bool(share @ loss.value(chosen, before.y) <= share @ present)


def _predictions(ensemble: ConvexEnsemble, problem: Problem) -> Tensor:
    """Predictions of each member on all rows, ``(M, N, k)``, measured from the offset."""
    return torch.stack([ensemble.of_member(m)(problem.X) for m in range(problem.members)]) - problem.offset


def _cross_fitted(others: Tensor, problem: Problem) -> Tensor:
    """Scores ``(h, k)`` by the weights that a row had no part in, of those ``(6, h, k)`` of all halves."""
    quarter = np.concatenate([_hashes(problem, own.nonzero().flatten()) % 4 for own in problem.held_out])
    honest = np.array([[i not in pair for i in range(4)] for pair in _HALVES])[:, quarter.astype(np.intp)]
    mask = torch.from_numpy(honest).to(others)[:, :, None]
    return (mask * others).sum(0) / mask.sum(0)


def _member_totals(own: ConvexEnsemble, factors: Tensor) -> Tensor:
    """What weights of an ensemble, times factors ``(M, T)``, sum to in each member, ``(M,)``."""
    weights = own.members * own.weights * factors_of(factors, own.origin)
    return torch.zeros_like(factors[:, 0]).index_add_(0, own.origin[:, 0].cpu(), weights.cpu())


def _candidates(risk: QuadraticRisk, rounds: _Rounds, noise: float) -> list[tuple[Array, NDArray[np.intp]]]:
    """Weights ``(1 + G,)`` and the rounds they are chosen from: without deep trees if these matter little; all."""
    everyone = np.arange(1 + len(rounds))
    weights, cost = _thinned(risk, noise)
    shallow = everyone[np.append(True, ~rounds.deep)]
    if not weights[1:][rounds.deep].any() or len(shallow) == 1:
        return [(weights, everyone)]
    without, rival = _thinned(_over(risk, shallow), noise)
    small = [(_spread(without, shallow, len(weights)), shallow)] * (rival <= cost + _NO_DEEP_TREES * abs(risk.value))
    return [*small, (weights, everyone)]


def _thinned(risk: QuadraticRisk, noise: float) -> tuple[Array, float]:
    """The fewest rounds that are next to the best, and the loss of the best that is to be expected."""
    steps = risk.thin(risk.solve())
    costs = np.array([risk.at(own) + noise * np.count_nonzero(own[1:]) for own in steps])
    (near,) = np.nonzero(costs <= costs.min() + TOLERATED * abs(risk.value))
    return steps[int(near[-1])], float(costs.min())


def _sum(risks: Sequence[QuadraticRisk]) -> QuadraticRisk:
    return reduce(add, risks)


def _over(risk: QuadraticRisk, among: NDArray[np.intp]) -> QuadraticRisk:
    return QuadraticRisk(risk.value, risk.gradient[among], risk.hessian[np.ix_(among, among)])


def _spread(weights: Array, among: NDArray[np.intp], count: int) -> Array:
    found = np.zeros(count)
    found[among] = weights
    return found


def _quadratic_risks(
    rounds: _Rounds, problem: Problem, total: Array, before: HeldOutScores
) -> tuple[list[QuadraticRisk], float]:
    """The held-out risk around the present scores, of each quarter of the rows; the noise of a weight.

    Fitted to ``n`` rows, ``p`` weights look better than they are by ``V = p c / 2n``, and the predictions of one member
    are worse by as much on others: Akaike's and Takeuchi's criteria, where ``c`` is the variance of gradients in units
    of the curvature. An average of ``M`` members, whose atoms differ, is worse by about ``V / M``.
    """
    loss, offset, count = problem.loss, problem.offset, 1 + len(rounds)
    everything = float(before.weight.sum())
    parts = [_Sums(count) for _ in range(4)]
    first, kept = 0, []
    for m, (weight, mass) in enumerate(zip(problem.held_out, total.tolist(), strict=True)):
        rows = weight.nonzero().flatten()
        base = before.pred[first : first + len(rows)]
        first += len(rows)
        hashes = _hashes(problem, rows)
        some = _part(hashes, len(before.y) * problem.y.shape[1])
        kept.append((weight[rows] * mass)[torch.from_numpy(some).to(rows.device)])
        for quarter, sums in enumerate(parts):
            mine = torch.from_numpy(np.flatnonzero(some & (hashes % 4 == quarter))).to(rows.device)
            for block in mine.split(max(1, _BLOCK // (count * problem.y.shape[1]))):
                index, share = rows[block], weight[rows[block]] * mass / everything
                relative = rounds.outputs(m, problem, index) - (base[block] - offset)
                sums.add(loss.value(base[block], problem.y[index]), share)
                gradient = loss.gradient(base[block], problem.y[index])
                root = loss.hessian_root(base[block], problem.y[index], relative)
                sums.add_outputs((relative * gradient).sum(2), root, share)
    used = torch.cat(kept)
    scale = everything / float(used.sum())
    risks = [sums.risk(scale) for sums in parts]
    curvature = float(sum(np.trace(own.hessian) for own in risks))
    variance = scale * sum(sums.variance for sums in parts) / max(curvature, np.finfo(np.float64).tiny)
    return risks, variance / evidence_rows(used) * (1 + 1 / problem.members) / 2


class _Sums:
    """What a quadratic risk is made of, added up over blocks of rows."""

    def __init__(self, count: int) -> None:
        self.value, self.variance = 0.0, 0.0
        self.gradient, self.hessian = np.zeros(count), np.zeros((count, count))

    def add(self, losses: Tensor, share: Tensor) -> None:
        self.value += float(share @ losses)

    def add_outputs(self, aligned: Tensor, root: Tensor, share: Tensor) -> None:
        """Alignments ``(P, n)`` with the gradient and roots ``(P, n, r)``, of rows of shares ``(n,)``."""
        self.gradient += (aligned @ share).cpu().numpy()
        self.variance += float((aligned.square() @ share).sum())
        scaled = (root * share.sqrt()[:, None]).flatten(1)
        self.hessian += (scaled @ scaled.T).cpu().numpy()

    def risk(self, scale: float) -> QuadraticRisk:
        return QuadraticRisk(scale * self.value, scale * self.gradient, scale * self.hessian)


def _hashes(problem: Problem, rows: Tensor) -> NDArray[np.uint64]:
    """A hash of what each row holds: repeated rows are in the same quarter, as weighted ones are."""
    blocks = telling_blocks(problem.X[rows])
    # scaling rounds with the sums of weights, and the last digits are not the row's own
    return np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in blocks])


def _part(hashes: NDArray[np.uint64], scores: int) -> NDArray[np.bool_]:
    """Mask ``(n,)`` of the rows that weights are found on: all, or such a part that there are not too many scores."""
    limit = min(1.0, _MOST_SCORES / scores) * 2.0**32
    return np.asarray((hashes >> np.uint64(16)) % np.uint64(2**32) < limit)
