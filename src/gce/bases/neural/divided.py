"""Training of networks on rows that are divided among processes: each step adds up everyone's gradients.

Sums of floats would depend on how rows are divided. So a batch consists of *pieces*, rows of one logical shard each.
The gradient of a piece, which one process computes in a fixed order, is rounded to integers, whose sum has no order.
All processes then take the same step: their networks are the same to the bit, however many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.clock import StepTimer
from gce._utils.parallel import WORTH_A_THREAD, Run, workers
from gce.bases.neural import kernels
from gce.bases.neural.compiled import NetState, unpacked
from gce.bases.neural.descent import Schedule
from gce.bases.neural.network import Parameters, TwoLayer
from gce.bases.neural.stored_inputs import DividedInputs
from gce.bases.objectives import Linear
from gce.distributed.division import Division

Array = NDArray[Any]
Indices = NDArray[np.int64]

#: Rows of a piece: about those of a chunk, at whose end a kernel adds up and rounds.
_PIECE_ROWS = 512
#: The golden ratio: pieces of neighbouring shards, which one process has, fall into different batches.
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of an epoch.

    Parameters
    ----------
    rows : int array of shape (m,)
        This process' rows in the order of batches.
    ends : int array of shape (pieces + 1,)
        Where this process' pieces begin and end among them.
    first : int array of shape (batches + 1,)
        Which of the pieces is the first of each batch.
    sizes : int array of shape (batches,)
        Rows of each batch, of all processes.
    """

    rows: Indices
    ends: Indices
    first: Indices
    sizes: Indices


def draw_batches(division: Division, batch_size: int, seed: tuple[int, ...]) -> Batches:
    """Divide rows into batches, in an order that depends on the seed and the shards alone.

    Every shard's rows are shuffled and cut into pieces, which are spread evenly over the batches.

    Parameters
    ----------
    division : Division
    batch_size : int
        Rows of a batch, about.
    seed : tuple of int

    Returns
    -------
    Batches
    """
    counts = division.counts
    batches = -(-division.rows // batch_size)
    pieces = np.minimum(-(-counts // min(_PIECE_ROWS, batch_size)), batches)
    shift = np.random.default_rng(seed).random() + _GOLDEN * np.arange(len(counts))
    shard = np.repeat(np.arange(len(counts)), pieces)
    number = np.arange(len(shard)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    batch = ((number + shift[shard] % 1) * batches / pieces[shard]).astype(np.int64) % batches
    begin, end = (counts[shard] * (number + more) // pieces[shard] for more in (0, 1))
    sizes = np.bincount(batch, end - begin, batches).astype(np.int64)
    own = np.flatnonzero((shard >= division.first) & (shard < division.last))
    own = own[np.argsort(batch[own], kind="stable")]
    before = division.ends - counts[division.first : division.last]
    shuffled = [
        first + np.random.default_rng([*seed, i]).permutation(int(counts[i]))
        for first, i in zip(before.tolist(), range(division.first, division.last), strict=True)
    ]
    rows = [shuffled[shard[p] - division.first][begin[p] : end[p]] for p in own]
    return Batches(
        np.concatenate([np.zeros(0, np.int64), *rows]),
        np.concatenate([[0], np.cumsum((end - begin)[own])]),
        np.searchsorted(batch[own], np.arange(batches + 1)),
        sizes,
    )


def descend(
    architecture: TwoLayer,
    start: Parameters,
    objective: Linear,
    X: DividedInputs,
    schedule: Schedule,
    batch_size: int,
    rng: torch.Generator,
) -> tuple[Parameters, list[float]]:
    """Train networks on a linear objective, each kept at its best epoch: :func:`gce.bases.neural.descent.descend`.

    Rows and their order come from the seed of ``X``, not from ``rng``, which cannot be asked for one shard alone. Every
    epoch has other rows: its value, by which the best epoch is chosen, is that of rows which it had not seen before.
    """
    nets, size = len(start[0]), sum(p[0].numel() for p in start)
    gradients = objective.unit_gradient.reshape(nets, start[2].shape[1], -1).numpy()
    rows = np.ascontiguousarray(X.own.numpy(), start[0].numpy().dtype)
    team = [DividedNet(architecture, [p[i] for p in start], gradients[i], rows, schedule) for i in range(nets)]
    pace = StepTimer(schedule.end)
    with workers(min(parallel.threads(), 1 + min(batch_size, len(X)) * size // WORTH_A_THREAD)) as run:
        for epoch in range(schedule.max_epochs):
            if epoch and X.again is not None:
                # there is one member, and all networks are its tries
                rows, unit_gradients = (part.numpy() for part in X.again(epoch))
                for net in team:
                    net.see(rows, unit_gradients)
            batches = draw_batches(X.division, batch_size, (*X.seed, epoch))
            for net in team:
                net.train(batches, X.division, run)
            if not any(net.running for net in team):
                break
            if pace.out_of_time() and epoch + 1 < schedule.max_epochs:
                schedule.cut_short()
                break
    return unpacked(team, start), [net.value for net in team]


class DividedNet(NetState):
    """One network in training, the same in every process."""

    def see(self, X: Array, gradients: Array) -> None:
        """Go on with other rows ``(m, d)`` and their gradients ``(k, m)``."""
        dtype = self._vectors.dtype
        self._X, self._gradients = np.ascontiguousarray(X, dtype), np.ascontiguousarray(gradients.T, dtype)

    def train(self, batches: Batches, division: Division, run: Run) -> None:
        """One epoch more, unless it is done."""
        if not self.running:
            return
        net, best, *_, mean, square, sign = self._vectors
        total, broken, whole = 0, 0, len(batches.sizes) == 1
        for b, size in enumerate(batches.sizes.tolist()):
            if size == 0:
                continue
            sums = self._sums(batches, b, run)
            division.world.add_up(sums)
            total, broken = total + int(sums[-2]), broken + int(sums[-1])
            value = math.nan if broken else total / kernels.value_units()
            # a batch of all rows has the value of the network before the step
            if whole and kernels.advance(self._state, value, self._schedule):
                best[:] = net
            self._state[5] += 1
            gradient = (sums[:-2] / kernels.gradient_units()).astype(net.dtype)
            kernels.adam(net, gradient, division.rows / size, mean, square, sign, self._state[5], self._state[0])
        if not whole and kernels.advance(self._state, value, self._schedule):
            best[:] = net

    def _sums(self, batches: Batches, b: int, run: Run) -> Indices:
        """Gradients, value and broken chunks of this process' rows of a batch, by threads that share its pieces."""
        first, last = int(batches.first[b]), int(batches.first[b + 1])
        parts = max(1, min(parallel.threads(), last - first))
        cuts = [first + (last - first) * i // parts for i in range(parts + 1)]
        sums = np.zeros((parts, self._vectors.shape[1] + 2), np.int64)

        def some(begin: int, end: int, into: Indices) -> None:
            data = self._X, self._gradients, batches.rows, batches.ends[begin : end + 1]
            kernels.piece_sums(*data, self._vectors[0], self._shape, into)

        run([partial(some, *part) for part in zip(cuts, cuts[1:], sums, strict=False)])
        return sums[0] if parts == 1 else np.asarray(sums.sum(0))
