"""The rows of a fit with their columns binned, once for all bases of trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.memory import format_gib
from gce._utils.params import Rules, check_parameters, count, within
from gce.bases.base import Atoms, Basis
from gce.bases.context import FitContext
from gce.bases.trees import Bins
from gce.bases.trees.binning import CODES, Array, binned_on_device
from gce.bases.trees.bundles import Bundles, bundle_codes, empty_codes, learn_sparse, unbundled
from gce.bases.trees.stored import StoredRows
from gce.bases.trees.tree_data import Constraints
from gce.preprocessing.mixed import MixedRows, Rows, telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.preprocessing.sparse import Inputs, SparseRows

if TYPE_CHECKING:
    from gce.bases.trees.shards import Shards
    from gce.distributed.division import Division

#: Bytes that the bin numbers of sparse rows may take.
BINNED_BYTES = 1 << 30
#: Leaves of a tree: as many as rows can have.
_MOST_LEAVES = 2**31 - 1


@dataclass(frozen=True)
class BinnedRows:
    """The rows of a fit with their columns binned.

    Parameters
    ----------
    X : Tensor, SparseRows, MixedRows or StoredRows of shape (N, d)
    bins : Bins
    stored : Tensor of shape (ceil(s / 4), N, 4), uint8
        The codes of stored columns, one byte each, in blocks of four: that of row ``i`` in column ``c`` is
        ``stored[c // 4, i, c % 4]``, and 0 where there is no such column. Growers visit rows in an order of their own,
        and find four columns where they find one. It is on the device of ``X``.
    bundles : Bundles, optional
        Which columns share a stored one. Default: codes are bins, column by column.
    """

    X: Rows | StoredRows
    bins: Bins
    stored: Tensor
    bundles: Bundles | None = None

    @cached_property
    def stored_codes(self) -> NDArray[np.uint8]:
        """``stored`` as an array, for the growers on the processor that know bundles."""
        return self.stored.cpu().numpy()

    @cached_property
    def tensor(self) -> Tensor:
        """The bin of every number, ``(ceil(d / 4), N, 4)``, for growers that know no bundles; kept once asked for."""
        if self.bundles is None:
            return self.stored
        if isinstance(self.X, SparseRows):
            _check_size(self.X, self.X.shape[1])
        return torch.from_numpy(self.bundles.unfold(self.stored_codes, self.bins.widths))

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """``tensor`` as an array, for growers on the processor."""
        return self.tensor.cpu().numpy()

    @classmethod
    def of(cls, X: Rows | StoredRows, max_bins: int) -> BinnedRows:
        """Bin rows ``(N, d)``; sparse rows are binned without a dense copy of them all."""
        if isinstance(X, StoredRows):
            bins, codes = X.codes(max_bins)
            return cls(X, bins, torch.from_numpy(codes))
        if isinstance(X, MixedRows):
            some, (n, d) = X.columns, X.columns.shape
            bins, codes = Bins.learn(_dense_blocks(some), n, d, max_bins, X.categorical)
            return cls._of_codes(X, bins, codes)
        if isinstance(X, SparseRows):
            return cls._of_sparse(X, max_bins)
        if X.device.type != "cpu":
            return cls(X, *binned_on_device(X, max_bins))
        return cls._of_codes(X, *Bins.learn(_dense_blocks(X), len(X), X.shape[1], max_bins))

    @classmethod
    def _of_codes(cls, X: Rows, bins: Bins, codes: NDArray[np.uint8]) -> BinnedRows:
        stored, bundles = bundle_codes(codes, bins.widths)
        return cls(X, bins, torch.from_numpy(stored), bundles)

    @classmethod
    def _of_sparse(cls, X: SparseRows, max_bins: int) -> BinnedRows:
        bins, away = learn_sparse(X, max_bins)
        bundles = away.bundled(bins.widths, len(X))
        places = unbundled(bins.widths) if bundles is None else bundles
        _check_size(X, len(places.widths))
        stored = empty_codes(len(X), len(places.widths))
        away.fold(places, stored)
        return cls(X, bins, torch.from_numpy(stored), bundles)

    def by_column(self, given: NDArray[Any] | None) -> NDArray[Any] | None:
        """What is given for each input of networks, ``(inputs, ...)``, for each column that is binned, ``(d, ...)``."""
        table = self.X.table if isinstance(self.X, StoredRows) else self.X
        return table.by_column(given) if given is not None and isinstance(table, MixedRows) else given

    @property
    def division(self) -> Division | None:
        """The logical shards of the training rows, where they are divided."""
        return self.X.division if isinstance(self.X, StoredRows) else None

    @cached_property
    def shards(self) -> Shards | None:
        """The same as growers see it."""
        # few fits are divided
        from gce.bases.trees.shards import Shards

        return None if self.division is None else Shards.of(self.division)

    @cached_property
    def names(self) -> NDArray[np.uint64]:
        """A hash of what each row holds, ``(N,)``."""
        if isinstance(self.X, StoredRows):
            if self.X.names is None:
                raise ValueError("subsample < 1 needs hashes of the rows, and these were stored without: give names")
            return self.X.names
        # scaling rounds with the sums of weights, and the last digits are not the row's own
        return np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in telling_blocks(self.X)])


def _check_size(X: SparseRows, stored: int) -> None:
    """Refuse sparse rows whose codes, in so many stored columns, would take too much memory."""
    n, d = X.shape
    if n * stored > BINNED_BYTES:
        raise ValueError(
            f"trees need one byte for each value of sparse rows, less where no row has two of some columns, and {n:,} "
            f"rows of {d:,} columns would take {format_gib(n * stored)}, more than {format_gib(BINNED_BYTES)}: use "
            "basis='neural', or fewer columns"
        )


def _dense_blocks(X: Tensor) -> Iterator[Callable[[], Array]]:
    """Blocks of four columns of rows ``(N, d)``."""

    def block(first: int) -> Array:
        return np.ascontiguousarray(X[:, first : first + 4].cpu().numpy().T, dtype=np.float64)

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

    def replay(self, X: Inputs, rounds: Sequence[tuple[Atoms, Tensor]]) -> Tensor | None:
        return X.replay(rounds, self.max_bins) if isinstance(X, StoredRows) else None

    def binned(self, X: Inputs, context: FitContext) -> BinnedRows:
        """The rows of a fit, binned; bases with the same ``max_bins`` share them."""
        # once per fit: reading parameters takes as long as a small tree
        context.cached((self,), "checked", lambda: check_parameters(self))
        return context.cached((X,), ("bins", self.max_bins), lambda: BinnedRows.of(X, self.max_bins))


class ConstrainedBasis(BinnedBasis):
    """A basis of trees that may be constrained."""

    #: Inputs in which trees are increasing (1), decreasing (-1) or anything (0); None: all are anything.
    _signs: NDArray[np.int64] | None = None
    #: The sets of inputs that may interact, as bits of words ``(d, W)``; None: all may.
    _groups: NDArray[np.uint64] | None = None

    def monotone(self, signs: Tensor) -> Self:
        other = copy(self)
        other._signs = signs.cpu().numpy().astype(np.int64)
        return other

    def restrict_interactions(self, groups: NDArray[np.uint64]) -> Self:
        other = copy(self)
        other._groups = np.ascontiguousarray(groups, np.uint64)
        return other

    def constraints(self, binned: BinnedRows) -> Constraints:
        """What trees of binned rows may not do.

        Parameters
        ----------
        binned : BinnedRows
        """
        return Constraints(binned.by_column(self._signs), binned.by_column(self._groups))
