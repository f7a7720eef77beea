"""What kernels are given and give back where columns have missing values or categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.bases.trees.binning import Grown, Kinds


class KeptKinds:
    """The kinds of columns, and memory for what the nodes of a tree keep of them.

    Parameters
    ----------
    kinds : Kinds or None
        None: there are numbers only, and none is missing.
    nodes : int
        Nodes that a tree may have.

    Attributes
    ----------
    given, arrays : tuples of two ints or None
        Addresses: of the kinds of columns, and of the memory; None where there are no kinds.
    """

    def __init__(self, kinds: Kinds | None, nodes: int) -> None:
        self._kinds = kinds
        self.given: tuple[int | None, int | None] = (None, None)
        self.arrays: tuple[int | None, int | None] = (None, None)
        if kinds is not None:
            self._missing_left = np.zeros(nodes, np.uint8)
            # most of it is never written to, and takes no memory then
            self._sets = np.empty((nodes // 2, 4), np.uint64)
            self.given = kinds.missing.ctypes.data, kinds.categorical.ctypes.data
            self.arrays = self._missing_left.ctypes.data, self._sets.ctypes.data

    def tree(
        self, feature: NDArray[np.int32], cut: NDArray[np.int32], left: NDArray[np.int32], value: NDArray[np.float64]
    ) -> Grown:
        """A grown tree, see :meth:`gce.bases.trees.binning.Bins.as_splits`."""
        if self._kinds is None:
            return feature, cut, left, value
        parts_categories = (left > 0) & (self._kinds.categorical[feature] > 0)
        sets = self._sets[: int(parts_categories.sum())]
        return feature, cut, left, value, self._missing_left[: len(left)].copy(), sets.copy()
