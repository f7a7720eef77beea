"""The constructions of Proposition 2: ``k`` points shattered by threshold units, with free and with convex weights.

The points are equally spaced on the unit circle, and each has a threshold unit that fires only there. The
paper sets the units' thresholds to 1: mathematically ``x_i'x_i = 1``, but in floating point it is often a little less,
and the unit then does not fire at its own point (on x86-64 for k = 3, 5, 6, 7 and every k from 9 to 39). The
next largest inner product is ``cos(2 pi / k)``; half-way between the two there is room of about ``pi^2 / k^2`` on
either side, far more than rounding takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gce.theory.checks import at_least

Array = NDArray[np.float64]

_BATCH_LABELINGS = 1 << 14


@dataclass(frozen=True)
class ThresholdUnits:
    """``m`` units ``I(theta_i'x >= t_i)``.

    Parameters
    ----------
    directions : array of shape (m, d)
    thresholds : array of shape (m,)

    Examples
    --------
    >>> units = ThresholdUnits(np.eye(2), np.array([0.5, 2.0]))
    >>> units(np.array([[1.0, 1.0], [0.0, 2.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    directions: Array
    thresholds: Array

    def __call__(self, X: Array) -> Array:
        """Which units fire, ``(n, m)`` of 0 and 1, on rows ``(n, d)``."""
        return (self.thresholds <= X @ self.directions.T).astype(np.float64)


@dataclass(frozen=True)
class ThresholdedCombination:
    """``I(sum_i w_i u_i(x) >= level)``: a member of ``bin(lin_k(T))``, or of ``bin(co_k(T))`` if ``w`` is convex.

    Parameters
    ----------
    units : ThresholdUnits
    weights : array of shape (..., m)
        One combination, or many side by side.
    level : float

    Examples
    --------
    >>> units = ThresholdUnits(np.eye(2), np.array([0.5, 0.5]))
    >>> both = ThresholdedCombination(units, np.array([0.5, 0.5]), level=0.75)
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> both.score(X).tolist(), both(X).tolist()
    ([0.5, 0.5, 1.0], [0, 0, 1])
    """

    units: ThresholdUnits
    weights: Array
    level: float

    def score(self, X: Array) -> Array:
        """The combination before it is thresholded, ``(..., n)``."""
        return self.weights @ self.units(X).T

    def __call__(self, X: Array) -> NDArray[np.int8]:
        """Labels 0 and 1, ``(..., n)``, of rows ``(n, d)``."""
        return (self.score(X) >= self.level).astype(np.int8)


class Construction(Protocol):
    """Points, and for each labeling of them a classifier that produces it."""

    @property
    def points(self) -> Array:
        """The ``k`` points to be shattered, ``(k, d)``."""

    def classifier(self, labels: NDArray[np.int8]) -> ThresholdedCombination:
        """A classifier that assigns given labels ``(..., k)`` of 0 and 1 to the points."""


@dataclass(frozen=True)
class LinearShattering:
    """Proposition 2 (a): ``k`` units with weights ``w_i = y_i``, thresholded at 1.

    Hence ``d_VC(bin(lin_k(T))) >= k`` for every ``d >= 2``, and ``d_P(lin(T))`` is infinite.

    Parameters
    ----------
    k : int
        Number of points.
    d : int, default=2
        Number of inputs; the circle is in the plane of the first two.

    Examples
    --------
    >>> construction = LinearShattering(k=7)
    >>> classify = construction.classifier(np.array([1, 0, 0, 1, 1, 0, 1]))
    >>> classify(construction.points).tolist()
    [1, 0, 0, 1, 1, 0, 1]

    The paper's threshold, 1, fails in floating point:

    >>> from gce.theory.shattering import ThresholdUnits, circle
    >>> def fires_alone(k):
    ...     return np.array_equal(ThresholdUnits(circle(k), np.ones(k))(circle(k)), np.eye(k))
    >>> all(map(fires_alone, range(3, 13)))
    False
    """

    k: int
    d: int = 2

    @property
    def points(self) -> Array:
        """The shattered points, ``(k, d)``."""
        return circle(self.k, self.d)

    @property
    def units(self) -> ThresholdUnits:
        """The threshold units, each of which fires at one point only."""
        return ThresholdUnits(self.points, np.full(self.k, own_threshold(self.k)))

    def classifier(self, labels: NDArray[np.int8]) -> ThresholdedCombination:
        """The classifier that assigns given labels to the points.

        Parameters
        ----------
        labels : array of shape (..., k)
            0 or 1 for each point.
        """
        return ThresholdedCombination(self.units, np.asarray(labels, dtype=np.float64), level=1.0)


@dataclass(frozen=True)
class ConvexShattering:
    """Proposition 2 (b): the same units and one that never fires, weights on the simplex, thresholded at 1/(k+1).

    ``w_0 = 1/(1 + sum y)`` for the silent unit ``I(0'x >= 1/2)`` and ``w_i = y_i/(1 + sum y)``. Hence
    ``d_VC(bin(co_{k+1}(T))) >= k`` and ``d_P(co(T))`` is infinite too: the hulls do not
    differ in pseudodimension but in Rademacher complexity, which the convex hull shares with ``T``.

    Parameters
    ----------
    k : int
        Number of points.
    d : int, default=2
        Number of inputs.

    Examples
    --------
    >>> construction = ConvexShattering(k=3)
    >>> classify = construction.classifier(np.array([1, 1, 0]))
    >>> classify(construction.points).tolist()
    [1, 1, 0]
    >>> classify.weights.round(3).tolist()
    [0.333, 0.333, 0.333, 0.0]
    """

    k: int
    d: int = 2

    @property
    def points(self) -> Array:
        """The shattered points, ``(k, d)``."""
        return circle(self.k, self.d)

    @property
    def units(self) -> ThresholdUnits:
        """A unit that never fires, and the threshold units, each of which fires at one point only."""
        own = LinearShattering(self.k, self.d).units
        silent = np.zeros((1, self.d))
        return ThresholdUnits(np.concatenate([silent, own.directions]), np.append(0.5, own.thresholds))

    def classifier(self, labels: NDArray[np.int8]) -> ThresholdedCombination:
        """The classifier that assigns given labels to the points.

        Parameters
        ----------
        labels : array of shape (..., k)
            0 or 1 for each point.
        """
        chosen = np.asarray(labels, dtype=np.float64)
        with_silent = np.concatenate([np.ones_like(chosen[..., :1]), chosen], axis=-1)
        # the score is one weight exactly, the other terms being 0: the comparison with 1/(k+1) is free of rounding
        return ThresholdedCombination(self.units, with_silent / with_silent.sum(-1, keepdims=True), 1 / (self.k + 1))


def circle(k: int, d: int = 2) -> Array:
    """``k`` equally spaced points on the unit circle of the first two of ``d`` inputs, ``(k, d)``.

    Examples
    --------
    >>> (circle(4, d=3).round(12) + 0.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
    """
    at_least(1, k=k)
    at_least(2, d=d)
    angle = 2 * math.pi * np.arange(k) / k
    return np.stack([np.cos(angle), np.sin(angle), *np.zeros((d - 2, k))], axis=1)


def own_threshold(k: int) -> float:
    """Half-way between a point's inner product with itself, 1, and with its neighbour, ``cos(2 pi / k)``.

    A single point (``k = 1``) has no neighbour: any threshold below 1 works, and that of ``k = 2`` is used.

    Examples
    --------
    >>> [own_threshold(1), own_threshold(2), round(own_threshold(4), 12), round(own_threshold(6), 12)]
    [0.0, 0.0, 0.5, 0.75]
    """
    at_least(1, k=k)
    return (1 + math.cos(2 * math.pi / max(k, 2))) / 2


def labelings(first: int, last: int, k: int) -> NDArray[np.int8]:
    """Labelings number ``first`` to ``last - 1`` of the ``2^k``, ``(last - first, k)``: the binary digits.

    Examples
    --------
    >>> labelings(0, 4, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    number = np.arange(first, last, dtype=np.int64)
    return (number[:, None] >> np.arange(k) & 1).astype(np.int8)


def shatters(construction: Construction) -> bool:
    """Whether a construction produces all ``2^k`` labelings of its points.

    Parameters
    ----------
    construction : LinearShattering, ConvexShattering or similar
        With ``points`` and ``classifier(labels)``.

    Returns
    -------
    bool

    Examples
    --------
    >>> shatters(LinearShattering(k=10)), shatters(ConvexShattering(k=10, d=5))
    (True, True)
    """
    points = construction.points
    k = len(points)
    for first in range(0, 1 << k, _BATCH_LABELINGS):
        wanted = labelings(first, min(first + _BATCH_LABELINGS, 1 << k), k)
        if not np.array_equal(construction.classifier(wanted)(points), wanted):
            return False
    return True
