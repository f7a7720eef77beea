"""A fitted stack evaluated on given rows, member by member: computed once, shown by every section."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from gce._utils.devices import as_numpy
from gce.inspection.explanation import Explanation
from gce.inspection.report.evaluation import Predictions, name_of, positive_weight_rows
from gce.losses import Loss
from gce.preprocessing import targets_as_array
from gce.training.metrics import of_classes, of_numbers

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Member:
    """A member of a stack on the given rows.

    Parameters
    ----------
    name : str
    weight : float
    figures : dict of str to float
        See :func:`figures`.
    seconds : float
        Prediction time per row.
    """

    name: str
    weight: float
    figures: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class StackEvaluation(Predictions):
    """The predictions of a stack and of its members on given rows.

    Parameters
    ----------
    members : tuple of Member
        In the order of the weights.
    average : dict of str to float
        Figures of all members with equal weights.
    explanation : Explanation
    loss : Loss
        What the weights minimise.
    """

    members: tuple[Member, ...]
    average: dict[str, float]
    explanation: Explanation
    loss: Loss

    @property
    def used(self) -> tuple[Member, ...]:
        """The members with positive weight."""
        return tuple(member for member in self.members if member.weight > 0)


def evaluate_stack(stack: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> StackEvaluation:
    """Evaluate a fitted stack and all of its members; samples with zero weight are ignored."""
    check_is_fitted(stack)
    classifies = is_classifier(stack)
    if classifies and not hasattr(stack, "predict_proba"):
        raise ValueError(f"a report needs probabilities, and the loss of this {type(stack).__name__} defines none")
    X, y, weight = positive_weight_rows(as_numpy(X), np.asarray(targets_as_array(y)), sample_weight)
    result, task = stack.result_, stack.result_.task
    X, encoded = stack._validate_rows(X), task.encode(y)
    check_consistent_length(X, encoded)

    def predictions(mixture: Array) -> Predictions:
        answer = task.predict(mixture)
        truth = stack.classes_[encoded] if classifies else encoded.reshape(answer.shape)
        target = np.eye(len(stack.classes_))[encoded] if classifies else encoded.reshape(len(encoded), -1)
        return Predictions(stack, X, truth, target, weight, answer, task.predict_proba(mixture) if classifies else None)

    members = []
    mixture: Any = 0.0
    average: Any = 0.0
    for (name, model), weight_of_member in zip(result.models.items(), result.solution.weights, strict=True):
        start = time.perf_counter()
        response = task.response.predict(name, model, X)
        seconds = (time.perf_counter() - start) / len(encoded)
        members.append(Member(name, float(weight_of_member), figures(predictions(response), task.loss), seconds))
        mixture = mixture + weight_of_member * response
        average = average + response / len(result.models)
    return StackEvaluation(
        **vars(predictions(mixture)),
        members=tuple(members),
        average=figures(predictions(average), task.loss),
        explanation=stack.explain() if result.out_of_fold is not None else stack.explain(X, y, weight),
        loss=task.loss,
    )


def figures(predictions: Predictions, loss: Loss) -> dict[str, float]:
    """Measures of predictions: lower is better, except for ROC AUC and R²; NaN where one is undefined."""
    y, predicted, weight = predictions.y, predictions.predicted, predictions.weight
    if predictions.probability is not None:
        found = of_classes(y, predicted, predictions.probability, predictions.model.classes_, weight)
        return {"Error": found["error"], "Log-loss": found["log_loss"], "ROC AUC": found["roc_auc"]}
    found = of_numbers(y, predicted, weight)
    score = float(r2_score(y, predicted, sample_weight=weight)) if predictions.rows > 1 else np.nan
    several = {"RMSE": found["rmse"], "MAE": found["mae"], "R²": score}
    if name_of(loss) not in ("squared error", "absolute error"):
        pred, target = (
            torch.from_numpy(a.reshape(predictions.target.shape)) for a in (predictions.predicted, predictions.target)
        )
        several[name_of(loss).capitalize()] = predictions.mean(loss.value(pred, target).numpy())
    return several
