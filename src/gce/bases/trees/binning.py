"""Binned columns: at most 256 bins each, with edges between the values of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.native import INT, array, kernel

Array = NDArray[np.float64]

#: Maximum number of bins of a column.
CODES = 256
#: Numbers below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 18


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
    def learn(
        cls, blocks: Iterable[Callable[[], Array]], rows: int, columns: int, codes: int = CODES
    ) -> tuple[Bins, NDArray[np.uint8]]:
        """Learn edges half-way between neighbouring values, or between quantiles where a column has too many values.

        Values count once however often they are repeated, so that repeated and weighted rows have the same bins.

        Parameters
        ----------
        blocks : iterable of functions that return arrays of shape (4, n)
            Four columns each, the last block what is left: columns become dense, and float64, only when they are used.
        rows, columns : int
            ``n`` and ``d``.
        codes : int, default=256
            Maximum number of bins.

        Returns
        -------
        Bins
        array of shape (ceil(d / 4), n, 4)
            Bins of the values, in blocks of four columns, padded by 0.
        """
        out = np.zeros((-(-columns // 4), rows, 4), dtype=np.uint8)
        threads = min(parallel.threads(), len(out), 1 + rows * columns // _WORTH_A_THREAD)
        with parallel.workers(threads) as run:
            learned = run([partial(_binned, *given, codes) for given in zip(blocks, out, strict=True)])
        return cls(tuple(chain.from_iterable(learned))), out

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Number of bins of each column, ``(d,)``."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)

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


def _binned(block: Callable[[], Array], out: NDArray[np.uint8], codes: int) -> list[Array]:
    """The edges of some columns, whose codes are written to ``out`` ``(n, 4)``."""
    learned = []
    for j, column in enumerate(block()):
        edges = _edges(distinct(column), codes)
        _kernels()[1](column, len(column), edges, len(edges), out, j)
        learned.append(edges)
    return learned


def distinct(column: Array) -> Array:
    """The distinct values of a column ``(n,)``, ascending."""
    out, count = np.empty(len(column)), np.zeros(1, np.int64)
    _kernels()[0](column, len(column), out, count)
    return out[: int(count[0])]


@cache
def _kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
    floats = array(np.float64)
    return (
        kernel("distinct", floats, INT, floats, array(np.int64)),
        kernel("code", floats, INT, floats, INT, array(np.uint8), INT),
    )


def binned_on_device(X: Tensor, codes: int = CODES) -> tuple[Bins, Tensor]:
    """The edges of :meth:`Bins.learn` and the bins of rows, with tensor operations on their device.

    Parameters
    ----------
    X : Tensor of shape (n, d)
    codes : int, default=256
        Maximum number of bins.

    Returns
    -------
    Bins
    Tensor of shape (ceil(d / 4), n, 4), uint8
    """
    n, d = X.shape
    out, learned = X.new_zeros(-(-d // 4), n, 4, dtype=torch.uint8), []
    for c in range(d):
        # one number for both zeros
        column = X[:, c].double().contiguous() + 0.0
        values = column.unique()
        places = torch.from_numpy(_places(len(values), codes))
        below, above = (values[some.to(X.device)].cpu().numpy() for some in (places - 1, places))
        learned.append(_middle(below, above))
        out[c // 4, :, c % 4] = torch.searchsorted(torch.from_numpy(learned[-1]).to(X.device), column)
    return Bins(tuple(learned)), out


def _edges(values: Array, codes: int) -> Array:
    """Edges between sorted distinct values."""
    places = _places(len(values), codes)
    return _middle(values[places - 1], values[places])


def _places(count: int, codes: int) -> NDArray[np.intp]:
    """Which of so many distinct values begin a bin."""
    if count > codes:
        return np.linspace(0, count - 1, codes + 1).round().astype(np.intp)[1:-1]
    return np.arange(1, count)


def _middle(below: Array, above: Array) -> Array:
    """Edges between neighbouring values."""
    middle = below + (above - below) / 2
    # between neighbours in floating point there is nothing: what is at most the edge must be the value below it
    return np.where(middle < above, middle, below)
