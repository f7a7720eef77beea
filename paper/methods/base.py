"""What the methods of the paper's Table 1 have in common."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from paper.budgets import Budget
from paper.ledger import Record
from paper.searches import Search, Settings

if TYPE_CHECKING:
    from gce.datasets import Dataset

Array = NDArray[Any]
Model = TypeVar("Model")

#: The paper calls a data set small below so many training rows.
SMALL_ROWS = 10_000
#: Steps after which a training on a large set ends at the latest: the reduced budget of this machine's run.
STEPS_LARGE = 3_000
SCORING = {"mae": "neg_mean_absolute_error", "error": "accuracy"}


class Method(ABC):
    """A column of the table: settings to choose from, and a fit.

    ``name`` stands on the command line and in the ledger, ``title`` in the table.
    """

    name: str
    title: str

    @abstractmethod
    def search(self, data: Dataset, budget: Budget) -> Search:
        """The settings that are tried on a data set."""

    @abstractmethod
    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        """One fit on the training rows: ``validation`` and ``test`` error, ``seconds`` and what else is of interest."""


def small(data: Dataset) -> bool:
    return len(data.X_train) < SMALL_ROWS


def error(metric: str, answer: Array, y: Array) -> float | None:
    """Mean absolute error, or the share of wrong classes in %; None where a model gave no numbers."""
    value = np.abs(answer - y).mean() if metric == "mae" else 100 * (answer != y).mean()
    return float(value) if math.isfinite(value) else None


def measured(data: Dataset, fit: Callable[[], Model], predict: Callable[[Model, Array], Array]) -> tuple[Model, Record]:
    """Time a fit, then ask the model for its validation and test error."""
    began = time.perf_counter()
    model = fit()
    seconds = time.perf_counter() - began
    return model, {
        "validation": error(data.metric, predict(model, data.X_val), data.y_val),
        "test": error(data.metric, predict(model, data.X_test), data.y_test),
        "seconds": round(seconds, 3),
    }


def estimated(data: Dataset, model: Any) -> Record:
    """:func:`measured` for an estimator that watches the validation rows itself."""
    _, record = measured(
        data, lambda: model.fit(data.X_train, data.y_train, **watched(data)), lambda model, X: model.predict(X)
    )
    return {**record, "iterations": model.n_iter_}


def watched(data: Dataset) -> dict[str, Array]:
    """Validation rows for an estimator's ``fit``: those whose class it is shown at all.

    In kddcup99 some classes have a handful of rows. The others still count in the validation error.
    """
    shown = np.isin(data.y_val, data.y_train) if data.metric == "error" else np.ones(len(data.y_val), bool)
    return {"X_val": data.X_val[shown], "y_val": data.y_val[shown]}


def most_epochs(data: Dataset, of_small: int) -> int:
    """Most epochs of a training: given for small sets, for large ones as many as ``STEPS_LARGE`` steps take."""
    return of_small if small(data) else math.ceil(STEPS_LARGE / math.ceil(len(data.X_train) / batch_size(data)))


def batch_size(data: Dataset) -> int:
    """A third of the training rows, 10,000 at most: the authors' batches."""
    return min(10_000, math.ceil(len(data.X_train) / 3))
