"""Stacks that predict classes, two or more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_is_fitted

from gce._utils.params import Rules, among, look_up, short_list
from gce.estimators.stacking.editable import EditableStack
from gce.estimators.stacking.problem import PositiveClassProblem, StackProblem, TrueClassProblem
from gce.estimators.stacking.result import StackResult
from gce.estimators.stacking.task import StackTask
from gce.losses import CrossEntropy, Logistic, LogMixture, Loss, Squared
from gce.preprocessing import check_labels, one_hot
from gce.preprocessing.sample_weights import check_scored
from gce.preprocessing.splits import Split
from gce.preprocessing.targets import check_discrete, check_known_labels, check_scored_labels, lacking_classes
from gce.training.predictions import Array, Probabilities, RawScores, member_label
from gce.training.scoring import class_codes, decision_values


@dataclass(frozen=True, eq=False)
class ClassificationTask(StackTask):
    """Prediction of classes.

    Members that are fitted here see the codes ``0, 1, ...`` instead of classes, as in scikit-learn's stacks: libraries
    that take numbers only can then be combined too. Prefit members know classes as the user does.

    Parameters
    ----------
    classes : array of shape (K,)
        Sorted.
    mix : {"scores", "probabilities"}
    estimator : str
        Name of the stack, for errors.
    """

    classes: NDArray[Any]
    mix: str
    estimator: str

    stratified = True

    @classmethod
    def learn(cls, y: Any, loss: str | Loss, mix: str, prefit: bool, estimator: str) -> tuple[Self, NDArray[np.intp]]:
        """Check the targets of a fit.

        Returns
        -------
        task : ClassificationTask
        codes : array of shape (n,)
            Indices of the classes.
        """
        y = _check_labels(y, estimator)
        check_discrete(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes.tolist()}: a classifier needs samples of at least 2 classes"
            )
        labels = classes if prefit else np.arange(len(classes))
        response = Probabilities(labels) if mix == "probabilities" else RawScores(labels)
        return cls(response, _find_loss(loss, mix, len(classes)), classes, mix, estimator), codes

    def encode(self, y: Any) -> NDArray[np.intp]:
        y = _check_labels(y, self.estimator)
        check_known_labels(y, self.classes)
        return np.searchsorted(self.classes, y)

    def problem(self, y: NDArray[Any], weight: Array) -> StackProblem:
        n_classes, rows = len(self.classes), np.flatnonzero(weight)
        response, loss, codes, share = self.response, self.loss, y[rows], weight[rows] / weight.sum()
        if len(np.unique(codes)) < 2:
            raise ValueError("samples of positive weight have one class only: give samples of at least 2 classes")
        if self.mix == "scores":
            target = one_hot(codes, n_classes)
            loss = loss.for_targets(torch.from_numpy(target), torch.from_numpy(share))
            return StackProblem(response, loss, target, share, np.zeros(target.shape[1]), rows)
        if isinstance(loss, LogMixture):
            return TrueClassProblem(response, loss, np.ones((len(rows), 1)), share, np.zeros(1), rows, codes)
        if isinstance(loss, Squared) and n_classes == 2:
            return PositiveClassProblem(response, loss, one_hot(codes, 2), share, np.zeros(1), rows)
        target = np.eye(n_classes)[codes]
        loss = loss.for_targets(torch.from_numpy(target), torch.from_numpy(share))
        return StackProblem(response, loss, target, share, np.zeros(n_classes), rows)

    def check_member(self, name: str, model: Any) -> None:
        if isinstance(model, FrozenEstimator) and self.classes.tolist() != list(range(len(self.classes))):
            raise ValueError(
                f"{member_label(name, model)} is frozen and cannot be fitted on the codes 0, 1, ... that members see "
                f"instead of {short_list(self.classes.tolist())}: fit all members and use prefit=True"
            )

    def check_folds(self, y: NDArray[Any], splits: list[Split], fold_weight: float) -> None:
        for m, (train, test) in enumerate(splits):
            # models of folds that are kept predict rows of every class
            missing = np.setdiff1d(y if fold_weight > 0 else y[test], y[train])
            if len(missing):
                why = "fold_weight > 0 requires" if fold_weight > 0 else "its test rows have"
                raise ValueError(
                    f"the training rows of fold {m} lack {lacking_classes(self.classes, missing)}, which {why}: "
                    "give every class more rows, use fewer folds or another cv"
                )

    def predict(self, mixture: Array) -> NDArray[Any]:
        return self.classes[class_codes(torch.from_numpy(mixture))]

    def predict_proba(self, mixture: Array) -> Array:
        """Probabilities ``(n, K)`` from mixed responses ``(n, k)``."""
        if self.mix == "probabilities":
            return mixture
        return _link(len(self.classes)).predict(torch.from_numpy(mixture)).numpy()

    def predict_log_proba(self, mixture: Array) -> Array:
        """Logarithms of probabilities ``(n, K)`` from mixed responses ``(n, k)``."""
        mixed = torch.from_numpy(mixture)
        return (mixed.log() if self.mix == "probabilities" else _link(len(self.classes)).log_predict(mixed)).numpy()


def _check_labels(y: Any, estimator: str) -> NDArray[Any]:
    y = _check_y(y, estimator=estimator)
    check_labels(y)
    return y


def _link(n_classes: int) -> Loss:
    """The loss whose link turns scores into probabilities."""
    return Logistic() if n_classes == 2 else CrossEntropy()


def _find_loss(loss: str | Loss, mix: str, n_classes: int) -> Loss:
    known: dict[str, Loss] = {"log_loss": _link(n_classes)}
    if mix == "probabilities":
        known = {"log_loss": LogMixture(), "brier": Squared()}
    found = look_up("loss", "log_loss" if loss == "auto" else loss, known, Loss)
    if isinstance(found, Logistic | CrossEntropy | LogMixture) and not isinstance(found, type(known["log_loss"])):
        raise ValueError(
            f"loss={found!r} does not fit {mix} of {n_classes} classes: use 'log_loss', which is "
            f"{known['log_loss']!r} for these"
        )
    return found


def _has_probabilities(stack: ClassificationStack) -> bool:
    return stack.mix == "probabilities" or isinstance(stack.loss, str | Logistic | CrossEntropy)


def _mixes_scores(stack: ClassificationStack) -> bool:
    return stack.mix == "scores"


class ClassificationStack(ClassifierMixin, EditableStack):
    """A stack that predicts classes."""

    mix: str
    result_: StackResult[ClassificationTask]

    parameter_rules: ClassVar[Rules] = {"mix": among("scores", "probabilities")}

    def _check_params(self) -> None:
        super()._check_params()
        if self.mix == "scores" and isinstance(self.loss, str) and self.loss == "brier":
            raise ValueError("loss='brier' is for probabilities: set mix='probabilities'")

    def _learn_task(self, y: Any) -> tuple[ClassificationTask, NDArray[np.intp]]:
        return ClassificationTask.learn(y, self.loss, self.mix, self.prefit, type(self).__name__)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        y, sample_weight = check_scored(y, sample_weight)
        check_scored_labels(np.asarray(y), self.classes_)
        return float(super().score(X, y, sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, sorted, of shape (K,)."""
        return self.result_.task.classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            As in ``fit``.

        Returns
        -------
        array of shape (n,)
        """
        mixture = self._mixture(X)
        return self.result_.task.predict(mixture)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Predict class probabilities: the mixture itself, or the probabilities of mixed scores.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            As in ``fit``.

        Returns
        -------
        array of shape (n, K)
        """
        mixture = self._mixture(X)
        return self.result_.task.predict_proba(mixture)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Predict logarithms of class probabilities; those of mixed scores stay finite where a probability is 0.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            As in ``fit``.

        Returns
        -------
        array of shape (n, K)
        """
        mixture = self._mixture(X)
        return self.result_.task.predict_log_proba(mixture)

    @available_if(_mixes_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Compute mixed scores.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            As in ``fit``.

        Returns
        -------
        array of shape (n,) or (n, K)
            Log-odds of ``classes_[1]`` for two classes, one score per class for more.
        """
        return decision_values(torch.from_numpy(self._mixture(X)))
