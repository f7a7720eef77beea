"""What is fitted: rows, targets, members and the constants of the hull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from gce._utils import parallel
from gce.bases.neural.stored_inputs import StoredInputs
from gce.bases.trees.stored import StoredRows
from gce.losses import Loss
from gce.losses.risk import Risk
from gce.preprocessing.mixed import Rows

if TYPE_CHECKING:
    from gce.distributed.division import Division

#: From predictions ``(M, N, k)`` and the numbers of the members to one value per member; lower is better.
Metric = Callable[[Tensor, list[int]], Tensor]


@dataclass(frozen=True)
class Problem:
    """A regularised empirical risk minimisation problem per member.

    Parameters
    ----------
    loss : Loss
    X : Tensor, SparseRows, MixedRows, StoredRows or StoredInputs of shape (N, d)
        Rows that any member trains on come first.
    y : Tensor of shape (N, k)
    train, held_out : Tensor of shape (M, N)
        Sample weights of the rows that each member trains on and of those that it holds out.
    offset, bound : Tensor of shape (k,)
    count : Tensor of shape (M,), optional
        How many rows the training weights of each member represent. Default: as many as have weight.
    division : Division, optional
        The shards of the training rows, where these are divided among processes: rows, targets and weights are those of
        this process, and weights sum to 1 over all of them. Rows held out are the same in every process.
    """

    loss: Loss
    X: Rows
    y: Tensor
    train: Tensor
    held_out: Tensor
    offset: Tensor
    bound: Tensor
    count: Tensor | None = None
    division: Division | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.X, StoredRows | StoredInputs) and self.X.division is not self.division:
            raise ValueError("the problem and its stored rows must have the same division")

    @cached_property
    def train_rows(self) -> int:
        """How many rows any member trains on, of this process."""
        if self.division is not None:
            # some may have no weight
            return self.division.own_rows
        return int(self.train.any(0).sum())

    @property
    def members(self) -> int:
        """How many members there are."""
        return len(self.train)

    @property
    def risk(self) -> Risk:
        """The empirical risk of every member on its training rows."""
        n = self.train_rows
        return Risk(self.loss, self.y[:n], self.train[:, :n], self.offset, self.count, self.division)

    @cached_property
    def _held_out_pairs(self) -> dict[tuple[int, ...], tuple[Tensor, Tensor]]:
        return {}

    def _held_out_by(self, members: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Pairs of a member and a row that it holds out, computed once per set of members."""
        if members not in self._held_out_pairs:
            self._held_out_pairs[members] = tuple(self.held_out[list(members)].nonzero().T)
        return self._held_out_pairs[members]

    def held_out_loss(self, pred: Tensor, members: list[int]) -> Tensor:
        """Mean loss of some members on the rows they hold out, ``(M,)``: what early stopping monitors by default."""
        # a recorded CUDA graph cannot index by a list: all members are used as they are
        weight = self.held_out if len(members) == len(self.held_out) else self.held_out[members]
        if pred.device.type != "cpu":
            return Risk(self.loss, self.y, weight, self.offset).value(pred)
        # most rows are held out by one member only: the other members need no loss there
        member, row = self._held_out_by(tuple(members))
        # the same in every process, however many threads it has
        with parallel.torch_threads(None if self.division is None else 1):
            cost = weight[member, row] * self.loss.value(self.offset + pred[member, row], self.y[row])
        return torch.bincount(member, cost, len(members))


def with_inputs(divided: Problem) -> Problem:
    """The problem of rows in files for networks, which see inputs instead of codes.

    Parameters
    ----------
    divided : Problem
        Of :class:`gce.bases.trees.stored.StoredRows` that have inputs.

    Returns
    -------
    Problem
    """
    assert isinstance(divided.X, StoredRows)
    return replace(divided, X=cast(Rows, divided.X.inputs))
