"""Stacks that predict numbers, for one target or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import _check_y, check_is_fitted

from gce._utils.params import look_up
from gce.estimators.stacking.editable import EditableStack
from gce.estimators.stacking.problem import StackProblem
from gce.estimators.stacking.result import StackResult
from gce.estimators.stacking.task import StackTask
from gce.losses import REGRESSION, Loss
from gce.preprocessing.sample_weights import check_scored
from gce.preprocessing.targets import as_floats, check_magnitude, check_regression_targets
from gce.training.predictions import Array, PredictedValues


@dataclass(frozen=True, eq=False)
class RegressionTask(StackTask):
    """Prediction of numbers.

    Parameters
    ----------
    shape : tuple of int
        Shape of the target of one row: ``()`` or ``(k,)``.
    multi_output : bool
        Whether all members can predict several targets.
    estimator : str
        Name of the stack, for errors.
    """

    shape: tuple[int, ...]
    multi_output: bool
    estimator: str

    stratified = False

    @classmethod
    def learn(cls, y: Any, loss: str | Loss, multi_output: bool, estimator: str) -> tuple[Self, Array]:
        """Check the targets of a fit.

        Returns
        -------
        task : RegressionTask
        y : array of shape (n,) or (n, k)
        """
        y, shape = _check_numbers(y, multi_output, estimator)
        known = look_up("loss", "squared_error" if loss == "auto" else loss, REGRESSION, Loss)
        if known.link != "identity" or known.outputs_per_target > 1:
            raise ValueError(
                f"loss={loss!r} is of raw scores with a link or of several levels, and members predict one number: use "
                "a loss of differences, such as 'squared_error', 'huber' or 'quantile'"
            )
        return cls(PredictedValues(y.shape[1] if y.ndim == 2 else 1), known, shape, multi_output, estimator), y

    def encode(self, y: Any) -> Array:
        y, shape = _check_numbers(y, self.multi_output, self.estimator)
        if shape != self.shape:
            raise ValueError(f"y must have the shape of the fit, {('n', *self.shape)}, got {('n', *shape)}")
        return y

    def problem(self, y: NDArray[Any], weight: Array) -> StackProblem:
        rows = np.flatnonzero(weight)
        target = np.ascontiguousarray(y[rows].reshape(len(rows), -1))
        share = weight[rows] / weight.sum()
        loss = self.loss.for_targets(torch.from_numpy(target), torch.from_numpy(share))
        offset = loss.start(torch.from_numpy(target), torch.from_numpy(share)).numpy()
        return StackProblem(self.response, loss, target, share, offset, rows)

    def predict(self, mixture: Array) -> Array:
        return mixture.reshape(len(mixture), *self.shape)


def _check_numbers(y: Any, multi_output: bool, estimator: str) -> tuple[Array, tuple[int, ...]]:
    """Targets, a single column as ``(n,)``, and the shape of the target of one row."""
    check_regression_targets(y)
    y = _check_y(as_floats(y, "y"), multi_output=True, y_numeric=True, estimator=estimator)
    check_magnitude(y)
    if y.ndim > 2:
        raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
    if y.ndim == 2 and y.shape[1] == 1:
        return column_or_1d(y, dtype=np.float64, warn=not multi_output), (1,) if multi_output else ()
    return y.astype(np.float64), y.shape[1:]


class RegressionStack(RegressorMixin, EditableStack):
    """A stack that predicts one target or several."""

    result_: StackResult[RegressionTask]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = all(own.target_tags.multi_output for own in self._tags_of_members())
        return tags

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predictions.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        y, sample_weight = check_scored(y, sample_weight)
        y = as_floats(y, "y")
        assert_all_finite(y, input_name="y")
        check_magnitude(y)
        return float(super().score(X, y, sample_weight))

    def _learn_task(self, y: Any) -> tuple[RegressionTask, Array]:
        multi_output = self.__sklearn_tags__().target_tags.multi_output
        return RegressionTask.learn(y, self.loss, multi_output, type(self).__name__)

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            As in ``fit``.

        Returns
        -------
        array of shape (n,) or (n, k)
            As ``y`` was given.
        """
        mixture = self._mixture(X)
        return self.result_.task.predict(mixture)
