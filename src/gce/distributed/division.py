"""Training rows in logical shards, which do not depend on how many processes there are.

A sum of floats over rows is the sum of the shards' sums in their order. Each of these is computed by the process that
has the shard, so that the sum has the same bits however the shards are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    def slices(self) -> list[slice]:
        """The rows of each shard of this process, among its rows."""
        ends = self.ends.tolist()
        return [slice(*rows) for rows in zip([0, *ends], ends, strict=False)]

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
        exact = values.double()
        total = self.sum_shards(
            lambda rows: exact[..., outputs * rows.start : outputs * rows.stop].contiguous().sum(-1), values.shape[:-1]
        )
        return total.to(values.dtype)

    def sum_shards(self, compute: Callable[[slice], Tensor], shape: Sequence[int]) -> Tensor:
        """The sum over all shards of something that is computed from the rows of one of them.

        Parameters
        ----------
        compute : callable
            From a slice of the rows of this process to a tensor of float64.
        shape : sequence of int
            Of that tensor.

        Returns
        -------
        Tensor of shape ``shape``
        """
        parts = np.zeros((len(self.counts), *shape))
        # on several threads torch rounds by how many there are
        with parallel.torch_threads(1):
            for shard, rows in enumerate(self.slices):
                parts[self.first + shard] = compute(rows).numpy()
        return torch.from_numpy(self.add_in_order(parts))

    def add_in_order(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of numbers of all shards.

        Parameters
        ----------
        parts : contiguous array of shape (S, ...)
            See :meth:`join`, which fills them in.

        Returns
        -------
        array of shape (...)
        """
        self.join(parts)
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return np.asarray(total)

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
        with parallel.torch_threads(1):
            first = compute(self.slices[0] if self.slices else slice(0, 0))
            # filled shard by shard: joined in the end, all rows would be there twice
            whole = first.new_empty(len(first), self.own_rows, *first.shape[2:])
            whole[:, : first.shape[1]] = first
            for rows in self.slices[1:]:
                whole[:, rows] = compute(rows)
            return whole

    def draw(self, count: int, seed: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw rows without replacement, as many of each shard as its share of all rows.

        Parameters
        ----------
        count : int
            Rows of all processes; all of them where there are fewer.
        seed : sequence of int
            The same in all processes.

        Returns
        -------
        taken : array of shape (S,)
            Rows that are drawn of each shard.
        rows : array of shape (m,)
            Which of this process' rows they are, ascending.
        """
        taken = np.diff(np.cumsum(self.counts) * min(count, self.rows) // self.rows, prepend=0)
        rows = [
            own.start + np.sort(np.random.default_rng([*seed, shard]).choice(own.stop - own.start, size, replace=False))
            for shard, (own, size) in enumerate(
                zip(self.slices, taken[self.first : self.last].tolist(), strict=True), self.first
            )
        ]
        return taken, np.concatenate([np.zeros(0, np.int64), *rows])

    def join(self, parts: NDArray[np.float64]) -> None:
        """Fill in the numbers of shards that other processes have, in place.

        Parameters
        ----------
        parts : contiguous array of shape (S, ...)
            0 where another process has the shard: bits that are added to those of 0 stay as they are.
        """
        self.world.add_up(parts.reshape(-1).view(np.int64))
