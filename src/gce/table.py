"""What users have, as tensors: columns scaled, targets encoded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Standardizer:
    """Columns to weighted mean 0 and variance 1, far values drawn in.

    Parameters
    ----------
    mean, scale : array of shape (d,)
    clip : float
        A standardised value ``z`` becomes ``z / sqrt(1 + (z / clip)^2)``: nearly itself in the bulk, never beyond
        ``clip``. A rare column's few large values would otherwise rule a network's first layer. Infinite: off.
    """

    mean: Array
    scale: Array
    clip: float

    @classmethod
    def fit(cls, X: Array, weight: Array, clip: float) -> Standardizer:
        """Learn from rows ``(n, d)`` with weights ``(n,)``; a column without spread is only centred."""
        share = weight / weight.sum()
        mean = share @ X
        spread = np.sqrt(share @ np.square(X - mean))
        constant = spread <= 1e-9 * np.maximum(1.0, np.abs(mean))
        return cls(mean, np.where(constant, 1.0, spread), clip)

    def transform(self, X: Array) -> Array:
        """Scale rows ``(n, d)``."""
        z = (X - self.mean) / self.scale
        return z if np.isinf(self.clip) else z / np.sqrt(1 + np.square(z / self.clip))


def one_hot(codes: NDArray[np.intp], classes: int) -> Array:
    """Class codes ``(n,)`` as targets: one 0/1 column for two classes, a column each for more."""
    if classes == 2:
        return codes[:, None].astype(np.float64)
    return np.eye(classes)[codes]
