"""A member that averages its fit on all rows with its fits on the folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from gce._utils.devices import as_numpy
from gce.training.predictions import Array


def _all_have(method: str) -> Any:
    return lambda self: all(hasattr(model, method) for model, _ in self.parts)


@dataclass(frozen=True, eq=False)
class FoldAverage:
    """The average of several fits of one model: a convex combination, so the stack remains one.

    Parameters
    ----------
    full : fitted model or None
        Fitted on all rows.
    folds : sequence of fitted models
        Each fitted on all rows but those of one fold.
    fold_weight : float
        Total weight of ``folds``; ``full`` has the rest.
    """

    full: Any
    folds: Sequence[Any]
    fold_weight: float

    @property
    def parts(self) -> list[tuple[Any, float]]:
        """The models with their weights."""
        full = [] if self.full is None else [(self.full, 1 - self.fold_weight)]
        return full + [(model, self.fold_weight / len(self.folds)) for model in self.folds]

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of all models: folds whose training rows lack a class are refused."""
        return np.asarray(self.parts[0][0].classes_)

    def _average(self, method: str, X: Any) -> Array:
        total: Any = 0.0  # an array from the first model on, added to in place
        for model, weight in self.parts:
            total += weight * np.asarray(as_numpy(getattr(model, method)(X)), dtype=np.float64)
        return total

    @available_if(_all_have("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Predict the target."""
        return self._average("predict", X)

    @available_if(_all_have("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Predict class probabilities."""
        return self._average("predict_proba", X)

    @available_if(_all_have("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Compute raw scores."""
        return self._average("decision_function", X)
