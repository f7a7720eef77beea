"""How large residuals are, row by row: a second hull, fitted to those of the rows held out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.clock import OutOfTimeError
from gce._utils.random import Streams
from gce.bases import SymmetricTree
from gce.frank_wolfe.algorithms import Boosting
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses import Squared
from gce.losses.line_search import Exact
from gce.preprocessing.mixed import MixedRows, Rows, telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.training.calibration import HeldOutScores, evidence_rows, residual_range, spread_residuals
from gce.training.callbacks import FamilyTimeLimit, SharedEarlyStopping
from gce.training.families import suits_trees
from gce.training.family_fit import FamilyFit, Method
from gce.training.problem import Problem

Array = NDArray[np.float64]

#: The hull predicts this power of a residual's size: large ones would outweigh the others in the squared error. Chosen,
#: as the settings of the trees, by the interval score on the sets of benchmarks/intervals.py, with other seeds.
POWER = 0.7
#: Scales are relative to the mean size of residuals; a smaller one is this one.
LEAST_SCALE = 0.1
_ROUNDS, _PATIENCE = 60, 8
#: Rows that scales are worth learning from, and rows that they are learned from at most.
_FEWEST_ROWS, _MOST_ROWS = 100, 16_384
#: Folds of the rows that a single member held out.
_FOLDS = 5
#: The coverage by which scaled and constant widths are compared.
_COVERAGE = 0.9
#: Members whose variance can be estimated without one of them, pairs of which that is done, and the least that may be
#: left of a squared residual.
_FEWEST_MEMBERS, _GAIN_PAIRS, _LEAST_LEFT = 3, 2048, 0.25
#: Seconds per row, column, member and round on one thread of a slow processor.
_SECONDS = 2e-8


@dataclass(frozen=True, eq=False)
class ResidualScale:
    """How large residuals are expected to be, relative to their mean size.

    Parameters
    ----------
    ensemble : ConvexEnsemble
        Predicts sizes to the power of :data:`POWER`.
    residuals : array of shape (r, k)
        Sorted residuals of held-out rows, each divided by a scale that its row had no part in, and as much smaller as
        those of the mean of members are.
    """

    ensemble: ConvexEnsemble
    residuals: Array

    def scales(self, scores: Tensor) -> Tensor:
        """Scales ``(n, k)`` from the raw scores of the ensemble."""
        return scales_of(scores)


def scales_of(scores: Tensor) -> Tensor:
    """Scales, at least :data:`LEAST_SCALE`, from predicted powers of sizes."""
    return (scores.clamp(min=0) ** (1 / POWER)).clamp(min=LEAST_SCALE)


def fit_scale(
    problem: Problem,
    residual: Tensor,
    weight: Tensor,
    members: Sequence[Callable[[Rows], Tensor]] = (),
    deadline: float = math.inf,
) -> ResidualScale | None:
    """Fit scales to the residuals of held-out rows.

    Where several members hold out rows, each has a scale of its own, learned from the rows that the others hold out and
    it does not; where only one does, its rows are divided into folds. So no row has a part in its own scale (but in the
    stopping round and the offset, which all share), and scaled residuals are as exchangeable with those of new rows as
    the residuals are.

    Parameters
    ----------
    problem : Problem
        That of the fit.
    residual : Tensor of shape (h, k)
        Of each pair of a member and a row that it holds out, in the order of ``problem.held_out.nonzero()``.
    weight : Tensor of shape (h,)
        Their sample weights.
    members : sequence of callables, optional
        From encoded rows to the predictions of the members, where new rows are predicted by their mean.
    deadline : float, default=math.inf
        On the clock of ``time.monotonic``.

    Returns
    -------
    ResidualScale or None
        None where residuals are too few, and where constant widths do as well.

    Raises
    ------
    OutOfTimeError
        The scale cannot be known by the deadline.
    """
    if not suits_trees(problem.X) or not bool(residual.isfinite().all()):
        return None
    pairs = _pairs(problem, residual, weight)
    if pairs is None:
        return None
    if not _in_time(pairs, deadline):
        raise OutOfTimeError
    mean = pairs.share @ pairs.residual.abs()
    unit = torch.where(mean > 0, mean, 1.0)
    pairs = replace(pairs, residual=pairs.residual / unit)
    fit, scores = _fit_hull(pairs, deadline)
    scale = scales_of(scores)
    if not _narrower(pairs.residual, scale, pairs.weight):
        return None
    scaled = pairs.residual / scale * unit * _left_by_averaging(members, problem, pairs, scale, unit)
    kept = spread_residuals(HeldOutScores(torch.zeros_like(scaled), scaled, pairs.weight))
    return ResidualScale(fit.record.ensemble(_offset(pairs)), kept)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a member and a row that it holds out.

    Parameters
    ----------
    X : rows of shape (n, d)
        Those that are held out by any member; the first of them are also trained on.
    train, held_out : Tensor of shape (M, n)
        Sample weights of the rows that each member learns scales from, and of those whose scales it predicts.
    member, row : Tensor of shape (h,)
    residual : Tensor of shape (h, k)
    weight : Tensor of shape (h,)
    """

    X: Rows
    train: Tensor
    held_out: Tensor
    member: Tensor
    row: Tensor
    residual: Tensor
    weight: Tensor

    @property
    def share(self) -> Tensor:
        """Weights that sum to 1, ``(h,)``."""
        return self.weight / self.weight.sum()

    @property
    def targets(self) -> Tensor:
        """Powers of the mean size of a row's residuals, ``(n, k)``, over the members that hold it out."""
        n, k = self.train.shape[1], self.residual.shape[1]
        total = self.weight.new_zeros(n, k).index_add_(0, self.row, self.weight[:, None] * self.residual.abs())
        return (total / self.weight.new_zeros(n).index_add_(0, self.row, self.weight)[:, None]) ** POWER


