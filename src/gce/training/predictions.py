"""Validated predictions of fitted models of any library: columns in one order, finite numbers, clear errors.

A response method is one kind of prediction, computed in the same way for every model. A model is any object with the
required method; its ``classes_``, if it has them, give the order of its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from gce._utils.devices import as_numpy
from gce._utils.params import short_list, short_repr

Array = NDArray[np.float64]

#: Probabilities are clipped at this value before their logarithms are taken. Forests, neighbours and naive Bayes
#: predict zeros for classes that occur, and one of them could rule a class out. Larger values lose accuracy, smaller
#: ones are worse on iris and breast_cancer (benchmarks/results/stack_certainty.md).
_MIN_PROBABILITY = 1e-5
#: Tolerance of the sum of a row of probabilities, which suffices for many classes in float32, and the tolerance beyond
#: which rows are normalised.
_SLACK, _ROUNDING = 1e-3, 1e-12
#: Larger absolute values count as infinite: their squares, and so losses, overflow or nearly do.
_MAX_VALUE = 1e150


class ResponseMethod(ABC):
    """One kind of prediction."""

    @abstractmethod
    def check(self, name: str, model: Any) -> None:
        """Check that a model has this kind of prediction.

        Parameters
        ----------
        name : str
            Name of the model in errors.
        model : object
            The model, fitted or not.

        Raises
        ------
        ValueError
            The model lacks the required method.
        """

    @abstractmethod
    def predict(self, name: str, model: Any, X: Any) -> Array:
        """Predictions of a fitted model.

        Parameters
        ----------
        name : str
            Name of the model in errors.
        model : object
            The fitted model.
        X : object
            ``n`` rows of any type that the model accepts.

        Returns
        -------
        array of shape (n, k)

        Raises
        ------
        ValueError
            The predictions have another shape, are not numbers, or are not finite.
        """


@dataclass(frozen=True)
class PredictedValues(ResponseMethod):
    """Predictions of regressors, by ``predict``.

    Parameters
    ----------
    outputs : int
        Number of outputs, k.
    """

    outputs: int

    def check(self, name: str, model: Any) -> None:
        _require(name, model, "predict", "only models with a predict method can be combined")
        if hasattr(model, "__sklearn_tags__") and is_classifier(model):
            raise ValueError(
                f"{member_label(name, model)} is a classifier, but a regressor is needed: use a stacking classifier"
            )

    def predict(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        return _matrix(name, model, "predict", X, self.outputs)


@dataclass(frozen=True, eq=False)
class Probabilities(ResponseMethod):
    """Class probabilities, by ``predict_proba``; 0 for classes that a model was not trained on.

    Parameters
    ----------
    classes : array of shape (k,)
        Classes in the order of the columns, labelled as in the models.
    """

    classes: NDArray[Any]

    def check(self, name: str, model: Any) -> None:
        remedy = 'wrap it in CalibratedClassifierCV, or mix="scores" if it has decision_function'
        _require(name, model, "predict_proba", remedy)

    def predict(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        index = class_indices(name, model, self.classes)
        values = _matrix(name, model, "predict_proba", X, len(index))
        total = values.sum(1)
        wrong = (values < 0).any(1) | (np.abs(total - 1) > _SLACK)
        if wrong.any():
            raise ValueError(
                f"{member_label(name, model)} predicts invalid probabilities in {wrong.sum()} of {len(values)} rows: "
                f"they must be in [0, 1] and sum to 1, got {values[wrong.argmax()].tolist()}"
            )
        off = np.abs(total - 1) > _ROUNDING
        if off.any():
            values = values / np.where(off, total, 1.0)[:, None]
        if np.array_equal(index, np.arange(len(self.classes))):
            return values
        probabilities = np.zeros((len(values), len(self.classes)))
        probabilities[:, index] = values
        return probabilities


@dataclass(frozen=True, eq=False)
class RawScores(ResponseMethod):
    """Raw scores: log-odds of ``classes[1]`` for two classes (k = 1), one score per class for more.

    They are logarithms of probabilities if a model has these, which are on one scale for all models, else its
    ``decision_function``. Probabilities are clipped at 1e-5, also those of classes that a model was not trained on.

    Parameters
    ----------
    classes : array
        Classes in the order of the columns, labelled as in the models.
    """

    classes: NDArray[Any]

    def check(self, name: str, model: Any) -> None:
        if not hasattr(model, "predict_proba"):
            _require(name, model, "decision_function", "a model without predict_proba needs it")

    def predict(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        if hasattr(model, "predict_proba"):
            by_class = np.log(np.maximum(Probabilities(self.classes).predict(name, model, X), _MIN_PROBABILITY))
        else:
            by_class = self._decision_scores(name, model, X)
        return by_class[:, 1:] - by_class[:, :1] if len(self.classes) == 2 else by_class

    def _decision_scores(self, name: str, model: Any, X: Any) -> Array:
        """One score per class, also for two classes."""
        index = class_indices(name, model, self.classes)
        values = _matrix(name, model, "decision_function", X, 1 if len(index) == 2 else len(index))
        if len(index) == 2:
            values = np.hstack([np.zeros_like(values), values])
        if np.array_equal(index, np.arange(len(self.classes))):
            return values
        scores = np.repeat(
            np.logaddexp.reduce(values, 1, keepdims=True) + np.log(_MIN_PROBABILITY), len(self.classes), 1
        )
        scores[:, index] = values
        return scores


def member_label(name: str, model: Any) -> str:
    """The name of a model in errors.

    Parameters
    ----------
    name : str
        Name of the model.
    model : object
        The model.

    Returns
    -------
    str
    """
    return f"member {short_repr(name)} ({type(model).__name__})"


def class_indices(name: str, model: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Indices of a model's classes among ``classes``; all in order for a model without ``classes_``.

    Parameters
    ----------
    name : str
        Name of the model in errors.
    model : object
        The fitted model.
    classes : array of shape (k,)
        The classes.

    Returns
    -------
    array of int

    Raises
    ------
    ValueError
        The model has other classes, or several targets.
    """
    own_classes = getattr(model, "classes_", None)
    if own_classes is None:
        return np.arange(len(classes))
    index_of = {label: i for i, label in enumerate(classes.tolist())}
    try:
        indices = [index_of.get(label, -1) for label in np.asarray(own_classes).tolist()]
    except TypeError:  # a list of classes for each of several targets
        raise ValueError(f"{member_label(name, model)} predicts several targets, but one is expected") from None
    if -1 in indices:
        unknown = [label for label, at in zip(np.asarray(own_classes).tolist(), indices, strict=True) if at < 0]
        raise ValueError(
            f"{member_label(name, model)} has the classes {short_list(unknown)}, which are not among "
            f"{short_list(classes.tolist())}: pass rows of all its classes, labelled as in its training data, or drop "
            "it"
        )
    return np.array(indices, dtype=np.intp)


