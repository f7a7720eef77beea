"""Tables of made-up numbers in Parquet files, written once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import ndtr

#: Rows of a file, and of a row group.
FILE, GROUP = 1_000_000, 62_500


def write_rows(
    folder: Path, rows: int, columns: int, seed: int = 0, group: int = GROUP, target: str = "products"
) -> str:
    """A pattern of files with so many rows and columns of float64, and one of TARGETS as "y"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    make = TARGETS[target]
    own = folder / f"rows-{target}-{rows}-{columns}-{seed}"
    own.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, FILE)):
        path = own / f"part-{number:04}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([seed, number])
        X = rng.normal(size=(columns, min(FILE, rows - first)))
        y = make(X, rng)
        table = {f"x{j}": X[j] for j in range(columns)} | {"y": y}
        partial = path.with_suffix(".partial")
        pq.write_table(pa.table(table), partial, row_group_size=group, compression="none", use_dictionary=False)
        partial.rename(path)
    return str(own / "*.parquet")


def products(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Steps, waves and products of the first ten columns, and noise.

    Columns 1 and 2, whose product is a part of it, say nothing of it each by itself: trees that are grown greedily
    hardly find it, so the target suits some models better than others.
    """
    smooth = np.sin(2 * X[0]) + X[1] * X[2] + 0.5 * np.abs(X[3]) + 0.3 * X[4] ** 2
    return smooth + (X[5] > 0.5) * X[6] + 0.4 * np.cos(X[7] * X[8]) + 0.2 * X[9] + 0.3 * rng.normal(size=X.shape[1])


def additive(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Effects of single columns, and products of columns that also count by themselves, and noise: R^2 of at most 0.8.

    Columns 12 to 14 become integers of few values, in place. Every column that takes part changes the mean of the
    target by itself, so that trees that are grown greedily find it at their first split: no model is favoured by
    effects that show in two columns together only.
    """
    for column, values in ((12, 4), (13, 8), (14, 20)):
        X[column] = np.floor(values * _uniform(X[column]))
    curves = 0.8 * X[0] + 0.6 * np.sin(2 * X[1]) + 0.4 * np.abs(X[2]) + 0.5 * np.tanh(2 * X[3])
    steps = 0.6 * (X[4] > 0.3) - 0.5 * (X[5] < -0.8) + 0.4 * (np.abs(X[6]) < 0.5)
    shifted = 0.3 * (X[7] + 1.5) * (X[8] + 1.5) + 0.4 * (X[9] > 0) * (X[10] + 1) + 0.3 * (X[0] + 1) * (X[11] > 0.5)
    effects = np.random.default_rng(12).normal(size=32)
    levels = 0.4 * effects[:4][X[12].astype(int)] + 0.4 * effects[4:12][X[13].astype(int)]
    levels += 0.4 * effects[12:][X[14].astype(int)] + 0.3 * (X[12] == 2) * (X[4] + 1)
    signal = curves + steps + shifted + levels
    return signal + _NOISE * rng.normal(size=X.shape[1])


def _uniform(normal: np.ndarray) -> np.ndarray:
    return np.clip(ndtr(normal), 0, 1 - 1e-12)


#: The noise of ``additive``: a quarter of the variance of what can be learned.
_NOISE = 0.775
#: Targets of made-up rows by name.
TARGETS = {"products": products, "additive": additive}
