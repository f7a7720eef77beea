"""Calibration of predictions on held-out rows: a temperature for probabilities, residuals for intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses import Loss
from gce.preprocessing.mixed import Rows
from gce.training.problem import Problem

if TYPE_CHECKING:
    from gce.training.residual_scale import ResidualScale

Array = NDArray[np.float64]

#: Temperatures that are looked at, and the least relative gain of log-loss that is worth one.
_COLDEST, _HOTTEST, _WORTH = 0.1, 10.0, 1e-6
#: Scores that no row has contradicted reach the bound.
_HOTTEST_SINGLE_ROWS = 100.0
#: Residuals that are kept of each output.
_KEPT = 10_001
#: Rows that are predicted at a time.
_BLOCK_ROWS = 65_536


class HeldOutScores(NamedTuple):
    """Raw scores of members on the rows that they hold out.

    Parameters
    ----------
    pred : Tensor of shape (h, k)
    y : Tensor of shape (h, k)
        The targets.
    weight : Tensor of shape (h,)
        The sample weights.
    """

    pred: Tensor
    y: Tensor
    weight: Tensor


def gather_held_out(problem: Problem, total: Array, predict: Callable[[int, Tensor], Tensor]) -> HeldOutScores:
    """The scores of all members, each on the rows that it holds out.

    Parameters
    ----------
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.
    predict : callable
        From the number of a member and row indices ``(h,)`` to raw scores ``(h, k)``.

    Returns
    -------
    HeldOutScores
    """
    parts = [HeldOutScores(problem.y[:0], problem.y[:0], problem.held_out[0, :0])]
    for m, (weight, mass) in enumerate(zip(problem.held_out, total.tolist(), strict=True)):
        rows = weight.nonzero().flatten()
        if len(rows):
            parts.append(HeldOutScores(predict(m, rows), problem.y[rows], weight[rows] * mass))
    return HeldOutScores(*(torch.cat(column) for column in zip(*parts, strict=True)))


def predict_held_out(ensemble: ConvexEnsemble, problem: Problem, total: Array) -> HeldOutScores:
    """Predict with each member of an ensemble the rows that it holds out, of total weights ``(M,)``."""

    def predict(m: int, rows: Tensor) -> Tensor:
        member = ensemble.of_member(m)
        return torch.cat([member(problem.X[block]) for block in rows.split(_BLOCK_ROWS)])

    return gather_held_out(problem, total, predict)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out rows say about predictions.

    Parameters
    ----------
    temperature : float, default=1.0
        Probabilities are those of scores divided by it.
    residuals : array of shape (r, k), optional
        Sorted residuals, from which prediction intervals are computed.
    scale : ResidualScale or None
        How large residuals are, row by row; None where intervals have the same width for all rows.
    baseline : array of shape (t,), optional
        The cumulative baseline hazard at the times of events.
    """

    temperature: float = 1.0
    residuals: Array = field(default_factory=lambda: np.empty((0, 1)))
    scale: ResidualScale | None = None
    baseline: Array = field(default_factory=lambda: np.empty(0))


def effective_rows(weight: Array) -> int:
    """How many rows of equal weight tell as much as rows of weights ``(h,)``: Kish's effective sample size."""
    share = weight / weight.sum()
    return round(1 / float(share @ share))


def evidence_rows(weight: Tensor) -> float:
    """How many rows weights ``(h,)`` stand for: their sum, so that weighted rows equal repeated ones.

    Weights that were scaled to sum to less count as their effective number.
    """
    return max(float(weight.sum()), effective_rows(weight.cpu().numpy()))


def smooth_labels(y: Tensor, rows: float, unknown: Tensor | float | None = None) -> Tensor:
    """Classes ``(h, k)``, averaged with one more row of unknown class: equal shares, unless they are given.

    Platt's remedy (1999): a few rows that all happen to be classified correctly would ask for a temperature of 0, and
    for certainty about every new row.
    """
    if unknown is None:
        unknown = 1 / max(y.shape[1], 2)
    return (rows * y + unknown) / (rows + 1)


def best_temperature(loss: Loss, rows: HeldOutScores, unknown: Tensor | None = None) -> float:
    """The temperature that makes the held-out loss of ``pred / temperature`` least; 1 where none lowers it.

    Labels are smoothed as those of as many rows as their weights stand for, by a row of ``unknown`` class ``(k,)``.
    Rows that are all of one class may ask for less certainty, not for more: any score in favour of that class would be
    right about them.
    """
    y = smooth_labels(rows.y, evidence_rows(rows.weight), unknown)
    found = _least(loss, HeldOutScores(rows.pred, y, rows.weight), _HOTTEST)
    return max(found, 1.0) if bool((rows.y == rows.y[0]).all()) else found


