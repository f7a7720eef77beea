"""Whether a target is a number or a class, and its values as the estimators take them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gce.cli.failures import DataError

#: Whole numbers are taken for classes where there are at most so many, each with so many rows on average.
MOST_CLASSES, ROWS_A_CLASS = 20, 5


class Task(StrEnum):
    """What a target asks for."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


def settle(asked: Task, y: pl.Series) -> tuple[Task, str]:
    """The task, and the reason in words."""
    guessed, reason = _guess(y)
    if asked is Task.auto:
        return guessed, reason
    if asked is Task.regression and not y.dtype.is_numeric():
        raise DataError(f"--task regression needs numbers, but {reason}, such as {y[0]!r}: use --task classification")
    return asked, "as asked for"


def _guess(y: pl.Series) -> tuple[Task, str]:
    name = repr(y.name)
    if y.dtype in (pl.String, pl.Categorical) or isinstance(y.dtype, pl.Enum):
        return Task.classification, f"{name} is text"
    if y.dtype == pl.Boolean:
        return Task.classification, f"{name} is true or false"
    if not y.dtype.is_numeric():
        raise DataError(f"the target {name} is of type {y.dtype}: a target is a number, text, or true or false")
    if _too_large(y):
        return Task.regression, f"{name} holds numbers too large to be classes"
    distinct = y.n_unique()
    if not (y.cast(pl.Float64) % 1 == 0).all():
        return Task.regression, f"{name} is a number with decimals"
    if distinct <= MOST_CLASSES and len(y) >= ROWS_A_CLASS * distinct:
        return Task.classification, f"{name} takes {distinct} whole values only"
    return Task.regression, f"{name} takes {distinct:,} whole values"


def _too_large(y: pl.Series) -> bool:
    """Whether numbers go beyond what integers, or floats that stand for such, tell apart."""
    if not y.dtype.is_numeric():
        return False
    return bool((y.cast(pl.Float64).abs() >= (2.0**53 if y.dtype.is_float() else 2.0**63)).any())


def values(y: pl.Series, task: Task) -> NDArray[Any]:
    """Targets ``(n,)``: floats to regress, or classes of one type (text, booleans or numbers)."""
    if task is Task.regression:
        return y.cast(pl.Float64).to_numpy()
    if _too_large(y):
        raise DataError(f"the target {y.name!r} holds whole numbers too large to be classes: write them as text")
    whole = y.dtype.is_float() and bool((y % 1 == 0).all())
    return np.asarray((y.cast(pl.Int64) if whole else y).to_list())
