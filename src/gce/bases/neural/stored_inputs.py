"""Inputs of networks in files, divided among processes, and the rows of them that each epoch of an atom has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms
from gce.preprocessing.mixed import MixedRows

if TYPE_CHECKING:
    from gce.bases.objectives import Linear
    from gce.bases.trees.stored import Allocate
    from gce.distributed.division import Division

#: Rows that atoms are evaluated on at a time.
_BLOCK_ROWS = 1 << 15
#: Numbers from which on an array is in a file.
_LARGE = 1 << 20
#: What seeds of rows have and those of their order have not: more than there are shards.
_DRAWS = 1 << 20


@dataclass(frozen=True, eq=False)
class StoredInputs:
    """Rows that networks are trained on, of which the columns are in a file, in single precision.

    The training rows of this process come first, in the order of its shards. The rows held out follow, the same in
    every process. It has the part of a dense tensor's interface that a fit needs.

    Parameters
    ----------
    columns : float32 array of shape (N, d)
        Scaled columns; the inputs themselves where there is no ``table``.
    division : Division
        The shards of the training rows.
    drawn : int
        Training rows of all processes in an epoch of an atom, at most.
    table : MixedRows of shape (0, width), optional
        Makes inputs of columns, where the table has categories or missing values.
    allocate : callable, optional
        From a name, a shape and a dtype to an array in a file. Default: all arrays are in memory.
    dtype : torch.dtype, default=torch.float32
        The precision in which networks see the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.bases.neural.stored_inputs import StoredInputs
    >>> from gce.distributed import Division, World
    >>> division = Division(np.array([2, 2]), 0, 2, World())
    >>> rows = StoredInputs(np.arange(10, dtype=np.float32).reshape(5, 2), division, drawn=2)
    >>> rows.shape
    (5, 2)
    >>> rows.block(slice(4, 5))
    tensor([[8., 9.]])
    """

    columns: NDArray[np.float32]
    division: Division
    drawn: int
    table: MixedRows | None = None
    allocate: Allocate | None = None
    dtype: torch.dtype = torch.float32

    device: ClassVar[torch.device] = torch.device("cpu")

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, width)``."""
        return len(self), self.columns.shape[1] if self.table is None else self.table.shape[1]

    def to(self, dtype: torch.dtype) -> StoredInputs:
        """The rows in another precision.

        Parameters
        ----------
        dtype : torch.dtype

        Returns
        -------
        StoredInputs
        """
        return replace(self, dtype=dtype)

    def new_zeros(self, *shape: int) -> Tensor:
        """A tensor of zeros."""
        return self.new_empty(*shape).zero_()

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """A tensor whose values are not set, in a file where it is large."""
        dtype = self.dtype if dtype is None else dtype
        if self.allocate is None or int(np.prod(shape)) < _LARGE:
            return torch.empty(*shape, dtype=dtype)
        kind = np.float32 if dtype == torch.float32 else np.float64
        return torch.from_numpy(self.allocate("outputs", shape, kind))

    def block(self, rows: slice | NDArray[np.int64]) -> Tensor:
        """The inputs of some rows, ``(n, width)``, in memory.

        Parameters
        ----------
        rows : slice or array of int

        Returns
        -------
        Tensor of shape (n, width)
        """
        # take: four times as fast as indexing by an array
        some = self.columns[rows] if isinstance(rows, slice) else np.take(np.asarray(self.columns), rows, axis=0)
        columns = torch.from_numpy(np.require(some, requirements=["O"]))
        return (columns if self.table is None else replace(self.table, columns=columns).inputs).to(self.dtype)

    def outputs(self, atoms: Atoms) -> Tensor:
        """Outputs of atoms on all rows, block by block.

        Parameters
        ----------
        atoms : Atoms

        Returns
        -------
        Tensor of shape (A, N, k)
        """
        firsts = range(0, max(len(self), 1), _BLOCK_ROWS)
        return torch.cat([atoms(self.block(slice(first, first + _BLOCK_ROWS))) for first in firsts], 1)

    def draw(self, objective: Linear, seed: tuple[int, ...]) -> tuple[DividedInputs, Linear]:
        """Rows for the first epoch of one atom, as many of each shard as its share of all rows.

        Parameters
        ----------
        objective : Linear
            Of all training rows of this process, and one member.
        seed : tuple of int
            Of the round.

        Returns
        -------
        DividedInputs
            Has other rows for the next epochs.
        Linear
            The objective of the rows.
        """

        def draw(epoch: int) -> tuple[Tensor, Division, Linear]:
            taken, rows = self.division.draw(self.drawn, (*seed, epoch, _DRAWS))
            division = replace(self.division, counts=taken)
            return self.block(rows), division, objective.of_rows(torch.from_numpy(rows), division)

        own, division, part = draw(0)

        def again(epoch: int) -> tuple[Tensor, Tensor]:
            own, _, part = draw(epoch)
            return own, part.unit_gradient[0]

        return DividedInputs(own, division, seed, again), part


@dataclass(frozen=True, eq=False)
class DividedInputs:
    """The rows that one atom is first trained on, of which every process has some.

    Parameters
    ----------
    own : Tensor of shape (m, d)
        Those of this process, in the order of its shards.
    division : Division
        The shards of all of them.
    seed : tuple of int
        Of their order in each epoch.
    again : callable, optional
        From the number of a later epoch to the rows ``(m, d)`` that this process has for it, as many of each shard, and
        their unit gradients ``(k, m)``. Default: all epochs have the same rows.
    """

    own: Tensor
    division: Division
    seed: tuple[int, ...]
    again: Callable[[int], tuple[Tensor, Tensor]] | None = None

    device: ClassVar[torch.device] = torch.device("cpu")

    def __len__(self) -> int:
        return self.division.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of all processes, and inputs."""
        return len(self), self.own.shape[1]