def single_row_temperature(loss: Loss, rows: HeldOutScores) -> float:
    """The temperature of a model that learned from one row of each class, its ``rows``, and could hold out none.

    Correct predictions of its training rows show nothing. Laplace's rule of succession applies: of ``c`` classes the
    one that occurred once has probability ``2 / (c + 1)``, and the others share the rest.
    """
    y = smooth_labels(rows.y, 1 / max(rows.y.shape[1], 2))
    return _least(loss, HeldOutScores(rows.pred, y, rows.weight), _HOTTEST_SINGLE_ROWS)


def _least(loss: Loss, rows: HeldOutScores, hottest: float) -> float:
    """The temperature of the least loss: convex in ``1 / temperature``, so that a search on an interval finds it."""
    share, y = rows.weight / rows.weight.sum(), rows.y

    def risk(inverse: float) -> float:
        return float(share @ loss.value(rows.pred * inverse, y))

    found = minimize_scalar(risk, bounds=(1 / hottest, 1 / _COLDEST), method="bounded", options={"xatol": 1e-6})
    plain = risk(1.0)
    return 1 / float(found.x) if found.fun < plain - _WORTH * abs(plain) else 1.0


def held_out_residuals(predict: Callable[[Tensor], Tensor], rows: HeldOutScores) -> Tensor:
    """Residuals ``(h, k)`` of predictions from raw scores, in the units of the targets."""
    return rows.y - predict(rows.pred)


def with_scale(
    found: Calibration,
    predict: Callable[[Tensor], Tensor],
    problem: Problem,
    rows: HeldOutScores,
    members: Sequence[ConvexEnsemble],
    deadline: float = math.inf,
) -> Calibration:
    """The calibration of a regression, with the scale of its residuals where that makes intervals better.

    Parameters
    ----------
    found : Calibration
    predict : callable
        From raw scores ``(n, k)`` to predictions of the targets.
    problem : Problem
        What ``rows`` were held out of.
    rows : HeldOutScores
        At least one.
    members : sequence of ConvexEnsemble
        Those that held out the rows, and are averaged.
    deadline : float, default=math.inf
        On the clock of ``time.monotonic``.

    Returns
    -------
    Calibration

    Raises
    ------
    OutOfTimeError
        The scale cannot be known by the deadline.
    """
    # it fits a family, and families are calibrated by this module
    from gce.training.residual_scale import fit_scale

    residual = held_out_residuals(predict, rows)
    predictors = [_composed(member, predict) for member in members]
    return replace(found, scale=fit_scale(problem, residual, rows.weight, predictors, deadline))


def _composed(member: ConvexEnsemble, predict: Callable[[Tensor], Tensor]) -> Callable[[Rows], Tensor]:
    """Predictions of a member from encoded rows."""
    return lambda X: predict(member(X))


def spread_residuals(rows: HeldOutScores) -> Array:
    """Sorted residuals ``y - pred`` of each output, ``(r, k)``: the weighted order statistics that intervals ask for.

    As many as rows of equal weight would be; of more than ten thousand, evenly spread ones.
    """
    residual = (rows.y - rows.pred).cpu().numpy()
    if len(residual) == 0:
        return residual
    weight = rows.weight.cpu().numpy()
    kept = min(effective_rows(weight), _KEPT)
    levels = np.arange(1, kept + 1) / kept
    columns = []
    for one in residual.T:
        order = np.argsort(one, kind="stable")
        reached = np.cumsum(weight[order]) / weight.sum()
        # sums of weights round, and by far less than a level
        columns.append(one[order][np.searchsorted(reached, levels - 1e-9).clip(max=len(one) - 1)])
    return np.stack(columns, 1)


def residual_range(residuals: Array, coverage: float) -> tuple[Array, Array]:
    """The residuals ``(k,)`` between which a new one lies with the given probability, at least.

    Were the rows exchangeable with those held out, a new residual would be equally likely in each of the ``r + 1`` gaps
    between the ``r`` sorted ones: leaving out ``floor((r + 1) (1 - coverage) / 2)`` gaps on either side is enough. Too
    few residuals for that give infinite ends.
    """
    r = len(residuals)
    out = math.floor((r + 1) * (1 - coverage) / 2 + 1e-9)
    if out == 0:
        infinite = np.full(residuals.shape[1], np.inf)
        return -infinite, infinite
    return residuals[out - 1], residuals[r - out]
