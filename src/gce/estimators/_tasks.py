"""The two tasks: how raw scores become predictions of numbers or of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from gce._utils.parallel import limited
from gce._utils.params import AUTO, NONE, POSITIVE, Rules, among, checked_keywords, instance, within
from gce.estimators._base import Array, ConvexModel
from gce.estimators._validation import require_base_score
from gce.losses import Gamma, Hazards, Loss, MultiLabel, Ordinal, Poisson, Tweedie
from gce.preprocessing.sample_weights import check_scored
from gce.preprocessing.targets import (
    as_floats,
    by_label,
    check_base_score,
    check_magnitude,
    check_regression_targets,
    check_scored_labels,
)
from gce.training.calibration import residual_range
from gce.training.scores import residual_scales
from gce.training.targets import CLIPPED, ClassTarget, NumberTarget, Target

#: What losses are for that some estimators cannot take; those of users are taken by all.
_FOR: dict[type[Loss], str] = {
    Hazards: "times until an event: use GCESurvival",
    MultiLabel: "several labels per row: use GCEClassifier with y of shape (n, labels)",
    Ordinal: "ordered classes: use GCEClassifier",
    **dict.fromkeys((Poisson, Gamma, Tweedie), "numbers: use GCERegressor"),
}


def _refuse(given: str | Loss, kinds: Iterable[type[Loss]]) -> None:
    for kind in kinds:
        if isinstance(given, kind):
            raise ValueError(f"loss={given!r} is for {_FOR[kind]}")


class Regression(RegressorMixin, ConvexModel):
    """Predicts numbers, one target or several."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def learn_target(
        self, y: NDArray[Any], weight: Array, order: list[Any] | None = None
    ) -> tuple[NumberTarget, Array, None]:
        """What is predicted, and the targets ``(n,)`` or ``(n, k)`` encoded."""
        _refuse(self.loss, (Hazards, MultiLabel, Ordinal))
        return NumberTarget.learn(y, self.loss)

    @property
    def residuals_(self) -> Array:
        """Sorted residuals of held-out rows, ``(r, k)``, for prediction intervals."""
        return self.result_.calibration.residuals

    @checked_keywords
    def predict(self, X: Any, base_score: ArrayLike | None = None) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        base_score : array-like of shape (n,) or (n, k), optional
            Raw scores that are added to those of the model, as in ``fit``.

        Returns
        -------
        array of shape (n,) or (n, k)
            As ``y`` was given; one column per level for several quantiles.
        """
        if base_score is None:
            self._check_routed()
        return self._predict(X, base_score)

    def _predict(self, X: Any, base_score: ArrayLike | None) -> Array:
        pred = self.raw_predict(X)
        if base_score is not None:
            if cast(NumberTarget, self.result_.target).limits is not None:
                raise ValueError(CLIPPED)
            pred = pred + torch.from_numpy(check_base_score(base_score, *pred.shape)).to(pred.device)
        return self.predict_from_raw(pred)

    def _check_routed(self) -> None:
        """Refuse predictions without the base score that was routed to the fit: scikit-learn's scorers drop it."""
        if not get_config()["enable_metadata_routing"] or not self.result_.base_score:
            return
        requests = self.get_metadata_routing()
        if requests.fit.requests.get("base_score") and requests.predict.requests.get("base_score") is not False:
            raise ValueError(
                "base_score was routed to fit, but predict was called without it, as scikit-learn's scorers and "
                "cross_val_predict do: give predict(X, base_score=...), score by set_score_request(base_score=True) "
                "without scoring=..., or set_predict_request(base_score=False) if predictions of a base score of 0 are "
                "meant"
            )

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, base_score: ArrayLike | None = None
    ) -> float:
        """R² of the predictions; of several quantiles the mean of their D² pinball scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
        base_score : array-like of shape (n,) or (n, k), optional
            Raw scores that are added to those of the model, as in ``predict``. Needed where ``fit`` had it; zeros score
            predictions of a base score of 0.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        how = "score(X, y, base_score=...), by metadata routing after set_score_request(base_score=True)"
        require_base_score(self.result_, base_score, "score", how)
        y, sample_weight = check_scored(y, sample_weight)
        check_regression_targets(y)
        y = as_floats(y, "y")
        assert_all_finite(y, input_name="y")
        check_magnitude(y)
        if self.result_.target.repeats == 1:
            return float(r2_score(y, self._predict(X, base_score), sample_weight=sample_weight))
        levels, pred, y = self.loss_.levels, self._predict(X, base_score), column_or_1d(y, warn=True)
        each = [
            d2_pinball_score(y, p, sample_weight=sample_weight, alpha=a) for p, a in zip(pred.T, levels, strict=True)
        ]
        return float(np.mean(each))

    def predict_from_raw(self, pred: Tensor) -> Array:
        """Predictions from raw scores ``(n, k)``."""
        return self.result_.target.predicted(self.loss_, pred)

    @checked_keywords
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Array:
        """Prediction intervals, by split-conformal prediction.

        The residuals of rows that were held out (each member's own, where there are several) show how far targets lie
        from predictions. Where it helps on these rows, residuals are divided by their expected size, which a second
        ensemble predicts for each row, so that intervals are wide where the model is unsure and narrow elsewhere.

        The coverage holds for rows like those of the fit, on average over rows and not for each row by itself, and for
        each of several targets alone. It is exact for one member and rows that early stopping did not look at; here the
        same rows chose the stopping round, and members are averaged, which predicts better than a single member does.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        coverage : float, default=0.9
        method : {"auto", "scaled", "constant"}, default="auto"
            "constant": intervals of all rows have the same width. "scaled": each has the width that its row needs.
            "auto" is "scaled" where the fit found that to be better, else "constant".

        Returns
        -------
        array of shape (n, 2), or (n, k, 2) for several targets
            Lower and upper ends; infinite where there are too few held-out rows for so high a coverage.

        Raises
        ------
        ValueError
            The fit held out no rows, or "scaled" is asked for where the fit found constant widths to be as good.
        """
        within(0, 1, "()").check("coverage", coverage)
        among("auto", "scaled", "constant").check("method", method)
        if not self.result_.target.has_intervals:
            raise ValueError("a model of several quantiles has no interval around each: its predictions are the ends")
        mean = cast(NumberTarget, self.result_.target).means(self.loss_, self.raw_predict(X)).cpu().numpy()
        if len(self.residuals_) == 0:
            raise ValueError(
                "an interval needs rows that were held out, and this fit held out none: use cv or validation_fraction"
            )
        scale = self.result_.calibration.scale
        if method == "scaled" and scale is None:
            raise ValueError(
                "method='scaled' needs a fit that found widths by row to be better than constant ones on its held-out "
                "rows, and this one did not: use method='auto'"
            )
        if scale is None or method == "constant":
            low, high = residual_range(self.residuals_, coverage)
        else:
            with torch.no_grad(), limited(self.n_jobs):
                factor = residual_scales(self.result_, self.code_rows(X)).cpu().numpy()
            low, high = (factor * end for end in residual_range(scale.residuals, coverage))
        ends = np.stack([mean + low, mean + high], -1)
        return ends[:, 0] if self.result_.target.one_dimensional else ends


class Classification(ClassifierMixin, ConvexModel):
    """Predicts classes, two or more, or several labels per row."""

    class_weight: Mapping[Any, float] | str | None
    temperature: float | str

    parameter_rules: ClassVar[Rules] = {
        "class_weight": among("balanced") | instance("a dict", Mapping) | NONE,
        "temperature": AUTO | POSITIVE,
    }

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions; of several labels per row the share of rows with all labels right.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,) or (n, labels)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        y, sample_weight = check_scored(y, sample_weight)
        check_scored_labels(np.asarray(y), self.classes_)
        if getattr(y, "dtype", None) == np.float16:
            # scipy's sparse matrices, which scikit-learn keeps several labels in, have no such type
            y = y.astype(np.float32)
        # scikit-learn asks whether labels are integers by conversion
        with np.errstate(invalid="ignore"):
            return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def learn_target(
        self, y: NDArray[Any], weight: Array, order: list[Any] | None = None
    ) -> tuple[Target, Array, NDArray[np.intp] | None]:
        """What is predicted, the classes ``(n,)`` or labels ``(n, labels)`` encoded, and the codes of classes.

        Ordinal classes are in the ``order`` of their categories, where these have one.
        """
        ordinal = isinstance(self.loss, Ordinal) or (isinstance(self.loss, str) and self.loss == "ordinal")
        if not ordinal and y.ndim == 1:
            _refuse(self.loss, (Hazards, MultiLabel, Poisson, Gamma, Tweedie))
            return ClassTarget.learn(y, self.class_weight, self.temperature)
        # rare tasks, which others need not load
        from gce.training.labels import MultiLabelTarget, OrdinalTarget

        if ordinal and y.ndim > 1:
            raise ValueError(
                f"loss={self.loss!r} takes one column of ordered classes, but y is of shape {y.shape}: fit one model "
                "for each, or leave out loss for several labels per row"
            )
        if ordinal:
            return OrdinalTarget.learn(y, self.class_weight, self.temperature, order)
        return MultiLabelTarget.learn(y, self.class_weight, self.temperature)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted; of several labels per row their numbers."""
        target = self.result_.target
        return np.arange(len(self.offset_)) if target.classes is None else by_label(target.classes, target.label_order)

    @property
    def ordered_classes_(self) -> NDArray[Any]:
        """The classes in their order, the lowest first, of ``loss="ordinal"``."""
        classes = self.result_.target.classes
        if classes is None or not isinstance(self.loss_, Ordinal):
            raise AttributeError(f"ordered_classes_ needs loss='ordinal', and the loss is {self.loss_!r}: use classes_")
        return classes

    @property
    def temperature_(self) -> float:
        """Probabilities are those of scores divided by it."""
        return self.result_.calibration.temperature

    def decision_function(self, X: Any) -> Array:
        """Raw scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,) or (n, k)
            Log-odds of ``classes_[1]`` for two classes, one score per class for more, and the log-odds of each of
            several labels. Of ordinal classes, whose raw scores are the log-odds to be above each class but the last,
            the logarithms of their probabilities, calibrated as in ``predict_proba``.
        """
        return self.decision_from_raw(self.raw_predict(X))

    def decision_from_raw(self, pred: Tensor) -> Array:
        """What ``decision_function`` makes of raw scores ``(n, k)``."""
        return self.result_.target.decision(self.loss_, self._compared(pred))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, calibrated by held-out rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        array of shape (n, classes)
            Of several labels, the probability of each; these do not sum to 1.
        """
        return self.probabilities(self.raw_predict(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities, computed from the scores: finite where a probability rounds to 0.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        array of shape (n, classes)
        """
        pred = self.raw_predict(X)
        return by_label(self.loss_.log_predict(pred / self.temperature_).cpu().numpy(), self.result_.target.label_order)

    def probabilities(self, pred: Tensor) -> Array:
        """Class probabilities from raw scores ``(n, k)``."""
        return by_label(self.loss_.predict(pred / self.temperature_).cpu().numpy(), self.result_.target.label_order)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class, or the labels that are more probable than not.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,), or (n, labels) of 0 and 1
        """
        return self.predict_from_raw(self.raw_predict(X))

    def predict_from_raw(self, pred: Tensor) -> NDArray[Any]:
        """Classes or labels from raw scores ``(n, k)``."""
        return self.result_.target.predicted(self.loss_, self._compared(pred))

    def _compared(self, pred: Tensor) -> Tensor:
        """The scores that classes are compared by, from raw ones ``(n, k)``."""
        # a temperature keeps the largest score of a row where it was, but not the largest difference of probabilities
        ordered = isinstance(self.loss_, Ordinal) and pred.shape[1] > 1
        return pred / self.temperature_ if ordered else pred
