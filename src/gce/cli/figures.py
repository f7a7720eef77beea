"""How the command line writes metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.cli.tasks import Task
from gce.training import metrics

Array = NDArray[np.float64]

#: Written in place of a figure that is not defined.
NOTHING = "\N{EN DASH}"


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


#: How metrics are written that are not written with four significant digits.
_FORMS = {"error": ".2f", "wrong_labels": ".2f", "wrong_rows": ".2f", "log_loss": ".4f", "roc_auc": ".4f"}
_FIGURES = tuple(
    Figure(key, title, _FORMS.get(key, ".4g"), key in metrics.SHARES, -1 if key in metrics.HIGHER else 1)
    for key, title in metrics.TITLES.items()
)
_KNOWN = {Task.classification: ("error", "log_loss", "roc_auc"), Task.regression: ("rmse", "mae")}


def known(task: Task) -> tuple[Figure, ...]:
    """The figures of a task, the first one first."""
    return tuple(figure for figure in _FIGURES if figure.key in _KNOWN[task])


def written(values: Mapping[str, float]) -> list[tuple[str, str]]:
    """Titles and values of figures, the first one first."""
    return [(figure.title, figure(values[figure.key])) for figure in _FIGURES if figure.key in values]


def of_model(model: Any, task: Task, X: Any, y: NDArray[Any], weight: Array | None = None) -> dict[str, float]:
    """A model's figures on rows and targets."""
    if task is Task.regression:
        return metrics.of_numbers(y, model.predict(X), weight)
    # both come from one evaluation of the ensemble
    scores = model.raw_predict(X)
    predicted, probability = model.predict_from_raw(scores), model.probabilities(scores)
    return metrics.of_classes(y, predicted, probability, model.classes_, weight)


def note_of_classes(y: NDArray[Any], classes: NDArray[Any], weight: Array | None = None) -> str | None:
    """One sentence about a figure that is not defined on rows with these classes; None if all are."""
    reason = metrics.undefined(y if weight is None else y[weight > 0], classes)
    return None if reason is None else f"ROC AUC is not defined: {reason}"
