"""The two tasks: what members are asked, how their answers are judged, and what a mixture means."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from gce.losses import REGRESSION, CrossEntropy, Logistic, LogMixture, Loss, Squared
from gce.members import Split
from gce.parameters import Rules, among
from gce.responses import Array, Numbers, Probabilities, Scores, called
from gce.scoring import class_codes, scores
from gce.settings import look_up
from gce.stacking.base import Stack
from gce.stacking.evidence import Question, SecondClass, TrueClass
from gce.table import check_labels, one_hot


class StackedRegression(RegressorMixin, Stack):
    """Numbers, one target or several."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = all(own.target_tags.multi_output for own in self._tags_of_members())
        return tags

    def _learn_targets(self, y: Any) -> Array:
        y, self._shape = self._numbers(y)
        self._response = Numbers(y.shape[1] if y.ndim == 2 else 1)
        return y

    def _known_targets(self, y: Any) -> Array:
        y, shape = self._numbers(y)
        if shape != self._shape:
            raise ValueError(f"y must have the shape of the fit, {('n', *self._shape)}, got {('n', *shape)}")
        return y

    def _numbers(self, y: Any) -> tuple[Array, tuple[int, ...]]:
        """Targets, a single column as ``(n,)``, and the shape of a row's target."""
        y = _check_y(y, multi_output=True, y_numeric=True, estimator=self)
        if y.ndim > 2:
            raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
        if y.ndim == 2 and y.shape[1] == 1:
            several = self.__sklearn_tags__().target_tags.multi_output
            return column_or_1d(y, dtype=np.float64, warn=not several), (1,) if several else ()
        return y.astype(np.float64), y.shape[1:]

    def _question(self, y: NDArray[Any], weight: Array) -> Question:
        loss = self._pick_loss()
        rows = np.flatnonzero(weight)
        target = np.ascontiguousarray(y[rows].reshape(len(rows), -1))
        share = weight[rows] / weight.sum()
        offset = loss.start(torch.from_numpy(target), torch.from_numpy(share)).numpy()
        return Question(self._response, loss, target, share, offset, rows)

    def _pick_loss(self) -> Loss:
        return look_up("loss", "squared_error" if self.loss == "auto" else self.loss, REGRESSION, Loss)

    def predict(self, X: Any) -> Array:
        """Predict the target, ``(n,)`` or ``(n, k)`` as ``y`` was given.

        Parameters
        ----------
        X : as in ``fit``
        """
        return self._answer(self._mixture(X))

    def _answer(self, mixture: Array) -> Array:
        """What mixed responses ``(n, k)`` mean."""
        return mixture.reshape(len(mixture), *self._shape)


