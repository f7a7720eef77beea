"""Axes of charts: from values to positions, and their ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce.inspection.report.markup import rounded, shown

Array = NDArray[np.float64]

#: Width and height of a drawing in its own units.
UNIT = 1000.0

#: A logarithmic axis ends at this multiple of the 5 % quantile: smaller values leave the drawing.
_OUTLIER = 1e-3


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, linear or logarithmic; with ``whole`` its ticks are integers."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def share(self, values: ArrayLike) -> Array:
        """Positions of values along the axis, 0 at ``low`` and 1 at ``high``; NaN if they have none."""
        v, low, high = np.asarray(values, dtype=np.float64), self.low, self.high
        if self.log:
            v = np.log(np.where(v > 0, v, np.nan))
            low, high = math.log(low), math.log(high)
        return (v - low) / (high - low)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Round values on the axis and their labels, which all differ."""
        if self.log:
            return [(v, shown(v, 6)) for v in self._inside(self._powers(most))]
        step = self._step(most)
        first = math.ceil(self.low / step - 1e-9)
        # rounding keeps 3 * 0.1 from being 0.30000000000000004
        values = [round(i * step, 12 - math.floor(math.log10(step))) for i in range(first, first + most + 2)]
        return [(v, _written(v, step)) for v in self._inside(values)]

    def _inside(self, values: list[float]) -> list[float]:
        return [v for v in values if -1e-9 <= float(self.share(v)) <= 1 + 1e-9]

    def _step(self, most: int) -> float:
        rough = (self.high - self.low) / most
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(m * size for m in (1, 2, 5, 10) if m * size >= rough * (1 - 1e-9))
        return max(step, 1.0) if self.whole else step

    def _powers(self, most: int) -> list[float]:
        least, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = last - least
        parts = (1, 2, 5) if decades <= 2 else (1, 3) if decades <= 3 else (1,)
        every = max(1, math.ceil(decades / (most + 2)))
        return [part * 10.0**power for power in range(least, last + 1, every) for part in parts]

    @property
    def words(self) -> str:
        """The axis as the script of the page reads it."""
        return f"{self.low!r} {self.high!r} {'log' if self.log else 'linear'}"


def _written(value: float, step: float) -> str:
    """The label of a tick, with as many digits as the step between ticks needs."""
    digits = 1 if value == 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 1
    if abs(value) >= 1e9 and digits <= 3:
        return f"{value:.{digits}g}"
    text = rounded(value, step, 1)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def counting(values: ArrayLike) -> Scale:
    """A scale of integers such as rounds, from the smallest to the largest."""
    scale = fitting(values, room=0.0)
    return Scale(scale.low, scale.high, whole=True)


def fitting(*values: ArrayLike, log: bool = False, zero: bool = False, room: float = 0.04) -> Scale:
    """A scale with room for all finite values.

    Parameters
    ----------
    *values : array-like
    log : bool
        Use a logarithmic axis if no value is negative and the positive ones span a factor of more than 20.
    zero : bool
        Include 0.
    room : float
        Fraction of the span left free at either end.
    """
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    every = every[np.isfinite(every)]
    if log and len(every) and (every >= 0).all():
        positive = every[every > 0]
        if len(positive) and positive.max() > 20 * positive.min():
            # a few values such as the risk of a forest, which interpolates, must not flatten all others
            low = max(float(positive.min()), _OUTLIER * float(np.quantile(positive, 0.05)))
            stretch = (float(positive.max()) / low) ** room
            return Scale(low / stretch, float(positive.max()) * stretch, True)
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if all_one(low, high):
        half = abs(high) / 2 or 0.5
        low, high = (0.0, high) if zero and high > 0 else (low - half, high + half)
    margin = room * (high - low)
    return Scale(low if zero and low == 0 else low - margin, high + margin)


def all_one(low: float, high: float) -> bool:
    """Whether two numbers differ by rounding only."""
    return high - low <= 1e-12 * max(abs(low), abs(high))


def thinned(count: int, most: int = 600) -> NDArray[np.intp]:
    """At most ``most`` evenly spaced indices below ``count``, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def path(x: Array, y: Array) -> str:
    """A line through points in drawing units, interrupted where a point is not finite."""
    pieces, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        pieces.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L"
    return "".join(pieces)


def dots(x: Array, y: Array) -> str:
    """Points in drawing units, as lines of length 0: round caps make them dots of constant size."""
    kept = np.isfinite(x) & np.isfinite(y)
    return "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[kept].tolist(), y[kept].tolist(), strict=True))
