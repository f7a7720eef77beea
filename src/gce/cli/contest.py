"""One model after the other, fitted and judged on the same rows, with a clock beside it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.cli import figures
from gce.cli.failures import sentence
from gce.cli.peers import Coding, Peer
from gce.cli.rows import Rows
from gce.cli.tasks import Task, values
from gce.estimators import GCEClassifier, GCERegressor


@dataclass(frozen=True)
class Entry:
    """What one model came to: its figures and seconds, or why it failed."""

    model: str
    figures: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    failed: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the figures among them."""
        seconds = {"fit_seconds": self.fit_seconds, "predict_seconds": self.predict_seconds}
        return {"model": self.model, "failed": self.failed, **self.figures, **seconds}


class Contest:
    """The rows of a comparison.

    Parameters
    ----------
    task : Task
    train, test : Rows
    categorical : tuple of str
        Columns of numbers that are categories.
    seed : int
    """

    def __init__(self, task: Task, train: Rows, test: Rows, categorical: tuple[str, ...], seed: int) -> None:
        self._task, self._train, self._test, self._categorical, self._seed = task, train, test, categorical, seed
        self._y, self._y_test = values(train.y, task), values(test.y, task)

    def ours(self, **options: Any) -> Entry:
        """GCE; what is wrong with the data is an error."""
        kind = GCEClassifier if self._task is Task.classification else GCERegressor
        model = kind(random_state=self._seed, **options)
        if self._categorical:
            model.set_params(categorical_features=list(self._categorical))
        return self._judged("GCE", model, self._train.X, self._y, self._test.X)

    def peer(self, peer: Peer) -> Entry:
        """A peer; what goes wrong is its entry."""
        try:
            coding = Coding.learn(self._train.X, self._categorical)
            y = self._y if self._task is Task.regression else np.searchsorted(self._classes, self._y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = peer.make(self._task, coding, self._seed)
                return self._judged(peer.name, model, coding(self._train.X), y, coding(self._test.X))
        except Exception as error:
            return Entry(peer.name, failed=sentence(error))

    @cached_property
    def _classes(self) -> NDArray[Any]:
        return np.unique(self._y)

    def _judged(self, name: str, model: Any, X: Any, y: NDArray[Any], X_test: Any) -> Entry:
        began = time.perf_counter()
        model.fit(X, y)
        fitted = time.perf_counter()
        answer = model.predict_proba(X_test) if self._task is Task.classification else model.predict(X_test)
        seconds = (fitted - began, time.perf_counter() - fitted)
        if self._task is Task.classification:
            return Entry(name, figures.of_classes(self._y_test, answer, self._classes), *seconds)
        return Entry(name, figures.of_numbers(self._y_test, answer), *seconds)
