"""Uses of models whose results are checked: fits, predictions, files, scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

import gce
from campaign.inputs_models import STACKS
from campaign.inputs_oracle import (
    FaultError,
    Refused,
    check_intervals,
    check_predictions,
    check_probabilities,
    watched,
)
from campaign.inputs_tables import rows_of
from campaign.inputs_words import OF_METHODS, Mention

#: Parts of the paths of the members of stacks, and of what they call.
MEMBERS = ("sklearn/", "scipy/", "numpy/", "pandas/", "polars/")


def fitted(model: Any, given: dict[str, Any], mentions: tuple[Mention, ...], folder: Path, rng: Random) -> str:
    """Fit, predict, and now and then save and load; what came of it in a word."""
    watched("fit", lambda: model.fit(**given), mentions, others_of(model))
    X = given["X"]
    before = watched_method(model, "predict", {"X": X}, ())
    if hasattr(model, "predict_proba"):
        watched_method(model, "predict_proba", {"X": X}, ())
    if not type(model).__name__.startswith(STACKS) and rng.random() < 0.3:
        path = folder / "model.safetensors"
        try:
            watched("save", lambda: model.save(path), OF_METHODS["save"])
        except Refused:
            return "finite, refused by save"
        check_saved(path, X, before)
        return "finite, saved and loaded bit-equal"
    return "finite"


def watched_method(model: Any, method: str, given: dict[str, Any], mentions: tuple[Mention, ...]) -> Any:
    """The result of a method that predicts, checked; after a fit (no ``mentions``) it may not be refused."""
    call = getattr(model, method)
    try:
        result = watched(method, lambda: listed(call(**given)), mentions, others_of(model))
    except Refused as refused:
        if mentions:
            raise
        raise FaultError(f"refused after a fit: {refused}") from refused
    check_result(model, method, result, rows_of(given["X"]))
    return result


def check_result(model: Any, method: str, result: Any, rows: int | None) -> None:
    """Raise a FaultError where what a method predicts is not finite, or not for each row."""
    for stage in result if method.startswith("staged") else [result]:
        if method.endswith("proba"):
            labels = np.ndim(getattr(model, "classes_", [])) == 1 and np.ndim(stage) == 2
            # a logarithm of 0 is no finite number
            values = np.exp(stage) if method == "predict_log_proba" else stage
            check_probabilities(method, values, rows, labels and not is_multilabel(model))
        elif method == "predict_interval":
            check_intervals(method, stage, rows)
        else:
            check_predictions(method, stage, rows)


def check_saved(path: Path, X: Any, before: Any) -> None:
    """Raise a FaultError where the model in a file does not predict what it did."""
    again = watched("load", lambda: gce.load(path))
    after = watched_method(again, "predict", {"X": X}, ())
    if not np.array_equal(np.asarray(before), np.asarray(after)):
        raise FaultError("predictions differ after save and load")


def check_onnx(path: Path) -> None:
    """Raise a FaultError where a file is no valid graph."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        raise FaultError(f"to_onnx: {type(error).__name__}: {error}") from error


def check_score(result: Any, rows: int | None) -> None:
    """Raise a FaultError where a score is no number."""
    # scikit-learn defines no R2 of a single row
    if not isinstance(result, float | np.floating) or (np.isnan(result) and rows != 1):
        raise FaultError(f"score is {result!r}")


def others_of(model: Any) -> tuple[str, ...]:
    """Modules that warn for themselves: the members of a stack are fitted one by one, as they are."""
    return MEMBERS if type(model).__name__.startswith(STACKS) else ()


def is_multilabel(model: Any) -> bool:
    """Whether a classifier predicts several labels per row."""
    target = getattr(getattr(model, "result_", None), "target", None)
    return type(target).__name__ == "MultiLabelTarget"


def listed(result: Any) -> Any:
    """A result, with all that it yields."""
    return list(result) if isinstance(result, Iterable) and not hasattr(result, "__len__") else result
