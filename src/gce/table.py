"""What users have, as tensors: columns scaled, targets encoded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gce import native

Array = NDArray[np.float64]

_ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class Standardizer:
    """Columns to weighted mean 0 and variance about 1, far values drawn in.

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
    def fit(cls, X: Array, weight: Array, clip: float, scale: str) -> Standardizer:
        """Learn from rows ``(n, d)`` with weights ``(n,)``; a column without spread is only centred.

        ``scale="each"`` divides each column by its own spread, ``"common"`` all by one number, as the paper does for
        images: columns that share a unit (pixels, coordinates, answers on one scale) then keep their relative spread,
        where their own would make the rarest pixel as loud as the most telling one. ``"auto"`` looks at their ranges.
        """
        share = weight / weight.sum()
        mean = share @ X
        spread = np.sqrt(share @ np.square(X - mean))
        varies = spread > 1e-9 * np.maximum(1.0, np.abs(mean))
        if varies.any() and (scale == "common" or (scale == "auto" and share_a_unit(np.ptp(X[:, varies], axis=0)))):
            return cls(mean, np.full_like(mean, np.sqrt(np.square(spread[varies]).mean())), clip)
        return cls(mean, np.where(varies, spread, 1.0), clip)

    def transform(self, X: Array) -> Array:
        """Scale rows ``(n, d)``."""
        out, factor, passes = np.empty(X.shape), 1 / self.scale, native.passes()
        if passes is None or np.isinf(self.clip):
            for first in range(0, len(X), _ROWS_AT_ONCE):
                rows = slice(first, first + _ROWS_AT_ONCE)
                out[rows] = self._squeezed((X[rows] - self.mean) * factor)
            return out
        threads = min(native.threads(), 1 + 8 * X.size // native.WORTH_A_THREAD)
        ends = [len(X) * i // threads for i in range(threads + 1)]
        with native.workers(threads) as run:
            run([partial(passes.scaled, X, self.mean, factor, self.clip, out, *part) for part in pairwise(ends)])
        return out

    def _squeezed(self, z: Array) -> Array:
        if np.isinf(self.clip):
            return z
        # beyond 1e9 clips the answer is the clip to the last bit, and fourth powers would overflow at last
        z = np.clip(z, -1e9 * self.clip, 1e9 * self.clip)
        return np.clip(z / np.sqrt(np.sqrt(1 + (z / self.clip) ** 4)), -self.clip, self.clip)


def share_a_unit(width: Array) -> bool:
    """Whether columns with these ranges look measured in one unit: nine in ten reach at most twice the median."""
    return bool(np.quantile(width, 0.9) <= 2 * np.median(width))


def one_hot(codes: NDArray[np.intp], classes: int) -> Array:
    """Class codes ``(n,)`` as targets: one 0/1 column for two classes, a column each for more."""
    if classes == 2:
        return codes[:, None].astype(np.float64)
    return np.eye(classes)[codes]
