"""One weight per round for all members, found on held-out rows: fewer atoms, and mostly a lower loss.

The member that holds a row out is the only one that predicts it, so that a weight which all members share has honest
evidence on every row. Weights minimise a quadratic model of the held-out risk over the simplex of all rounds of all
families, and rounds are then removed while that costs less than it is worth. Many weights on few rows fit noise. The
weights that halves of the rows ask for are therefore judged on all rows: what they gain too much on their own half they
lose on the other. Only if they gain by more than a standard error are weights of rounds used at all. Predictions are
calibrated by the scores of rows that had no part in the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from operator import add
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.clock import check_time
from gce.frank_wolfe.simplex.quadratic import QuadraticRisk
from gce.losses import Loss
from gce.losses.base import check_root, is_finite, non_finite
from gce.preprocessing.mixed import telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.training.calibration import HeldOutScores, evidence_rows
from gce.training.family_fit import FamilyFit
from gce.training.family_weights import TOLERATED, WeightedFamilies, select_held_out
from gce.training.problem import Problem
from gce.training.round_outputs import MemberOutputs, RoundOutputs

Array = NDArray[np.float64]

#: Held-out rows below which families have one weight each: on the small development sets weights of rounds were never
#: significantly better, and finding that out took as long as a third of a fit.
_ENOUGH = 2000
#: Held-out scores that weights are found on; of more a part is chosen by the rows' hashes.
_MOST_SCORES = 1 << 17
#: Numbers in a block of outputs of all rounds.
_BLOCK = 1 << 18
#: The part of the held-out loss that doing without deep trees may cost: they take most of the time of a prediction and
#: most bytes of a file.
_NO_DEEP_TREES = 0.02
#: Why a family has no weight.
_WEIGHTLESS = "the held-out loss is about the same without its rounds"
#: How many standard errors weights of rounds must gain.
_ERRORS = 1.0
#: Parts that rows are divided into by their hashes, and which of them are in each half.
_QUARTERS = 4
_HALVES = tuple(combinations(range(_QUARTERS), _QUARTERS // 2))


def weigh_rounds(
    fits: Sequence[FamilyFit], found: WeightedFamilies, problem: Problem, total: Array, deadline: float = math.inf
) -> WeightedFamilies | None:
    """Weights of rounds that all members share, where held-out rows say that they are better than those of families.

    Parameters
    ----------
    fits : sequence of FamilyFit
        Those that have rounds.
    found : WeightedFamilies
        The weights of the families.
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.
    deadline : float, default=math.inf
        On the clock of ``time.monotonic``.

    Returns
    -------
    WeightedFamilies or None

    Raises
    ------
    OutOfTimeError
        The weights were not found by the deadline.
    """
    loss = problem.loss
    if not loss.has_hessian or loss.smoothed(1.0) is not None or int((problem.held_out > 0).sum()) < _ENOUGH:
        return None
    rounds, before = RoundOutputs.of(fits, problem, deadline), select_held_out(found.pred, problem, total)
    with parallel.alone():
        quarters, noise = _quadratic_risks(rounds, total, before)
        for chosen, among in _candidates(_sum(quarters), rounds, noise):
            halves = [_over(_sum([quarters[i] for i in pair]), among).solve() for pair in _HALVES]
            every = np.stack([chosen, *(_spread(own, among, len(chosen)) for own in halves)])
            scores = rounds.scores(every)
            if _gain(loss, before, scores[1:], scores[0]):
                weights = {name: float(chosen[1:][np.array(rounds.names) == name].sum()) for name in found.weights}
                return WeightedFamilies(
                    weights,
                    None,
                    rounds.predictions(chosen),
                    rounds.factors(chosen),
                    rounds.mixed(chosen).origin[:, 0].bincount(minlength=problem.members).tolist(),
                    before._replace(pred=_cross_fitted(scores[1:], problem)),
                    {name: _WEIGHTLESS for name, weight in weights.items() if weight == 0},
                )
    return None


def _gain(loss: Loss, before: HeldOutScores, others: Tensor, chosen: Tensor) -> bool:
    """Whether scores by weights of halves ``(6, h, k)`` gain a standard error, and those chosen ``(h, k)`` anything."""
    present, share = loss.value(before.pred, before.y), before.weight / before.weight.sum()
    gain = present - torch.stack([loss.value(pred, before.y) for pred in others]).mean(0)
    mean = float(share @ gain)
    error = float((share @ (gain - mean) ** 2) / evidence_rows(before.weight)) ** 0.5
    return mean > _ERRORS * error and bool(share @ loss.value(chosen, before.y) <= share @ present)


def _cross_fitted(others: Tensor, problem: Problem) -> Tensor:
    """Scores ``(h, k)`` by the weights that a row had no part in, of those ``(6, h, k)`` of all halves."""
    quarter = np.concatenate([_hashes(problem, own.nonzero().flatten()) % _QUARTERS for own in problem.held_out])
    honest = np.array([[i not in pair for i in range(_QUARTERS)] for pair in _HALVES])[:, quarter.astype(np.intp)]
    mask = torch.from_numpy(honest).to(others)[:, :, None]
    return (mask * others).sum(0) / mask.sum(0)


def _candidates(risk: QuadraticRisk, rounds: RoundOutputs, noise: float) -> list[tuple[Array, NDArray[np.intp]]]:
    """Weights ``(1 + G,)`` and the rounds they are chosen from: without deep trees if these matter little; all."""
    everyone = np.arange(1 + len(rounds))
    weights, cost = _thinned(risk, noise, rounds.deadline)
    shallow = everyone[np.append(True, ~rounds.deep)]
    if not weights[1:][rounds.deep].any() or len(shallow) == 1:
        return [(weights, everyone)]
    without, rival = _thinned(_over(risk, shallow), noise, rounds.deadline)
    small = [(_spread(without, shallow, len(weights)), shallow)] * (rival <= cost + _NO_DEEP_TREES * abs(risk.value))
    return [*small, (weights, everyone)]


def _thinned(risk: QuadraticRisk, noise: float, deadline: float) -> tuple[Array, float]:
    """The fewest rounds that are next to the best, and the loss of the best that is to be expected."""
    steps = []
    for own in risk.thin(risk.solve()):
        check_time(deadline)
        steps.append(own)
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


def _quadratic_risks(rounds: RoundOutputs, total: Array, before: HeldOutScores) -> tuple[list[QuadraticRisk], float]:
    """The held-out risk around the present scores, of each quarter of the rows; the noise of a weight.

    Fitted to ``n`` rows, ``p`` weights look better than they are by ``V = p c / 2n``, and the predictions of one member
    are worse by as much on others: Akaike's and Takeuchi's criteria, where ``c`` is the variance of gradients in units
    of the curvature. An average of ``M`` members, whose atoms differ, is worse by about ``V / M``.
    """
    problem, everything = rounds.problem, float(before.weight.sum())
    parts = [_held_out_part(rounds, m, before, total[m] / everything) for m in range(problem.members)]
    with parallel.workers(min(parallel.threads(), _QUARTERS)) as run:
        sums = run([partial(_quarter_sums, rounds, parts, quarter) for quarter in range(_QUARTERS)])
    used = torch.cat([part.share[part.looked_at] for part in parts]) * everything
    scale = everything / float(used.sum())
    risks = [own.risk(scale) for own in sums]
    curvature = float(sum(np.trace(own.hessian) for own in risks))
    variance = scale * sum(own.variance for own in sums) / max(curvature, np.finfo(np.float64).tiny)
    return risks, variance / evidence_rows(used) * (1 + 1 / problem.members) / 2


class _HeldOutPart(NamedTuple):
    """The rows ``(h,)`` that a member holds out, with its outputs and its present scores there."""

    outputs: MemberOutputs
    rows: Tensor
    share: Tensor
    scores: Tensor
    quarter: Tensor
    looked_at: Tensor


def _held_out_part(rounds: RoundOutputs, m: int, before: HeldOutScores, unit: float) -> _HeldOutPart:
    problem = rounds.problem
    counts = (problem.held_out > 0).sum(1).tolist()
    rows = problem.held_out[m].nonzero().flatten()
    hashes = _hashes(problem, rows)
    some = torch.from_numpy(_part(hashes, sum(counts) * problem.y.shape[1])).to(rows.device)
    quarter = torch.from_numpy((hashes % _QUARTERS).astype(np.int64)).to(rows.device)
    share, scores = problem.held_out[m, rows] * unit, before.pred.split(counts)[m]
    return _HeldOutPart(rounds.of_member(m), rows, share, scores, quarter, some)


def _quarter_sums(rounds: RoundOutputs, parts: Sequence[_HeldOutPart], quarter: int) -> _Sums:
    """Sums over a quarter of the rows that members hold out."""
    problem, loss, count = rounds.problem, rounds.problem.loss, 1 + len(rounds)
    sums = _Sums.zeros(count)
    for part in parts:
        mine = (part.looked_at & (part.quarter == quarter)).nonzero().flatten()
        for block in mine.split(max(1, _BLOCK // (count * problem.y.shape[1]))):
            index, share, base = part.rows[block], part.share[block], part.scores[block]
            relative = part.outputs(index) - (base - problem.offset)
            gradient = loss.gradient(base, problem.y[index])
            root = loss.hessian_root(base, problem.y[index], relative)
            check_root(loss, root, relative)
            for what, values in (("gradient", gradient), ("Hessian", root)):
                if not is_finite(values):
                    raise non_finite(what, values, loss, base, problem.y[index], "weights of rounds")
            sums.add_losses(loss.value(base, problem.y[index]), share)
            sums.add_outputs((relative * gradient).sum(2), root, share)
    return sums


@dataclass
class _Sums:
    """What a quadratic risk is made of, added up over blocks of rows."""

    value: float
    variance: float
    gradient: Array
    hessian: Array

    @classmethod
    def zeros(cls, count: int) -> _Sums:
        return cls(0.0, 0.0, np.zeros(count), np.zeros((count, count)))

    def add_losses(self, losses: Tensor, share: Tensor) -> None:
        self.value += float(share @ losses)

    def add_outputs(self, aligned: Tensor, root: Tensor, share: Tensor) -> None:
        """Alignments ``(P, n)`` with the gradient and roots ``(P, n, r)``, of rows of shares ``(n,)``."""
        self.gradient += (aligned @ share).cpu().numpy()
        self.variance += float((aligned.square() @ share).sum())
        scaled = (root * share.sqrt()[:, None]).flatten(1).cpu().numpy()
        # a matrix and its own transpose: numpy computes one half
        self.hessian += scaled @ scaled.T

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
