"""Compiled passes over large arrays: sums over cached outputs.

Outputs may be single precision while sums are double: nothing is converted first.
"""

from __future__ import annotations

from gce._utils.jit import compiled

#: Numbers at a time: what is added to, or multiplied by, stays in the first-level cache while atoms pass by.
_BLOCK = 2048

_compiled = compiled(nogil=True, fastmath={"reassoc", "contract", "nsz"})


@_compiled
def inner_products(cache, gradient, result):
    """``result_t = sum_i cache_ti gradient_i`` in float64, ``cache`` of shape ``(T, size)`` in any precision."""
    for first in range(0, len(gradient), _BLOCK):
        last = min(first + _BLOCK, len(gradient))
        for t in range(len(cache)):
            total = 0.0
            for i in range(first, last):
                total += cache[t, i] * gradient[i]
            result[t] += total


@_compiled
def combination(cache, coefficients, result):
    """``result_i = sum_t coefficients_t cache_ti`` in float64, in the order of ``t``; zero coefficients are skipped."""
    for first in range(0, len(result), _BLOCK):
        last = min(first + _BLOCK, len(result))
        for t in range(len(cache)):
            if coefficients[t] != 0:
                for i in range(first, last):
                    result[i] += coefficients[t] * cache[t, i]
