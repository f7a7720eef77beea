"""Adam with a plateau schedule for each network, in tensor operations: how an atom, or all of them, are trained.

Nothing in an epoch waits for the device: best values, rates and plateaus are tensors too, so that on a GPU a whole
epoch can be recorded once and replayed (:mod:`gce.bases.neural.captured`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from sklearn.utils import gen_even_slices
from torch import Tensor
from torch.optim.adam import adam

from gce._utils import parallel
from gce._utils.clock import StepTimer
from gce.bases.neural.network import Architecture, Parameters
from gce.bases.objectives import Trainable
from gce.preprocessing.sparse import Inputs

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
_PIECE = 1024


def _nothing() -> None:
    """The default callback."""


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
    decay : float
        ``decay / 2`` times the squared length of a network's parameters is added to what is minimised; the schedule
        and the choice of the best epoch look at the objective alone.
    watch_patience : float
        Epochs without a better value on watched rows after which a network is done.
    end : float
        When to be done, on the clock of ``time.monotonic``: no epoch is begun that would end later, after the first.
    cut_short : callable
        Called where that ends a training which would have gone on.
    """

    rate: float
    floor: float
    patience: int
    last_epochs: int
    max_epochs: int
    progress: float = 1e-4
    decay: float = 0.0
    watch_patience: float = math.inf
    end: float = math.inf
    cut_short: Callable[[], None] = field(default=_nothing, compare=False)


class Plateau:
    """Each network's learning rate and best value, as tensors ``(nets,)``."""

    def __init__(self, nets: int, schedule: Schedule, device: torch.device) -> None:
        self.schedule = schedule
        self.rate, self.best, self._since, self._left = (
            torch.empty(nets, dtype=torch.float64, device=device) for _ in range(4)
        )
        self.failed = torch.empty(nets, dtype=torch.bool, device=device)
        self.reset()

    def reset(self) -> None:
        self.rate.fill_(self.schedule.rate)
        self.best.fill_(math.inf)
        self._since.zero_()
        self._left.fill_(math.inf)
        self.failed.zero_()

    def update(self, value: Tensor) -> Tensor:
        """Take an epoch's values ``(nets,)``: which networks improved. A rate of 0 means done."""
        rule, broken = self.schedule, (self.rate > 0) & ~value.isfinite()
        self.failed.logical_or_(broken)
        self.rate.masked_fill_(broken, 0.0)
        running = self.rate > 0
        improved = running & (value < self.best)
        needed = torch.where(self.best.isfinite(), rule.progress * self.best.abs(), 0.0)
        moved = improved & (value < self.best - needed)
        self._since.add_(1).masked_fill_(moved, 0.0)
        self.best.copy_(torch.where(improved, value, self.best))
        self._left.sub_(1)
        self.rate.masked_fill_(self._left <= 0, 0.0)
        fall = (self.rate > rule.floor) & (self._since > rule.patience)
        self.rate.copy_(torch.where(fall, (self.rate / 10).clamp(min=rule.floor), self.rate))
        self._since.masked_fill_(fall, 0.0)
        self._left.masked_fill_(fall & (self.rate == rule.floor), rule.last_epochs)
        return improved


class Watch(Protocol):
    """What chooses the best epoch in place of the training objective: rows held out."""

    def __call__(self, forward: Callable[[Inputs], Tensor], theta: Tensor) -> Tensor:
        """Each member's value, ``(M,)``.

        Parameters
        ----------
        forward : callable
            From rows ``(b, d)`` to unit outputs ``(M, K, b)`` of the current networks.
        theta : Tensor of shape (M, e)
        """


