"""Binned columns: at most 256 bins each, with edges between the values of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel

Array = NDArray[np.float64]

#: Maximum number of bins of a column.
CODES = 256
#: Numbers below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 18
_COLUMNS_AT_ONCE = 16


@dataclass(frozen=True)
class Bins:
    """The bin edges of each column: the bin of a value is the number of edges below it.

    Parameters
    ----------
    edges : tuple of arrays
        Of each column, ascending; ``code <= c`` is ``value <= edges[c]``.
    """

    edges: tuple[Array, ...]

    @classmethod
    def learn(cls, columns: Iterable[Array], rows: int, codes: int = CODES) -> Bins:
        """Learn edges half-way between neighbouring values, or between quantiles where a column has too many values.

        Values count once however often they are repeated, so that repeated and weighted rows have the same bins.

        Parameters
        ----------
        columns : iterable of arrays of shape (n,)
        rows : int
            ``n``.
        codes : int, default=256
            Maximum number of bins.
        """
        return cls(tuple(_by_column(partial(_learned, codes=codes), ((column,) for column in columns), rows)))

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Number of bins of each column, ``(d,)``."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)

    def code(self, columns: Iterable[Array], rows: int) -> NDArray[np.uint8]:
        """Bins of the values of each column, ``(d, n)``."""
        codes = np.empty((len(self.edges), rows), dtype=np.uint8)
        _by_column(_coded, zip(columns, self.edges, codes, strict=True), rows)
        return codes

    def thresholds(self, feature: NDArray[np.int32], cut: NDArray[np.int32], inner: NDArray[np.bool_]) -> Array:
        """The thresholds of nodes ``(nodes,)``; 0 for leaves."""
        out, starts = np.zeros(len(feature)), np.cumsum(self.widths - 1) - (self.widths - 1)
        out[inner] = self._flat[starts[feature[inner]] + cut[inner]]
        return out

    @cached_property
    def _flat(self) -> Array:
        return np.concatenate([np.zeros(0), *self.edges])

    @cached_property
    def values(self) -> Array:
        """The midpoint of each bin of each column, one column after another."""
        columns = []
        for edges in self.edges:
            inner = (edges[1:] + edges[:-1]) / 2
            ends = edges[[0, -1]] if len(edges) else np.zeros(1)
            columns.append(np.concatenate([ends[:1], inner, ends[1:]]))
        return np.concatenate([np.zeros(0), *columns])


def _by_column(task: Callable[..., Any], columns: Iterable[tuple[Any, ...]], rows: int) -> list[Any]:
    """Results of a task for each column, on threads: numpy releases the interpreter lock meanwhile.

    Columns are taken in blocks: sparse ones become dense only when they are used.
    """
    results, waiting = [], iter(columns)
    with parallel.workers(min(parallel.threads(), 1 + _COLUMNS_AT_ONCE * rows // _WORTH_A_THREAD)) as run:
        while some := list(islice(waiting, _COLUMNS_AT_ONCE)):
            results += run([partial(task, *given) for given in some])
    return results


def _learned(column: Array, codes: int) -> Array:
    return _edges(np.unique(column), codes)


def _coded(column: Array, edges: Array, out: NDArray[np.uint8]) -> None:
    out[:] = np.searchsorted(edges, column, side="left")


def _edges(values: Array, codes: int) -> Array:
    """Edges between sorted distinct values."""
    if len(values) > codes:
        places = np.linspace(0, len(values) - 1, codes + 1).round().astype(np.intp)[1:-1]
    else:
        places = np.arange(1, len(values))
    below, above = values[places - 1], values[places]
    middle = below + (above - below) / 2
    # between neighbours in floating point there is nothing: what is at most the edge must be the value below it
    return np.where(middle < above, middle, below)
