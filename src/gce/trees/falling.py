"""Rows dropped through trees, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rows times trees below which a second thread costs more than it brings.
WORTH_A_THREAD = 1 << 16
#: Rows that fall through a tree before the next tree is fetched.
_ROWS = 64

_U = np.uint64


@njit(cache=True, nogil=True, error_model="numpy")
def fall(X, first, feature, threshold, left, value, weight, trees, result, start, end):
    """``result[t // trees, i] += weight[t] * leaf`` for rows from ``start`` to ``end``, tree by tree in their order."""
    for block in range(start, end, _ROWS):
        last = min(block + _ROWS, end)
        for t in range(len(first)):
            root = _U(first[t])
            for i in range(_U(block), _U(last)):
                node = root
                child = left[node]
                while child:
                    node = root + _U(child) + _U(X[i, _U(feature[node])] > threshold[node])
                    child = left[node]
                for j in range(value.shape[1]):
                    result[t // trees, i, j] += weight[t, j] * value[node, j]
