"""Rows of a fit of which only bins are stored, divided among processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms
from gce.bases.trees.binning import Bins
from gce.preprocessing.mixed import MixedRows

if TYPE_CHECKING:
    from gce.bases.neural.stored_inputs import StoredInputs
    from gce.distributed.division import Division

#: From a name, a shape and a dtype to an array.
Allocate = Callable[[str, tuple[int, ...], Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows that boosted trees are grown from: their bins, but not their numbers.

    The training rows of this process come first, in the order of its shards. The rows held out follow, the same in
    every process. It has the part of a dense tensor's interface that a fit needs.

    Parameters
    ----------
    rows : int
        ``N``: training rows of this process, and all rows held out.
    width : int
        Number of inputs of networks.
    binned : dict of int to (Bins, array of shape (ceil(d / 4), N, 4))
        Of each maximum number of bins the bins and the codes of the rows, in blocks of four columns as in
        :class:`gce.bases.trees.binned.BinnedRows`. A ``numpy.memmap`` needs ``mode="c"``: torch takes no array that
        is read-only, and nothing is written.
    division : Division
        The shards of the training rows.
    names : array of shape (N,), optional
        A hash of what each row holds, for trees that are grown from some of the rows.
    table : MixedRows of shape (0, width), optional
        Knows which inputs are made of which columns, where the table has categories or missing values.
    allocate : callable, optional
        From a name, a shape and a dtype to an array for numbers of the rows, in a file. Default: they are in memory.
    inputs : StoredInputs, optional
        The same rows as networks see them, where some are trained on them.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.bases.trees import Bins
    >>> from gce.bases.trees.stored import StoredRows
    >>> from gce.distributed import Division, World
    >>> codes = np.array([[[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]], dtype=np.uint8)
    >>> division = Division(np.array([2]), 0, 1, World())
    >>> rows = StoredRows(3, 1, {256: (Bins((np.array([0.5]),)), codes)}, division)
    >>> rows.shape
    (3, 1)
    """

    rows: int
    width: int
    binned: Mapping[int, tuple[Bins, NDArray[np.uint8]]]
    division: Division
    names: NDArray[np.uint64] | None = None
    table: MixedRows | None = None
    allocate: Allocate | None = None
    inputs: StoredInputs | None = None

    dtype: ClassVar[torch.dtype] = torch.float64
    device: ClassVar[torch.device] = torch.device("cpu")

    def __len__(self) -> int:
        return self.rows

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, width)``."""
        return self.rows, self.width

    def to(self, dtype: torch.dtype) -> StoredRows:
        """The rows themselves: bins have no precision.

        Parameters
        ----------
        dtype : torch.dtype
            Looked at by nobody.

        Returns
        -------
        StoredRows
        """
        return self

    def new_zeros(self, *shape: int) -> Tensor:
        """A tensor of zeros, float64."""
        return torch.zeros(*shape, dtype=self.dtype)

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor, float64 by default."""
        return torch.empty(*shape, dtype=dtype or self.dtype)

    def codes(self, max_bins: int) -> tuple[Bins, NDArray[np.uint8]]:
        """The bins of columns and the codes of rows.

        Parameters
        ----------
        max_bins : int
            Maximum number of bins of a column.

        Returns
        -------
        Bins
        array of shape (ceil(d / 4), N, 4)

        Raises
        ------
        ValueError
            The rows were not stored with so many bins.
        """
        if max_bins not in self.binned:
            raise ValueError(f"the rows are stored with max_bins in {sorted(self.binned)}, not {max_bins}")
        bins, codes = self.binned[max_bins]
        needed = -(-len(bins.edges) // 4), self.rows, 4
        if codes.shape != needed or not codes.flags.writeable:
            raise ValueError(
                f"codes must have shape {needed}, and be writeable or mapped with mode='c': got {codes.shape}, "
                f"writeable={codes.flags.writeable}"
            )
        return bins, codes

    def replay(self, rounds: Sequence[tuple[Atoms, Tensor]], max_bins: int) -> Tensor:
        """Predictions after some rounds of boosting, to the bits that the fit had.

        Parameters
        ----------
        rounds : sequence of (TreeAtoms, Tensor of shape (1, 1))
            The trees of each round, of one member, and the step that was taken.
        max_bins : int
            Of the basis.

        Returns
        -------
        Tensor of shape (1, N, k)
        """
        # who fits without an interruption needs none of it
        from gce.bases.trees.replay import replay

        return replay(*self.codes(max_bins), rounds)
