"""Cross-fitting: every member is fitted on all rows, and once per fold to predict the rows of that fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params

from gce._utils.params import copied
from gce._utils.worker_processes import worker_processes
from gce.estimators.stacking.checks import no_weights
from gce.estimators.stacking.fold_average import FoldAverage
from gce.estimators.stacking.out_of_fold import OutOfFold, out_of_fold
from gce.estimators.stacking.problem import StackProblem
from gce.preprocessing.splits import Split
from gce.training.predictions import Array, ResponseMethod, member_label

#: How a ``fit`` that takes ``**params`` reports, too late, that it does not take this one (a pipeline's is the second).
_REFUSALS = ("unexpected keyword argument 'sample_weight'", "does not accept the sample_weight parameter")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What members are fitted on.

    Parameters
    ----------
    X : rows of any kind
        Passed to members unchanged.
    y : array of shape (n,) or (n, k)
        Targets, encoded as members see them.
    params : mapping
        For each member's name, the other parameters of its ``fit``; arrays of length n are split like the rows.
    """

    X: Any
    y: NDArray[Any]
    params: Mapping[str, Mapping[str, Any]]


def cross_fit(
    problem: StackProblem,
    members: Mapping[str, Any],
    data: TrainingData,
    splits: Sequence[Split],
    n_jobs: int | None = None,
    verbose: int = 0,
    fold_weight: float = 0.0,
) -> tuple[dict[str, Any], OutOfFold]:
    """Fit members on all rows and on every fold, and predict each fold's test rows.

    joblib gets one task per member and one per (member, fold), all at once. Predictions are written to their rows as
    they arrive, so that no more than those waiting for their turn are held beside them.

    Parameters
    ----------
    problem : StackProblem
    members : mapping of name to estimator
        They are cloned.
    data : TrainingData
    splits : sequence of (train, test)
        Every row is in exactly one test part.
    n_jobs : int or None
    verbose : int
        joblib's.
    fold_weight : float
        Weight of the folds' models in a member's predictions. At 0 they are not kept; at 1 no member is fitted on all
        rows.

    Returns
    -------
    models : dict of name to fitted model
    out_of_fold : OutOfFold
    """
    position = np.full(len(data.y), -1)
    position[problem.rows] = np.arange(len(problem.rows))
    # samples with zero weight are not predicted
    folds = [(train, test[position[test] >= 0]) for train, test in splits]
    folds = [(train, test) for train, test in folds if len(test)]
    full = members if fold_weight < 1 else {}
    tasks = len(full) + len(members) * len(folds)
    # more processes than tasks would only take time to start
    jobs = n_jobs if n_jobs is None or n_jobs < 0 else min(n_jobs, max(tasks, 1))
    workers = worker_processes(jobs, verbose)
    keep = fold_weight > 0
    results = iter(workers(chain(_full_fits(full, data), _fold_fits(members, data, folds, problem.response, keep))))
    models = {name: next(results) for name in full}
    predictions = [np.empty(problem.y.shape) for _ in members]
    seconds = [0.0] * len(members)
    for m, name in enumerate(members):
        kept = []
        for _, test in folds:
            prediction, elapsed, model = next(results)
            predictions[m][position[test]] = problem.transform(prediction, position[test])
            seconds[m] += elapsed / len(problem.rows)
            kept.append(model)
        if keep:
            models[name] = FoldAverage(models.get(name), kept, fold_weight)
            seconds[m] *= len(models[name].parts)
    # joblib prints its summary only when its results are exhausted
    next(results, None)
    return models, out_of_fold(problem, predictions, seconds, list(splits))


def _full_fits(members: Mapping[str, Any], data: TrainingData) -> Iterator[Any]:
    """One task per member."""
    return (
        delayed(fit_member)(name, copied(member_label(name, model), model), data.X, data.y, data.params[name])
        for name, model in members.items()
    )


def _fold_fits(
    members: Mapping[str, Any], data: TrainingData, folds: list[Split], response: ResponseMethod, keep: bool
) -> Iterator[Any]:
    """One task per (member, fold)."""
    return (
        delayed(_fit_predict)(
            name, copied(member_label(name, model), model), data.X, data.y, data.params[name], fold, response, keep
        )
        for name, model in members.items()
        for fold in folds
    )


def _fit_predict(
    name: str,
    model: Any,
    X: Any,
    y: NDArray[Any],
    params: Mapping[str, Any],
    fold: Split,
    response: ResponseMethod,
    keep: bool,
) -> tuple[Array, float, Any]:
    """Fit on a fold's training rows and predict its test rows: predictions, seconds and, if ``keep``, the model."""
    train, test = fold
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, _ = _safe_split(model, X, y, test, train)
    fit_member(name, model, X_train, y_train, _check_method_params(X, params, indices=train))
    start = perf_counter()
    prediction = response.predict(name, model, X_test)
    return prediction, perf_counter() - start, model if keep else None


def fit_member(name: str, model: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any]) -> Any:
    """Fit a model and return it; errors name the member."""
    try:
        model.fit(X, y, **params)
    except Exception as error:
        if "sample_weight" in params and any(refusal in str(error) for refusal in _REFUSALS):
            raise TypeError(no_weights(name, model)) from error
        from gce.preprocessing.not_numbers import explain_not_numbers

        explain_not_numbers(error, f"{member_label(name, model)} cannot be fitted to", X)
        error.add_note(f"while fitting {member_label(name, model)}")
        raise
    return model
