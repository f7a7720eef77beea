"""Cross-fitting: every member fitted on all rows, and once a fold to answer for rows that it did not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from gce.members import Split
from gce.native import bounded
from gce.responses import Array, Response, called
from gce.stacking.checks import no_weights
from gce.stacking.crossfitted import CrossFitted
from gce.stacking.evidence import Evidence, Question, gathered

#: How a ``fit`` that takes any parameter says, too late, that it does not take this one (a pipeline's is the second).
_REFUSALS = ("unexpected keyword argument 'sample_weight'", "does not accept the sample_weight parameter")


@dataclass(frozen=True, eq=False)
class Rows:
    """What members are fitted on.

    Parameters
    ----------
    X : rows of any kind
        Handed to members as they are.
    y : array of shape (n,) or (n, k)
        Targets as members see them.
    params : mapping
        By member's name what else its ``fit`` is given; arrays of n entries are cut like the rows.
    """

    X: Any
    y: NDArray[Any]
    params: Mapping[str, Mapping[str, Any]]


def cross_fit(
    question: Question,
    members: Mapping[str, Any],
    rows: Rows,
    splits: Sequence[Split],
    n_jobs: int | None = None,
    verbose: int = 0,
    fold_share: float = 0.0,
) -> tuple[dict[str, Any], Evidence]:
    """Members fitted on all rows, and what they answered out of fold.

    One task a member and one a (member, fold), all handed to joblib at once. Answers are put where they belong as they
    come: beside them no more than what waits for its turn is held.

    Parameters
    ----------
    question : Question
    members : mapping of name to estimator
        They are cloned.
    rows : Rows
    splits : sequence of (train, test)
        Every row is in one test part.
    n_jobs : int or None
    verbose : int
        joblib's.
    fold_share : float
        What the folds' models count in a member's answers: nothing at 0, where they are not kept, and all at 1, where
        no member is fitted on all rows.
    """
    place = np.full(len(rows.y), -1)
    place[question.rows] = np.arange(len(question.rows))
    # rows of weight 0 are not asked about
    folds = [(train, test[place[test] >= 0]) for train, test in splits]
    folds = [(train, test) for train, test in folds if len(test)]
    wholes = members if fold_share < 1 else {}
    workers = Parallel(n_jobs=bounded(n_jobs), verbose=verbose, return_as="generator")
    keep = fold_share > 0
    results = iter(workers(chain(_on_all(wholes, rows), _on_folds(members, rows, folds, question.response, keep))))
    models = {name: next(results) for name in wholes}
    answers = [np.empty(question.y.shape) for _ in members]
    seconds = [0.0] * len(members)
    for m, name in enumerate(members):
        kept = []
        for _, test in folds:
            answer, taken, model = next(results)
            answers[m][place[test]] = question.measure(answer, place[test])
            seconds[m] += taken / len(question.rows)
            kept.append(model)
        if keep:
            models[name] = CrossFitted(models.get(name), kept, fold_share)
            seconds[m] *= len(models[name].parts)
    # joblib says what it has done only at the end of its results
    next(results, None)
    return models, gathered(question, answers, seconds, list(splits))


def _on_all(members: Mapping[str, Any], rows: Rows) -> Iterator[Any]:
    """A task a member."""
    return (delayed(fitted)(name, clone(model), rows.X, rows.y, rows.params[name]) for name, model in members.items())


def _on_folds(
    members: Mapping[str, Any], rows: Rows, folds: list[Split], response: Response, keep: bool
) -> Iterator[Any]:
    """A task a (member, fold)."""
    return (
        delayed(_answers)(name, clone(model), rows.X, rows.y, rows.params[name], fold, response, keep)
        for name, model in members.items()
        for fold in folds
    )


def _answers(
    name: str,
    model: Any,
    X: Any,
    y: NDArray[Any],
    params: Mapping[str, Any],
    fold: Split,
    response: Response,
    keep: bool,
) -> tuple[Array, float, Any]:
    """What a model fitted on a fold's training rows answers for its test rows, the seconds that took, and the model
    where it is to be kept.
    """
    train, test = fold
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, _ = _safe_split(model, X, y, test, train)
    fitted(name, model, X_train, y_train, _check_method_params(X, params, indices=train))
    start = perf_counter()
    answer = response.ask(name, model, X_test)
    return answer, perf_counter() - start, model if keep else None


def fitted(name: str, model: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any]) -> Any:
    """The model, fitted; what goes wrong is said to be this member's."""
    try:
        model.fit(X, y, **params)
    except Exception as error:
        if "sample_weight" in params and any(refusal in str(error) for refusal in _REFUSALS):
            raise TypeError(no_weights(name, model)) from error
        error.add_note(f"while {called(name, model)} was fitted")
        raise
    return model
