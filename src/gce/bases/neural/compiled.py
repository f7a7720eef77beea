"""The CPU oracle: whole trainings of two-layer networks in compiled loops, networks side by side on threads.

Agrees to rounding with :func:`gce.bases.neural.descent.descend`: same starts, same order of rows, same learning rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.clock import StepTimer
from gce._utils.parallel import WORTH_A_THREAD, Run, workers
from gce.bases.by_member import MemberInputs
from gce.bases.neural import kernels
from gce.bases.neural.descent import Schedule, batches, row_orders
from gce.bases.neural.network import Architecture, Parameters, TwoLayer
from gce.bases.objectives import Linear, Objective

#: Numbers of an order of rows that are drawn ahead, so that Python is met once in many epochs.
_DRAWN_AHEAD = 1 << 20
#: Multiplications in a batch from which threads share it, where there are more threads than networks.
_WORTH_SHARING = 1 << 22
_CACHE_LINE = 64

Array = NDArray[Any]


def serves(architecture: Architecture, objective: Objective, device: torch.device) -> bool:
    """Whether compiled loops can train this; otherwise tensor operations do."""
    return (
        device.type == "cpu"
        and isinstance(architecture, TwoLayer)
        and architecture.compiled
        and type(objective) is Linear
    )


def descend(
    architecture: TwoLayer,
    start: Parameters,
    objective: Linear,
    X: Tensor | MemberInputs,
    schedule: Schedule,
    batch_size: int,
    rng: torch.Generator,
) -> tuple[Parameters, list[float]]:
    """Train networks on a linear objective, each kept at its best epoch: :func:`gce.bases.neural.descent.descend`.

    Members may have inputs of their own.
    """
    nets = len(start[0])
    gradients = objective.unit_gradient.reshape(nets, start[2].shape[1], -1).numpy()
    parts = X.parts if isinstance(X, MemberInputs) else (X,)
    inputs = [np.ascontiguousarray(part.numpy(), start[0].numpy().dtype) for part in parts]
    team = [
        Net(architecture, [p[i] for p in start], gradients[i], inputs[i * len(inputs) // nets], schedule, batch_size)
        for i in range(nets)
    ]
    threads = parallel.threads()
    rows, size = len(X), sum(p[0].numel() for p in start)
    shared = threads > nets and min(batch_size, rows) * size >= _WORTH_SHARING
    worth = 1 + nets * size * rows * schedule.max_epochs // WORTH_A_THREAD
    pace, done = StepTimer(schedule.end), 0
    with workers(threads if shared else min(threads, nets, worth)) as run:
        for orders, epochs in _orders(rows, batch_size, schedule, rng):
            if shared:
                for net in team:
                    net.train_shared(orders, epochs, run)
            else:
                run([partial(net.train, orders, epochs) for net in team])
            done += epochs
            if not any(net.running for net in team):
                break
            if pace.out_of_time() and done < schedule.max_epochs:
                schedule.cut_short()
                break
    return unpacked(team, start), [net.value for net in team]


def unpacked(team: Sequence[NetState], start: Parameters) -> Parameters:
    """The best parameters of networks, in the shapes in which they started."""
    best = torch.from_numpy(np.stack([net.best for net in team]))
    layers = best.split([p[0].numel() for p in start], 1)
    # memory of their own: views of one vector would each be pickled with all of it
    own = (layer.clone(memory_format=torch.contiguous_format) for layer in layers)
    return [p.view(q.shape) for p, q in zip(own, start, strict=True)]


def _orders(n: int, batch_size: int, schedule: Schedule, rng: torch.Generator) -> Iterator[tuple[Array, int]]:
    """Orders of rows for all epochs, several epochs at a time; one at a time where there is a deadline."""
    if batch_size >= n:
        yield np.arange(n)[None], schedule.max_epochs
        return
    drawn = row_orders(n, batch_size, schedule.max_epochs, rng)
    ahead = max(1, _DRAWN_AHEAD // n) if schedule.end == math.inf else 1
    while some := [order.numpy() for order in islice(drawn, ahead) if order is not None]:
        yield np.stack(some), len(some)


class NetState:
    """One network in training: its rows, its vectors, its schedule's state."""

    def __init__(
        self, architecture: TwoLayer, start: Parameters, gradients: Array, X: Array, schedule: Schedule
    ) -> None:
        (h, d), k = start[0].shape, len(start[2])
        curved = architecture.activation == "tanh", architecture.output == "tanh"
        self._shape = np.array([d, h, k, *curved], np.int64)
        flat = np.concatenate([p.reshape(-1).numpy() for p in start])
        self._vectors = np.zeros((7, len(flat)), flat.dtype)
        self._vectors[:2] = flat
        if signs := architecture.signs([p[None] for p in start]):
            self._vectors[6] = np.concatenate([p.reshape(-1).numpy() for p in signs])
        self._state = np.array([schedule.rate, np.inf, 0, np.inf, 0, 0])
        self._schedule = np.array([schedule.floor, schedule.patience, schedule.last_epochs, schedule.progress])
        self._X, self._gradients = X, np.ascontiguousarray(gradients.T, flat.dtype)

    @property
    def best(self) -> Array:
        return self._vectors[1]

    @property
    def running(self) -> bool:
        return bool(self._state[0])

    @property
    def value(self) -> float:
        """The objective at its best; NaN where it turned into NaN or infinity on the way."""
        return math.nan if self._state[4] else float(self._state[1])


