"""What a fitted model of any library answers, as numbers: columns in one order, nothing missing, faults named.

A response is one kind of answer, asked of every model in the same way. A model is anything with the method that is
asked for; ``classes_``, where it has them, say which column is which class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from gce.settings import as_numpy

Array = NDArray[np.float64]

#: The least probability that has a score. Forests, neighbours and naive Bayes call things impossible that happen: one
#: of them would rule a class out alone. Larger costs digits, smaller costs iris and breast_cancer
#: (benchmarks/results/stack_certainty.md).
_LEAST = 1e-5
#: How far a row of probabilities may be from summing to 1: many classes in float32 are not farther. Beyond the rounding
#: of float64 it is made to.
_SLACK, _ROUNDING = 1e-3, 1e-12
#: The largest number that counts as one: squares of larger ones, and so losses, are infinite or nearly.
_MOST = 1e150


class Response(ABC):
    """One kind of answer."""

    @abstractmethod
    def check(self, name: str, model: Any) -> None:
        """Refuse a model, fitted or not, that has no such answer."""

    @abstractmethod
    def ask(self, name: str, model: Any, X: Any) -> Array:
        """A fitted model's answers ``(n, k)``.

        Parameters
        ----------
        name : str
            How errors call the model.
        model : object
        X : whatever the model takes, of n rows
        """


@dataclass(frozen=True)
class Numbers(Response):
    """Predicted numbers.

    Parameters
    ----------
    outputs : int
        Columns, k.
    """

    outputs: int

    def check(self, name: str, model: Any) -> None:
        _need(name, model, "predict", "only models that predict can be combined")
        if hasattr(model, "__sklearn_tags__") and is_classifier(model):
            raise ValueError(
                f"{called(name, model)} is a classifier, and numbers are asked for: use a classifier's stack"
            )

    def ask(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        return _matrix(name, model, "predict", X, self.outputs)


@dataclass(frozen=True, eq=False)
class Probabilities(Response):
    """Class probabilities, 0 for a class that the model never saw.

    Parameters
    ----------
    classes : array of shape (k,)
        As models know them, in the order of the columns.
    """

    classes: NDArray[Any]

    def check(self, name: str, model: Any) -> None:
        remedy = 'wrap it in CalibratedClassifierCV, or mix="scores" if it has decision_function'
        _need(name, model, "predict_proba", remedy)

    def ask(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        place = places(name, model, self.classes)
        known = _matrix(name, model, "predict_proba", X, len(place))
        total = known.sum(1)
        wrong = (known < 0).any(1) | (np.abs(total - 1) > _SLACK)
        if wrong.any():
            raise ValueError(
                f"{called(name, model)} answers what are no probabilities in {wrong.sum()} of {len(known)} rows: they "
                f"must be in [0, 1] and sum to 1, as {known[wrong.argmax()].tolist()} do not"
            )
        off = np.abs(total - 1) > _ROUNDING
        if off.any():
            known = known / np.where(off, total, 1.0)[:, None]
        if np.array_equal(place, np.arange(len(self.classes))):
            return known
        answer = np.zeros((len(known), len(self.classes)))
        answer[:, place] = known
        return answer


@dataclass(frozen=True, eq=False)
class Scores(Response):
    """Raw scores: log-odds of ``classes[1]`` for two classes (k = 1), a score a class for more.

    They are logarithms of probabilities where a model has these, which are in one unit for all models, else its
    ``decision_function``. No probability counts as less than 1e-5, nor does that of a class that the
    model never saw.

    Parameters
    ----------
    classes : array
        As models know them, in the order of the columns.
    """

    classes: NDArray[Any]

    def check(self, name: str, model: Any) -> None:
        if not hasattr(model, "predict_proba"):
            _need(name, model, "decision_function", "a model without predict_proba needs it to have scores")

    def ask(self, name: str, model: Any, X: Any) -> Array:
        self.check(name, model)
        if hasattr(model, "predict_proba"):
            by_class = np.log(np.maximum(Probabilities(self.classes).ask(name, model, X), _LEAST))
        else:
            by_class = self._decisions(name, model, X)
        return by_class[:, 1:] - by_class[:, :1] if len(self.classes) == 2 else by_class

    def _decisions(self, name: str, model: Any, X: Any) -> Array:
        """A score a class, also for two."""
        place = places(name, model, self.classes)
        known = _matrix(name, model, "decision_function", X, 1 if len(place) == 2 else len(place))
        if len(place) == 2:
            known = np.hstack([np.zeros_like(known), known])
        if np.array_equal(place, np.arange(len(self.classes))):
            return known
        answer = np.repeat(np.logaddexp.reduce(known, 1, keepdims=True) + np.log(_LEAST), len(self.classes), 1)
        answer[:, place] = known
        return answer


def called(name: str, model: Any) -> str:
    """How errors call a model."""
    return f"member {name!r} ({type(model).__name__})"


def places(name: str, model: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Where each of the model's classes stands among ``classes``; a model that does not say has them in that order."""
    known = getattr(model, "classes_", None)
    if known is None:
        return np.arange(len(classes))
    place = {label: i for i, label in enumerate(classes.tolist())}
    try:
        found = [place.get(label, -1) for label in np.asarray(known).tolist()]
    except TypeError:  # a list of classes for each of several targets
        raise ValueError(f"{called(name, model)} predicts several targets, and one is asked for") from None
    if -1 in found:
        unknown = [label for label, at in zip(np.asarray(known).tolist(), found, strict=True) if at < 0]
        raise ValueError(
            f"{called(name, model)} knows the classes {unknown}, which are not among {classes.tolist()}: give rows of "
            "all its classes, named as it knows them, or leave it out"
        )
    return np.array(found, dtype=np.intp)


def _need(name: str, model: Any, method: str, remedy: str) -> None:
    if not hasattr(model, method):
        raise ValueError(f"{called(name, model)} has no {method}: {remedy}")


def _matrix(name: str, model: Any, method: str, X: Any, columns: int) -> Array:
    """What a method of the model answers, ``(n, columns)``."""
    try:
        raw = as_numpy(getattr(model, method)(X))
    except Exception as error:
        error.add_note(f"while {called(name, model)} was asked for {method}")
        raise
    try:
        answer = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{called(name, model)} answers {method} with a {type(raw).__name__} that is no array of numbers"
        ) from None
    rows = _num_samples(X)
    if answer.shape != (rows, columns) and not (answer.shape == (rows,) and columns == 1):
        raise ValueError(
            f"{called(name, model)} answers {method} with the shape {answer.shape}, but {columns} number(s) for each "
            f"of {rows} rows are asked for"
        )
    answer = answer.reshape(rows, columns)
    missing = int((~(np.abs(answer) <= _MOST)).any(1).sum())
    if missing:
        raise ValueError(
            f"{called(name, model)} answers NaN or infinity in {missing} of {rows} rows (more than {_MOST:g} counts as "
            "such): mend it or leave it out"
        )
    return answer
