"""The development sets of the accuracy benchmark, and the one split that all models share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from data_sets import Split, categories, load
from numpy.typing import NDArray

#: Small sets first, so that a run that is stopped has something of most sets.
SETS = (
    "iris", "wine", "diabetes", "boston", "breast_cancer", "energy", "concrete", "digits", "satimage", "kin8nm",
    "elevators", "bike_hour", "magic", "letter", "california", "electricity6", "protein", "adult", "diamonds",
)  # fmt: skip
REGRESSION = frozenset(
    {
        "diabetes", "boston", "energy", "concrete", "kin8nm", "elevators", "bike_hour", "california", "protein",
        "diamonds",
    }
)  # fmt: skip
#: Those of the paper's twelve sets that are among them; Table 1 calls california ca_housing.
PAPERS = ("diabetes", "boston", "california", "iris", "wine", "breast_cancer", "digits")
SEEDS = (0, 1, 2, 3, 4)


def cut(name: str, seed: int) -> Split:
    """A set in the seed's order, four fifths to fit on: columns of codes are numbers, classes are codes 0 to k - 1."""
    rows = cut_rows(*load(name), seed, name in REGRESSION)
    return replace(rows, categories=categories(name))


def cut_rows(X: NDArray[Any], y: NDArray[Any], seed: int, regression: bool) -> Split:
    """``X`` (n, d) and ``y`` (n,) in the seed's order, the first ``int(0.8 n)`` rows to fit on."""
    order = np.random.RandomState(seed).permutation(len(X))
    train, test = np.split(order, [int(0.8 * len(X))])
    X = X.astype(np.float64)
    y = y.astype(np.float64) if regression else np.unique(y, return_inverse=True)[1]
    return Split(X[train], y[train], X[test], y[test], regression)
