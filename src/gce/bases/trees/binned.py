"""The rows of a fit with their columns binned, once for all bases of trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.memory import format_gib
from gce._utils.params import Rules, check_parameters, count, within
from gce.bases.base import Basis
from gce.bases.context import FitContext
from gce.bases.trees import Bins
from gce.bases.trees.binning import CODES, Array
from gce.preprocessing.mixed import MixedRows, Rows, telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.preprocessing.sparse import Inputs, SparseRows

#: Bytes that the bin numbers of sparse rows may take.
BINNED_BYTES = 1 << 30
#: Leaves of a tree: as many as rows can have.
_MOST_LEAVES = 2**31 - 1


@dataclass(frozen=True)
class BinnedRows:
    """The rows of a fit with their columns binned.

    Parameters
    ----------
    X : Tensor, SparseRows or MixedRows of shape (N, d)
    bins : Bins
    codes : array of shape (ceil(d / 4), N, 4)
        The bin of every number, one byte each, in blocks of four columns: that of row ``i`` in column ``c`` is
        ``codes[c // 4, i, c % 4]``, and 0 where there is no such column. Growers visit rows in an order of their own,
        and find four columns where they find one.
    """

    X: Rows
    bins: Bins
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, X: Rows, max_bins: int) -> BinnedRows:
        """Bin rows ``(N, d)``; sparse rows are binned without a dense copy of them all."""
        if isinstance(X, MixedRows):
            some, (n, d) = X.columns, X.columns.shape
            return cls(X, *Bins.learn(_dense_blocks(some), n, d, max_bins, X.categorical))
        n, d = X.shape
        if isinstance(X, SparseRows) and n * d > BINNED_BYTES:
            raise ValueError(
                f"trees need one byte for each value of sparse rows, and {n:,} rows of {d:,} columns would take "
                f"{format_gib(n * d)}, more than {format_gib(BINNED_BYTES)}: use basis='neural', or fewer columns"
            )
        bins, codes = Bins.learn(_sparse_blocks(X) if isinstance(X, SparseRows) else _dense_blocks(X), n, d, max_bins)
        return cls(X, bins, codes)

    def by_column(self, given: NDArray[Any] | None) -> NDArray[Any] | None:
        """What is given for each input of networks, ``(inputs, ...)``, for each column that is binned, ``(d, ...)``."""
        if given is None or not isinstance(self.X, MixedRows):
            return given
        return self.X.by_column(given)

    @cached_property
    def names(self) -> NDArray[np.uint64]:
        """A hash of what each row holds, ``(N,)``."""
        # scaling rounds with the sums of weights, and the last digits are not the row's own
        return np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in telling_blocks(self.X)])


def _dense_blocks(X: Tensor) -> Iterator[Callable[[], Array]]:
    """Blocks of four columns of rows ``(N, d)``."""

    def block(first: int) -> Array:
        return np.ascontiguousarray(X[:, first : first + 4].cpu().numpy().T, dtype=np.float64)

    return (partial(block, first) for first in range(0, X.shape[1], 4))


def _sparse_blocks(X: SparseRows) -> Iterator[Callable[[], Array]]:
    by_column, centre = X.matrix.tocsc(), X.centre.double().numpy()

    def block(first: int) -> Array:
        some = slice(first, first + 4)
        return by_column[:, some].astype(np.float64).toarray(order="F").T + centre[some, None]

    return (partial(block, first) for first in range(0, X.shape[1], 4))


class BinnedBasis(Basis):
    """A basis whose models see binned columns; the rows of a fit are binned once."""

    max_bins: int = CODES

    parameter_rules: ClassVar[Rules] = {
        "max_leaf_nodes": count(2, _MOST_LEAVES),
        "max_depth": count(1, _MOST_LEAVES),
        "min_samples_leaf": within(0, np.inf, "[)"),
        "max_bins": count(2, CODES),
    }

    @property
    def splits_columns(self) -> bool:
        return True

    def prepare(self, X: Inputs, context: FitContext) -> None:
        self.binned(X, context)

    def binned(self, X: Inputs, context: FitContext) -> BinnedRows:
        """The rows of a fit, binned; bases with the same ``max_bins`` share them."""
        # once per fit: reading parameters takes as long as a small tree
        context.cached((self,), "checked", lambda: check_parameters(self))
        return context.cached((X,), ("bins", self.max_bins), lambda: BinnedRows.of(X, self.max_bins))
