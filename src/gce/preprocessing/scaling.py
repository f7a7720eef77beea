"""Scaling of numbers by each column's spread, a robust spread or a common one; outliers are clipped smoothly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gce._utils import parallel, rowwise
from gce.preprocessing.sparse import Matrix, SparseRows

Array = NDArray[np.float64]

#: Fewer columns are never assumed to share a unit, as pixels do (benchmarks/results/encodings.md).
MANY_COLUMNS = 32

_BLOCK_ROWS = 512
#: Numbers of a block of sparse columns that is made dense.
_BLOCK_SIZE = 1 << 22
#: Share of zeros above which a table may be a bag of words (benchmarks/results/sparse_text.md).
MOSTLY_ZEROS = 0.9
#: Interquartile range of a standard normal distribution.
_NORMAL_IQR = 1.3489795
#: Squares of numbers beyond these may overflow or underflow: such columns are rescaled first.
_SMALL, _LARGE = 1e-100, 1e100
#: The reciprocal of a smaller spread overflows.
_MIN_SPREAD = 1e-300


@dataclass(frozen=True)
class Standardizer:
    """Columns centred at 0 with a spread of about 1; outliers are clipped smoothly.

    Parameters
    ----------
    mean, scale : array of shape (d,)
        Centre and spread of each column.
    clip : float
        A standardised value ``z`` becomes ``z / (1 + (z / clip)^4)^(1/4)``: nearly unchanged in the bulk (1.97 for 2 at
        clip 4), never beyond ``clip``. A few large values of a rare column would otherwise dominate a network's first
        layer. (A square in place of the fourth power would distort the bulk: 1.79 for 2.) Infinite: no clipping.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.preprocessing import Standardizer
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> scaling = Standardizer.fit(X, weight=np.ones(3), clip=np.inf, scale="each")
    >>> scaling.transform(X).round(3).ravel().tolist()
    [-1.225, 0.0, 1.225]
    """

    mean: Array
    scale: Array
    clip: float

    @classmethod
    def fit(cls, X: Matrix, weight: Array, clip: float, scale: str) -> Standardizer:
        """Fit centres and spreads; a constant column is only centred.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Rows; missing values (NaN) are ignored.
        weight : array of shape (n,)
            Sample weights.
        clip : float
            See :class:`Standardizer`.
        scale : {"auto", "each", "robust", "common"}
            "each" divides each column by its standard deviation. "robust" uses the interquartile range where that is
            narrower, that is where a few outliers make the standard deviation, so that the bulk has the same range as
            in other columns. "common" divides all columns by one number, as the paper does for images: columns that
            share a unit (pixels, answers on one scale) keep their relative spread, so that rare pixels are not
            amplified. "auto" is "common" where many columns look measured in one unit, else "robust".

        Returns
        -------
        Standardizer
        """
        low, high = _column_ranges(X)
        unit = _units(np.fmax(np.fmax(high, -low), 0.0))
        mean, spread = _moments(_rescale(X, unit), weight)
        # a smaller spread is rounding, whatever the unit; subnormal numbers have no accurate factor
        varies = (spread > 1e-9 * np.abs(mean)) & (spread * unit > _MIN_SPREAD)
        spreads = np.where(varies, spread * unit, 1.0)
        # halves: the whole range may overflow
        alike = scale == "auto" and varies.any() and _look_alike(X, weight, varies, high / 2 - low / 2)
        if alike or (scale == "common" and varies.any()):
            top = _units(spreads[varies].max())
            return cls(mean * unit, np.full_like(mean, top * np.sqrt(np.square(spreads[varies] / top).mean())), clip)
        if scale == "each":
            return cls(mean * unit, spreads, clip)
        low, middle, high = weighted_quantiles(X, weight, (0.25, 0.5, 0.75))
        half = (high / 2 - low / 2) / _NORMAL_IQR
        # a few extreme values must not hide the bulk, however large they are
        rounding = 1e-9 * np.where(unit == 1, spreads, np.abs(middle))
        narrower = varies & (half > np.maximum(rounding, _MIN_SPREAD) / 2) & (half < spreads / 2)
        return cls(np.where(narrower, middle, mean * unit), 2 * np.where(narrower, half, spreads / 2), clip)

    def most_extreme(self, X: Matrix) -> tuple[Array, Array]:
        """Each column's most extreme value and its distance from the centre in spreads, ``(d,)`` each."""
        low, high = _column_ranges(X)
        value = np.where(high / 2 - self.mean / 2 > self.mean / 2 - low / 2, high, low)
        with np.errstate(over="ignore"):
            return value, np.abs(value - self.mean) / self.scale

    def transform_sparse(self, X: SparseRows) -> SparseRows:
        """Scale sparse rows ``(n, d)``; the scaled value of a zero becomes the ``centre`` of its column.

        Parameters
        ----------
        X : SparseRows of shape (n, d)
            The rows.

        Returns
        -------
        SparseRows of shape (n, d)
        """
        matrix, factor = X.matrix, 1 / self.scale
        zero, j = self._clip_smoothly(-self.mean * factor), matrix.indices
        with np.errstate(over="ignore"):  # what overflows is clipped
            values = self._clip_smoothly((matrix.data - self.mean[j]) * factor[j]) - zero[j]
        return SparseRows(csr_array((values, j, matrix.indptr), shape=matrix.shape), torch.from_numpy(zero))

    def transform(self, X: Array) -> Array:
        """Scale rows ``(n, d)``; missing values become 0, the centre.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows.

        Returns
        -------
        array of shape (n, d)
        """
        missing = np.isnan(X)
        if missing.any():
            X = np.where(missing, self.mean, X)
        out, factor = np.empty(X.shape), 1 / self.scale
        if np.isinf(self.clip):
            for first in range(0, len(X), _BLOCK_ROWS):
                rows = slice(first, first + _BLOCK_ROWS)
                with np.errstate(over="ignore"):  # what overflows is clipped
                    out[rows] = self._clip_smoothly((X[rows] - self.mean) * factor)
            return out
        threads = min(parallel.threads(), 1 + 8 * X.size // parallel.WORTH_A_THREAD)
        ends = [len(X) * i // threads for i in range(threads + 1)]
        with parallel.workers(threads) as run:
            run([partial(rowwise.scaled, X, self.mean, factor, self.clip, out, *part) for part in pairwise(ends)])
        return out

    def _clip_smoothly(self, z: Array) -> Array:
        if np.isinf(self.clip):
            return z
        # beyond 1e9 clips the result is the clip to the last bit, and fourth powers would overflow eventually
        z = np.clip(z, -1e9 * self.clip, 1e9 * self.clip)
        # squares, not a power: numpy's powers may differ in the last bit with the position in an array
        r = np.square(z / self.clip)
        return np.clip(z / np.sqrt(np.sqrt(1 + r * r)), -self.clip, self.clip)


def _units(largest: Any) -> Array:
    """A unit per column from its largest absolute value, ``(d,)``: 1, or a power of two near an extreme value.

    Dividing by a power of two is exact.
    """
    extreme = (largest > _LARGE) | ((largest > 0) & (largest < _SMALL))
    return np.where(extreme, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def _column_ranges(X: Matrix) -> tuple[Array, Array]:
    """The least and the greatest value of each column, ``(d,)`` each; NaN where all values are missing."""
    if isinstance(X, SparseRows):
        low, high = (np.asarray(part.toarray(), dtype=np.float64) for part in (X.matrix.min(0), X.matrix.max(0)))
    else:
        low, high = (end.reduce(X, axis=0, dtype=np.float64, initial=np.nan) for end in (np.fmin, np.fmax))
    return low, high


def _rescale(X: Matrix, unit: Array) -> Matrix:
    """Rows ``(n, d)`` divided by units ``(d,)``; unchanged where all of these are 1."""
    if (unit == 1).all():
        return X
    if isinstance(X, SparseRows):
        matrix = X.matrix
        return replace(
            X, matrix=csr_array((matrix.data / unit[matrix.indices], matrix.indices, matrix.indptr), shape=matrix.shape)
        )
    return X / unit


def share_a_unit(width: Array) -> bool:
    """Whether many columns with ranges ``(d,)`` look measured in one unit: nine in ten are within twice the median."""
    return len(width) >= MANY_COLUMNS and bool(np.quantile(width, 0.9) <= 2 * np.median(width))


def _look_alike(X: Matrix, weight: Array, varies: NDArray[np.bool_], ranges: Array) -> bool:
    """Whether the columns that vary look measured in one unit, or are counts of words."""
    width = ranges[varies]
    if share_a_unit(width):
        return True
    if len(width) < MANY_COLUMNS:
        return False
    # counts of words have one unit too, but their ranges vary with the few documents that contain them: a wider limit
    # for nine in ten columns, and one for the rest, which may be other numbers
    most, widest = np.quantile(width, (0.9, 1.0)) / np.median(width)
    if most > 5.0 or widest > 25.0:
        return False
    return bool(_zeros(X, weight)[varies].mean() > MOSTLY_ZEROS + 1e-9)  # shares of weights are rounded


def weighted_quantiles(X: Matrix, weight: Array, levels: Sequence[float]) -> Array:
    """Weighted quantiles of each column: the least value with the given share of the weight at or below it.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        Rows; missing values are ignored.
    weight : array of shape (n,)
        Sample weights; a row of weight 2 counts as two rows.
    levels : sequence of q floats
        Levels of the quantiles, in (0, 1).

    Returns
    -------
    array of shape (q, d)
        0 for columns without values.
    """
    if isinstance(X, SparseRows):
        return _sparse_quantiles(X, weight, levels)
    out, even = np.zeros((len(levels), X.shape[1])), bool((weight == weight[0]).all())
    for j in range(X.shape[1]):
        column, column_weight, missing = X[:, j], weight, np.isnan(X[:, j])
        if missing.any():
            column, column_weight = column[~missing], weight[~missing]
        if len(column):
            out[:, j] = (
                _equal_quantiles(column, column_weight, levels) if even else _quantiles(column, column_weight, levels)
            )
    return out


def _quantiles(column: Array, weight: Array, levels: Sequence[float]) -> Array:
    order = np.argsort(column)
    return column[order[_quantile_positions(weight[order], levels)]]


def _equal_quantiles(column: Array, weight: Array, levels: Sequence[float]) -> Array:
    """Quantiles for equal weights, by selection instead of sorting."""
    positions = _quantile_positions(weight, levels)
    return np.asarray(np.partition(column, np.unique(positions))[positions])


def _quantile_positions(weight: Array, levels: Sequence[float]) -> NDArray[np.intp]:
    """Positions at which the cumulated weights ``(n,)`` first reach each level."""
    reached = np.cumsum(weight)
    # sums of weights are rounded, which must not move a quantile
    return np.searchsorted(reached, np.asarray(levels) * reached[-1] * (1 - 1e-12))


def _moments(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """Weighted means and standard deviations of columns, ``(d,)`` each, ignoring missing values."""
    if isinstance(X, SparseRows):
        return _sparse_moments(X, weight)
    if not np.isnan(X).any():
        share = weight / weight.sum()
        # sums of several threads are rounded by how many these are
        with parallel.one_blas_thread():
            mean = share @ X
            apart = X - mean
            return mean, np.sqrt(share @ np.square(apart, out=apart))
    weights = np.where(np.isnan(X), 0.0, weight[:, None])
    shares = weights / np.maximum(weights.sum(0), np.finfo(float).tiny)
    mean = (shares * np.nan_to_num(X)).sum(0)
    return mean, np.sqrt((shares * np.square(np.nan_to_num(X - mean))).sum(0))


def _zeros(X: Matrix, weight: Array) -> Array:
    """Weighted share of zeros in each column, ``(d,)``; a missing value is not a zero."""
    share = weight / weight.sum()
    if isinstance(X, SparseRows):
        nonzero = np.repeat(share, np.diff(X.matrix.indptr)) * (X.matrix.data != 0)
        return np.asarray(1 - np.bincount(X.matrix.indices, nonzero, X.shape[1]))
    return np.asarray(share @ (X == 0))


def _sparse_moments(X: SparseRows, weight: Array) -> tuple[Array, Array]:
    """Weighted moments from the stored numbers and the share of zeros."""
    share, matrix, d = weight / weight.sum(), X.matrix, X.shape[1]
    entry_weight = np.repeat(share, np.diff(matrix.indptr))
    present, mean = (
        np.bincount(matrix.indices, part, d).astype(np.float64) for part in (entry_weight, entry_weight * matrix.data)
    )
    variance = np.bincount(matrix.indices, entry_weight * np.square(matrix.data - mean[matrix.indices]), d)
    # a column without zeros has a share of exactly 0, not one of rounding
    absent = np.where(np.bincount(matrix.indices, minlength=d) < len(X), 1 - present, 0.0)
    return mean, np.sqrt(variance + np.maximum(absent, 0.0) * np.square(mean))


def _sparse_quantiles(X: SparseRows, weight: Array, levels: Sequence[float]) -> Array:
    """Weighted quantiles of sparse rows: 0 in columns whose nonzero values have too little weight to matter."""
    share, quantiles = weight / weight.sum(), np.zeros((len(levels), X.shape[1]))
    present = np.bincount(X.matrix.indices, np.repeat(share, np.diff(X.matrix.indptr)), X.shape[1])
    least = min(min(q, 1 - q) for q in levels) * (1 - 1e-9)
    full, by_column = np.flatnonzero(present >= least), X.matrix.tocsc()
    for columns in np.array_split(full, 1 + len(full) * len(X) // _BLOCK_SIZE):
        quantiles[:, columns] = weighted_quantiles(by_column[:, columns].toarray(), weight, levels)
    return quantiles
