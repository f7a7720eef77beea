"""Bins of the thresholds of grown trees: a row's bin in a column is the number of thresholds below its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Thresholds of a column that a byte can hold.
CUTS = 255
#: Leaves of a tree that a mask of 64 bits can rule out.
LEAVES = 64


@dataclass(frozen=True)
class ThresholdBins:
    """Bins for groups of consecutive trees, each with at most 255 thresholds in any column.

    Only trees of at most 64 leaves use them: larger trees are traversed node by node.

    Parameters
    ----------
    group : array of shape (G + 1,)
        The first tree of each group.
    begin : array of shape (G + 1,)
        The first column of each group, among the columns of all groups.
    column : array of shape (S,)
        Index of the column in the rows.
    number : array of shape (S,)
        Number of its thresholds.
    edges : array of shape (S, 256)
        Its thresholds, ascending, then infinity.
    column_index : array of shape (nodes,)
        Index of a node's column among those of its group.
    code : array of shape (nodes,), uint8
        A row goes right at a node where its bin is larger.
    """

    group: Whole
    begin: Whole
    column: Whole
    number: Whole
    edges: Array
    column_index: Whole
    code: NDArray[np.uint8]

    @classmethod
    def of(cls, size: Whole, feature: NDArray[np.int32], threshold: Array, left: NDArray[np.int32]) -> ThresholdBins:
        """Bins for trees, given by their nodes as in :class:`gce.bases.trees.TreeArrays`."""
        tree = np.repeat(np.arange(len(size)), size)
        nodes = np.flatnonzero((left > 0) & ((size[tree] + 1) // 2 <= LEAVES))
        group = np.array([0, len(size)])
        while True:
            own = np.searchsorted(group, tree[nodes], side="right") - 1
            order = np.lexsort((threshold[nodes], feature[nodes], own))
            where, column, cut = own[order], feature[nodes[order]], threshold[nodes[order]]
            fresh = _changes(where) | _changes(column)
            differing = fresh | _changes(cut)
            place = np.cumsum(fresh) - 1
            number = np.bincount(place[differing])
            crowded = np.unique(where[fresh][number > CUTS])
            if not len(crowded):
                break
            # one tree alone has fewer cuts than leaves, and is never split
            group = np.sort(np.append(group, (group[crowded] + group[crowded + 1]) // 2))
        rank = np.cumsum(differing) - 1
        rank -= rank[fresh][place]
        begin = np.searchsorted(where[fresh], np.arange(len(group)))
        edges = np.full((len(number), CUTS + 1), np.inf)
        edges[place, rank] = cut
        column_index, code = np.zeros(len(feature), np.int64), np.zeros(len(feature), np.uint8)
        column_index[nodes[order]], code[nodes[order]] = place - begin[where], rank
        return cls(group, begin, column[fresh].astype(np.int64), number, edges, column_index, code)

    def arrays(self) -> tuple[Whole | Array, ...]:
        """The arrays that rows are binned with."""
        return self.group, self.begin, self.column, self.number, self.edges


def _changes(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the numbers that differ from the one before; true for the first."""
    return np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
