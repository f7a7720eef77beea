"""Tables of made-up numbers in Parquet files, written once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

#: Rows of a file, and of a row group.
FILE, GROUP = 1_000_000, 62_500


def write_rows(folder: Path, rows: int, columns: int, seed: int = 0, group: int = GROUP) -> str:
    """A pattern of files with so many rows and columns of float64, and a target "y"."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = folder / f"rows-{rows}-{columns}-{seed}"
    own.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, FILE)):
        path = own / f"part-{number:04}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([seed, number])
        X = rng.normal(size=(columns, min(FILE, rows - first)))
        table = {f"x{j}": X[j] for j in range(columns)} | {"y": target(X, rng)}
        partial = path.with_suffix(".partial")
        pq.write_table(pa.table(table), partial, row_group_size=group, compression="none", use_dictionary=False)
        partial.rename(path)
    return str(own / "*.parquet")


def target(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Steps, waves and products of the first ten columns, and noise."""
    smooth = np.sin(2 * X[0]) + X[1] * X[2] + 0.5 * np.abs(X[3]) + 0.3 * X[4] ** 2
    return smooth + (X[5] > 0.5) * X[6] + 0.4 * np.cos(X[7] * X[8]) + 0.2 * X[9] + 0.3 * rng.normal(size=X.shape[1])