class Descent:
    """Networks in training: one flat vector of parameters, Adam's means, the plateaus.

    Parameters
    ----------
    start : list of Tensor
        Parameters with leading dimension ``nets``.
    objective : Trainable
        Of as many members as divide ``nets``.
    X : Tensor or SparseRows of shape (n, d)
    batch_size : int
        ``n`` or more: full-batch steps, and an epoch's value is exact for the parameters it belongs to. Less: shuffled
        mini-batches, and the value is the running one of the epoch.
    watch : Watch, optional
        The best epoch is the one it values least. Default: the one whose training objective is least.

    Attributes
    ----------
    value : Tensor of shape (nets,)
        The last epoch's training objective.
    watched : Tensor of shape (M,)
        The last result of the watch.
    """

    def __init__(
        self,
        architecture: Architecture,
        start: Parameters,
        objective: Trainable,
        X: Inputs,
        schedule: Schedule,
        batch_size: int,
        watch: Watch | None = None,
    ) -> None:
        self.architecture, self.objective = architecture, objective
        self.nets, self.full = len(start[0]), batch_size >= len(X)
        self._batches = batches(len(X), batch_size)
        joined, learned = architecture.join(start)
        pieces = [*joined, objective.theta]
        self._sizes, self._shapes = [p.numel() for p in pieces], [p.shape for p in pieces]
        self._flat = torch.cat([p.reshape(-1) for p in pieces])
        self._learned = torch.cat([p.reshape(-1) for p in (*learned, torch.ones_like(objective.theta))])
        # the network of each number; of numbers that a member's networks share, the first
        self._net = torch.cat([_owner(p, self.nets) for p in pieces])
        self._signs = self._kept_signs(start)
        self._best = self._flat.clone()
        self._rate, self._gradient, self._move, self._mean, self._square = (
            torch.zeros_like(self._flat) for _ in range(5)
        )
        # in pieces, because a GPU gives each piece a processor of its own
        self._piece = _PIECE if X.device.type == "cuda" else max(len(self._flat), 1)
        self._steps = torch.zeros(math.ceil(len(self._flat) / self._piece), dtype=torch.float32, device=X.device)
        # gradients are divided by a batch's share of all rows
        sizes = {rows.stop - rows.start for rows in self._batches}
        self._shrink = {size: torch.tensor(size / len(X), dtype=torch.float32, device=X.device) for size in sizes}
        self._X = architecture.extend(X.to(self._flat.dtype))
        self.plateau = Plateau(self.nets, schedule, X.device)
        self.value = torch.full_like(self.plateau.best, math.inf)
        self.watched = self.value.new_full((len(objective.theta),), math.inf)
        self._watch, self._least, self._stale = watch, self.watched.clone(), torch.zeros_like(self.watched)
        self._set_rates()

    def _kept_signs(self, start: Parameters) -> Tensor | None:
        """The sign each number keeps, 0 for any; None where all are free."""
        signs = self.architecture.signs(start)
        if signs is None:
            return None
        # the constant unit is positive, and so is its sign
        joined, _ = self.architecture.join(signs)
        return torch.cat([p.reshape(-1) for p in (*joined, torch.zeros_like(self.objective.theta))])

    def load(self, start: Parameters, objective: Trainable, X: Tensor) -> None:
        """Restart in the same memory with other parameters, objective and rows of the same shapes."""
        joined, _ = self.architecture.join(start)
        self.objective.load(objective)
        self._flat.copy_(torch.cat([p.reshape(-1) for p in (*joined, objective.theta)]))
        self._best.copy_(self._flat)
        rows = self.architecture.extend(X.to(self._flat.dtype))
        # sparse rows are not recorded, and only recorded epochs are loaded again
        assert isinstance(self._X, Tensor)
        assert isinstance(rows, Tensor)
        self._X.copy_(rows)
        for state in (self._mean, self._square, self._steps):
            state.zero_()
        self._least.fill_(math.inf)
        self._stale.zero_()
        self.plateau.reset()
        self._set_rates()

    def epoch(self, order: Tensor | None) -> None:
        """One pass over all rows, in an order (None: that of the rows)."""
        X = self._X if order is None else self._X[order]
        objective = self.objective if order is None else self.objective.permuted(order)
        terms = []
        for rows in self._batches:
            terms.append(self._gradients(objective, X[rows], rows))
            if self.full:
                self._note(terms)
            self._step(self._shrink[rows.stop - rows.start])
        if not self.full:
            self._note(terms)

    @property
    def best_value(self) -> Tensor:
        """Each member's value at its best epoch so far, ``(M,)``: the watch's, or that of the training objective."""
        members = len(self.watched)
        return self.plateau.best.view(members, -1)[:, 0] if self._watch is None else self._least

    def _value(self, terms: list[Tensor]) -> Tensor:
        """Each network's value, ``(nets,)``."""
        value = torch.cat(terms, 2).sum(2, dtype=torch.float64)
        models = self.nets // len(value)
        return value.sum(1) if models == 1 else value.expand(-1, models).flatten()

    def _note(self, terms: list[Tensor]) -> None:
        self.value.copy_(self._value(terms))
        improved = self.plateau.update(self.value)
        if self._watch is not None:
            improved = self._chosen(self._watch)
        torch.where(improved[self._net], self._flat, self._best, out=self._best)
        self._set_rates()

    def _chosen(self, watch: Watch) -> Tensor:
        """Which networks, ``(nets,)``, the watch values less than ever before; those it gave up on are done."""
        *joined, theta = self._views(self._flat)

        def forward(X: Inputs) -> Tensor:
            unit, _ = self.architecture.forward(joined, self.architecture.extend(X))
            return unit.view(len(theta), -1, unit.shape[2])

        self.watched.copy_(watch(forward, theta))
        better = self.watched < self._least
        torch.where(better, self.watched, self._least, out=self._least)
        self._stale.add_(1).masked_fill_(better, 0.0)
        stop = self._stale >= self.plateau.schedule.watch_patience
        each = self.nets // len(better)
        self.plateau.rate.masked_fill_(stop.repeat_interleave(each), 0.0)
        return better.repeat_interleave(each)

    def _set_rates(self) -> None:
        self._rate.copy_(self.plateau.rate[self._net]).mul_(self._learned)

    def _gradients(self, objective: Trainable, X: Inputs, rows: slice) -> Tensor:
        """Fill the gradients from some rows; return the objective's terms."""
        *joined, theta = self._views(self._flat)
        *into, theta_into = self._views(self._gradient)
        unit, kept = self.architecture.forward(joined, X)
        by_member = unit.view(len(theta), -1, unit.shape[2])
        terms, gradient, theta_gradient = objective.batch(by_member, theta, rows)
        self.architecture.backward(joined, kept, gradient.reshape(unit.shape), X, into)
        theta_into.copy_(theta_gradient)
        return terms

    def _step(self, shrink: Tensor) -> None:
        """Adam moves a vector of zeros at rate 1, and each network goes along at its own rate: one fused pass."""
        if decay := self.plateau.schedule.decay:
            own = self._flat.numel() - self._sizes[-1]  # an objective's own numbers are not networks' parameters
            self._gradient[:own].add_(self._flat[:own] * shrink, alpha=decay)
        self._move.zero_()
        if len(self._move) == 0:  # a neuron of no column
            return
        move, gradient, mean, square = (
            list(vector.split(self._piece)) for vector in (self._move, self._gradient, self._mean, self._square)
        )
        adam(
            move,
            gradient,
            mean,
            square,
            [],
            list(self._steps),
            fused=True,
            grad_scale=shrink,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=1.0,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )
        self._flat.addcmul_(self._move, self._rate)
        if self._signs is not None:
            self._flat.masked_fill_(self._flat * self._signs < 0, 0.0)

    def _views(self, flat: Tensor) -> Parameters:
        return [piece.view(shape) for piece, shape in zip(flat.split(self._sizes), self._shapes, strict=True)]

    @property
    def done(self) -> bool:
        """Every network is done; waits for the device."""
        return not bool(self.plateau.rate.any())

    @property
    def theta(self) -> Tensor:
        """The objective's own numbers at the best epoch, ``(M, e)``."""
        return self._views(self._best)[-1].clone()

    def result(self) -> tuple[Parameters, list[float]]:
        """Each network and its objective at its best epoch; NaN where that turned into NaN or infinity on the way."""
        *joined, _ = self._views(self._best.clone())
        return self.architecture.split(joined), self.plateau.best.masked_fill(self.plateau.failed, math.nan).tolist()


