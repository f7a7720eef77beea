"""Rows as bytes for trees that are there: how many of the trees' cuts in a column lie below a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Cuts of a column that bytes can tell apart.
CUTS = 255
#: Leaves of a tree that a mask of 64 bits can rule out.
LEAVES = 64


@dataclass(frozen=True)
class Coding:
    """Trees one after another in groups, each of which asks for no more than 255 cuts of any column.

    Only trees of at most 64 leaves ask: larger ones are walked through.

    Parameters
    ----------
    group : array of shape (G + 1,)
        The first tree of each group.
    begin : array of shape (G + 1,)
        The first column of each group, among those of all.
    column : array of shape (S,)
        Which column of the rows it is.
    number : array of shape (S,)
        How many cuts it has.
    edges : array of shape (S, 256)
        Its cuts, ascending, then infinity.
    asked : array of shape (nodes,)
        Where among its group's columns a node's stands.
    code : array of shape (nodes,), uint8
        A row is beyond a node's cut where its byte is larger.
    """

    group: Whole
    begin: Whole
    column: Whole
    number: Whole
    edges: Array
    asked: Whole
    code: NDArray[np.uint8]

    @classmethod
    def of(cls, size: Whole, feature: NDArray[np.int32], threshold: Array, left: NDArray[np.int32]) -> Coding:
        """Read off the nodes of trees, as a Grove has them."""
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
        asked, code = np.zeros(len(feature), np.int64), np.zeros(len(feature), np.uint8)
        asked[nodes[order]], code[nodes[order]] = place - begin[where], rank
        return cls(group, begin, column[fresh].astype(np.int64), number, edges, asked, code)

    def known(self) -> tuple[Whole | Array, ...]:
        """What rows are coded by."""
        return self.group, self.begin, self.column, self.number, self.edges


def _changes(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of some numbers differ from the one before; the first does."""
    return np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
