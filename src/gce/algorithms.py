"""The greedy algorithms: what the oracle minimises, and which weights move. One loop serves them all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from gce.active_set import ActiveSet, Direction
from gce.basis.base import Basis
from gce.line_search import LineSearch
from gce.objectives import Joint, Linear, Objective, Quadratic
from gce.parameters import Rules, at_least, check_parameters, within
from gce.risk import Risk
from gce.streams import Streams


@dataclass(frozen=True)
class Step:
    """What one round did, for each of the members still running.

    Parameters
    ----------
    t : int
        The round, from 1. Callbacks are told the round of the whole fit, which counts on from family to family as in
        ``history_``.
    members : list of int
        Which members ran.
    risk : Tensor of shape (M,)
        Training risk after the step.
    gap : Tensor of shape (M,)
        ``max_g <D, F - g>`` before the step, over the atoms known: it bounds ``R(F) - min R`` where ``certified``, and
        is a lower estimate of the duality gap otherwise.
    certified : bool
        The oracle is exact, so the gap is the duality gap.
    size, limit : Tensor of shape (M, J)
        The step taken and the longest one allowed.
    direction : Direction
    calls : Tensor of shape (M,)
        Oracle calls so far.
    seconds : float
        Since the fit began.
    validation : Tensor of shape (M,) or None
        What early stopping watches, lower is better; None where nothing is held out.
    family : str or None
        Whose round it is; None where a single family is fitted.
    others : int
        Rounds of other families among ``t``.
    """

    t: int
    members: list[int]
    risk: Tensor
    gap: Tensor
    certified: bool
    size: Tensor
    limit: Tensor
    direction: Direction
    calls: Tensor
    seconds: float = 0.0
    validation: Tensor | None = None
    family: str | None = None
    others: int = 0

    @property
    def own_t(self) -> int:
        """The round of the family itself, from 1."""
        return self.t - self.others


class Algorithm(BaseEstimator):
    """A greedy algorithm over the hull of a basis."""

    #: The oracle minimises the linear objective, so that with an exact oracle the gap is the duality gap.
    linear = True
    #: Atoms keep their weights once they have them: outputs need not be kept, the bound has room to spare, and members
    #: stand at one round together.
    keeps = False

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        """What the oracle minimises."""
        return Linear(gradient, bound, separate=active.weights.shape[2] > 1, risk=risk)

    def room(self, calls: float) -> float:
        """By how much a hull is widened for so many oracle calls."""
        return 1.0

    def products(self, gradient: Tensor, active: ActiveSet) -> Tensor:
        """``<D, g>`` of the atoms known before the oracle is asked, ``(M, T, J)``."""
        return active.inner(gradient)

    def asks(self, inner: Tensor, active: ActiveSet) -> Tensor:
        """Which members need the oracle this round, ``(M,)``."""
        return torch.ones_like(active.members, dtype=torch.bool)

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        """Which atoms move.

        Parameters
        ----------
        inner : Tensor of shape (M, T, J)
            ``<D, g>`` of every atom known.
        level : Tensor of shape (M, J)
            ``<D, F>``.
        active : ActiveSet
        new : Tensor of shape (M,)
            Slot of the atom the oracle just returned, -1 where it was not asked.
        """
        raise NotImplementedError

    def iterate(
        self,
        risk: Risk,
        active: ActiveSet,
        basis: Basis,
        line_search: LineSearch,
        bound: Tensor,
        streams: Streams,
    ) -> Iterator[Step]:
        """Run rounds without end; whoever iterates decides when to stop, and may retire members in between."""
        began = time.perf_counter()
        for t in count(active.t + 1):
            here = risk if len(active.members) == len(risk.weight) else risk.select(active.members)
            gradient = here.gradient(active.train_pred)
            inner = self.products(gradient, active)
            asked = self.asks(inner, active)
            new = torch.full_like(active.members, -1)
            if asked.any():
                objective = self.objective(here, active, gradient, bound)
                part = objective if asked.all() else objective.select(asked.nonzero().flatten())
                rng = streams.at(t, active.members[asked], active.calls[asked])
                inherited = {"last": active.newest(asked)} if basis.inherits else {}
                atoms = basis.minimize(part, active.X, rng=rng, **inherited)
                known = len(active.slots)
                new = active.admit(atoms, asked)
                active.calls += asked
                inner = torch.cat([inner, active.inner(gradient, first=known)], 1)
            level = _by_block(gradient * active.train_pred, inner)
            gap = (level - inner.amin(1)).sum(1).clamp(min=0)
            active.promise = torch.where(asked, gap, active.promise)
            go = self.direction(inner, level, active, new)
            size, limit = self.search(here, active, line_search, go, t)
            active.apply(go, size)
            yield Step(
                t=t,
                members=active.members.tolist(),
                risk=here.value(active.train_pred),
                gap=gap,
                certified=basis.exact and self.linear,
                size=size,
                limit=limit,
                direction=go,
                calls=active.calls.clone(),
                seconds=time.perf_counter() - began,
            )

    def search(
        self, risk: Risk, active: ActiveSet, line_search: LineSearch, go: Direction, t: int
    ) -> tuple[Tensor, Tensor]:
        """How far to go, and how far one could, ``(M, J)`` each."""
        limit = active.limit(go)
        delta = active.delta(go)[:, : active.train_rows]
        if limit.shape[1] > 1 and not risk.loss.separable:
            # the outputs' sizes depend on each other through the loss: they move together, each by the same share of
            # its own limit, which is a line in the product of their simplices
            share = line_search(risk.along(active.train_pred, limit[:, None] * delta, torch.ones_like(limit[:, :1])), t)
            return share * limit, limit
        return line_search(risk.along(active.train_pred, delta, limit), t), limit


def _by_block(product: Tensor, inner: Tensor) -> Tensor:
    """Sum ``(M, n, k)`` over rows, and over outputs where they share their weights: ``(M, J)``."""
    by_output = product.sum(1)
    return by_output if inner.shape[2] > 1 else by_output.sum(1, keepdim=True)


#: Inner products this close, relative to their spread, are equal. An exact search along ``s - v`` ends where the two
#: atoms' products *are* equal, so that rounding would choose between them: the earlier atom is taken instead.
TIE = 1e-11


def best_atom(inner: Tensor) -> Tensor:
    """The atom that points best downhill, ``(M, J)``; ties go to the earliest."""
    low = inner.amin(1, keepdim=True)
    return (inner <= low + TIE * _spread(inner)).to(torch.int8).argmax(1)


def worst_atom(inner: Tensor, weights: Tensor) -> Tensor:
    """The atom *in use* that points worst, ``(M, J)``: an atom of weight 0 has nothing to give."""
    used = inner.masked_fill(weights <= 0, -torch.inf)
    return (used >= used.amax(1, keepdim=True) - TIE * _spread(inner)).to(torch.int8).argmax(1)


def _spread(inner: Tensor) -> Tensor:
    known = inner.isfinite()
    return inner.masked_fill(~known, -torch.inf).amax(1, keepdim=True) - inner.amin(1, keepdim=True)


def nobody(like: Tensor) -> Tensor:
    return torch.full_like(like, -1)


class FrankWolfe(Algorithm):
    """Toward the best atom."""

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward = best_atom(inner)
        return Direction(toward, nobody(toward))


class AwayStep(Algorithm):
    """Toward the best atom or away from the worst, whichever is better aligned with the negative gradient."""

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward, away = best_atom(inner), worst_atom(inner, active.weights)
        promise_toward = level - inner.gather(1, toward[:, None])[:, 0]
        promise_away = inner.gather(1, away[:, None])[:, 0] - level
        alone = active.weights.gather(1, away[:, None])[:, 0] >= 1
        leave = (promise_away > promise_toward * (1 + TIE)) & ~alone
        return Direction(torch.where(leave, -1, toward), torch.where(leave, away, -1))


class Pairwise(Algorithm):
    """From the worst atom to the best: the paper's choice."""

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        return Direction(best_atom(inner), worst_atom(inner, active.weights))


