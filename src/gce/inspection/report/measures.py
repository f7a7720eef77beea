"""The headline metrics of a model on the given rows, each with a baseline or an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import r2_score
from torch import Tensor

from gce.inspection.report.evaluation import Evaluation, Predictions, name_of
from gce.inspection.report.markup import percent, short, shown
from gce.losses import Squared
from gce.training.metrics import TITLES, of_classes, of_numbers, of_quantiles, roc_auc


@dataclass(frozen=True)
class Measure:
    """A metric, and what to compare it with.

    Parameters
    ----------
    name : str
    value : str
    beside : str
    exact : float
    """

    name: str
    value: str
    beside: str
    exact: float


def measures(evaluation: Evaluation) -> list[Measure]:
    """The metrics of an evaluation, the most important first."""
    return _of_classes(evaluation) if evaluation.classifies else _of_numbers(evaluation)


def _of_classes(evaluation: Evaluation) -> list[Measure]:
    classes, weight, probability = evaluation.model.classes_, evaluation.weight, evaluation.probability
    assert probability is not None
    values = of_classes(evaluation.y, evaluation.predicted, probability, classes, weight)
    error, loss = values["error"], values["log_loss"]
    guess = evaluation.mean(evaluation.losses_of(_constant(evaluation), evaluation.target))
    share = np.array([evaluation.mean(evaluation.y == label) for label in classes])
    commonest = classes[share.argmax()]
    found = [
        Measure("Error", percent(error), interval(evaluation, error), error),
        Measure("Log-loss", shown(loss), f"{_offset_name(evaluation)}: {shown(guess)}", loss),
    ]
    area = roc_auc(evaluation.y, probability, classes, weight)
    found.append(Measure("ROC AUC", shown(area.value), area.about, area.value))
    always = 1 - float(share.max())
    found.append(Measure("Baseline error", percent(always), f"always predicting {short(str(commonest), 40)}", always))
    return found


def interval(evaluation: Predictions, error: float) -> str:
    """The Clopper-Pearson interval of an error rate; there is none for weighted rows."""
    if evaluation.weight is not None:
        return "weighted rows"
    ci = binomtest(round(error * evaluation.rows), evaluation.rows).proportion_ci(0.95, method="exact")
    return f"95 % interval: {percent(ci.low)} to {percent(ci.high)}"


def _of_numbers(evaluation: Evaluation) -> list[Measure]:
    if evaluation.levels is not None:
        # several quantiles are judged by their loss alone
        return [_pinball_loss(evaluation, evaluation.levels)]
    y, weight = evaluation.y, evaluation.weight
    flat = np.broadcast_to(evaluation.model.predict_from_raw(_constant(evaluation)), y.shape)
    found, outputs = [], evaluation.target.shape[1]
    several = f", mean of {outputs} targets" if outputs > 1 else ""
    values, alone = of_numbers(y, evaluation.predicted, weight), of_numbers(y, flat, weight)
    for key in ("rmse", "mae"):
        beside = f"offset alone: {shown(alone[key])}{several}"
        found.append(Measure(TITLES[key], shown(values[key]), beside, values[key]))
    if evaluation.rows > 1:
        score = float(r2_score(y, evaluation.predicted, sample_weight=weight))
        found.append(Measure("R²", shown(score, 3), f"1 is perfect, 0 is a constant{several}", score))
    if not isinstance(evaluation.model.loss_, Squared):
        found.append(_fitted_loss(evaluation))
    return found


def _pinball_loss(evaluation: Evaluation, levels: Sequence[float]) -> Measure:
    """The mean pinball loss of the predicted quantiles, which are in order, as raw scores need not be."""
    constant = evaluation.model.predict_from_raw(_constant(evaluation))
    cost, alone = (
        of_quantiles(evaluation.target, predicted, np.asarray(levels), evaluation.weight)["pinball_loss"]
        for predicted in (evaluation.predicted, constant)
    )
    return Measure("Mean pinball loss", shown(cost), f"the loss of the fit; offset alone: {shown(alone)}", cost)


def _fitted_loss(evaluation: Evaluation) -> Measure:
    """The loss of the fit on the given rows."""
    cost = evaluation.mean(evaluation.losses_of(evaluation.scores, evaluation.target))
    alone = evaluation.mean(evaluation.losses_of(_constant(evaluation), evaluation.target))
    name = name_of(evaluation.model.loss_)
    return Measure(name[0].upper() + name[1:], shown(cost), f"the loss of the fit; offset alone: {shown(alone)}", cost)


def _offset_name(evaluation: Evaluation) -> str:
    """The prediction without atoms: class frequencies, unless weights or an offset were set."""
    changed = evaluation.model.class_weight is not None or evaluation.model.offset != "auto"
    return "offset alone" if changed else "class frequencies alone"


def _constant(evaluation: Evaluation) -> Tensor:
    """Scores of the offset alone, ``(n, k)``."""
    return evaluation.model.ensemble_.offset.expand(evaluation.rows, -1)
