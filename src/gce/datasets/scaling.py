"""Scaling of columns as in the reference code.

:class:`NumericRows` returns rows of a file as numbers, in batches; a rule computes a :class:`Scaling` from the training
and validation rows. So a large file is never held in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.datasets.convert import KDD_BYTES, KDD_TEXT
from gce.datasets.deskew import deskew
from gce.datasets.files import Arrays
from gce.datasets.registry import Spec
from gce.datasets.splits import Index

Array = NDArray[np.float64]

#: Columns with at most this standard deviation are only centred.
_CONSTANT = 1e-9
_BATCH_ROWS = 10_000
_TIMBRES = 12


@dataclass(frozen=True, eq=False)
class NumericRows:
    """The rows of a file as numbers.

    Parameters
    ----------
    table : array of shape (n, d)
        Numeric columns.
    codes : tuple of (array of shape (n,), int)
        Columns of codes and their numbers of categories; they become indicator columns after the others.
    """

    table: NDArray[Any]
    codes: tuple[tuple[NDArray[Any], int], ...] = ()

    @property
    def columns(self) -> int:
        """The number of columns, indicators included."""
        return int(self.table.shape[1]) + sum(size for _, size in self.codes)

    def __getitem__(self, index: Index) -> Array:
        out = np.zeros((len(index), self.columns))
        first = self.table.shape[1]
        out[:, :first] = self.table[index]
        for codes, size in self.codes:
            out[np.arange(len(index)), first + codes[index].astype(np.intp)] = 1.0
            first += size
        return out


def rows_of(spec: Spec, arrays: Arrays) -> NumericRows:
    """The rows of a file before scaling, as in the reference code.

    mnist is deskewed. kddcup99's three text columns become indicators behind the 38 others (one for each category that
    the file has: 3 + 70 + 11 in full, 3 + 66 + 11 in the tenth), and the two counts of bytes are taken exactly.
    """
    X = arrays["X"]
    if spec.name == "mnist":
        return NumericRows(deskew(X.reshape(-1, 28, 28)).reshape(len(X), -1))
    if spec.name == "kddcup99":
        table = np.delete(X, KDD_TEXT, axis=1).astype(np.float64)
        for name, j in KDD_BYTES.items():
            table[:, j - len(KDD_TEXT)] = arrays[name]
        return NumericRows(table, tuple((X[:, j], len(arrays[f"cat_{j}"])) for j in KDD_TEXT))
    return NumericRows(X)


@dataclass(frozen=True, eq=False)
class Scaling:
    """``(x - shift) / divisor``, column by column.

    Parameters
    ----------
    shift, divisor : array of shape (d,)
    """

    shift: Array
    divisor: Array

    def part(self, rows: NumericRows, index: Index, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Scaled rows of one part, ``(len(index), d)``."""
        out = np.empty((len(index), rows.columns), dtype=dtype)
        for first in range(0, len(index), _BATCH_ROWS):
            some = slice(first, first + _BATCH_ROWS)
            block = rows[index[some]]
            block -= self.shift
            out[some] = np.divide(block, self.divisor, out=block)
        return out


def fixed(spec: Spec, rows: NumericRows) -> Scaling | None:
    """The fixed scaling of a data set, or None; a single number is for all columns."""
    if spec.constants is None:
        return None
    d = spec.numeric or rows.columns
    shift, divisor = (np.broadcast_to(np.array(numbers), (d,)) for numbers in spec.constants)
    return _followed_by_indicators(shift, divisor, rows)


def columns(spec: Spec, rows: NumericRows, fitted: Index) -> Scaling:
    """Each numeric column by its mean and standard deviation (ddof 1); constant columns are only centred."""
    mean, deviation = _moments(rows.table[:, : spec.numeric], fitted)
    return _followed_by_indicators(mean, np.where(deviation > _CONSTANT, deviation, 1.0), rows)


def common(spec: Spec, rows: NumericRows, fitted: Index) -> Scaling:
    """One mean and one standard deviation (ddof 1) for all columns together."""
    mean, deviation = _moments(rows.table, fitted)
    n, d = len(fitted), rows.columns
    squares = (n - 1) * np.square(deviation).sum() + n * np.square(mean - mean.mean()).sum()
    return Scaling(np.full(d, mean.mean()), np.full(d, np.sqrt(squares / (n * d - 1))))


def timbre(spec: Spec, rows: NumericRows, fitted: Index) -> Scaling:
    """One unit per timbre: means are standardised, variances and covariances scaled accordingly.

    With ``s_i`` the standard deviation (ddof 1) of the mean of timbre ``i``, means are standardised, variances divided
    by ``s_i^2`` and covariances by ``s_i s_j``, neither centred: as if every timbre were measured in units of its
    ``s_i``. The reference says "the variances divided by their variances, the covariances by
    the products of standard deviations", which is interpreted so. The file lists covariances diagonal by diagonal.
    """
    mean, unit = _moments(rows.table[:, :_TIMBRES], fitted)
    shift = np.zeros(rows.columns)
    shift[:_TIMBRES] = mean
    products = np.outer(unit, unit)
    return Scaling(shift, np.concatenate([unit, *(np.diag(products, k) for k in range(_TIMBRES))]))


#: Rules by name; each computes a scaling from the training and validation rows.
RULES: dict[str, Callable[[Spec, NumericRows, Index], Scaling]] = {
    "columns": columns,
    "common": common,
    "timbre": timbre,
}


def _followed_by_indicators(shift: Array, divisor: Array, rows: NumericRows) -> Scaling:
    """A scaling of the first columns that leaves the others unchanged."""
    rest = rows.columns - len(shift)
    return Scaling(np.concatenate([shift, np.zeros(rest)]), np.concatenate([divisor, np.ones(rest)]))


def _moments(table: NDArray[Any], index: Index) -> tuple[Array, Array]:
    """Mean and standard deviation (ddof 1) of each column, ``(d,)``, in two passes."""
    blocks = [index[first : first + _BATCH_ROWS] for first in range(0, len(index), _BATCH_ROWS)]
    mean = np.sum([table[block].sum(axis=0, dtype=np.float64) for block in blocks], axis=0) / len(index)
    squares = np.sum([np.square(table[block] - mean).sum(axis=0) for block in blocks], axis=0)
    return mean, np.sqrt(squares / (len(index) - 1))
