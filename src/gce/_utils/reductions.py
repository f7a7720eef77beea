"""Compiled passes over large arrays: sums over cached outputs.

Outputs may be single precision while sums are double: nothing is converted first. The loops are in
``native/reductions.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.native import INT, array, kernel

Array = NDArray[Any]


def inner_products(cache: Array, gradient: Array, result: Array) -> None:
    """``result_t += sum_i cache_ti gradient_i`` in float64, ``cache`` of shape ``(T, size)`` in any precision.

    A gradient may be shorter than the rows of the cache.
    """
    _kernel("inner_products", cache.dtype)(cache, *cache.shape, gradient, len(gradient), result)


def combination(cache: Array, coefficients: Array, result: Array) -> None:
    """``result_i += sum_t coefficients_t cache_ti`` in float64, in the order of ``t``; those of 0 are skipped."""
    _kernel("combination", cache.dtype)(cache, *cache.shape, coefficients, len(result), result)


@cache
def _kernel(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    numbers = array(np.float64)
    return kernel(f"{name}_f{8 * dtype.itemsize}", array(dtype), INT, INT, numbers, INT, numbers)
