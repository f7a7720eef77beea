"""Weights, targets and gradients as integers, whose sums do not depend on their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

#: Binary digits of the largest number.
DIGITS = 30
#: A leaf of just as many rows as it must have may seem to have a little less, where weights are rounded.
SHORT = 1 - 1e-9
#: How far weights may be from multiples of the smallest one to be taken for such.
_ROUNDED = 1e-9


def integer_weights(weight: Floats) -> tuple[Ints, float]:
    """Weights ``(n,)`` as integers, and their unit: exact where all are multiples of one, like those of repeated rows.

    They are at least 1 but for weights of 0, and at most ``2 ** DIGITS``.
    """
    smallest = float(weight.min(initial=np.inf))
    if 0 < smallest == weight.max(initial=0):
        return np.ones(len(weight), np.int32), smallest
    smallest = float(weight.min(initial=np.inf, where=weight > 0))
    with np.errstate(over="ignore"):
        ratio = weight / smallest
    whole = np.rint(ratio)
    if whole.max(initial=0) <= 2**DIGITS and (np.abs(ratio - whole) <= _ROUNDED * ratio).all():
        return whole.astype(np.int32), smallest
    whole, exponent = rounded(weight[None])
    # a row of next to no weight still counts
    return np.maximum(whole[0], weight > 0, dtype=np.int32), float(np.ldexp(1.0, exponent[0]))


def rounded(values: Floats) -> tuple[Ints, NDArray[np.int64]]:
    """Numbers ``(k, n)`` as integers, half to even, and the exponents of two ``(k,)`` that are their units."""
    exponent = np.frexp(np.abs(values).max(1, initial=0))[1].astype(np.int64) - DIGITS
    return np.rint(scaled(values, -exponent)).astype(np.int32), exponent


def scaled(values: Floats, exponent: NDArray[np.int64]) -> Floats:
    """Numbers ``(k, n)`` times two to the power of exponents ``(k,)``; ``ldexp`` would take ten times as long."""
    one, two = halves(exponent)
    return values * one[:, None] * two[:, None]


def halves(exponent: NDArray[np.int64]) -> Floats:
    """Two factors of two to the power of exponents ``(k,)``, ``(2, k)``: it may overflow where a product does not."""
    return np.stack([np.ldexp(1.0, exponent // 2), np.ldexp(1.0, exponent - exponent // 2)])
