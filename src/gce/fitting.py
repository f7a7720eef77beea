"""One fit: the loop, what is watched while it runs, and what is kept of it.

A fit keeps atoms, weights and counters, not data: given the same rows again it goes on as if it had never stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gce.active_set import ActiveSet, Slot
from gce.algorithms import Algorithm, Step
from gce.basis.base import Atoms, Basis
from gce.callbacks import Callback, EarlyStopping
from gce.ensemble import ConvexEnsemble, collect
from gce.line_search import LineSearch
from gce.losses import Loss
from gce.memory import cache_budget
from gce.risk import Risk
from gce.streams import Streams

Metric = Callable[[Tensor, list[int]], Tensor]


@dataclass(frozen=True)
class Problem:
    """What is fitted: rows, targets, members and the hull's constants.

    Parameters
    ----------
    loss : Loss
    X : Tensor of shape (N, d)
        Rows that any member trains on come first.
    y : Tensor of shape (N, k)
    train, held_out : Tensor of shape (M, N)
    offset, bound : Tensor of shape (k,)
    """

    loss: Loss
    X: Tensor
    y: Tensor
    train: Tensor
    held_out: Tensor
    offset: Tensor
    bound: Tensor

    @property
    def train_rows(self) -> int:
        return int(self.train.any(0).sum())

    @property
    def risk(self) -> Risk:
        n = self.train_rows
        return Risk(self.loss, self.y[:n], self.train[:, :n], self.offset)

    def held_out_loss(self, pred: Tensor, members: list[int]) -> Tensor:
        """Mean loss of some members on the rows they hold out, ``(M,)``: what early stopping watches by default."""
        # a GPU's recording cannot take a list along: all members are taken as they stand
        weight = self.held_out if len(members) == len(self.held_out) else self.held_out[members]
        return Risk(self.loss, self.y, weight, self.offset).value(pred)


@dataclass(frozen=True)
class Method:
    """How it is fitted: the four pieces of an algorithm."""

    algorithm: Algorithm
    basis: Basis
    line_search: LineSearch
    streams: Streams


class Fit:
    """The course of a fit: every atom, every round's weights, and each member's best round.

    Parameters
    ----------
    members : int
    stopping : EarlyStopping

    Attributes
    ----------
    history : list of dict
        One plain dict a round, means over members and their lists.
    """

    def __init__(self, members: int, stopping: EarlyStopping) -> None:
        self.members, self.stopping = members, stopping
        self.history: list[dict[str, Any]] = []
        self.rounds = 0
        self._atoms: list[tuple[int, Atoms, dict[int, int]]] = []
        self._weights: list[list[Tensor]] = [[] for _ in range(members)]
        self._finished: set[int] = set()
        self._calls = [0] * members
        self._promise = [float("inf")] * members
        self._last: dict[str, list[float]] = {}

    def run(
        self,
        problem: Problem,
        method: Method,
        *,
        max_iter: int,
        max_calls: float,
        metric: Metric | None,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        """Go on until every member is done, a limit is reached or a callback says stop."""
        open_ = [m for m in range(self.members) if m not in self._finished and self._calls[m] < max_calls]
        if not open_ or self.rounds >= max_iter:
            return
        active = self._restore(problem, method.basis, open_)
        before = self.history[-1]["seconds"] if self.history else 0.0
        rounds = method.algorithm.iterate(
            problem.risk, active, method.basis, method.line_search, problem.bound, method.streams
        )
        for step in rounds:
            validation = None if metric is None else metric(active.pred, step.members)
            step = dataclasses.replace(step, validation=validation, seconds=before + step.seconds)
            self._record(step, active)
            done = self.stopping(step)
            self._finished.update(done)
            # every callback hears of every round, whatever an earlier one says
            stop = [bool(callback(step)) for callback in callbacks]
            keep = [m not in self._finished and self._calls[m] < max_calls for m in step.members]
            if any(stop) or step.t >= max_iter or not any(keep):
                return
            if not all(keep):
                active.retire(torch.tensor(keep, device=active.X.device))

    def _restore(self, problem: Problem, basis: Basis, members: list[int]) -> ActiveSet:
        """The active set as it stood after the last round, for some members."""
        dtype = basis.dtype(problem.train_rows)
        X = problem.X if problem.X.dtype == dtype else problem.X.to(dtype)
        rows, outputs = problem.y.shape
        budget = cache_budget(rows, outputs, len(members), X.device)
        active = ActiveSet(X, problem.train_rows, self.members, outputs, separate=basis.separate, cache_bytes=budget)
        active.retire(torch.tensor([m in members for m in range(self.members)], device=X.device))
        for _, atoms, place in self._atoms[1:]:
            position = torch.tensor([place.get(m, -1) for m in members], device=X.device)
            active.readmit(Slot(atoms, position))
        if self.rounds:
            weights = torch.stack([_padded(self._weights[m][-1], len(active.slots)) for m in members])
            counters = [(self._calls[m], self._promise[m]) for m in members]
            active.resume(weights.to(X.device), counters, self.rounds)
        else:
            self._atoms = [(0, active.slots[0].atoms, {m: m for m in members})]
        return active

    def _record(self, step: Step, active: ActiveSet) -> None:
        for slot in active.slots[len(self._atoms) :]:
            place = {m: p for m, p in zip(step.members, slot.position.tolist(), strict=True) if p >= 0}
            self._atoms.append((step.t, slot.atoms, place))
        for i, m in enumerate(step.members):
            path = self._weights[m]
            path.extend(path[-1:] * (step.t - 1 - len(path)))
            path.append(active.weights[i].cpu().clone())
            self._calls[m], self._promise[m] = int(step.calls[i]), float(active.promise[i])
        self.rounds = step.t
        self.history.append(self._entry(step))

    def _entry(self, step: Step) -> dict[str, Any]:
        gap = "gap" if step.certified else "gap_lower"
        columns = {"risk": step.risk, gap: step.gap, "size": step.size.mean(1), "atoms": self._used(step)}
        if step.validation is not None:
            columns["validation"] = step.validation
        entry: dict[str, Any] = {"t": step.t, "seconds": step.seconds, "validation": None}
        lists = {}
        for name, value in columns.items():
            # a member that is done stands where it stopped
            column = self._last.setdefault(name, [float("nan")] * self.members)
            for m, number in zip(step.members, value.tolist(), strict=True):
                column[m] = number
            lists[name] = list(column)
            entry[name] = sum(column) / self.members
        return {**entry, "running": list(step.members), "members": lists}

    def _used(self, step: Step) -> Tensor:
        return torch.tensor([float((self._weights[m][-1] > 0).any(1).sum()) for m in step.members])

    def ensemble(self, offset: Tensor, bound: Tensor) -> ConvexEnsemble:
        """The average of the members, each at its best round, without the atoms that carry no weight."""
        weights = [path[self.stopping.best_round[m] - 1] for m, path in enumerate(self._weights)]
        return collect(self._chosen(weights), offset, bound)

    def stages(self, offset: Tensor, bound: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Every atom that ever carried weight, and after each round the weights ``(A, J)`` of all of them.

        Each member stands still from its best round on, so that the last stage is the ensemble.
        """
        best = [self.stopping.best_round[m] for m in range(self.members)]
        final = [path[best[m] - 1] for m, path in enumerate(self._weights)]
        ever = [
            torch.stack([_padded(w, len(final[m])) for w in path[: best[m]]]).amax(0)
            for m, path in enumerate(self._weights)
        ]
        everyone = collect(self._chosen(ever), offset, bound)
        place = {born: slot for slot, (born, *_) in enumerate(self._atoms)}
        where = [(m, place[born]) for m, born in everyone.origin.tolist()]
        path = []
        for t in range(1, self.rounds + 1):
            now = [_padded(self._weights[m][min(t, best[m]) - 1], len(final[m])) for m in range(self.members)]
            path.append(torch.stack([now[m][slot] for m, slot in where]).to(bound.device) / self.members)
        return everyone, path

    def _chosen(self, weights: list[Tensor]) -> Iterator[tuple[int, int, Atoms, int, Tensor]]:
        for m, own in enumerate(weights):
            for (born, atoms, place), weight in zip(self._atoms, own, strict=False):
                if (weight > 0).any():
                    yield m, born, atoms, place[m], weight / self.members


def _padded(weights: Tensor, slots: int) -> Tensor:
    return torch.cat([weights, weights.new_zeros(slots - len(weights), weights.shape[1])])
