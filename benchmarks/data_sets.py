"""The data of the benchmarks: real sets from GCE_DATA_HOME or scikit-learn, and synthetic ones.

``GCE_DATA_HOME`` names a folder of ``NAME.npz`` files with arrays ``X`` and ``y``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    fetch_california_housing,
    fetch_covtype,
    fetch_openml,
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)

Array = NDArray[np.float64]

#: Sets that come with scikit-learn.
WITHIN: dict[str, Callable[..., tuple[Any, Any]]] = {
    "diabetes": load_diabetes,
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
SOURCES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "california": lambda: fetch_california_housing(return_X_y=True),
    "letter": lambda: fetch_openml("letter", version=1, return_X_y=True, as_frame=False, parser="liac-arff"),
    "covertype": lambda: fetch_covtype(return_X_y=True),
}
REGRESSION = {"california"}
#: Training and test rows where not all are used, drawn without replacement.
DRAWN = {"covertype": (100_000, 20_000)}
QUICK_ROWS = (1500, 300)
REFERENCE_SEED = 997


class MissingDataError(Exception):
    """A data set that is neither in the data folder nor to be fetched."""


@dataclass(frozen=True)
class Split:
    """Rows to fit and rows to judge by; classes are codes 0 to k - 1, the same for every model.

    ``categories`` are the columns that hold codes of categories.
    """

    X_train: Array
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    regression: bool
    categories: tuple[int, ...] = ()


def load(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A whole data set, as it is stored."""
    if name in WITHIN:
        X, y = WITHIN[name](return_X_y=True)
        return X, y
    path = _stored(name)
    if path is not None:
        with np.load(path, allow_pickle=False) as stored:
            return stored["X"], stored["y"]
    if name not in SOURCES:
        raise MissingDataError(f"{name} is not in GCE_DATA_HOME, and nothing here fetches it")
    try:
        X, y = SOURCES[name]()
    except Exception as error:  # the network, the server and the archive each fail in their own way
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MissingDataError(f"{name} is not in GCE_DATA_HOME and cannot be fetched ({reason})") from error
    return np.asarray(X), np.asarray(y)


def categories(name: str) -> tuple[int, ...]:
    """The columns that are text where the set comes from, and codes in :func:`load`."""
    path = None if name in WITHIN else _stored(name)
    if path is None:
        return ()
    with np.load(path, allow_pickle=False) as stored:
        return tuple(stored["cat_cols"].tolist()) if "cat_cols" in stored else ()


def stored(name: str) -> Path:
    """The file of a set in GCE_DATA_HOME."""
    path = _stored(name)
    if path is None:
        raise MissingDataError(f"{name} is not in GCE_DATA_HOME, and nothing here fetches it")
    return path


def _stored(name: str) -> Path | None:
    folder = os.environ.get("GCE_DATA_HOME")
    path = Path(folder) / f"{name}.npz" if folder else None
    return path if path is not None and path.exists() else None


def split(name: str, quick: bool) -> Split:
    """The split all models share: a random 80/20 cut (seed 0), or the rows of ``DRAWN``."""
    X, y = load(name)
    n = len(X)
    train_rows, test_rows = DRAWN.get(name, (int(0.8 * n), n - int(0.8 * n)))
    if quick:
        train_rows, test_rows = min(train_rows, QUICK_ROWS[0]), min(test_rows, QUICK_ROWS[1])
    order = np.random.RandomState(0).permutation(n)
    train, test = order[:train_rows], order[train_rows : train_rows + test_rows]
    regression = name in REGRESSION
    y = y.astype(np.float64) if regression else np.unique(y, return_inverse=True)[1]
    # chosen before they are converted: all of covertype in float64 would set the memory's high-water mark
    return Split(X[train].astype(np.float64), y[train], X[test].astype(np.float64), y[test], regression)


def reference_digits() -> tuple[tuple[Array, NDArray[Any]], ...]:
    """Digits cut as the paper's code cuts them: training, validation and test rows."""
    X, y = load_digits(return_X_y=True)
    seen, test = _reference_cut(list(range(len(X))))
    train, validation = _reference_cut(seen)
    return tuple((X[rows], y[rows]) for rows in (train, validation, test))


def _reference_cut(rows: list[int]) -> tuple[list[int], list[int]]:
    """Four fifths and one fifth of the positions shuffled by seed 997."""
    order = list(range(len(rows)))
    random.Random(REFERENCE_SEED).shuffle(order)
    cut = int(0.8 * len(rows))
    return [rows[i] for i in order[:cut]], [rows[i] for i in order[cut:]]


def synthetic(n: int, d: int, k: int, seed: int = 0) -> tuple[Array, NDArray[Any]]:
    """Normal inputs and a random smooth target: a number (``k = 1``) or the largest of ``k`` scores."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((d, 16)) / np.sqrt(d), rng.standard_normal((16, k))
    X = rng.standard_normal((n, d))
    scores = np.tanh(X @ first) @ second
    if k == 1:
        return X, scores[:, 0] + 0.1 * rng.standard_normal(n)
    # one spread for all scores, so that no class is rare
    return X, (scores / scores.std(0)).argmax(1)


def made_up(n: int, regression: bool) -> tuple[Any, Any]:
    """Thirty columns in float32, of which four count."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30), dtype=np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] / 2 + 0.3 * rng.standard_normal(n, dtype=np.float32)
    return X, y if regression else (y > 0).astype(int)
