"""The two tasks: how targets are encoded and scores answered, whatever learns them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from gce.base import Array, ConvexModel
from gce.losses import REGRESSION, CrossEntropy, Logistic, Loss
from gce.scoring import class_codes, scores
from gce.settings import look_up
from gce.table import one_hot


class Regression(RegressorMixin, ConvexModel):
    """Numbers, one target or several."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        self._one_dimensional = y.ndim == 1
        return self._encode_y_val(y), None

    def _encode_y_val(self, y: Any) -> Array:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
        return y[:, None] if y.ndim == 1 else y

    def _decode(self, target: Array) -> NDArray[Any]:
        return target[:, 0] if target.shape[1] == 1 else target

    def _pick_loss(self, outputs: int) -> Loss:
        return look_up("loss", "squared_error" if self.loss == "auto" else self.loss, REGRESSION, Loss)

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        reach = 4 / 3 * (y - offset).abs().amax(0)
        return torch.where(reach > 0, reach, 1.0)

    def _warn_of_bound(self, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        beyond = ((y - offset).abs() > bound).any(1)
        if beyond.any():
            warnings.warn(
                f"{int(beyond.sum())} of {len(y)} targets lie farther from the offset {offset.tolist()} than "
                f"bound={bound.tolist()}: the hull cannot reach them",
                UserWarning,
                stacklevel=5,
            )

    def predict(self, X: Any) -> Array:
        """Predict the target, ``(n,)`` or ``(n, k)`` as ``y`` was given."""
        return self._answer(self._scores(X))

    def _answer(self, pred: Tensor) -> Array:
        answer = self.loss_.predict(pred).cpu().numpy()
        return answer[:, 0] if self._one_dimensional else answer


class Classification(ClassifierMixin, ConvexModel):
    """Classes, two or more."""

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()}: a classifier needs samples of at least 2 classes"
            )
        return one_hot(codes, len(self.classes_)), codes

    def _encode_y_val(self, y: Any) -> Array:
        y = column_or_1d(y, warn=True)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"classes {unknown.tolist()} are not among those of the fit, {self.classes_.tolist()}")
        return one_hot(np.searchsorted(self.classes_, y), len(self.classes_))

    def _decode(self, target: Array) -> NDArray[Any]:
        return self.classes_[target[:, 0].astype(np.intp) if target.shape[1] == 1 else target.argmax(1)]

    def _signs(self) -> Tensor | None:
        signs = super()._signs()
        if signs is not None and len(self.classes_) > 2:
            raise ValueError(
                f"monotonic_cst asks for two classes, got {len(self.classes_)}: probabilities of more cannot all rise"
            )
        return signs

    def _pick_loss(self, outputs: int) -> Loss:
        known: dict[str, Loss] = {"log_loss": Logistic() if outputs == 1 else CrossEntropy()}
        return look_up("loss", "log_loss" if self.loss == "auto" else self.loss, known, Loss)

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        return torch.full_like(offset, 10.0)

    def decision_function(self, X: Any) -> Array:
        """Raw scores: ``(n,)`` log-odds of ``classes_[1]`` for two classes, ``(n, k)`` for more."""
        return scores(self._scores(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, ``(n, classes)``."""
        pred = self._scores(X)
        return self.loss_.predict(pred).cpu().numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, ``(n,)``."""
        codes = class_codes(self._scores(X))
        return self.classes_[codes]
