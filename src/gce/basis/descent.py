"""Adam with a plateau schedule for each network: how one atom a member is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gce.basis.network import Architecture, Parameters
from gce.objectives import Objective

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Schedule:
    """The paper's schedule: divide the rate by 10 after a plateau, down to a floor, then a few epochs more.

    Parameters
    ----------
    rate, floor : float
        First and last learning rate.
    patience : int
        Epochs without progress after which the rate falls.
    last_epochs : int
        Epochs spent at the floor.
    max_epochs : int
    progress : float
        Least relative improvement that counts as progress (any improvement is kept).
    """

    rate: float
    floor: float
    patience: int
    last_epochs: int
    max_epochs: int
    progress: float = 1e-4


class Plateau:
    """Each network's learning rate and best value; plain numbers, because there are few networks."""

    def __init__(self, nets: int, schedule: Schedule) -> None:
        self.schedule = schedule
        self.rate = [schedule.rate] * nets
        self.best = [math.inf] * nets
        self.failed = [False] * nets
        self._since = [0] * nets
        self._left = [math.inf] * nets

    @property
    def done(self) -> bool:
        return not any(self.rate)

    def update(self, values: list[float]) -> tuple[list[int], bool]:
        """Take an epoch's values: which networks improved, and whether any rate changed."""
        improved, before = [], list(self.rate)
        for i, value in enumerate(values):
            if self.rate[i] == 0:
                continue
            if not math.isfinite(value):
                self.failed[i], self.rate[i] = True, 0.0
                continue
            if value < self.best[i]:
                improved.append(i)
                needed = self.schedule.progress * abs(self.best[i]) if self.best[i] < math.inf else 0.0
                self._since[i] = 0 if value < self.best[i] - needed else self._since[i] + 1
                self.best[i] = value
            else:
                self._since[i] += 1
            self._advance(i)
        return improved, self.rate != before

    def _advance(self, i: int) -> None:
        self._left[i] -= 1
        if self._left[i] <= 0:
            self.rate[i] = 0.0
        elif self._since[i] > self.schedule.patience and self.rate[i] > self.schedule.floor:
            self.rate[i], self._since[i] = max(self.rate[i] / 10, self.schedule.floor), 0
            if self.rate[i] == self.schedule.floor:
                self._left[i] = self.schedule.last_epochs


class FlatAdam:
    """Adam over all parameters of all networks as one vector, with a learning rate for each network.

    Parameters
    ----------
    parameters : list of Tensor
        Leading dimension: networks, or a divisor of their number (a number that several networks share).
    nets : int
    """

    def __init__(self, parameters: Parameters, nets: int) -> None:
        self.flat = torch.cat([p.reshape(-1) for p in parameters])
        self.slope, self._mean, self._square, self._rate = (torch.zeros_like(self.flat) for _ in range(4))
        self._sizes = [p.numel() for p in parameters]
        self._shapes = [p.shape for p in parameters]
        self._nets, self._t = nets, 0
        self.parameters, self.slopes = self.views(self.flat), self.views(self.slope)

    def views(self, flat: Tensor) -> Parameters:
        """A vector's pieces, as parameters."""
        return [piece.view(shape) for piece, shape in zip(flat.split(self._sizes), self._shapes, strict=True)]

    def set_rate(self, rate: list[float]) -> None:
        every = torch.tensor(rate, dtype=self.flat.dtype, device=self.flat.device)
        for piece in self.views(self._rate):
            own = every[:: self._nets // len(piece)]
            piece.copy_(own.view(-1, *[1] * (piece.ndim - 1)).expand_as(piece))

    def step(self) -> None:
        self._t += 1
        self._mean.lerp_(self.slope, 1 - _BETA1)
        self._square.mul_(_BETA2).addcmul_(self.slope, self.slope, value=1 - _BETA2)
        size = (self._square / (1 - _BETA2**self._t)).sqrt_().add_(_EPSILON)
        torch.div(self._mean, size, out=size).mul_(self._rate)
        self.flat.sub_(size, alpha=1 / (1 - _BETA1**self._t))

    def keep(self, nets: list[int], best: Tensor) -> None:
        """Copy some networks' present parameters to the vector ``best``."""
        if len(nets) == self._nets:
            best.copy_(self.flat)
            return
        for now, then in zip(self.parameters, self.views(best), strict=True):
            own = sorted({net * len(now) // self._nets for net in nets})
            then[own] = now[own]


def descend(
    architecture: Architecture,
    start: Parameters,
    objective: Objective,
    X: Tensor,
    schedule: Schedule,
    batch_size: int,
    rng: torch.Generator,
) -> tuple[Parameters, list[bool]]:
    """Train networks on an objective and return each at its best epoch.

    Parameters
    ----------
    start : list of Tensor
        Leading dimension ``M * models``.
    X : Tensor of shape (n, d)
    batch_size : int
        ``n`` or more: full-batch steps, and an epoch's value is exact for the parameters it belongs to. Less: shuffled
        mini-batches, and the value is the running one of the epoch.
    rng : torch.Generator
        For the order of rows.

    Returns
    -------
    parameters : list of Tensor
    failed : list of bool
        Networks whose objective turned into NaN or infinity.
    """
    nets, n = len(start[0]), len(X)
    adam = FlatAdam([*start, objective.theta], nets)
    adam.set_rate([schedule.rate] * nets)
    plateau, best = Plateau(nets, schedule), adam.flat.clone()
    XT = X.T.contiguous()

    def note(value: Tensor) -> None:
        improved, changed = plateau.update(value.flatten().tolist())
        adam.keep(improved, best)
        if changed:
            adam.set_rate(plateau.rate)

    for _ in range(schedule.max_epochs):
        if batch_size >= n:
            note(_slopes(architecture, adam, objective, X, XT, None))
            adam.step()
        else:
            value = objective.theta.new_zeros(nets)
            for rows in _batches(n, batch_size, rng, X.device):
                value += _slopes(architecture, adam, objective, X, XT, rows)
                adam.step()
            note(value)
        if plateau.done:
            break
    return adam.views(best)[:-1], plateau.failed


def _slopes(
    architecture: Architecture, adam: FlatAdam, objective: Objective, X: Tensor, XT: Tensor, rows: Tensor | None
) -> Tensor:
    """Fill Adam's slopes from some rows; return the objective's share of these rows for each network."""
    *parameters, theta = adam.parameters
    *into, theta_into = adam.slopes
    nets = len(parameters[0])
    unit, kept = architecture.forward(parameters, XT if rows is None else XT[:, rows])
    by_member = unit.view(len(theta), -1, unit.shape[2])
    value, slope, theta_slope = objective.batch(by_member, theta, rows)
    if rows is not None:
        share = X.shape[0] / len(rows)
        slope, theta_slope = slope * share, theta_slope * share
    architecture.backward(parameters, kept, slope.view_as(unit), X if rows is None else X[rows], into)
    theta_into.copy_(theta_slope)
    models = nets // len(theta)
    return value.sum(1) if models == 1 else value.expand(-1, models).flatten()


def _batches(n: int, size: int, rng: torch.Generator, device: torch.device) -> Iterator[Tensor]:
    """All rows in a random order, in batches of nearly equal size."""
    yield from row_order(n, rng).to(device).tensor_split(math.ceil(n / size))


def row_order(n: int, rng: torch.Generator) -> Tensor:
    """All rows in a random order."""
    return torch.randperm(n, generator=rng)