class StackedClassification(ClassifierMixin, Stack):
    """Classes, two or more.

    Members that are fitted here see codes ``0, 1, ...`` instead of classes, as in scikit-learn's stacks: libraries that
    take numbers only can then be combined too. Prefit members know classes as the user does.
    """

    mix: str

    parameter_rules: ClassVar[Rules] = {"mix": among("scores", "probabilities")}

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.mix == "scores" and isinstance(self.loss, str) and self.loss == "brier":
            raise ValueError("loss='brier' is for probabilities: set mix='probabilities'")

    def _learn_targets(self, y: Any) -> NDArray[np.intp]:
        y = self._labels(y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()}: a classifier needs samples of at least 2 classes"
            )
        known = self.classes_ if self.prefit else np.arange(len(self.classes_))
        self._response = Probabilities(known) if self.mix == "probabilities" else Scores(known)
        return codes

    def _known_targets(self, y: Any) -> NDArray[np.intp]:
        y = self._labels(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"classes {unknown.tolist()} are not among those of the fit, {self.classes_.tolist()}")
        return np.searchsorted(self.classes_, y)

    def _labels(self, y: Any) -> NDArray[Any]:
        y = _check_y(y, estimator=self)
        check_labels(y)
        return y

    def _question(self, y: NDArray[Any], weight: Array) -> Question:
        several, rows = len(self.classes_), np.flatnonzero(weight)
        loss, codes, share = self._pick_loss(), y[rows], weight[rows] / weight.sum()
        if len(np.unique(codes)) < 2:
            raise ValueError("rows of positive sample weight are of one class only: weights need at least 2 classes")
        if self.mix == "scores":
            target = one_hot(codes, several)
            return Question(self._response, loss, target, share, np.zeros(target.shape[1]), rows)
        if isinstance(loss, LogMixture):
            return TrueClass(self._response, loss, np.ones((len(rows), 1)), share, np.zeros(1), rows, codes)
        if isinstance(loss, Squared) and several == 2:
            return SecondClass(self._response, loss, one_hot(codes, 2), share, np.zeros(1), rows)
        return Question(self._response, loss, np.eye(several)[codes], share, np.zeros(several), rows)

    def _pick_loss(self) -> Loss:
        known: dict[str, Loss] = {"log_loss": self._link()}
        if self.mix == "probabilities":
            known = {"log_loss": LogMixture(), "brier": Squared()}
        loss = look_up("loss", "log_loss" if self.loss == "auto" else self.loss, known, Loss)
        if isinstance(loss, Logistic | CrossEntropy | LogMixture) and not isinstance(loss, type(known["log_loss"])):
            raise ValueError(
                f"loss={loss!r} does not fit {self.mix} of {len(self.classes_)} classes: use 'log_loss', which is "
                f"{known['log_loss']!r} for these"
            )
        return loss

    def _link(self) -> Loss:
        """What turns scores into probabilities."""
        return Logistic() if len(self.classes_) == 2 else CrossEntropy()

    def _check_member(self, name: str, model: Any) -> None:
        if isinstance(model, FrozenEstimator) and self.classes_.tolist() != list(range(len(self.classes_))):
            raise ValueError(
                f"{called(name, model)} is frozen and does not learn the codes 0, 1, ... that members fitted here see "
                f"for {self.classes_.tolist()}: fit all members and use prefit=True"
            )

    def _check_folds(self, y: NDArray[Any], splits: list[Split]) -> None:
        for m, (train, test) in enumerate(splits):
            # models of folds that are kept are asked about rows of every class
            lacking = np.setdiff1d(y if self.fold_share > 0 else y[test], y[train])
            if len(lacking):
                asked = "fold_share asks" if self.fold_share > 0 else "its test rows ask"
                raise ValueError(
                    f"the training rows of fold {m} lack classes {self.classes_[lacking].tolist()}, which {asked} for: "
                    "give every class more rows, use fewer folds or another cv"
                )

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, ``(n,)``.

        Parameters
        ----------
        X : as in ``fit``
        """
        return self._answer(self._mixture(X))

    def _answer(self, mixture: Array) -> NDArray[Any]:
        """The classes that mixed responses ``(n, k)`` mean."""
        return self.classes_[class_codes(torch.from_numpy(mixture))]

    def _means_probabilities(self) -> bool:
        return self.mix == "probabilities" or isinstance(self.loss, str | Logistic | CrossEntropy)

    @available_if(_means_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, ``(n, classes)``: the mixture itself, or what mixed scores stand for.

        Parameters
        ----------
        X : as in ``fit``
        """
        return self._probabilities(self._mixture(X))

    @available_if(_means_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of class probabilities, ``(n, classes)``: of mixed scores finite where a probability rounds to 0.

        Parameters
        ----------
        X : as in ``fit``
        """
        mixture = torch.from_numpy(self._mixture(X))
        return (mixture.log() if self.mix == "probabilities" else self._link().log_predict(mixture)).numpy()

    def _probabilities(self, mixture: Array) -> Array:
        """The probabilities ``(n, classes)`` that mixed responses ``(n, k)`` mean."""
        return mixture if self.mix == "probabilities" else self._link().predict(torch.from_numpy(mixture)).numpy()

    def _mixes_scores(self) -> bool:
        return self.mix == "scores"

    @available_if(_mixes_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Mixed scores: ``(n,)`` log-odds of ``classes_[1]`` for two classes, ``(n, classes)`` for more.

        Parameters
        ----------
        X : as in ``fit``
        """
        return scores(torch.from_numpy(self._mixture(X)))
