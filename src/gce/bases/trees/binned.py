"""The rows of a fit with their columns binned, once for all bases of trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.memory import format_gib
from gce._utils.params import Rules, check_parameters, count, within
from gce.bases.base import Basis
from gce.bases.context import FitContext
from gce.bases.trees import Bins
from gce.bases.trees.binning import CODES
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
    X : Tensor or SparseRows of shape (N, d)
    bins : Bins
    codes : array of shape (d, N)
        The bin of every number, one byte each.
    """

    X: Inputs
    bins: Bins
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, X: Inputs, max_bins: int) -> BinnedRows:
        """Bin rows ``(N, d)``; sparse rows are binned without a dense copy of them all."""
        n, d = X.shape
        if isinstance(X, SparseRows) and n * d > BINNED_BYTES:
            raise ValueError(
                f"trees need one byte for each value of sparse rows, and {n:,} rows of {d:,} columns would take "
                f"{format_gib(n * d)}, more than {format_gib(BINNED_BYTES)}: use basis='neural', or fewer columns"
            )
        if isinstance(X, SparseRows):
            bins = Bins.learn(X.columns(), n, max_bins)
            return cls(X, bins, bins.code(X.columns(), n))
        columns = X.double().cpu().numpy().T
        bins = Bins.learn(columns, n, max_bins)
        return cls(X, bins, bins.code(columns, n))

    @cached_property
    def names(self) -> NDArray[np.uint64]:
        """A hash of what each row holds, ``(N,)``."""
        blocks = [self.X.double().cpu().numpy()] if isinstance(self.X, Tensor) else self.X.dense_blocks()
        # scaling rounds with the sums of weights, and the last digits are not the row's own
        return np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in blocks])


class BinnedBasis(Basis):
    """A basis whose models see binned columns; the rows of a fit are binned once."""

    max_bins: int = CODES

    parameter_rules: ClassVar[Rules] = {
        "max_leaf_nodes": count(2, _MOST_LEAVES),
        "max_depth": count(1, _MOST_LEAVES),
        "min_samples_leaf": within(0, np.inf, "[)"),
        "max_bins": count(2, CODES),
    }

    def prepare(self, X: Inputs, context: FitContext) -> None:
        self.binned(X, context)

    def binned(self, X: Inputs, context: FitContext) -> BinnedRows:
        """The rows of a fit, binned; bases with the same ``max_bins`` share them."""
        check_parameters(self)
        return context.cached((X,), ("bins", self.max_bins), lambda: BinnedRows.of(X, self.max_bins))