def _require(name: str, model: Any, method: str, remedy: str) -> None:
    if not hasattr(model, method):
        raise ValueError(f"{member_label(name, model)} has no {method}: {remedy}")


def _matrix(name: str, model: Any, method: str, X: Any, columns: int) -> Array:
    """The result of a method of the model, ``(n, columns)``."""
    rows = _num_samples(X)
    if rows == 0:
        # models of scikit-learn refuse no rows, which have no predictions
        return np.zeros((0, columns))
    try:
        raw = as_numpy(getattr(model, method)(X))
    except Exception as error:
        from gce.preprocessing.not_numbers import explain_not_numbers

        explain_not_numbers(error, f"{member_label(name, model)} cannot compute {method} of", X)
        error.add_note(f"while {member_label(name, model)} computed {method}")
        raise
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{method} of {member_label(name, model)} returns a {type(raw).__name__} that is not an array of numbers"
        ) from None
    if values.shape != (rows, columns) and not (values.shape == (rows,) and columns == 1):
        raise ValueError(
            f"{method} of {member_label(name, model)} returns an array of shape {values.shape}, but {columns} "
            f"number(s) for each of {rows} rows are expected"
        )
    values = values.reshape(rows, columns)
    invalid = int((~(np.abs(values) <= _MAX_VALUE)).any(1).sum())
    if invalid:
        raise ValueError(
            f"{method} of {member_label(name, model)} returns NaN or infinity in {invalid} of {rows} rows (more than "
            f"{_MAX_VALUE:g} counts as infinite): fix or drop this member"
        )
    return values
