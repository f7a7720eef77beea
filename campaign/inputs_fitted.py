"""Fitted models that many cases share: they are made once in a process, and copied where a call changes them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from campaign.inputs_models import ESTIMATORS
from campaign.inputs_tables import Cells, contained, plain_cells
from campaign.inputs_targets import plain_target

#: How many models of each estimator there are.
VARIANTS = 4


@dataclass(frozen=True)
class Fitted:
    """A fitted model with its table and targets."""

    model: Any
    cells: Cells
    container: str
    X: Any
    y: Any
    words: str


def fitted_model(rng: Random) -> Fitted:
    """One of the shared models."""
    return _fitted(rng.choice(sorted(ESTIMATORS)), rng.randrange(VARIANTS))


@cache
def _fitted(name: str, variant: int) -> Fitted:
    rng = Random(f"{name} {variant}")
    kind, tasks, valid = ESTIMATORS[name]
    container = ("array", "pandas", "polars", "array")[variant]
    if name.startswith(("Convex", "Greedy")):
        container = "array"
    cells = plain_cells(rng, 24, 3)
    task = tasks[variant % len(tasks)]
    X, y = contained(cells, container, rng), plain_target(rng, task, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(**valid(rng)).fit(X, y)
    return Fitted(model, cells, container, X, y, f"{name} {variant} ({task}, {container})")
