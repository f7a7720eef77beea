"""The engine's oracle written the ordinary way: a torch module, autograd and torch.optim.Adam, one network at a time.

What ``gce.bases.Neural`` is timed beside. It draws the same initial parameters and follows the same schedule; on the
CPU it also takes the rows in the same order, so that the two train the same networks, to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gce._utils.random import RoundStreams
from gce.bases import Atoms, FitContext, Networks, Neural, Proposal
from gce.bases.neural.descent import Schedule
from gce.bases.objectives import Linear, Objective


class PlainNeural(Neural):
    """:class:`gce.bases.Neural` trained by autograd, one network at a time, from fresh starts; linear objectives."""

    def minimize(
        self, objective: Objective, X: Tensor, *, rng: RoundStreams, context: FitContext, last: Atoms | None = None
    ) -> Proposal:
        if not isinstance(objective, Linear):
            raise TypeError(f"PlainNeural trains on linear objectives only, got {type(objective).__name__}")
        n, k, dtype = objective.rows, len(objective.bound), self.dtype(objective.rows)
        models = k if self.separate else 1
        rows, slopes = X[:n].to(dtype), _slopes(objective).to(dtype)
        architecture, trained = self.architecture(n), []
        for slope, stream in zip(slopes, rng.members, strict=True):
            for part in slope.split(k // models, dim=1):
                start = [p.to(X.device) for p in architecture.start(X.shape[1], k // models, stream, dtype)]
                # every network sees the rows in the same order
                order = torch.Generator()
                order.set_state(rng.rows.get_state())
                net = self._module(start)
                with torch.enable_grad():
                    _train(net, rows, part, self._schedule(n, context), self._batch(n), order)
                trained.append([p.view_as(q) for p, q in zip(net.parameters(), start, strict=True)])
        best = [torch.stack([p.detach() for p in column]) for column in zip(*trained, strict=True)]
        return Proposal(Networks(architecture, best, objective.bound, models))

    def _module(self, start: list[Tensor]) -> nn.Sequential:
        W1, _, W2, _ = start
        net = nn.Sequential(
            nn.Linear(W1.shape[1], W1.shape[0]),
            nn.ReLU() if self.activation == "relu" else nn.Tanh(),
            nn.Linear(W2.shape[1], W2.shape[0]),
            nn.Hardtanh() if self.output == "hardtanh" else nn.Tanh(),
        ).to(W1)
        with torch.no_grad():
            for parameter, value in zip(net.parameters(), start, strict=True):
                parameter.copy_(value.view_as(parameter))
        return net


class Plateau:
    """The schedule's rule for one network, in plain numbers: its learning rate, 0 when it is done."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.rate = schedule, schedule.rate
        self._best, self._since, self._left = math.inf, 0, math.inf

    def improves(self, value: float) -> bool:
        """Take an epoch's value: whether it is the best so far."""
        rule, improved = self.schedule, value < self._best
        if not math.isfinite(value):
            self.rate = 0.0
            return False
        needed = rule.progress * abs(self._best) if self._best < math.inf else 0.0
        self._since = 0 if value < self._best - needed else self._since + 1
        self._best = min(value, self._best)
        self._left -= 1
        if self._left <= 0:
            self.rate = 0.0
        elif self._since > rule.patience and self.rate > rule.floor:
            self.rate, self._since = max(self.rate / 10, rule.floor), 0
            if self.rate == rule.floor:
                self._left = rule.last_epochs
        return improved


def _slopes(objective: Linear) -> Tensor:
    """``bound * D / sum(bound * |D|)``, ``(M, n, k)``: what unit outputs are multiplied with."""
    weighed = objective.gradient * objective.bound
    scale = weighed.abs().sum(1, keepdim=True)
    scale = scale if objective.separate else scale.sum(2, keepdim=True)
    return weighed / torch.where(scale > 0, scale, 1.0)


def _train(
    net: nn.Sequential, X: Tensor, slope: Tensor, schedule: Schedule, batch_size: int, rng: torch.Generator
) -> None:
    """Minimise ``<slope, net(X)>`` and leave the network at its best epoch."""
    n, plateau = len(X), Plateau(schedule)
    adam = torch.optim.Adam(net.parameters(), lr=schedule.rate)
    best = _copy(net)

    def note(value: float) -> None:
        nonlocal best
        if plateau.improves(value):
            best = _copy(net)
        adam.param_groups[0]["lr"] = plateau.rate

    for _ in range(schedule.max_epochs):
        if batch_size >= n:
            # the value belongs to the parameters before the step
            loss = (slope * net(X)).sum()
            note(loss.item())
            _step(adam, loss)
        else:
            value = torch.zeros((), dtype=X.dtype, device=X.device)
            for rows in torch.randperm(n, generator=rng).to(X.device).tensor_split(math.ceil(n / batch_size)):
                loss = (slope[rows] * net(X[rows])).sum()
                _step(adam, loss * (n / len(rows)))
                value += loss.detach()
            note(value.item())
        if plateau.rate == 0:
            break
    net.load_state_dict(best)


def _step(adam: torch.optim.Adam, loss: Tensor) -> None:
    adam.zero_grad()
    loss.backward()
    adam.step()


def _copy(net: nn.Sequential) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}