class Net(NetState):
    """A network on rows that are all here, with its scratch memory."""

    def __init__(
        self, architecture: TwoLayer, start: Parameters, gradients: Array, X: Array, schedule: Schedule, batch_size: int
    ) -> None:
        super().__init__(architecture, start, gradients, X, schedule)
        d, _, k, *_ = self._shape.tolist()
        self._present: Array = (self._gradients != 0).any(axis=1)
        rows = np.flatnonzero(self._present)
        tile = kernels.tile_rows()
        tiles = -(-len(rows) // tile) if batch_size >= len(X) else 0
        self._packed = _aligned(tiles, (d + k) * tile, X.dtype)
        if tiles:
            kernels.pack(self._X, self._gradients, rows, self._shape, self._packed)
        self._batches = np.array([0, *(rows.stop for rows in batches(len(X), batch_size))])

    def train(self, orders: Array, epochs: int) -> None:
        """Some epochs more, on the calling thread."""
        data = self._X, self._gradients, self._present, self._packed
        kernels.train(*data, orders, epochs, self._batches, self._vectors, self._state, self._schedule, self._shape)

    def train_shared(self, orders: Array, epochs: int, run: Run) -> None:
        """The same epochs with every batch divided among threads, by chunks: the same to the last bit."""
        net, best, *_, mean, square, sign = self._vectors
        for epoch in range(epochs):
            if not self.running:
                return
            total = 0.0
            for first, last in pairwise(self._batches):
                order = orders[epoch % len(orders), first:last]
                values, gradient = self._chunks(order[self._present[order]], run)
                for value in values:  # one by one, as the loop adds: `sum` is more exact from Python 3.12 on
                    total += value
                if len(self._packed) and kernels.advance(self._state, total, self._schedule):
                    best[:] = net
                self._state[5] += 1
                kernels.adam(
                    net, gradient, len(self._X) / (last - first), mean, square, sign, self._state[5], self._state[0]
                )
            if not len(self._packed) and kernels.advance(self._state, total, self._schedule):
                best[:] = net

    def _chunks(self, rows: Array, run: Run) -> tuple[list[float], Array]:
        """Value of each chunk of rows, and the gradients of all."""
        net = self._vectors[0]
        firsts = range(0, len(rows), kernels.chunk_rows())
        parts = np.empty((len(firsts), len(net)), net.dtype)

        def one(first: int, part: Array) -> float:
            return kernels.chunk_gradients(self._X, self._gradients, rows, self._packed, first, net, self._shape, part)

        values = run([partial(one, first, part) for first, part in zip(firsts, parts, strict=True)])
        gradient = np.zeros_like(net)
        for part in parts:
            gradient += part
        return values, gradient


def _aligned(rows: int, columns: int, dtype: np.dtype[Any]) -> Array:
    """An array ``(rows, columns)`` that begins with a cache line: a load across two lines takes twice as long."""
    size = rows * columns * dtype.itemsize
    memory = np.empty(size + _CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % _CACHE_LINE
    return memory[first : first + size].view(dtype).reshape(rows, columns)
