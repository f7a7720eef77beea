"""What a stack predicts, learned from its targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from gce.estimators.stacking.problem import StackProblem
from gce.losses import Loss
from gce.preprocessing.splits import Split
from gce.training.predictions import Array, ResponseMethod


@dataclass(frozen=True, eq=False)
class StackTask(ABC):
    """Regression or classification: how targets are encoded and what a mixture of predictions means.

    Parameters
    ----------
    response : ResponseMethod
        What members predict.
    loss : Loss
        What weights minimise.
    """

    response: ResponseMethod
    loss: Loss

    #: Whether folds are stratified by ``y``.
    stratified: ClassVar[bool]

    @abstractmethod
    def encode(self, y: Any) -> NDArray[Any]:
        """Check the targets of other rows than those of the fit, and encode them as members see them."""

    @abstractmethod
    def problem(self, y: NDArray[Any], weight: Array) -> StackProblem:
        """The problem of finding weights on rows with encoded targets ``y`` and sample weights ``(n,)``."""

    @abstractmethod
    def predict(self, mixture: Array) -> NDArray[Any]:
        """Predictions from mixed responses of shape ``(n, k)``."""

    def check_member(self, name: str, model: Any) -> None:  # noqa: B027
        """Refuse a member that cannot be fitted on encoded targets."""

    def check_folds(self, y: NDArray[Any], splits: list[Split], fold_weight: float) -> None:  # noqa: B027
        """Refuse folds that members cannot be fitted on."""