def _pairs(problem: Problem, residual: Tensor, weight: Tensor) -> _Pairs | None:
    """The rows that scales are learned from; None where they are too few."""
    member, row = problem.held_out.nonzero().T
    known = row.unique()
    known = known[:: math.ceil(len(known) / _MOST_ROWS)].contiguous()
    if len(known) < _FEWEST_ROWS:
        return None
    taken = torch.isin(row, known)
    member, residual, weight = member[taken], residual[taken], weight[taken]
    X, row = problem.X[known], torch.searchsorted(known, row[taken])
    members = problem.members
    if members == 1:
        # statistics of the target are of the rows that this member trained on, and of no row here: all may look
        X = replace(X, owner=None) if isinstance(X, MixedRows) else X
        members, member = _FOLDS, _folds(X).to(row.device)[row]
    held_out = weight.new_zeros(members, len(known)).index_put_((member, row), weight, accumulate=True)
    train = torch.where(held_out > 0, 0.0, held_out.sum(0))
    if not bool((train > 0).any(1).all() & (held_out > 0).any(1).all()):
        return None
    # rows that any member trains on come first
    order = (~(train > 0).any(0)).to(torch.int8).argsort(stable=True)
    return _Pairs(X[order], train[:, order], held_out[:, order], member, order.argsort()[row], residual, weight)


def _folds(X: Rows) -> Tensor:
    """A fold of each row ``(n,)``, by its values: rows that are equal share one, so that weights are repetitions."""
    hashes = np.concatenate([hash_rows(block) for block in telling_blocks(X)])
    return torch.from_numpy((hashes % np.uint64(_FOLDS)).astype(np.int64))


def _in_time(pairs: _Pairs, deadline: float) -> bool:
    members, rows = pairs.train.shape
    return time.monotonic() + _SECONDS * members * rows * pairs.X.shape[1] * _ROUNDS < deadline


def _offset(pairs: _Pairs) -> Tensor:
    """The mean of what the hull predicts, ``(k,)``."""
    return pairs.share @ pairs.targets[pairs.row]