def _owner(piece: Tensor, nets: int) -> Tensor:
    first = torch.arange(len(piece), device=piece.device) * (nets // len(piece))
    return first.repeat_interleave(piece[0].numel())


def descend(
    architecture: Architecture,
    start: Parameters,
    objective: Trainable,
    X: Inputs,
    schedule: Schedule,
    batch_size: int,
    rng: torch.Generator,
) -> tuple[Parameters, list[float]]:
    """Train networks on an objective: each at its best epoch, and its value there; see :class:`Descent`."""
    descent = Descent(architecture, start, objective, X, schedule, batch_size)
    pace = StepTimer(schedule.end)
    with parallel.together():
        for epoch, order in enumerate(row_orders(len(X), batch_size, schedule.max_epochs, rng), 1):
            descent.epoch(None if order is None else order.to(X.device))
            if descent.done:
                break
            if pace.out_of_time() and epoch < schedule.max_epochs:
                schedule.cut_short()
                break
    return descent.result()


def batches(n: int, size: int) -> list[slice]:
    """All rows in batches of nearly equal size, at most ``size``."""
    return list(gen_even_slices(n, math.ceil(n / size)))


def row_orders(n: int, batch_size: int, epochs: int, rng: torch.Generator) -> Iterator[Tensor | None]:
    """A random order of rows for each epoch; None where a batch is everything."""
    for _ in range(epochs):
        yield None if batch_size >= n else torch.randperm(n, generator=rng, device=rng.device)
