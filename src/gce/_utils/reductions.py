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


def inner_products_by_part(cache: Array, gradient: Array, ends: Array, result: Array) -> None:
    """``result_pt += sum_i cache_ti gradient_i`` over the numbers ``i`` of part ``p``, in float64.

    ``cache`` of shape ``(T, size)`` in any precision; parts end at ``ends`` ``(P,)``, the last with the gradient, which
    may be shorter than the rows of the cache; ``result`` of shape ``(P, T)``.
    """
    _kernel("inner_products_by_part", cache.dtype)(cache, *cache.shape, gradient, ends, len(ends), result)


def combination(cache: Array, coefficients: Array, result: Array) -> None:
    """``result_i += sum_t coefficients_t cache_ti`` in float64, in the order of ``t``; those of 0 are skipped."""
    _kernel("combination", cache.dtype)(cache, *cache.shape, coefficients, len(result), result)


@cache
def _kernel(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    numbers = array(np.float64)
    kinds = {"inner_products_by_part": (numbers, array(np.int64), INT, numbers), "combination": (numbers, INT, numbers)}
    return kernel(f"{name}_f{8 * dtype.itemsize}", array(dtype), INT, INT, *kinds[name])
