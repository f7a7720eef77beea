"""Shapley values of an estimator's rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils.parallel import limited
from gce.inspection.shapley import ShapExplanation
from gce.inspection.shapley.hull import Attributions, HullGame
from gce.preprocessing import Frame
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.training.targets import score_names

if TYPE_CHECKING:
    from gce.estimators._base import ConvexModel


def shap_values(model: ConvexModel, X: Any, background: Any, n_permutations: int, random_state: Any) -> ShapExplanation:
    """See :meth:`gce.GCERegressor.shap_values`."""
    if isinstance(n_permutations, bool) or not isinstance(n_permutations, Integral) or n_permutations < 2:
        raise ValueError(f"n_permutations must be an integer of at least 2, got {n_permutations!r}")
    game, frame = _game(model), model.read_rows(X)
    coded = _coded(model, frame)
    with torch.no_grad(), limited(model.n_jobs):
        if background is None:
            found = game.values(coded, int(n_permutations), random_state)
        else:
            others = _coded(model, model.read_rows(background))
            if len(others) == 0:
                raise ValueError("background has no rows: give some, or None")
            found = game.against(coded, others, int(n_permutations), random_state)
    return _explanation(model, frame, found)


def shap_interaction_values(model: ConvexModel, X: Any) -> ShapExplanation:
    """See :meth:`gce.GCERegressor.shap_interaction_values`."""
    game, frame = _game(model), model.read_rows(X)
    with torch.no_grad(), limited(model.n_jobs):
        found = game.interactions(_coded(model, frame))
    return _explanation(model, frame, found)


def _game(model: ConvexModel) -> HullGame:
    result = model.result_
    external = [other.name for other in result.external if other.weight > 0]
    if external:
        raise ValueError(
            f"Shapley values are those of gce's own atoms, and {external[0]!r} is an external model: remove it, or "
            "explain model.predict by shap.Explainer"
        )
    return HullGame(result)


def _coded(model: ConvexModel, frame: Frame) -> Matrix:
    return model.result_.table.encode(frame)


def _explanation(model: ConvexModel, frame: Frame, found: Attributions) -> ShapExplanation:
    """Values ``(n, ..., k)`` without the last dimension, where there is one output."""
    result, one = model.result_, len(found.base) == 1
    values, base = found.values, np.repeat(found.base[None], len(frame), 0)
    if one and result.target.label_order is not None:
        # the raw score is the log-odds of the upper class, and here that is not ``classes_[1]``
        values, base = -values, -base
    return ShapExplanation(
        values=values[..., 0] if one else values,
        base_values=base[:, 0] if one else base,
        data=_data(frame),
        feature_names=[column.name for column in result.table.columns],
        output_names=None if one else score_names(result.target, len(found.base)),
        standard_errors=found.errors if found.errors is None or not one else found.errors[..., 0],
    )


def _data(frame: Frame) -> NDArray[Any]:
    """The rows as the user gave them: numbers, or values of any kind."""
    if isinstance(frame.matrix, SparseRows):
        return frame.matrix.toarray()
    if frame.matrix is not None:
        return frame.matrix
    if all(kind in ("number", "boolean", "duration") for kind in frame.kinds):
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in frame.columns])
    data = np.empty((len(frame), len(frame.columns)), dtype=object)
    for j, (kind, column) in enumerate(zip(frame.kinds, frame.columns, strict=True)):
        data[:, j] = _moments(column) if kind == "date" else list(column)
    return data


def _moments(seconds: NDArray[Any]) -> list[Any]:
    """Dates from seconds since 1970; None where one is missing."""
    missing = np.isnan(seconds)
    moments = np.where(missing, 0, seconds).astype("datetime64[s]").astype(object)
    return [None if absent else moment for absent, moment in zip(missing, moments, strict=True)]
