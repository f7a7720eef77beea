"""The metrics of predictions that the command line prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.cli.tasks import Task
from gce.inspection.roc import roc_auc, undefined

Array = NDArray[np.float64]

#: Written in place of a figure that is not defined.
NOTHING = "\N{EN DASH}"

#: A class that a model holds impossible costs this much log-loss and no more.
_LEAST = 1e-15


@dataclass(frozen=True)
class Figure:
    """A figure's name and how it is written.

    Parameters
    ----------
    key, title : str
        Its name in JSON and in tables.
    form : str
        How :func:`format` writes it.
    share : bool, default=False
        It is written in %.
    sign : {1, -1}, default=1
        -1 where more of it is better.
    """

    key: str
    title: str
    form: str
    share: bool = False
    sign: int = 1

    def __call__(self, value: float) -> str:
        if value != value:
            return NOTHING
        return format(100 * value if self.share else value, self.form) + (" %" if self.share else "")


_FIGURES = {
    Task.classification: (
        Figure("error", "error", ".2f", share=True),
        Figure("log_loss", "log-loss", ".4f"),
        Figure("roc_auc", "ROC AUC", ".4f", sign=-1),
    ),
    Task.regression: (Figure("rmse", "RMSE", ".4g"), Figure("mae", "MAE", ".4g")),
}


def known(task: Task) -> tuple[Figure, ...]:
    """The figures of a task, the first one first."""
    return _FIGURES[task]


def of_classes(y: NDArray[Any], proba: Array, classes: NDArray[Any], weight: Array | None = None) -> dict[str, float]:
    """Error, log-loss and ROC AUC of probabilities ``(n, classes)``; a class the model does not know is an error."""
    hit = y[:, None] == classes[None, :]
    wrong = ~hit[np.arange(len(y)), proba.argmax(1)]
    chance = np.clip((proba * hit).sum(1), _LEAST, None)
    return {
        "error": float(np.average(wrong, weights=weight)),
        "log_loss": float(np.average(-np.log(chance), weights=weight)),
        "roc_auc": roc_auc(y, proba, classes, weight).value,
    }


def of_numbers(y: Array, answer: Array, weight: Array | None = None) -> dict[str, float]:
    """Root mean squared and mean absolute error."""
    away = answer - y
    return {
        "rmse": float(np.sqrt(np.average(np.square(away), weights=weight))),
        "mae": float(np.average(np.abs(away), weights=weight)),
    }


def of_model(model: Any, task: Task, X: Any, y: NDArray[Any], weight: Array | None = None) -> dict[str, float]:
    """A model's figures on rows and targets."""
    if task is Task.classification:
        return of_classes(y, model.predict_proba(X), model.classes_, weight)
    return of_numbers(y, model.predict(X), weight)


def note_of_classes(y: NDArray[Any], classes: NDArray[Any], weight: Array | None = None) -> str | None:
    """One sentence about a figure that is not defined on rows with these classes; None if all are."""
    reason = undefined(y if weight is None else y[weight > 0], classes)
    return None if reason is None else f"ROC AUC is not defined: {reason}"


def of_held_out(model: Any, task: Task) -> dict[str, float]:
    """A fitted model's figures on the rows that its members held out, empty where there are none.

    A classifier keeps the value that early stopping monitored: the mean log-loss of its members as they are kept.
    """
    result = model.result_
    if task is Task.regression:
        return of_numbers(np.zeros(()), model.residuals_[:, 0]) if len(model.residuals_) else {}
    if model.scoring is not None or model.loss != "auto" or result.best_validation is None:
        return {}
    return {"log_loss": result.best_validation}