def _fit_hull(pairs: _Pairs, deadline: float) -> tuple[FamilyFit, Tensor]:
    """The hull, fitted to sizes of residuals, and the scores ``(h, k)`` of the rows that each member holds out."""
    basis = SymmetricTree(max_depth=4, max_bins=32)
    algorithm = Boosting(basis.learning_rate)
    y, offset = pairs.targets, _offset(pairs)
    reach = (y - offset).abs().amax(0)
    bound = algorithm.bound_factor(_ROUNDS) * torch.where(reach > 0, reach, 1.0)
    total = pairs.train.sum(1)
    problem = Problem(
        Squared(),
        pairs.X,
        y,
        pairs.train / total[:, None],
        pairs.held_out / pairs.held_out.sum(1, keepdim=True),
        offset,
        bound,
        torch.maximum(total, total**2 / pairs.train.square().sum(1)),
    )
    # nothing is drawn: any seed will do
    streams = Streams(0, tuple(range(problem.members)))
    fit = FamilyFit("scale", problem.members, SharedEarlyStopping(_PATIENCE, 1e-6), inflated_bound=True)
    limit = FamilyTimeLimit(deadline)
    method = Method(algorithm, basis, Exact(), streams)
    fit.run(problem, method, max_iter=_ROUNDS, max_calls=_ROUNDS, callbacks=[limit])
    if limit.stopped:
        raise OutOfTimeError
    assert fit.best_outputs is not None
    return fit, offset + fit.best_outputs[pairs.member, pairs.row]


def _narrower(residual: Tensor, scale: Tensor, weight: Tensor) -> bool:
    """Whether scaled intervals have a lower interval score than constant ones, by more than a standard error."""
    constant = _interval_scores(residual, torch.ones_like(scale), weight)
    scaled = _interval_scores(residual, scale, weight)
    if not bool((constant.isfinite() & scaled.isfinite()).all()):
        return False
    share = weight / weight.sum()
    mean = share @ constant
    gain = ((constant - scaled) / torch.where(mean > 0, mean, 1.0)).mean(1)
    found = float(share @ gain)
    error = math.sqrt(float(share @ (gain - found) ** 2) / evidence_rows(weight))
    return found > error


def _left_by_averaging(
    members: Sequence[Callable[[Rows], Tensor]], problem: Problem, pairs: _Pairs, scale: Tensor, unit: Tensor
) -> Tensor:
    """What the mean of members leaves of the size of a member's residuals, ``(k,)``, at most 1.

    Residuals of pairs are in units ``(k,)``, and scales ``(h, k)`` have none.

    The squared error of a mean is the mean squared error less the variance of the members (Krogh and Vedelsby, 1995).
    Of a row that one member holds out the variance is that of the others, who know its target and so differ less than
    on a new row; of rows the median is taken, which a few that they disagree about do not raise. Both make intervals
    wider rather than narrower than they need be.
    """
    count = len(members)
    if count < _FEWEST_MEMBERS or count != problem.members:
        return torch.ones_like(scale[0])
    some = torch.arange(0, len(pairs.row), math.ceil(len(pairs.row) / _GAIN_PAIRS), device=scale.device)
    X = pairs.X[pairs.row[some]]
    preds = torch.stack([member(X) / unit for member in members])
    other = (torch.arange(count, device=scale.device)[:, None] != pairs.member[some])[..., None]
    mean = (other * preds).sum(0) / (count - 1)
    variance = (other * (preds - mean).square()).sum(0) / (count - 2)
    within = _median(variance / scale[some].square(), pairs.weight[some])
    whole = pairs.share @ (pairs.residual / scale).square()
    left = 1 - (1 - 1 / count) * within / torch.where(whole > 0, whole, math.inf)
    return left.clamp(min=_LEAST_LEFT).sqrt()


def _median(values: Tensor, weight: Tensor) -> Tensor:
    """Weighted medians ``(k,)`` of values ``(h, k)``."""
    order = values.argsort(dim=0, stable=True)
    reached = weight[order].cumsum(0) / weight.sum()
    return values.gather(0, order)[(reached < 0.5).sum(0).clamp(max=len(values) - 1), torch.arange(values.shape[1])]


def _interval_scores(residual: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
    """The width of each row's interval, and the distance of what it misses divided by half of what it may miss."""
    scaled = residual / scale
    kept = spread_residuals(HeldOutScores(torch.zeros_like(scaled), scaled, weight))
    low, high = (torch.from_numpy(end).to(scale) * scale for end in residual_range(kept, _COVERAGE))
    missed = (low - residual).clamp(min=0) + (residual - high).clamp(min=0)
    return high - low + 2 / (1 - _COVERAGE) * missed