class Blended(Algorithm):
    """Pairwise steps among the atoms in use while they promise enough; the oracle only when they do not.

    Lazified blended pairwise conditional gradients (Tsuji, Tanaka and Pokutta, 2022): a local step, which costs no
    training, is taken while it promises at least ``laziness`` times what the last oracle call promised. When the oracle
    is called, a Frank-Wolfe step is taken unless the local step promises more.

    Parameters
    ----------
    laziness : float, default=0.5
    """

    parameter_rules: ClassVar[Rules] = {"laziness": at_least(0)}

    def __init__(self, laziness: float = 0.5) -> None:
        self.laziness = laziness

    def _local(self, inner: Tensor, active: ActiveSet) -> tuple[Tensor, Tensor, Tensor]:
        """Best and worst atom in use, and the promise ``<D, v - s>`` of moving from the one to the other."""
        toward = best_atom(inner.masked_fill(active.weights <= 0, torch.inf))
        away = worst_atom(inner, active.weights)
        promise = inner.gather(1, away[:, None])[:, 0] - inner.gather(1, toward[:, None])[:, 0]
        return toward, away, promise

    def asks(self, inner: Tensor, active: ActiveSet) -> Tensor:
        *_, promise = self._local(inner, active)
        total = promise.sum(1)
        return (total < self.laziness * active.promise) | (total <= 0)

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        near, away, local = self._local(inner, active)
        far = best_atom(inner)
        promised = level - inner.gather(1, far[:, None])[:, 0]
        blend = (new < 0)[:, None] | (local >= promised)
        return Direction(torch.where(blend, near, far), torch.where(blend, away, -1))


