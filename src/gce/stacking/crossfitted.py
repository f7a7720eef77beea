"""A member that answers as the average of its fit on all rows and of its fits on folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from gce.responses import Array
from gce.settings import as_numpy


def _everyone_has(method: str) -> Any:
    return lambda self: all(hasattr(model, method) for model, _ in self.parts)


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """An average of fitted models of one kind: a convex combination, and so still within what a hull allows.

    Parameters
    ----------
    whole : fitted model or None
        Fitted on all rows.
    folds : sequence of fitted models
        Each fitted on all rows but those of a fold.
    share : float
        What the folds' models count in all; ``whole`` counts the rest.
    """

    whole: Any
    folds: Sequence[Any]
    share: float

    @property
    def parts(self) -> list[tuple[Any, float]]:
        """Models with what they count."""
        own = [] if self.whole is None else [(self.whole, 1 - self.share)]
        return own + [(model, self.share / len(self.folds)) for model in self.folds]

    @property
    def classes_(self) -> NDArray[Any]:
        """Those of the models, which are the same: folds whose training rows lack a class are refused."""
        return np.asarray(self.parts[0][0].classes_)

    def _average(self, method: str, X: Any) -> Array:
        total: Any = 0.0  # an array from the first model on, added to in place
        for model, count in self.parts:
            total += count * np.asarray(as_numpy(getattr(model, method)(X)), dtype=np.float64)
        return total

    @available_if(_everyone_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Predicted numbers."""
        return self._average("predict", X)

    @available_if(_everyone_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities."""
        return self._average("predict_proba", X)

    @available_if(_everyone_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Raw scores."""
        return self._average("decision_function", X)
