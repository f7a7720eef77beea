"""Rows that are given again to edit a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_classifier
from torch import Tensor

from gce._utils.devices import as_numpy
from gce.estimators._encoding import statistics_again
from gce.estimators._validation import FitInput, build_problem, read_rows, read_samples, require_base_score, split_rows
from gce.inspection.editing import EditData, as_one_simplex
from gce.losses import Hazards, Squared
from gce.preprocessing import targets_as_array
from gce.preprocessing.row_hashes import hash_samples
from gce.preprocessing.sample_weights import check_sample_weight, effective_count
from gce.preprocessing.sparse import Matrix
from gce.preprocessing.splits import Members, training_rows_first
from gce.training.external_models import ExternalModel
from gce.training.problem import Problem
from gce.training.result import FitResult
from gce.training.targets import ClassTarget, Target

Array = NDArray[np.float64]

_NO_ROWS = "there are no rows in {}: give those on which weights are to be judged"


def edit_data(model: Any, result: FitResult, given: FitInput) -> EditData:
    """Rows to find weights on: those of the fit given again, or any where all weights are one simplex."""
    _check_given(result, given)
    if result.one_simplex:
        return _any_rows(model, result, given)
    return _rows_of_the_fit(model, result, given)


def explained_rows(model: Any, result: FitResult, given: FitInput) -> tuple[FitResult, EditData]:
    """Rows to explain weights on: those of the fit as its members saw them, or any, which the whole model predicts."""
    _check_given(result, given)
    about_the_fit = given.groups is not None or given.X_val is not None
    if not result.one_simplex and (about_the_fit or _count(given) == result.n_samples):
        try:
            return result, _rows_of_the_fit(model, result, given)
        except OtherRowsError:
            if about_the_fit:
                raise
    together = as_one_simplex(result)
    return together, _any_rows(model, together, given)


def imitation_data(model: Any, result: FitResult, given: FitInput) -> EditData:
    """Rows on which an ensemble is to imitate the model: its raw scores take the place of targets."""
    if given.groups is not None or given.X_val is not None:
        raise ValueError("a model that imitates another holds out no rows: leave out groups, X_val and y_val")
    X = model.code_rows(given.X)
    if X.shape[0] == 0:
        raise ValueError(_NO_ROWS.format("X"))
    scores = model.raw_predict(given.X).cpu().numpy()
    weight = check_sample_weight(given.sample_weight, X)
    _check_any(weight)
    problem, members, order = _one_member(model, result, X, scores, weight, np.zeros_like(weight))
    external = _external(result, given, order)
    return EditData(replace(problem, loss=Squared()), members.held_out_total, external, _target(model, result))


class OtherRowsError(ValueError):
    """Rows are not those of the fit."""


def _check_given(result: FitResult, given: FitInput) -> None:
    """Refuse rows on which no weights can be judged."""
    if np.shape(targets_as_array(given.y))[:1] == (0,):
        raise ValueError(_NO_ROWS.format("y"))
    require_base_score(result, given.base_score, "every explanation and edit on rows with targets", "base_score=...")


def _count(given: FitInput) -> int:
    """The number of rows of positive weight."""
    return int(np.count_nonzero(check_sample_weight(given.sample_weight, targets_as_array(given.y))))


def _rows_of_the_fit(model: Any, result: FitResult, given: FitInput) -> EditData:
    """The problem of the fit, from the same rows."""
    encoded = read_rows(model, given, result)
    rows, target = encoded.rows, encoded.target
    if len(rows.target) != result.n_samples:
        raise OtherRowsError(
            f"the model was fitted to {result.n_samples} rows of positive weight, but {len(rows.target)} are given in "
            "X: give the rows of the fit, or use reweight for others"
        )
    members, X, y, _ = split_rows(model, given, encoded, result.seed)
    # files of older formats do not say what members held out
    known = members.names if result.folds is None else result.folds
    if members.names != known or len(known) != result.ensemble.members:
        if hash_samples(rows.X, rows.target) == result.samples:
            raise ValueError(
                "these are the rows of the fit, but not as it had them: give them in their order, with the groups, the "
                "validation rows (X_val, y_val) and the cv of the fit, because losses of training rows are too good"
            )
        raise OtherRowsError(
            "X, y, sample_weight or groups differ: these are not the rows of the fit in their order, or cv splits them "
            "in another way; give the same rows and cv, or use reweight for others"
        )
    given_index = np.concatenate([rows.row_index, np.arange(rows.n_given, rows.n_given + len(X) - len(rows.row_index))])
    own = statistics_again(result.table, members, X, y, target, rows.groups)
    problem = _problem(model, result, X, y, members, own)
    order = torch.from_numpy(given_index[training_rows_first(members.train)])
    return EditData(problem, members.held_out_total, _external(result, given, order), _target(model, result))


def _any_rows(model: Any, result: FitResult, given: FitInput) -> EditData:
    """Given rows, on which one simplex finds its weights and predictions are calibrated."""
    if given.groups is not None or given.X_val is not None:
        raise ValueError("a reweighted model holds out no rows: leave out groups, X_val and y_val")
    target = _target(model, result)
    own = given.X, given.y, given.sample_weight, given.base_score
    X, y, weight, _ = read_samples(model, result.table.schema, target, result.loss, *own)
    if y.shape[1] != len(result.offset):
        raise ValueError(f"y has {y.shape[1]} target(s), but the model was fitted to {len(result.offset)}")
    _check_any(weight)
    if isinstance(result.loss, Hazards):
        # a rare task, which others need not load
        from gce.preprocessing.survival import check_events

        # the best hazards of censored rows alone are the least there are
        check_events(target.decode(y[weight > 0]))
    problem, members, order = _one_member(model, result, X, y, weight, weight)
    return EditData(problem, members.held_out_total, _external(result, given, order), target)


def _one_member(
    model: Any, result: FitResult, X: Matrix, y: Array, weight: Array, held_out: Array
) -> tuple[Problem, Members, Tensor]:
    """Coded rows as those of one member, and the index of each of them."""
    total = weight.sum()
    members = Members(
        (weight / total)[None],
        (held_out / total)[None],
        (0,),
        held_out.sum(keepdims=True),
        np.array([effective_count(weight)]),
    )
    return _problem(model, result, X, y, members), members, torch.from_numpy(training_rows_first(members.train))


def _problem(
    model: Any, result: FitResult, X: Matrix, y: Array, members: Members, statistics: Array | None = None
) -> Problem:
    constants = result.offset, result.bound, statistics
    return build_problem(model.device, result.table, result.loss, X, y, members, *constants)


def _external(result: FitResult, given: FitInput, order: Tensor) -> dict[str, Tensor]:
    return {model.name: _predictions(model, given)[order] for model in result.external}


def _predictions(model: ExternalModel, given: FitInput) -> Tensor:
    """Predictions for all rows given, those for validation last."""
    return torch.cat([model(as_numpy(X)) for X in (given.X, given.X_val) if X is not None])


def _target(model: Any, result: FitResult) -> Target:
    """The task with the parameters that the estimator has now."""
    if not is_classifier(model):
        return result.target
    return cast(ClassTarget, result.target).again(model.class_weight, model.temperature)


def _check_any(weight: Array) -> None:
    if not weight.any():
        raise ValueError("all sample weights are zero: there is no row to find weights on")