class Boosting(Algorithm):
    """Short steps from the zero function to the newest atom: gradient boosting, its budget the zero function's mass.

    ``f + size * g`` is a convex combination while the zero function has ``size`` to give, so that the sum of all steps
    times the bound is an l1 norm, and the bound its limit. Older atoms keep their weights, and need not be evaluated.

    Parameters
    ----------
    shrinkage : float, default=0.1
        What is taken of the step to the minimum: of the quadratic model an atom was grown on, or else of the risk.
    """

    keeps = True

    parameter_rules: ClassVar[Rules] = {"shrinkage": within(1e-6, 1)}

    def __init__(self, shrinkage: float = 0.1) -> None:
        self.shrinkage = shrinkage

    def room(self, calls: float) -> float:
        """By how much a hull must be widened for so many steps: each is at most this share of an atom."""
        return 1 + self.shrinkage * calls

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        return Quadratic(risk, active.train_pred, gradient, bound)

    def products(self, gradient: Tensor, active: ActiveSet) -> Tensor:
        if any(slot.atoms.keys is not None for slot in active.slots):
            # an atom that is found again is no new one, and without its product the gap would be a false certificate
            return super().products(gradient, active)
        nothing = torch.full_like(active.weights, torch.inf)
        nothing[:, 0] = 0.0
        return nothing

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward = new[:, None].expand_as(level)
        return Direction(toward, torch.zeros_like(toward))

    def search(
        self, risk: Risk, active: ActiveSet, line_search: LineSearch, go: Direction, t: int
    ) -> tuple[Tensor, Tensor]:
        check_parameters(self)
        length = active.slots[-1].atoms.length
        if length is None or not risk.smooth:
            size, limit = super().search(risk, active, line_search, go, t)
            return self.shrinkage * size, limit
        limit = active.limit(go)
        return torch.minimum(self.shrinkage * length[active.slots[-1].position][:, None], limit), limit


class NonlinearGreedy(Algorithm):
    """Toward an atom that was trained, with its mixing weight, on the risk itself."""

    linear = False

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        return Joint(risk, active.train_pred, bound, start=1 / (active.t + 2))

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward = new[:, None].expand_as(level)
        return Direction(toward, nobody(toward))


ALGORITHMS: dict[str, Algorithm] = {
    "pairwise": Pairwise(),
    "away": AwayStep(),
    "frank-wolfe": FrankWolfe(),
    "nonlinear": NonlinearGreedy(),
    "blended": Blended(),
    "boosting": Boosting(),
}
