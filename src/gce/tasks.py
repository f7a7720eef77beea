"""The two tasks: how targets are encoded and scores answered, whatever learns them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from gce.base import Array, ConvexModel
from gce.calibration import HeldOut, best_temperature, lonely_temperature, residual_range, spread_residuals
from gce.fitting import Problem
from gce.losses import REGRESSION, CrossEntropy, Logistic, Loss
from gce.members import Rows
from gce.parameters import AUTO, NONE, POSITIVE, Rules, among, instance, is_number, shown, within
from gce.reading import measured
from gce.scoring import class_codes, scores
from gce.settings import look_up, users_line
from gce.table import Schema, check_labels, check_magnitude, check_numbers, check_spread, one_hot


class Regression(RegressorMixin, ConvexModel):
    """Numbers, one target or several."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        self._one_dimensional = y.ndim == 1
        target = self._encode_y_val(y)
        check_spread(target)
        return target, None

    def _encode_like(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        target = self._encode_y_val(y)
        if target.shape[1] != len(self.offset_):
            raise ValueError(f"the model goes on with {len(self.offset_)} target(s), but y now has {target.shape[1]}")
        return self._encode_y(y)

    def _encode_y_val(self, y: Any) -> Array:
        check_numbers(y)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
        check_magnitude(y)
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
                stacklevel=users_line(),
            )

    def predict(self, X: Any) -> Array:
        """Predict the target, ``(n,)`` or ``(n, k)`` as ``y`` was given."""
        return self._answer(self._scores(X))

    def _calibrate(self, rows: HeldOut) -> None:
        answered = HeldOut(self.loss_.predict(rows.pred), rows.y, rows.weight)
        self.residuals_ = spread_residuals(answered)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Between which numbers the target lies, with probability ``coverage``, by split-conformal prediction.

        The residuals of rows that were held out (each member's own, where there are several) say how far targets lie
        from predictions. The promise is for rows like those of the fit, on average over rows and not for each row by
        itself, and for each of several targets alone. It is exact for one member and rows that stopping did not look
        at; here the same rows chose the stopping round, and members are averaged, which predicts better than a member
        does.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        coverage : float, default=0.9

        Returns
        -------
        array of shape (n, 2), or (n, k, 2) for several targets
            Lower and upper ends; infinite where there are too few held-out rows for so high a coverage.
        """
        within(0, 1, "()").check("coverage", coverage)
        mean = self.loss_.predict(self._scores(X)).cpu().numpy()
        if len(self.residuals_) == 0:
            raise ValueError(
                "an interval needs rows that were held out, and this fit held out none: use cv or validation_fraction"
            )
        low, high = residual_range(self.residuals_, coverage)
        ends = np.stack([mean + low, mean + high], -1)
        return ends[:, 0] if self._one_dimensional else ends

    def _answer(self, pred: Tensor) -> Array:
        answer = self.loss_.predict(pred).cpu().numpy()
        return answer[:, 0] if self._one_dimensional else answer


class Classification(ClassifierMixin, ConvexModel):
    """Classes, two or more."""

    class_weight: Mapping[Any, float] | str | None
    temperature: float | str

    parameter_rules: ClassVar[Rules] = {
        "class_weight": among("balanced") | instance("a dict", Mapping) | NONE,
        "temperature": AUTO | POSITIVE,
    }

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        check_labels(y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()}: a classifier needs samples of at least 2 classes"
            )
        return one_hot(codes, len(self.classes_)), codes

    def _encode_like(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        check_labels(y)
        found = np.unique(y)
        if not np.array_equal(found, self.classes_):
            raise ValueError(
                f"the model goes on with the classes {self.classes_.tolist()}, but y now has {found.tolist()}"
            )
        return self._encode_y(y)

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

    def _factors(self, target: Array, weight: Array) -> Array | float:
        if self.class_weight is None:
            return 1.0
        codes = target[:, 0].astype(np.intp) if target.shape[1] == 1 else target.argmax(1)
        return self._class_factors(codes, weight)[codes]

    def _class_factors(self, codes: NDArray[np.intp], weight: Array) -> Array:
        """What a row of each class counts, ``(classes,)``."""
        if isinstance(self.class_weight, str):
            total = np.bincount(codes, weight, minlength=len(self.classes_))
            return np.where(total > 0, total.sum() / (len(self.classes_) * np.where(total > 0, total, 1.0)), 1.0)
        assert self.class_weight is not None
        known = self.classes_.tolist()
        unknown = [label for label in self.class_weight if label not in set(known)]
        if unknown:
            raise ValueError(f"class_weight names {shown(unknown)}, which are not among the classes {shown(known)}")
        for label, factor in self.class_weight.items():
            if not is_number(factor) or not 0 < factor <= sys.float_info.max:
                raise ValueError(
                    f"class weights must be positive numbers, got class_weight={shown(dict(self.class_weight))}, which "
                    f"has {shown(factor)} for {label!r}"
                )
        factors = [float(self.class_weight.get(label, 1.0)) for label in known]
        return measured(np.array(factors), "class weights")

    def _start(self, schema: Schema, rows: Rows, seed: int) -> None:
        super()._start(schema, rows, seed)
        self.temperature_ = 1.0  # while the fit runs, for those who look at it

    def _calibrate(self, rows: HeldOut) -> None:
        if self.temperature == "auto":
            known = isinstance(self.loss_, Logistic | CrossEntropy) and len(rows.y) > 0
            self.temperature_ = best_temperature(self.loss_, rows) if known else 1.0
        else:
            self.temperature_ = float(self.temperature)

    def _calibrate_unseen(self, problem: Problem) -> None:
        lonely = len(problem.y) == len(self.classes_)
        if lonely and self.temperature == "auto" and isinstance(self.loss_, Logistic | CrossEntropy):
            rows = HeldOut(self.ensemble_(problem.X), problem.y, problem.train[0])
            self.temperature_ = lonely_temperature(self.loss_, rows)

    def decision_function(self, X: Any) -> Array:
        """Raw scores: ``(n,)`` log-odds of ``classes_[1]`` for two classes, ``(n, k)`` for more."""
        return scores(self._scores(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, ``(n, classes)``, at the temperature that held-out rows ask for."""
        return self._probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of ``predict_proba``, from the scores: finite where a probability rounds to 0."""
        pred = self._scores(X)
        return self.loss_.log_predict(pred / self.temperature_).cpu().numpy()

    def _probabilities(self, pred: Tensor) -> Array:
        return self.loss_.predict(pred / self.temperature_).cpu().numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, ``(n,)``."""
        codes = class_codes(self._scores(X))
        return self.classes_[codes]
