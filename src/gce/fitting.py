"""One fit: the loop, what is watched while it runs, and what is kept of it.

A fit keeps atoms, weights and counters, not data: given the same rows again it goes on as if it had never stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gce import native
from gce.active_set import ActiveSet, Slot, Standing
from gce.algorithms import Algorithm, Step
from gce.basis.base import Atoms, Basis, Zero
from gce.callbacks import Callback, EarlyStopping
from gce.ensemble import ConvexEnsemble, collect, drawn_in
from gce.line_search import LineSearch
from gce.losses import Loss
from gce.memory import cache_budget
from gce.risk import Risk
from gce.rows import Inputs
from gce.streams import Streams

Metric = Callable[[Tensor, list[int]], Tensor]

#: Scores of all members below which tensor operations are so short that several threads would mostly wait.
_FEW = 1 << 20


@dataclass(frozen=True)
class Problem:
    """What is fitted: rows, targets, members and the hull's constants.

    Parameters
    ----------
    loss : Loss
    X : Tensor or SparseRows of shape (N, d)
        Rows that any member trains on come first.
    y : Tensor of shape (N, k)
    train, held_out : Tensor of shape (M, N)
    offset, bound : Tensor of shape (k,)
    count : Tensor of shape (M,), optional
        How many rows each member's training weights stand for; default: as many as have weight.
    """

    loss: Loss
    X: Inputs
    y: Tensor
    train: Tensor
    held_out: Tensor
    offset: Tensor
    bound: Tensor
    count: Tensor | None = None

    @cached_property
    def train_rows(self) -> int:
        return int(self.train.any(0).sum())

    @property
    def risk(self) -> Risk:
        n = self.train_rows
        return Risk(self.loss, self.y[:n], self.train[:, :n], self.offset, self.count)

    @cached_property
    def _holders(self) -> dict[tuple[int, ...], tuple[Tensor, Tensor]]:
        return {}

    def _held_out_by(self, members: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Which of some members holds out which row, pair by pair; looked for once."""
        if members not in self._holders:
            self._holders[members] = tuple(self.held_out[list(members)].nonzero().T)
        return self._holders[members]

    def held_out_loss(self, pred: Tensor, members: list[int]) -> Tensor:
        """Mean loss of some members on the rows they hold out, ``(M,)``: what early stopping watches by default."""
        # a GPU's recording cannot take a list along: all members are taken as they stand
        weight = self.held_out if len(members) == len(self.held_out) else self.held_out[members]
        if pred.device.type != "cpu":
            return Risk(self.loss, self.y, weight, self.offset).value(pred)
        # each row is held out by one member of many: the others need not be asked
        member, row = self._held_out_by(tuple(members))
        cost = weight[member, row] * self.loss.value(self.offset + pred[member, row], self.y[row])
        return torch.bincount(member, cost, len(members))


@dataclass(frozen=True)
class Method:
    """How it is fitted: the four pieces of an algorithm."""

    algorithm: Algorithm
    basis: Basis
    line_search: LineSearch
    streams: Streams


@dataclass(frozen=True)
class Round:
    """The news of one round; a fit is the list of them.

    Parameters
    ----------
    t : int
        The round, from 1.
    seconds : float
        Since the fit began.
    members : list of int
        Who ran.
    columns : dict of str to list of float
        Of each of them ``risk``, ``gap`` or ``gap_lower``, ``size``, ``atoms`` and, where rows are held out,
        ``validation``.
    weights : Tensor of shape (M, T, J)
        Their weights after the round, on the CPU.
    calls : list of int
        Their oracle calls so far.
    promise : list of float
        Their gaps at the last of these.
    finished : list of int
        Who is done by this round.
    atoms : Atoms or None
        What the round added.
    place : dict of int to int
        Which of these atoms is each member's.
    """

    t: int
    seconds: float
    members: list[int]
    columns: dict[str, list[float]]
    weights: Tensor
    calls: list[int]
    promise: list[float]
    finished: list[int]
    atoms: Atoms | None
    place: dict[int, int]


Keep = Callable[[Round, ActiveSet], None]


