"""The headline: a few numbers that say how good a model is on the given rows, each beside what guessing gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)
from torch import Tensor

from gce.losses import Squared
from gce.report.markup import percent, short, shown
from gce.report.trial import Answers, Trial, name_of


@dataclass(frozen=True)
class Measure:
    """A number, and what to hold it against.

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


def measures(trial: Trial) -> list[Measure]:
    """The measures of a trial, the first one first."""
    return _of_classes(trial) if trial.classifies else _of_numbers(trial)


def _of_classes(trial: Trial) -> list[Measure]:
    classes, weight = trial.model.classes_, trial.weight
    error = float(zero_one_loss(trial.y, trial.answer, sample_weight=weight))
    loss = float(log_loss(trial.y, trial.probability, sample_weight=weight, labels=classes))
    guess = trial.mean(trial.costs_of(_constant(trial), trial.target))
    share = np.array([trial.mean(trial.y == label) for label in classes])
    commonest = classes[share.argmax()]
    found = [
        Measure("Error", percent(error), interval(trial, error), error),
        Measure("Log-loss", shown(loss), f"{_offset_name(trial)}: {shown(guess)}", loss),
    ]
    auc = area(trial)
    if auc is not None:
        several = len(classes) > 2
        found.append(
            Measure(
                "ROC AUC", shown(auc), "mean over classes, each against the rest" if several else "0.5 is chance", auc
            )
        )
    always = 1 - float(share.max())
    found.append(Measure("Error of guessing", percent(always), f"always saying {short(str(commonest), 40)}", always))
    return found


def interval(trial: Answers, error: float) -> str:
    """Clopper and Pearson's interval; rows that count differently have none."""
    if trial.weight is not None:
        return "weighted rows"
    ci = binomtest(round(error * trial.rows), trial.rows).proportion_ci(0.95, method="exact")
    return f"95 % interval: {percent(ci.low)} to {percent(ci.high)}"


def area(trial: Answers) -> float | None:
    """The area under the ROC curve; None where a class is not among the rows."""
    assert trial.probability is not None
    classes = trial.model.classes_
    if len(np.unique(trial.y)) < len(classes):
        return None
    if len(classes) == 2:
        return float(roc_auc_score(trial.y == classes[1], trial.probability[:, 1], sample_weight=trial.weight))
    areas = [
        roc_auc_score(trial.y == label, trial.probability[:, j], sample_weight=trial.weight)
        for j, label in enumerate(classes)
    ]
    return float(np.mean(areas))


def _of_numbers(trial: Trial) -> list[Measure]:
    y, weight = trial.y, {"sample_weight": trial.weight}
    flat = np.broadcast_to(trial.model._answer(_constant(trial)), y.shape)
    found, outputs = [], trial.target.shape[1]
    several = f", mean of {outputs} targets" if outputs > 1 else ""
    for name, error in (("RMSE", root_mean_squared_error), ("MAE", mean_absolute_error)):
        value = float(error(y, trial.answer, **weight))
        found.append(
            Measure(name, shown(value), f"offset alone: {shown(float(error(y, flat, **weight)))}{several}", value)
        )
    if trial.rows > 1:
        score = float(r2_score(y, trial.answer, **weight))
        found.append(Measure("R²", shown(score, 3), f"1 is perfect, 0 a constant{several}", score))
    if not isinstance(trial.model.loss_, Squared):
        cost = trial.mean(trial.costs_of(trial.scores, trial.target))
        found.append(Measure(name_of(trial.model.loss_).capitalize(), shown(cost), "what the fit made small", cost))
    return found


def _offset_name(trial: Trial) -> str:
    """What a classifier without atoms says: how often classes were, unless it was told otherwise."""
    told = trial.model.class_weight is not None or trial.model.offset != "auto"
    return "offset alone" if told else "class shares alone"


def _constant(trial: Trial) -> Tensor:
    """The scores of the offset alone, ``(n, k)``."""
    return trial.model.ensemble_.offset.expand(trial.rows, -1)
