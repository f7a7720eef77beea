"""Columns as bytes: at most 256 codes each, cut where the rows are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Codes of a column at most.
CODES = 256


@dataclass(frozen=True)
class Bins:
    """Where each column is cut: a value's code is the number of edges below it.

    Parameters
    ----------
    edges : tuple of arrays
        Of each column, ascending; ``code <= c`` is ``value <= edges[c]``.
    """

    edges: tuple[Array, ...]

    @classmethod
    def learn(cls, X: Array) -> Bins:
        """Edges half-way between neighbouring values, or, where a column has more than 256 of these, between its
        quantiles; a row counts once however often it is repeated, so that repeated rows equal weighted ones.
        """
        return cls(tuple(_edges(np.unique(column)) for column in X.T))

    @property
    def widths(self) -> NDArray[np.int64]:
        """How many codes each column has, ``(d,)``."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)

    def code(self, X: Array) -> NDArray[np.uint8]:
        """Rows ``(n, d)`` as codes, columns first: ``(d, n)``."""
        codes = np.empty((X.shape[1], len(X)), dtype=np.uint8)
        for j, edges in enumerate(self.edges):
            codes[j] = np.searchsorted(edges, X[:, j], side="left")
        return codes

    def thresholds(self, feature: NDArray[np.int32], cut: NDArray[np.int32], inner: NDArray[np.bool_]) -> Array:
        """The edges at which nodes ``(nodes,)`` divide their columns; 0 for leaves."""
        out = np.zeros(len(feature))
        for node in np.flatnonzero(inner):
            out[node] = self.edges[feature[node]][cut[node]]
        return out


def _edges(values: Array) -> Array:
    """Edges between distinct values, in their order."""
    if len(values) > CODES:
        places = np.linspace(0, len(values) - 1, CODES + 1).round().astype(np.intp)[1:-1]
    else:
        places = np.arange(1, len(values))
    below, above = values[places - 1], values[places]
    middle = below + (above - below) / 2
    # between neighbours in floating point there is nothing: what is at most the edge must be the value below it
    return np.where(middle < above, middle, below)