class Fit:
    """The course of a fit: every atom, every round's weights, and each member's best round.

    Parameters
    ----------
    members : int
    stopping : EarlyStopping

    Attributes
    ----------
    course : list of Round
    history : list of dict
        One plain dict a round, means over members and their lists.
    bound : Tensor of shape (k,) or None
        The hull it runs in, known once it does.
    roomy : bool
        The hull was made wide enough for any number of rounds, and the ensemble's is to be as narrow as can be.
    at_best : Tensor of shape (M, N, k) or None
        Each member's scores at its best round, where the last run knows them.
    """

    bound: Tensor | None = None
    roomy: bool = False
    at_best: Tensor | None = None

    def __init__(self, members: int, stopping: EarlyStopping) -> None:
        self.members, self.stopping = members, stopping
        self.course: list[Round] = []
        self.history: list[dict[str, Any]] = []
        self._atoms: list[tuple[int, Atoms, dict[int, int]]] = []
        self._finished: set[int] = set()
        self._calls = [0] * members
        self._promise = [float("inf")] * members
        self._last: dict[str, list[float]] = {}

    @property
    def rounds(self) -> int:
        return len(self.course)

    @property
    def seconds(self) -> float:
        """What its rounds took."""
        return self.history[-1]["seconds"] if self.history else 0.0

    @property
    def atoms(self) -> list[Atoms]:
        """What the rounds added, but for the zero function all that the fit is made of."""
        return [atoms for _, atoms, _ in self._atoms]

    def run(
        self,
        problem: Problem,
        method: Method,
        *,
        max_iter: int,
        max_calls: float,
        metric: Metric | None,
        callbacks: Iterable[Callback] = (),
        standing: Standing | None = None,
        keep: Keep | None = None,
    ) -> None:
        """Go on until every member is done, a limit is reached or a callback says stop.

        ``standing`` is how an earlier run's active set stood after the last round; ``keep`` is told every round's news,
        with the active set as the next round will find it.
        """
        bound = problem.bound.cpu()
        # atoms of an earlier run keep to its hull
        self.bound = bound if self.bound is None else torch.maximum(self.bound, bound)
        if standing is None:
            self.at_best = None
        open_ = self._open(max_calls)
        if not self.goes_on(max_iter, max_calls):
            return
        active = self._restore(problem, method, open_, standing)
        if self.rounds == 0:
            self.at_best = active.pred.clone()
        few = active.pred.device.type == "cpu" and active.pred.numel() < _FEW
        with native.alone() if few else nullcontext():
            method.basis.prepare(active.X)
            self._go_on(problem, method, active, max_iter, max_calls, metric, list(callbacks), keep)

    def goes_on(self, max_iter: int, max_calls: float) -> bool:
        """Whether any member has rounds before it, within these limits."""
        return self.rounds < max_iter and len(self._open(max_calls)) > 0

    def _open(self, max_calls: float) -> list[int]:
        return [m for m in range(self.members) if m not in self._finished and self._calls[m] < max_calls]

    def _go_on(
        self,
        problem: Problem,
        method: Method,
        active: ActiveSet,
        max_iter: int,
        max_calls: float,
        metric: Metric | None,
        callbacks: list[Callback],
        keep: Keep | None,
    ) -> None:
        before = self.seconds
        rounds = method.algorithm.iterate(
            problem.risk, active, method.basis, method.line_search, problem.bound, method.streams
        )
        for step in rounds:
            validation = None if metric is None else metric(active.pred, step.members)
            step = dataclasses.replace(step, validation=validation, seconds=before + step.seconds)
            news = self._news(step, active, self.stopping(step))
            self._take(news)
            self._remember(step, active)
            going = [m not in self._finished and self._calls[m] < max_calls for m in step.members]
            if any(going) and not all(going):
                active.retire(torch.tensor(going, device=active.X.device))
            if keep is not None:
                keep(news, active)
            # every callback hears of every round, whatever an earlier one says
            stop = [bool(callback(step)) for callback in callbacks]
            if any(stop) or step.t >= max_iter or not any(going):
                return

    def _remember(self, step: Step, active: ActiveSet) -> None:
        """Keep the scores of members that never were better."""
        if self.at_best is not None:
            better = [i for i, m in enumerate(step.members) if self.stopping.best_round[m] == step.t]
            if len(better) == self.members:
                self.at_best.copy_(active.pred)
            else:
                self.at_best[[step.members[i] for i in better]] = active.pred[better]

    def __getstate__(self) -> dict[str, Any]:
        # scores are data
        return {**vars(self), "at_best": None}

    def replay(self, course: Iterable[Round]) -> None:
        """Stand where an earlier run stood after these rounds."""
        for news in course:
            self.stopping.note(news.t, news.members, news.columns["risk"], news.columns.get("validation"))
            self._take(news)

    def _restore(self, problem: Problem, method: Method, members: list[int], standing: Standing | None) -> ActiveSet:
        """The active set as it stood after the last round, for some members."""
        basis = method.basis
        dtype = basis.dtype(problem.train_rows)
        X = problem.X.to(dtype)
        rows, outputs = problem.y.shape
        budget = cache_budget(rows, outputs, len(members), X.device) if not method.algorithm.keeps else 0
        active = ActiveSet(X, problem.train_rows, self.members, outputs, separate=basis.separate, cache_bytes=budget)
        active.retire(torch.tensor([m in members for m in range(self.members)], device=X.device))
        if standing is not None:
            active.stand(standing)
        for _, atoms, place in self._atoms:
            position = torch.tensor([place.get(m, -1) for m in members], device=X.device)
            active.readmit(Slot(atoms, position))
        if self.rounds:
            paths = self.paths()
            weights = torch.stack([_padded(paths[m][-1], len(active.slots)) for m in members])
            counters = [(self._calls[m], self._promise[m]) for m in members]
            active.resume(weights.to(X.device), counters, self.rounds)
        return active

    def _news(self, step: Step, active: ActiveSet, finished: list[int]) -> Round:
        gap, weights = "gap" if step.certified else "gap_lower", active.weights.cpu().clone()
        used = (weights > 0).any(2).sum(1).double()
        columns = {"risk": step.risk, gap: step.gap, "size": step.size.mean(1), "atoms": used}
        if step.validation is not None:
            columns["validation"] = step.validation
        # the first slot is the zero function's
        fresh = active.slots[-1] if len(active.slots) > 1 + len(self._atoms) else None
        place = () if fresh is None else zip(step.members, fresh.position.tolist(), strict=True)
        return Round(
            t=step.t,
            seconds=step.seconds,
            members=list(step.members),
            columns={name: value.tolist() for name, value in columns.items()},
            weights=weights,
            calls=step.calls.tolist(),
            promise=active.promise.tolist(),
            finished=finished,
            atoms=None if fresh is None else fresh.atoms,
            place={m: p for m, p in place if p >= 0},
        )

    def _take(self, news: Round) -> None:
        self.course.append(news)
        if news.atoms is not None:
            self._atoms.append((news.t, news.atoms, news.place))
        for m, calls, promise in zip(news.members, news.calls, news.promise, strict=True):
            self._calls[m], self._promise[m] = calls, promise
        self._finished.update(news.finished)
        self.history.append(self._entry(news))

    def _entry(self, news: Round) -> dict[str, Any]:
        entry: dict[str, Any] = {"t": news.t, "seconds": news.seconds, "validation": None}
        lists = {}
        for name, values in news.columns.items():
            # a member that is done stands where it stopped
            column = self._last.setdefault(name, [float("nan")] * self.members)
            for m, number in zip(news.members, values, strict=True):
                column[m] = number
            lists[name] = list(column)
            entry[name] = sum(column) / self.members
        return {**entry, "running": list(news.members), "members": lists}

    def paths(self) -> list[list[Tensor]]:
        """Each member's weights ``(T, J)`` after each round, up to the last one it ran in."""
        paths: list[list[Tensor]] = [[] for _ in range(self.members)]
        for news in self.course:
            for m, weights in zip(news.members, news.weights, strict=True):
                # in rounds without it, it stood still
                paths[m].extend(paths[m][-1:] * (news.t - 1 - len(paths[m])))
                paths[m].append(weights)
        return paths

    def ensemble(self, offset: Tensor) -> ConvexEnsemble:
        """The average of the members, each at its best round, without the atoms that carry no weight."""
        assert self.bound is not None
        bound = self.bound.to(offset.device)
        weights = [path[self.stopping.best_round[m] - 1] for m, path in enumerate(self.paths())]
        found = collect(self._chosen(weights, len(bound)), offset, bound)
        return drawn_in(found) if self.roomy else found

    def stages(self, offset: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Every atom that ever carried weight, and after each round the weights ``(A, J)`` of all of them.

        Each member stands still from its best round on, so that the last stage is the ensemble.
        """
        assert self.bound is not None
        bound = self.bound.to(offset.device)
        paths = [path[: self.stopping.best_round[m]] for m, path in enumerate(self.paths())]
        ever = [torch.stack([_padded(w, len(path[-1])) for w in path]).amax(0) for path in paths]
        everyone = collect(self._chosen(ever, len(bound)), offset, bound)
        place = {born: slot for slot, (born, *_) in enumerate(self._slots(len(bound)))}
        where = [(m, place[born]) for m, born in everyone.origin.tolist()]
        stages = []
        for t in range(1, self.rounds + 1):
            now = [_padded(path[min(t, len(path)) - 1], len(path[-1])) for path in paths]
            stages.append(torch.stack([now[m][slot] for m, slot in where]).to(bound.device) / self.members)
        return everyone, stages

    def _slots(self, outputs: int) -> list[tuple[int, Atoms, dict[int, int]]]:
        everyone = {m: m for m in range(self.members)}
        return [(0, Zero(self.members, outputs), everyone), *self._atoms]

    def _chosen(self, weights: list[Tensor], outputs: int) -> Iterator[tuple[int, int, Atoms, int, Tensor]]:
        slots = self._slots(outputs)
        for m, own in enumerate(weights):
            for (born, atoms, place), weight in zip(slots, own, strict=False):
                if (weight > 0).any():
                    yield m, born, atoms, place[m], weight / self.members


def _padded(weights: Tensor, slots: int) -> Tensor:
    return torch.cat([weights, weights.new_zeros(slots - len(weights), weights.shape[1])])
