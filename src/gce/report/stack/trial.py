"""A fitted stack tried on given rows, member by member: what every section looks at, computed once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error, zero_one_loss
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from gce.explaining import Explanation
from gce.losses import Loss
from gce.report.measures import area
from gce.report.trial import Answers, counted_rows, name_of
from gce.settings import as_numpy
from gce.table import as_targets

Array = NDArray[np.float64]

#: Below it a probability has no digits left: its logarithm stays finite.
_LEAST = float(np.finfo(np.float64).eps)


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
        What it took to answer for one row.
    """

    name: str
    weight: float
    figures: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class StackTrial(Answers):
    """A stack, rows, and what the stack and its members make of them.

    Parameters
    ----------
    members : tuple of Member
        In the order of the weights.
    average : dict of str to float
        Figures of all members with equal weights.
    explanation : Explanation
    loss : Loss
        What weights make small.
    """

    members: tuple[Member, ...]
    average: dict[str, float]
    explanation: Explanation
    loss: Loss

    @property
    def asked(self) -> tuple[Member, ...]:
        """Members that predictions ask: those with weight."""
        return tuple(member for member in self.members if member.weight > 0)


def tried(stack: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> StackTrial:
    """Try a fitted stack on rows; those of weight 0 are not there, members of weight 0 are."""
    check_is_fitted(stack)
    classifies = is_classifier(stack)
    if classifies and not hasattr(stack, "predict_proba"):
        raise ValueError(f"a report needs probabilities, and this {type(stack).__name__} has a loss that gives none")
    X, y, weight = counted_rows(as_numpy(X), np.asarray(as_targets(as_numpy(y))), sample_weight)
    X, known = stack._checked(X), stack._known_targets(y)
    check_consistent_length(X, known)

    def answers(mixture: Array) -> Answers:
        answer = stack._answer(mixture)
        truth = stack.classes_[known] if classifies else known.reshape(answer.shape)
        target = np.eye(len(stack.classes_))[known] if classifies else known.reshape(len(known), -1)
        return Answers(stack, X, truth, target, weight, answer, stack._probabilities(mixture) if classifies else None)

    loss, members = stack._pick_loss(), []
    mixture: Any = 0.0
    average: Any = 0.0
    for (name, model), share in zip(stack._members.items(), stack._solution.weights, strict=True):
        began = time.perf_counter()
        response = stack._response.ask(name, model, X)
        taken = (time.perf_counter() - began) / len(known)
        members.append(Member(name, float(share), figures(answers(response), loss), taken))
        mixture = mixture + share * response
        average = average + response / len(stack.weights_)
    return StackTrial(
        **vars(answers(mixture)),
        members=tuple(members),
        average=figures(answers(average), loss),
        explanation=stack.explain() if stack._evidence is not None else stack.explain(X, y, weight),
        loss=loss,
    )


def figures(answers: Answers, loss: Loss) -> dict[str, float]:
    """How good answers are, in a few figures: lower is better, but for areas and R²; NaN where one has no meaning."""
    weight = {"sample_weight": answers.weight}
    if answers.probability is not None:
        of_truth = np.maximum(answers.probability[answers.target > 0], _LEAST)
        found = area(answers)
        return {
            "Error": float(zero_one_loss(answers.y, answers.answer, **weight)),
            "Log-loss": answers.mean(-np.log(of_truth)),
            "ROC AUC": np.nan if found is None else found,
        }
    several = {
        "RMSE": float(root_mean_squared_error(answers.y, answers.answer, **weight)),
        "MAE": float(mean_absolute_error(answers.y, answers.answer, **weight)),
        "R²": float(r2_score(answers.y, answers.answer, **weight)) if answers.rows > 1 else np.nan,
    }
    if name_of(loss) not in ("squared error", "absolute error"):
        pred, target = (torch.from_numpy(a.reshape(answers.target.shape)) for a in (answers.answer, answers.target))
        several[name_of(loss).capitalize()] = answers.mean(loss.value(pred, target).numpy())
    return several
