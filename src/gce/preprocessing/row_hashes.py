"""Hashes of rows by their values, so that random streams and subsamples do not depend on the order of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce._utils.splitmix import splitmix64
from gce.preprocessing.sparse import SparseRows

_BLOCK_ROWS = 2048


def hash_rows(X: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Hash of each row.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows.

    Returns
    -------
    array of shape (n,), uint64
    """
    return np.asarray(splitmix64(_sums(X)))


def _column_multipliers(columns: int) -> NDArray[np.uint64]:
    random_integers = np.random.Generator(np.random.PCG64(0)).integers(1 << 63, size=columns, dtype=np.uint64)
    return np.asarray(random_integers) | np.uint64(1)


def hash_row_set(X: NDArray[np.float64] | SparseRows) -> int:
    """Hash of the *set* of rows, whatever their order and however often each is repeated.

    A zero contributes nothing, so that dense and sparse rows have the same hash.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        The rows.

    Returns
    -------
    int
    """
    distinct = np.unique(_row_sums(X))
    distinct = (distinct ^ (distinct >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return int(distinct.sum(dtype=np.uint64))


def hash_samples(X: NDArray[np.float64] | SparseRows, y: NDArray[np.float64]) -> int:
    """Hash of rows with their targets, whatever their order; a row that occurs twice counts twice.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        The rows.
    y : array of shape (n, k)
        Their targets.

    Returns
    -------
    int
    """
    return int(splitmix64(splitmix64(_row_sums(X)) + _sums(y)).sum(dtype=np.uint64))


def _row_sums(X: NDArray[np.float64] | SparseRows) -> NDArray[np.uint64]:
    """As :func:`_sums`, also of sparse rows."""
    if not isinstance(X, SparseRows):
        return _sums(X)
    multipliers, stored = _column_multipliers(X.shape[1]), X.matrix
    sums = np.append(np.uint64(0), np.cumsum(_mix(stored.data, multipliers[stored.indices]), dtype=np.uint64))
    return np.diff(sums[stored.indptr])  # modulo 2^64, like all sums here


def _sums(X: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Sum of each row's mixed bits, ``(n,)``; in blocks of rows that fit the processor's cache."""
    multipliers, sums = _column_multipliers(X.shape[1]), np.empty(len(X), np.uint64)
    for first in range(0, len(X), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        sums[rows] = _mix(X[rows], multipliers).sum(1, dtype=np.uint64)
    return sums


def _mix(values: NDArray[np.float64], multipliers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
    return (bits ^ (bits >> np.uint64(29))) * multipliers
