"""Regression or classification: the task of a target, its values, and the estimator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gce._utils.params import counted
from gce.cli.failures import DataError
from gce.cli.rendering import some, warn
from gce.estimators import GCEClassifier, GCERegressor
from gce.losses import REGRESSION
from gce.preprocessing.dates import are_iso_dates

#: Integers are classes if there are at most so many distinct ones, with so many rows each on average.
MAX_CLASSES, ROWS_PER_CLASS = 20, 5


class Task(StrEnum):
    """Regression or classification; ``auto`` decides by the target."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def task_of_loss(task: Task, loss: object) -> tuple[Task, str | None]:
    """Regression for the name of a loss of numbers where no task was given, with the reason in words."""
    if task is Task.auto and isinstance(loss, str) and loss in REGRESSION:
        return Task.regression, f"loss={loss} is for numbers"
    return task, None


def resolve_task(task: Task, y: pl.Series) -> tuple[Task, str]:
    """The task of a target, and the reason in words."""
    inferred, reason = _infer_task(y)
    if task is Task.auto:
        return inferred, reason
    if task is Task.regression and not y.dtype.is_numeric():
        raise DataError(f"regression needs numbers, but {reason}, such as {y[0]!r}: use --task classification")
    return task, "set by --task"


def _infer_task(y: pl.Series) -> tuple[Task, str]:
    name = repr(y.name)
    if y.dtype == pl.String and are_iso_dates(y.to_numpy()):
        raise DataError(f"the target {name} holds dates: a target must be numbers, text or booleans")
    if y.dtype in (pl.String, pl.Categorical) or isinstance(y.dtype, pl.Enum):
        return Task.classification, f"{name} is text"
    if y.dtype == pl.Boolean:
        return Task.classification, f"{name} is boolean"
    if not y.dtype.is_numeric():
        raise DataError(f"the target {name} is of type {y.dtype}: a target must be numbers, text or booleans")
    if _too_large(y):
        return Task.regression, f"{name} holds numbers too large to be classes"
    distinct = y.n_unique()
    if not (y.cast(pl.Float64) % 1 == 0).all():
        return Task.regression, f"{name} has non-integer values"
    if distinct <= MAX_CLASSES and len(y) >= ROWS_PER_CLASS * distinct:
        return Task.classification, f"{name} takes {distinct} integer values only"
    return Task.regression, f"{name} takes {distinct:,} integer values"


def _too_large(y: pl.Series) -> bool:
    """Whether numbers exceed the range in which int64, or integers stored as floats, are distinct."""
    if not y.dtype.is_numeric():
        return False
    return bool((y.cast(pl.Float64).abs() >= (2.0**53 if y.dtype.is_float() else 2.0**63)).any())


def values(y: pl.Series, task: Task) -> NDArray[Any]:
    """Targets ``(n,)``: floats for regression, or classes of one type (text, booleans or numbers)."""
    if task is Task.regression:
        return y.cast(pl.Float64).to_numpy()
    if _too_large(y):
        raise DataError(f"the target {y.name!r} holds integers too large to be classes: write them as text")
    whole = y.dtype.is_float() and bool((y % 1 == 0).all())
    return np.asarray((y.cast(pl.Int64) if whole else y).to_list())


def check_kind(kind: str | None, y: pl.Series, file: str) -> None:
    """Check that targets of a test table are text if those of the fit are, and numbers if those are ("number")."""
    if (kind == "number" and y.dtype == pl.String) or (kind == "text" and y.dtype.is_numeric()):
        words = "numbers" if kind == "number" else "text"
        raise DataError(
            f"{file} has {y[0]!r} in the target {y.name!r}, which was {words} in the fit: write it in the same way, or "
            "name such values with --missing"
        )


def check_labels(known: Sequence[Any], labels: NDArray[Any], target: str, file: str) -> None:
    """Check that labels of a test table are among those of the fit: if none is, they are written in another way."""
    rows = Counter(labels.tolist())
    others = sorted(rows.keys() - set(known))
    if len(others) == len(rows):
        raise DataError(
            f"{file} has the labels {some(others)} in {target!r}, and the fit had {some(list(known))}: none is the "
            "same, write them in the same way"
        )
    if others:
        count = sum(rows[label] for label in others)
        warn(
            f"{file} has labels in {target!r} that the fit did not have, {some(others)}: its {counted(count, 'row')} "
            f"with them are counted as errors (the fit had {some(list(known))})"
        )


def new_model(task: Task, categorical: Sequence[str] | None) -> Any:
    """An unfitted estimator for a task; ``categorical`` names columns of numbers that are categories."""
    model = GCEClassifier() if task is Task.classification else GCERegressor()
    return model.set_params(categorical_features=list(categorical)) if categorical else model
