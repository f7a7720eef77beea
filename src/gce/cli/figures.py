"""The metrics of predictions that the command line prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.cli.tasks import Task

Array = NDArray[np.float64]

#: A class that a model holds impossible costs this much log-loss and no more.
_LEAST = 1e-15


@dataclass(frozen=True)
class Figure:
    """A figure's name, how it is written, and whether less of it is better."""

    key: str
    title: str
    form: str
    share: bool = False

    def __call__(self, value: float) -> str:
        return format(100 * value if self.share else value, self.form) + (" %" if self.share else "")


_FIGURES = {
    Task.classification: (Figure("error", "error", ".2f", share=True), Figure("log_loss", "log-loss", ".4f")),
    Task.regression: (Figure("rmse", "RMSE", ".4g"), Figure("mae", "MAE", ".4g")),
}


def known(task: Task) -> tuple[Figure, ...]:
    """The figures of a task, the first one first."""
    return _FIGURES[task]


def of_classes(y: NDArray[Any], proba: Array, classes: NDArray[Any], weight: Array | None = None) -> dict[str, float]:
    """Error and log-loss of probabilities ``(n, classes)``; a class the model does not know is an error."""
    hit = y[:, None] == classes[None, :]
    wrong = ~hit[np.arange(len(y)), proba.argmax(1)]
    chance = np.clip((proba * hit).sum(1), _LEAST, None)
    return {
        "error": float(np.average(wrong, weights=weight)),
        "log_loss": float(np.average(-np.log(chance), weights=weight)),
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
