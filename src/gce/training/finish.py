"""The end of a fit: families are weighted, predictions calibrated, and the result is made."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.clock import OutOfTimeError
from gce._utils.text import escape_line
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.training.calibration import Calibration, HeldOutScores, predict_held_out, with_scale
from gce.training.callbacks import TimeLimit
from gce.training.data import FitData
from gce.training.family_fit import FamilyFit
from gce.training.family_weights import (
    WeightedFamilies,
    closing_columns,
    closing_entry,
    drop_families,
    mix_families,
    select_held_out,
    weigh_families,
)
from gce.training.problem import Problem
from gce.training.result import FitResult, family_history
from gce.training.rounds import EpochRecord, FamilyRecord

if TYPE_CHECKING:
    from gce.training.fit import FittedFamilies
    from gce.training.targets import NumberTarget

Array = NDArray[np.float64]

logger = logging.getLogger("gce")


def snapshot(fitted: FittedFamilies, data: FitData) -> FitResult:
    """The result of a fit that is still running, with equal weights of its families and without calibration."""
    families = tuple(fit.record for fit in fitted.fits.values())
    begun = [fit.name for fit in fitted.begun]
    weights = {name: 1 / len(begun) if name in begun else 0.0 for name in fitted.fits}
    if len(families) == 1:
        ensemble = families[0].ensemble(data.problem.offset)
    else:
        ensemble = mix_families(families, weights, data.problem.offset)
    return _result(data, families, weights, ensemble, Calibration(), bases=fitted.bases)


def calibrate(fitted: FittedFamilies, data: FitData) -> FitResult:
    """The result of a fit: family weights, ensemble, temperature or residuals.

    Parameters
    ----------
    fitted : FittedFamilies
    data : FitData

    Returns
    -------
    FitResult
    """
    # many short operations: threads would spend their time waiting for each other
    with parallel.alone_if_few(data.problem.held_out), parallel.one_blas_thread():
        return _explained(_calibrate(fitted, data), data)


def _calibrate(fitted: FittedFamilies, data: FitData) -> FitResult:
    problem, total = data.problem, data.held_out_total
    families = tuple(fit.record for fit in fitted.fits.values())
    weights, closing, rounds, weighted = {families[0].name: 1.0}, None, None, None
    if len(families) == 1:
        ensemble, (fit,) = families[0].ensemble(problem.offset), fitted.fits.values()
        rows = _scores_alone(fit, ensemble, fitted.clock, problem, total)
    else:
        began, before = time.perf_counter(), family_history(families, None)[-1]["seconds"]
        weighted = _weigh(fitted, problem, total)
        columns = closing_columns(families, weighted, problem)
        closing = closing_entry(families, columns, before + time.perf_counter() - began)
        weights = {name: weighted.weights.get(name, 0.0) for name in fitted.fits}
        rows = weighted.held_out(problem, total)
        ensemble = mix_families(families, weights, problem.offset, weighted.rounds)
        rounds = weighted.rounds
    calibration, clock = _calibration(data, ensemble, rows), fitted.clock
    if clock is None:
        calibration = _scaled(calibration, data, ensemble, rows)
    elif not clock.ended_rounds:
        calibration = _scaled_in_time(calibration, data, ensemble, rows, clock)
    return _result(
        data,
        families,
        weights,
        ensemble,
        calibration,
        held_out=_metrics(data, rows, calibration),
        closing=closing,
        round_weights=rounds,
        bases=fitted.bases,
        cut_short=clock is not None and clock.ended_rounds,
        left_out=_left_out(fitted, weighted),
    )


def _left_out(fitted: FittedFamilies, weighted: WeightedFamilies | None) -> tuple[tuple[str, str], ...]:
    """Families without weight, each with the reason of whoever was the first to leave it out."""
    found = dict(fitted.plan.left_out)
    if weighted is not None:
        unbegun = "the fit was stopped before its first round"
        for name in fitted.fits:
            if weighted.weights.get(name, 0.0) == 0:
                found[name] = fitted.left_out.get(name) or weighted.dropped.get(name, unbegun)
    for name, reason in found.items():
        logger.info("%s", f"{escape_line(name)} is left out: {reason}")
    return tuple(found.items())


def _scores_alone(
    fit: FamilyFit, ensemble: ConvexEnsemble, clock: TimeLimit | None, problem: Problem, total: Array
) -> HeldOutScores:
    """Held-out scores of the only family; without time the sums that its rounds left, which round otherwise."""
    late = clock is not None and (clock.ended_rounds or clock.remaining_for_rounds <= 0)
    known = fit.best_outputs if late else None
    if clock is None or known is None:
        return predict_held_out(ensemble, problem, total)
    if not clock.ended_rounds:
        clock.shortcuts.append("predictions of held-out rows are those that the rounds left")
    return select_held_out(known, problem, total)


def _weigh(fitted: FittedFamilies, problem: Problem, total: Array) -> WeightedFamilies:
    """The weights of families, or of their rounds, on the rows held out."""
    # needed once, and only by fits of several families
    from gce.training.round_weights import weigh_rounds

    clock, found = fitted.clock, weigh_families(fitted.begun, problem, total)
    # where rounds were cut short the end of a fit is as short as it can be
    if clock is None or not clock.ended_rounds:
        deadline = math.inf if clock is None else clock.end_of_rounds
        try:
            by_round = weigh_rounds(fitted.begun, found, problem, total, deadline)
        except OutOfTimeError:
            assert clock is not None
            clock.shortcuts.append("families were weighted as a whole, not by round")
        else:
            if by_round is not None:
                return by_round
    return drop_families(fitted.begun, found, problem, total)


def calibrate_joint(ensemble: ConvexEnsemble, epochs: EpochRecord, data: FitData, deadline: float) -> FitResult:
    """The result of networks that were trained all at once.

    Parameters
    ----------
    ensemble : ConvexEnsemble
        Each member at its best epoch.
    epochs : EpochRecord
    data : FitData
    deadline : float
        On the clock of ``time.monotonic``.

    Returns
    -------
    FitResult
    """
    in_time = time.monotonic() < deadline
    rows = predict_held_out(ensemble, data.problem, data.held_out_total)
    calibration = _calibration(data, ensemble, rows)
    if in_time:
        calibration = _scaled(calibration, data, ensemble, rows)
    metrics = _metrics(data, rows, calibration)
    result = _result(data, (epochs,), {epochs.name: 1.0}, ensemble, calibration, held_out=metrics)
    return _explained(result, data)


def _explained(result: FitResult, data: FitData) -> FitResult:
    # only the end of a fit needs it
    from gce.training.importances import explained

    return explained(result, data.problem, data.held_out_total)


def _result(
    data: FitData,
    families: Sequence[FamilyRecord | EpochRecord],
    weights: Mapping[str, float],
    ensemble: ConvexEnsemble,
    calibration: Calibration,
    **more: Any,
) -> FitResult:
    return FitResult(
        table=data.table,
        target=data.target,
        loss=data.loss,
        families=tuple(families),
        family_weights=tuple(weights.values()),
        ensemble=ensemble,
        calibration=calibration,
        n_samples=data.n_samples,
        seed=data.streams.seed,
        folds=data.streams.names,
        signs=data.signs,
        interactions=data.interactions,
        base_score=data.base_score,
        samples=data.samples,
        **more,
    )


def _calibration(data: FitData, ensemble: ConvexEnsemble, rows: HeldOutScores) -> Calibration:
    """Temperature, residuals or baseline, from held-out rows or, where these are too few, from the training rows."""
    problem = data.problem
    found = data.target.calibrate(data.loss, rows) if len(rows.y) else None
    if found is None:
        return data.target.calibrate_in_sample(data.loss, len(problem.y), lambda: _predict_training(ensemble, problem))
    return found


def _scaled(
    found: Calibration, data: FitData, ensemble: ConvexEnsemble, rows: HeldOutScores, deadline: float = math.inf
) -> Calibration:
    """A calibration with the scale of residuals, where there are intervals whose widths may depend on the row."""
    if not (data.target.has_intervals and len(rows.y)):
        return found
    members = [ensemble.of_member(m) for m in range(ensemble.members)]
    predict = partial(cast("NumberTarget", data.target).means, data.loss)
    return with_scale(found, predict, data.problem, rows, members, deadline)


def _scaled_in_time(
    found: Calibration, data: FitData, ensemble: ConvexEnsemble, rows: HeldOutScores, clock: TimeLimit
) -> Calibration:
    """A calibration with the scale of residuals, if there is time for it."""
    try:
        return _scaled(found, data, ensemble, rows, clock.end)
    except OutOfTimeError:
        clock.shortcuts.append("prediction intervals have the same width for all rows")
        return found


def _metrics(data: FitData, rows: HeldOutScores, calibration: Calibration) -> dict[str, float] | None:
    """Metrics of what the members predict for the rows that they hold out; None where they hold out none.

    Targets, base scores and weights are those that the user gave, and probabilities are calibrated as new ones are.
    """
    if not len(rows.y):
        return None
    given, pred, y, weight = data.given, rows.pred / calibration.temperature, rows.y, rows.weight
    if given is not None:
        # in the order in which scores are gathered, member by member
        own = given.take(data.problem.held_out.nonzero()[:, 1].cpu().numpy())
        y, weight = torch.from_numpy(own.y).to(pred), weight / torch.from_numpy(own.factor).to(pred)
        pred = pred if own.base_score is None else pred + torch.from_numpy(own.base_score).to(pred)
    with np.errstate(over="ignore", invalid="ignore"):
        found = data.target.metrics(data.loss, HeldOutScores(pred, y, weight))
    # not defined, or beyond what float64 holds
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _predict_training(ensemble: ConvexEnsemble, problem: Problem) -> HeldOutScores:
    """Scores of the rows that any member trains on, with the mean of their weights over members."""
    weight = problem.train.mean(0)
    rows = weight.nonzero().flatten()
    return HeldOutScores(ensemble(problem.X[rows]), problem.y[rows], weight[rows])
