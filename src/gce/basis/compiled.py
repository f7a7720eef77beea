"""The CPU oracle: whole trainings of two-layer networks in compiled loops, networks side by side on threads.

Agrees to rounding with :func:`gce.basis.descent.descend`: same starts, same order of rows, same rule for the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.basis.descent import Schedule, row_order
from gce.basis.network import Architecture, Parameters, TwoLayer
from gce.objectives import Linear, Objective

#: Numbers of an order of rows that are drawn ahead, so that Python is met once in many epochs.
_DRAWN_AHEAD = 1 << 20
#: Multiplications below which a second thread costs more than it brings.
_WORTH_A_THREAD = 1 << 24

Array = NDArray[Any]


def serves(architecture: Architecture, objective: Objective, device: torch.device) -> bool:
    """Whether compiled loops can train this; otherwise tensor operations do."""
    return (
        device.type == "cpu"
        and isinstance(architecture, TwoLayer)
        and isinstance(objective, Linear)
        and find_spec("numba") is not None
    )


def descend(
    architecture: TwoLayer,
    start: Parameters,
    objective: Linear,
    X: Tensor,
    schedule: Schedule,
    batch_size: int,
    rng: torch.Generator,
) -> tuple[Parameters, list[bool]]:
    """Train networks on a linear objective and return each at its best epoch; as :func:`gce.basis.descent.descend`."""
    nets, (h, d), outputs = len(start[0]), start[0].shape[1:], start[2].shape[1]
    slopes = objective.slope.reshape(nets, outputs, -1).numpy()
    team = [Net(architecture, [p[i] for p in start], slopes[i], X.numpy(), schedule, batch_size) for i in range(nets)]
    work = team[0].size * len(X)
    with workers(min(torch.get_num_threads(), 1 + nets * work * schedule.max_epochs // _WORTH_A_THREAD)) as run:
        for orders, epochs in _orders(len(X), batch_size, schedule.max_epochs, rng):
            run([lambda net=net: net.train(orders, epochs) for net in team])
            if not any(net.running for net in team):
                break
    best = torch.from_numpy(np.stack([net.best for net in team]))
    sizes = [h * d, h, outputs * h, outputs]
    parameters = [p.reshape(q.shape) for p, q in zip(best.split(sizes, 1), start, strict=True)]
    return parameters, [net.failed for net in team]


def _orders(n: int, batch_size: int, epochs: int, rng: torch.Generator) -> Iterator[tuple[Array, int]]:
    """Orders of rows for all epochs, some epochs at a time."""
    if batch_size >= n:
        yield np.arange(n)[None], epochs
        return
    ahead = max(1, _DRAWN_AHEAD // n)
    for first in range(0, epochs, ahead):
        some = min(ahead, epochs - first)
        yield np.stack([row_order(n, rng).numpy() for _ in range(some)]), some


@contextmanager
def workers(threads: int) -> Iterator[Callable[[list[Callable[[], Any]]], list[Any]]]:
    """Something that runs tasks on so many threads; compiled loops leave Python alone meanwhile."""
    if threads <= 1:
        yield lambda tasks: [task() for task in tasks]
        return
    with ThreadPoolExecutor(threads) as pool:
        yield lambda tasks: list(pool.map(lambda task: task(), tasks))


class Net:
    """One network in training: its vectors, its schedule's state, its scratch memory."""

    def __init__(
        self, architecture: TwoLayer, start: Parameters, slopes: Array, X: Array, schedule: Schedule, batch_size: int
    ) -> None:
        from gce import kernels

        self._train = kernels.train
        d, h, k = start[0].shape[1], start[0].shape[0], start[2].shape[0]
        flat = np.concatenate([p.reshape(-1).numpy() for p in start])
        self.size = len(flat)
        self._vectors = np.zeros((6, len(flat)), flat.dtype)
        self._vectors[:2] = flat
        self._state = np.array([schedule.rate, np.inf, 0, np.inf, 0, 0])
        self._schedule = np.array([schedule.floor, schedule.patience, schedule.last_epochs, schedule.progress])
        self._X, self._slopes, self._present = X, slopes, slopes.any(0)
        self._shape = np.array([d, h, k])
        self._curved = np.array([architecture.activation == "tanh", architecture.output == "tanh"])
        self._unit = np.array([0, 1], flat.dtype)
        tile = kernels.TILE
        self._scratch = (
            np.empty(h * k, flat.dtype),
            np.zeros((2 * h + 2 * k) * tile + h, flat.dtype),
            np.empty((d + k) * tile, flat.dtype),
        )
        rows = np.flatnonzero(self._present)
        full = batch_size >= len(X)
        self._packed = np.empty((-(-len(rows) // tile) if full else 0, (d + k) * tile), flat.dtype)
        for i, own in enumerate(self._packed):
            kernels.pack(X, slopes, rows[i * tile : (i + 1) * tile], own)
        pieces = np.array_split(np.arange(len(X)), -(-len(X) // batch_size))
        self._batches = np.cumsum([0, *map(len, pieces)])

    def train(self, orders: Array, epochs: int) -> None:
        """Some epochs more."""
        self._train(
            self._X,
            self._slopes,
            self._present,
            self._packed,
            orders,
            epochs,
            self._batches,
            self._vectors,
            self._state,
            self._schedule,
            self._scratch,
            self._shape,
            self._curved,
            self._unit,
        )

    @property
    def best(self) -> Array:
        return self._vectors[1]

    @property
    def running(self) -> bool:
        return bool(self._state[0])

    @property
    def failed(self) -> bool:
        return bool(self._state[4])
