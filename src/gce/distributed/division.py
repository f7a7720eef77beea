"""Training rows in logical shards, which do not depend on how many processes there are.

A sum of floats over rows is the sum of the shards' sums in their order. Each of these is computed by the process that
has the shard, so that the sum has the same bits however the shards are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce.distributed.world import World


@dataclass(frozen=True, eq=False)
class Division:
    """The logical shards of the training rows, and which of them this process has.

    Parameters
    ----------
    counts : array of shape (S,)
        Training rows of every shard, of all processes.
    first, last : int
        This process has the shards from ``first`` to ``last - 1``, with their rows in this order.
    world : World
        The processes.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from gce.distributed import Division, World
    >>> division = Division(np.array([2, 1]), 0, 2, World())
    >>> division.sum_rows(torch.tensor([[1.0, 2.0, 4.0]]))
    tensor([7.])
    """

    counts: NDArray[np.int64]
    first: int
    last: int
    world: World

    @property
    def rows(self) -> int:
        """Training rows of all processes."""
        return int(self.counts.sum())

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where each shard of this process ends among its rows, ``(last - first,)``."""
        return np.cumsum(self.counts[self.first : self.last])

    @property
    def own_rows(self) -> int:
        """Training rows of this process."""
        return int(self.counts[self.first : self.last].sum())

    def sum_rows(self, values: Tensor, outputs: int = 1) -> Tensor:
        """The sum over the training rows of all processes.

        Parameters
        ----------
        values : Tensor of shape (..., n * outputs)
            Of the rows of this process.
        outputs : int, default=1
            How many values a row has.

        Returns
        -------
        Tensor of shape (...)
        """
        parts = np.zeros((len(self.counts), *values.shape[:-1]))
        # on several threads torch rounds by how many there are
        with parallel.torch_threads(1):
            sizes = (outputs * self.counts[self.first : self.last]).tolist()
            for shard, own in enumerate(values.double().split(sizes, -1)):
                parts[self.first + shard] = own.contiguous().sum(-1).numpy()
        self.join(parts)
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return torch.from_numpy(np.asarray(total)).to(values.dtype)

    def by_shard(self, compute: Callable[[slice], Tensor]) -> Tensor:
        """Compute something of each row of this process, for the rows of one shard at a time.

        Vector instructions round otherwise than what is done with the numbers that are left over at the end of a
        tensor, or of the part of a thread. So a row would depend on where it is among the rows of its process.

        Parameters
        ----------
        compute : callable
            From a slice of the rows to a tensor of shape (M, rows, ...).

        Returns
        -------
        Tensor of shape (M, n, ...)
        """
        ends = self.ends.tolist()
        with parallel.torch_threads(1):
            parts = [compute(slice(*rows)) for rows in zip([0, *ends], ends, strict=False)]
            return torch.cat(parts, 1) if parts else compute(slice(0, 0))

    def join(self, parts: NDArray[np.float64]) -> None:
        """Fill in the numbers of shards that other processes have, in place.

        Parameters
        ----------
        parts : contiguous array of shape (S, ...)
            0 where another process has the shard: bits that are added to those of 0 stay as they are.
        """
        self.world.add_up(parts.reshape(-1).view(np.int64))
