"""Numbers scaled: each column by its own spread, by a robust one, or all by one; far values drawn in."""

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

from gce import native
from gce.rows import Matrix, SparseRows

Array = NDArray[np.float64]

#: Fewer columns are not taken for pixels, whatever their ranges (benchmarks/results/encodings.md).
MANY_COLUMNS = 32

_ROWS_AT_ONCE = 512
#: Numbers of sparse columns that are written out at a time.
_NUMBERS_AT_ONCE = 1 << 22
#: The share of zeros above which a table may be one of words (benchmarks/results/sparse_text.md).
MOSTLY_ZEROS = 0.9
#: From the first to the third quartile of a normal distribution of spread 1.
_QUARTILES = 1.3489795
#: Squares of numbers beyond these may overflow, or vanish: they are measured in other units first.
_SMALL, _LARGE = 1e-100, 1e100
#: A spread that is no more has no reciprocal.
_LEAST_SPREAD = 1e-300


@dataclass(frozen=True)
class Standardizer:
    """Columns around 0 with a spread of about 1, far values drawn in.

    Parameters
    ----------
    mean, scale : array of shape (d,)
    clip : float
        A standardised value ``z`` becomes ``z / (1 + (z / clip)^4)^(1/4)``: itself in the bulk (1.97 for 2 at clip 4),
        never beyond ``clip``. A rare column's few large values would otherwise rule a network's first layer. (A square
        in place of the fourth power would bend the bulk too: 1.79 for 2.) Infinite: off.
    """

    mean: Array
    scale: Array
    clip: float

    @classmethod
    def fit(cls, X: Matrix, weight: Array, clip: float, scale: str) -> Standardizer:
        """Learn from rows ``(n, d)`` with weights ``(n,)``; gaps (NaN) do not count, a column without spread is only
        centred.

        ``scale="each"`` divides each column by its own spread. ``"robust"`` takes the quartiles' distance where that is
        narrower, which is where a few far values make the spread: the bulk then fills the same range as that of other
        columns. ``"common"`` divides all by one number, as the paper does for images: columns that share a unit
        (pixels, answers on one scale) then keep their relative spread, where their own would make the rarest pixel as
        loud as the most telling one. ``"auto"`` is common where many columns look measured in one unit, else robust.
        """
        low, high = _ends(X)
        unit = _units(np.fmax(np.fmax(high, -low), 0.0))
        mean, spread = _moments(_measured(X, unit), weight)
        # less is rounding, whatever the unit, and of numbers below the normal ones no factor could be told
        varies = (spread > 1e-9 * np.abs(mean)) & (spread * unit > _LEAST_SPREAD)
        own = np.where(varies, spread * unit, 1.0)
        # halves: the whole range may be more than float64 holds
        alike = scale == "auto" and varies.any() and _alike(X, weight, varies, high / 2 - low / 2)
        if alike or (scale == "common" and varies.any()):
            top = _units(own[varies].max())
            return cls(mean * unit, np.full_like(mean, top * np.sqrt(np.square(own[varies] / top).mean())), clip)
        if scale == "each":
            return cls(mean * unit, own, clip)
        low, middle, high = weighted_quantiles(X, weight, (0.25, 0.5, 0.75))
        half = (high / 2 - low / 2) / _QUARTILES
        # a few extreme values must not hide the bulk, whatever they are beside it
        rounding = 1e-9 * np.where(unit == 1, own, np.abs(middle))
        narrower = varies & (half > np.maximum(rounding, _LEAST_SPREAD) / 2) & (half < own / 2)
        return cls(np.where(narrower, middle, mean * unit), 2 * np.where(narrower, half, own / 2), clip)

    def farthest(self, X: Matrix) -> tuple[Array, Array]:
        """Of each column the value that lies farthest from its mean, and how many times its scale; ``(d,)`` each."""
        low, high = _ends(X)
        value = np.where(high / 2 - self.mean / 2 > self.mean / 2 - low / 2, high, low)
        with np.errstate(over="ignore"):
            return value, np.abs(value - self.mean) / self.scale

    def transform_sparse(self, X: SparseRows) -> SparseRows:
        """Scale sparse rows ``(n, d)`` as dense ones are: what a zero becomes is every column's centre."""
        own, factor = X.matrix, 1 / self.scale
        zero, j = self._squeezed(-self.mean * factor), own.indices
        with np.errstate(over="ignore"):  # what overflows is drawn in
            values = self._squeezed((own.data - self.mean[j]) * factor[j]) - zero[j]
        return SparseRows(csr_array((values, j, own.indptr), shape=own.shape), torch.from_numpy(zero))

    def transform(self, X: Array) -> Array:
        """Scale rows ``(n, d)``; a gap becomes the centre."""
        gaps = np.isnan(X)
        if gaps.any():
            X = np.where(gaps, self.mean, X)
        out, factor, rowwise = np.empty(X.shape), 1 / self.scale, native.rowwise()
        if rowwise is None or np.isinf(self.clip):
            for first in range(0, len(X), _ROWS_AT_ONCE):
                rows = slice(first, first + _ROWS_AT_ONCE)
                with np.errstate(over="ignore"):  # what overflows is drawn in
                    out[rows] = self._squeezed((X[rows] - self.mean) * factor)
            return out
        threads = min(native.threads(), 1 + 8 * X.size // native.WORTH_A_THREAD)
        ends = [len(X) * i // threads for i in range(threads + 1)]
        with native.workers(threads) as run:
            run([partial(rowwise.scaled, X, self.mean, factor, self.clip, out, *part) for part in pairwise(ends)])
        return out

    def _squeezed(self, z: Array) -> Array:
        if np.isinf(self.clip):
            return z
        # beyond 1e9 clips the answer is the clip to the last bit, and fourth powers would overflow at last
        z = np.clip(z, -1e9 * self.clip, 1e9 * self.clip)
        # squares, not a power: numpy's powers may differ between the middle and the end of an array
        r = np.square(z / self.clip)
        return np.clip(z / np.sqrt(np.sqrt(1 + r * r)), -self.clip, self.clip)


def _units(largest: Any) -> Array:
    """A unit for columns by their largest absolute values, ``(d,)``: 1, or a power of two near an extreme one.

    Dividing by a power of two is exact.
    """
    extreme = (largest > _LARGE) | ((largest > 0) & (largest < _SMALL))
    return np.where(extreme, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def _ends(X: Matrix) -> tuple[Array, Array]:
    """The least and the greatest value of each column, ``(d,)`` each; NaN where all are gaps."""
    if isinstance(X, SparseRows):
        low, high = (np.asarray(part.toarray(), dtype=np.float64) for part in (X.matrix.min(0), X.matrix.max(0)))
    else:
        low, high = (end.reduce(X, axis=0, dtype=np.float64, initial=np.nan) for end in (np.fmin, np.fmax))
    return low, high


def _measured(X: Matrix, unit: Array) -> Matrix:
    """Rows ``(n, d)`` in units ``(d,)``: themselves where all of these are 1."""
    if (unit == 1).all():
        return X
    if isinstance(X, SparseRows):
        own = X.matrix
        return replace(X, matrix=csr_array((own.data / unit[own.indices], own.indices, own.indptr), shape=own.shape))
    return X / unit


def share_a_unit(width: Array) -> bool:
    """Whether columns with these ranges are many and look measured in one unit: nine in ten reach twice the median."""
    return len(width) >= MANY_COLUMNS and bool(np.quantile(width, 0.9) <= 2 * np.median(width))


def _alike(X: Matrix, weight: Array, varies: NDArray[np.bool_], ranges: Array) -> bool:
    """Whether the columns that vary look measured in one unit."""
    width = ranges[varies]
    if share_a_unit(width):
        return True
    if len(width) < MANY_COLUMNS:
        return False
    # words have one unit too, but their ranges vary with the few documents that they are in: a wider limit for nine in
    # ten columns, and one for the rest, which may be numbers of another kind
    most, widest = np.quantile(width, (0.9, 1.0)) / np.median(width)
    if most > 5.0 or widest > 25.0:
        return False
    return bool(_zeros(X, weight)[varies].mean() > MOSTLY_ZEROS + 1e-9)  # shares of weights round


def weighted_quantiles(X: Matrix, weight: Array, levels: Sequence[float]) -> Array:
    """Of each column ``(n, d)`` the least value with a share of the weight at or below it, for some shares: ``(q, d)``.

    A row of weight 2 counts as two rows; gaps do not count, and a column that is all gaps has 0.
    """
    if isinstance(X, SparseRows):
        return _sparse_quantiles(X, weight, levels)
    out, even = np.zeros((len(levels), X.shape[1])), bool((weight == weight[0]).all())
    for j in range(X.shape[1]):
        column, own, gaps = X[:, j], weight, np.isnan(X[:, j])
        if gaps.any():
            column, own = column[~gaps], weight[~gaps]
        if len(column):
            out[:, j] = _equal_quantiles(column, own, levels) if even else _quantiles(column, own, levels)
    return out


def _quantiles(column: Array, weight: Array, levels: Sequence[float]) -> Array:
    order = np.argsort(column)
    return column[order[_places(weight[order], levels)]]


def _equal_quantiles(column: Array, weight: Array, levels: Sequence[float]) -> Array:
    """The same where all weights are one: who stands at a place is found without sorting the others."""
    places = _places(weight, levels)
    return np.asarray(np.partition(column, np.unique(places))[places])


def _places(weight: Array, levels: Sequence[float]) -> NDArray[np.intp]:
    """Where a share of the weights ``(n,)`` is first reached."""
    reached = np.cumsum(weight)
    # sums of weights round, and a quantile must not jump by that
    return np.searchsorted(reached, np.asarray(levels) * reached[-1] * (1 - 1e-12))


def _moments(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """Weighted means and spreads of columns, ``(d,)`` each; gaps do not count."""
    if isinstance(X, SparseRows):
        return _sparse_moments(X, weight)
    if not np.isnan(X).any():
        share = weight / weight.sum()
        mean = share @ X
        apart = X - mean
        return mean, np.sqrt(share @ np.square(apart, out=apart))
    known = np.where(np.isnan(X), 0.0, weight[:, None])
    shares = known / np.maximum(known.sum(0), np.finfo(float).tiny)
    mean = (shares * np.nan_to_num(X)).sum(0)
    return mean, np.sqrt((shares * np.square(np.nan_to_num(X - mean))).sum(0))


def _zeros(X: Matrix, weight: Array) -> Array:
    """The share of zeros in each column, ``(d,)``, by weight; a gap is none."""
    share = weight / weight.sum()
    if isinstance(X, SparseRows):
        kept = np.repeat(share, np.diff(X.matrix.indptr)) * (X.matrix.data != 0)
        return np.asarray(1 - np.bincount(X.matrix.indices, kept, X.shape[1]))
    return np.asarray(share @ (X == 0))


def _sparse_moments(X: SparseRows, weight: Array) -> tuple[Array, Array]:
    """The same, from the numbers that are kept and the share of those that are not."""
    share, own, d = weight / weight.sum(), X.matrix, X.shape[1]
    each = np.repeat(share, np.diff(own.indptr))
    present, mean = (np.bincount(own.indices, part, d).astype(np.float64) for part in (each, each * own.data))
    kept = np.bincount(own.indices, each * np.square(own.data - mean[own.indices]), d)
    # a column without zeros has no share of them, not one of rounding
    absent = np.where(np.bincount(own.indices, minlength=d) < len(X), 1 - present, 0.0)
    return mean, np.sqrt(kept + np.maximum(absent, 0.0) * np.square(mean))


def _sparse_quantiles(X: SparseRows, weight: Array, levels: Sequence[float]) -> Array:
    """The same of sparse rows: 0 where what lies below 0, and what lies above, has too little weight to reach it."""
    share, found = weight / weight.sum(), np.zeros((len(levels), X.shape[1]))
    present = np.bincount(X.matrix.indices, np.repeat(share, np.diff(X.matrix.indptr)), X.shape[1])
    least = min(min(q, 1 - q) for q in levels) * (1 - 1e-9)
    full, by_column = np.flatnonzero(present >= least), X.matrix.tocsc()
    for some in np.array_split(full, 1 + len(full) * len(X) // _NUMBERS_AT_ONCE):
        found[:, some] = weighted_quantiles(by_column[:, some].toarray(), weight, levels)
    return found
