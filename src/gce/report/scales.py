"""From values to places on a picture, and the ticks that tell the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce.report.markup import rounded, shown

Array = NDArray[np.float64]

#: Width and height of a drawing in its own units.
UNIT = 1000.0


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, linear or logarithmic.

    Parameters
    ----------
    low, high : float
    log : bool
    whole : bool
        Values are whole numbers, and so are ticks: there is no round 2.5.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def share(self, values: ArrayLike) -> Array:
        """How far along the axis values lie, 0 at ``low`` and 1 at ``high``; NaN where they have no place."""
        v, low, high = np.asarray(values, dtype=np.float64), self.low, self.high
        if self.log:
            v = np.log(np.where(v > 0, v, np.nan))
            low, high = math.log(low), math.log(high)
        return (v - low) / (high - low)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Round values on the axis, and how they are written; none are written alike."""
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
        """As the page's script and tests read it."""
        return f"{self.low!r} {self.high!r} {'log' if self.log else 'linear'}"


def _written(value: float, step: float) -> str:
    """A tick, with the digits that a step changes and no more."""
    digits = 1 if value == 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 1
    if abs(value) >= 1e9 and digits <= 3:
        return f"{value:.{digits}g}"
    text = rounded(value, step, 1)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def counting(values: ArrayLike) -> Scale:
    """A scale of whole numbers such as rounds, from the least to the largest."""
    scale = fitting(values, room=0.0)
    return Scale(scale.low, scale.high, whole=True)


def fitting(*values: ArrayLike, log: bool = False, zero: bool = False, room: float = 0.04) -> Scale:
    """A scale with room for all values; logarithmic where that is asked for and they span decades.

    Parameters
    ----------
    *values : array-like
        What is not finite has no say.
    log : bool
        A logarithmic axis is welcome: taken where the positive values span a factor of 20 or more.
    zero : bool
        The axis starts at 0.
    room : float
        Share of the span left free at either end.
    """
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    every = every[np.isfinite(every)]
    if log and len(every) and (every >= 0).all():
        positive = every[every > 0]
        if len(positive) and positive.max() > 20 * positive.min():
            stretch = (positive.max() / positive.min()) ** room
            return Scale(float(positive.min() / stretch), float(positive.max() * stretch), True)
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if all_one(low, high):
        half = abs(high) / 2 or 0.5
        low, high = (0.0, high) if zero and high > 0 else (low - half, high + half)
    margin = room * (high - low)
    return Scale(low if zero and low == 0 else low - margin, high + margin)


def all_one(low: float, high: float) -> bool:
    """Whether what lies between two numbers differs by rounding alone."""
    return high - low <= 1e-12 * max(abs(low), abs(high))


def thinned(count: int, most: int = 600) -> NDArray[np.intp]:
    """At most so many of ``count`` places, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def path(x: Array, y: Array) -> str:
    """A line through points in drawing units, broken where one has no place."""
    pieces, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        pieces.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L"
    return "".join(pieces)


def dots(x: Array, y: Array) -> str:
    """Points in drawing units, as lines of no length: a round cap makes each a dot of constant size."""
    kept = np.isfinite(x) & np.isfinite(y)
    return "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[kept].tolist(), y[kept].tolist(), strict=True))
