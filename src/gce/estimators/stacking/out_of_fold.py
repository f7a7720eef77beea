"""Out-of-fold predictions: what members predict for rows that they were not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.estimators.stacking.problem import StackProblem
from gce.frank_wolfe.simplex import Outputs
from gce.losses.risk import Risk
from gce.preprocessing.splits import Split
from gce.training.predictions import Array


@dataclass(frozen=True)
class OutOfFold:
    """The predictions that weights are solved on.

    Parameters
    ----------
    outputs : Outputs
        Predictions of each member, minus the offset of the risk.
    risk : Risk
    splits : list of (train, test) or None
        Row indices of the folds: each member predicted the test rows after a fit on the training rows. None: members
        had been fitted before, on other rows.
    seconds : list of float
        Prediction time of each member per row.
    problem : StackProblem
    """

    outputs: Outputs
    risk: Risk
    splits: list[Split] | None
    seconds: list[float]
    problem: StackProblem

    @property
    def rows(self) -> NDArray[np.intp]:
        """Indices of the rows of ``outputs`` among those given."""
        return self.problem.rows

    def select(self, index: Sequence[int]) -> OutOfFold:
        """Keep some of the members; predictions are not copied."""
        return replace(self, outputs=self.outputs.select(index), seconds=[self.seconds[j] for j in index])

    def append(self, other: OutOfFold) -> OutOfFold:
        """Append one member that predicted the same rows."""
        (prediction,) = other.outputs.predictions
        return replace(self, outputs=self.outputs.append(prediction), seconds=[*self.seconds, *other.seconds])


def out_of_fold(
    problem: StackProblem, predictions: Sequence[Array], seconds: Sequence[float], splits: list[Split] | None
) -> OutOfFold:
    """Collect members' transformed predictions, each of shape ``(n, k)``, without copying them."""
    outputs = Outputs([torch.from_numpy(prediction) for prediction in predictions])
    return OutOfFold(outputs, problem.risk(), splits, list(seconds), problem)


def predict_fitted(problem: StackProblem, models: Mapping[str, Any], X: Any) -> OutOfFold:
    """Predict the rows of a problem with models that are fitted already.

    Parameters
    ----------
    problem : StackProblem
    models : mapping of name to fitted model
    X : rows of any kind
        All rows given; those of zero weight are not predicted.
    """
    X = problem.select_rows(X)
    index = np.arange(len(problem.rows))
    predictions, seconds = [], []
    for name, model in models.items():
        start = perf_counter()
        prediction = problem.response.predict(name, model, X)
        seconds.append((perf_counter() - start) / len(index))
        predictions.append(np.ascontiguousarray(problem.transform(prediction, index)))
    return out_of_fold(problem, predictions, seconds, None)
