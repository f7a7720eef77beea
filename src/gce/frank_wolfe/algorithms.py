"""The greedy algorithms: the objective of the oracle and the direction of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from gce._utils.params import Rules, at_least, check_parameters, within
from gce._utils.random import Streams
from gce.bases.base import Basis
from gce.bases.boosted import Booster, BoostingState
from gce.bases.context import FitContext
from gce.bases.objectives import Joint, Objective, Quadratic
from gce.bases.proposal import Proposal
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.algorithm import Algorithm
from gce.frank_wolfe.step import Direction, HeldOut, Step
from gce.losses.base import is_finite
from gce.losses.line_search import LineSearch
from gce.losses.risk import Risk, ScaledRisk

#: Inner products this close, relative to their spread, are equal. An exact search along ``s - v`` ends where the two
#: atoms' products *are* equal, so that rounding would choose between them: the earlier atom is taken instead.
TIE = 1e-11


def best_atom(inner: Tensor) -> Tensor:
    """The atom with the smallest product, ``(M, J)``; ties go to the earliest."""
    low = inner.amin(1, keepdim=True)
    return (inner <= low + TIE * _spread(inner)).to(torch.int8).argmax(1)


def worst_atom(inner: Tensor, weights: Tensor) -> Tensor:
    """The atom of positive weight with the largest product, ``(M, J)``."""
    used = inner.masked_fill(weights <= 0, -torch.inf)
    return (used >= used.amax(1, keepdim=True) - TIE * _spread(inner)).to(torch.int8).argmax(1)


def _spread(inner: Tensor) -> Tensor:
    known = inner.isfinite()
    return inner.masked_fill(~known, -torch.inf).amax(1, keepdim=True) - inner.amin(1, keepdim=True)


def no_slot(like: Tensor) -> Tensor:
    """The index that stands for no slot, -1, in the shape of others."""
    return torch.full_like(like, -1)


class FrankWolfe(Algorithm):
    """Steps toward the best atom.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import FrankWolfe
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="neuron", algorithm=FrankWolfe(), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward = best_atom(inner)
        return Direction(toward, no_slot(toward))


class AwayStep(Algorithm):
    """Steps toward the best atom or away from the worst, whichever is better aligned with the negative gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import AwayStep
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="neuron", algorithm=AwayStep(), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward, away = best_atom(inner), worst_atom(inner, active.weights)
        gap_toward = level - inner.gather(1, toward[:, None])[:, 0]
        gap_away = inner.gather(1, away[:, None])[:, 0] - level
        alone = active.weights.gather(1, away[:, None])[:, 0] >= 1
        leave = (gap_away > gap_toward * (1 + TIE)) & ~alone
        return Direction(torch.where(leave, -1, toward), torch.where(leave, away, -1))


class Pairwise(Algorithm):
    """Steps from the worst atom to the best: the paper's choice.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import Pairwise
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="neuron", algorithm=Pairwise(), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        return Direction(best_atom(inner), worst_atom(inner, active.weights))


class Blended(Algorithm):
    """Pairwise steps among the active atoms while their gap is large enough; the oracle only when it is not.

    Lazified blended pairwise conditional gradients (Tsuji, Tanaka and Pokutta, 2022): a local step, which costs no
    training, is taken while the local gap is at least ``laziness`` times the gap at the last oracle call. When the
    oracle is called, a Frank-Wolfe step is taken unless the local gap is larger.

    Parameters
    ----------
    laziness : float, default=0.5
        Larger values call the oracle more often.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import Blended
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="neuron", algorithm=Blended(laziness=0.8), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    parameter_rules: ClassVar[Rules] = {"laziness": at_least(0)}

    def __init__(self, laziness: float = 0.5) -> None:
        self.laziness = laziness

    def _local(self, inner: Tensor, active: ActiveSet) -> tuple[Tensor, Tensor, Tensor]:
        """Best and worst active atom, and the local gap ``<D, v - s>`` between them."""
        toward = best_atom(inner.masked_fill(active.weights <= 0, torch.inf))
        away = worst_atom(inner, active.weights)
        gap = inner.gather(1, away[:, None])[:, 0] - inner.gather(1, toward[:, None])[:, 0]
        return toward, away, gap

    def needs_oracle(self, inner: Tensor, active: ActiveSet) -> Tensor:
        *_, gap = self._local(inner, active)
        total = gap.sum(1)
        return (total < float(self.laziness) * active.last_gap) | (total <= 0)

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        near, away, local_gap = self._local(inner, active)
        far = best_atom(inner)
        gap = level - inner.gather(1, far[:, None])[:, 0]
        blend = (new < 0)[:, None] | (local_gap >= gap)
        return Direction(torch.where(blend, near, far), torch.where(blend, away, -1))


class Boosting(Algorithm):
    """Short steps from the zero function to the newest atom: gradient boosting within the weight of the zero function.

    ``f + step_size * g`` is a convex combination while the zero function has weight ``step_size`` left, so that the sum
    of all steps times the bound is an l1 norm, limited by the bound. Older atoms keep their weights, and need not be
    evaluated.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Fraction taken of the step to the minimum of the quadratic model that an atom was fitted to, or else of the
        risk.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import Boosting
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="symmetric", algorithm=Boosting(learning_rate=0.3), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    append_only = True

    parameter_rules: ClassVar[Rules] = {"learning_rate": within(1e-6, 1)}

    def __init__(self, learning_rate: float = 0.1) -> None:
        self.learning_rate = learning_rate

    @property
    def _rate(self) -> float:
        # torch multiplies by no fraction
        return float(self.learning_rate)

    def bound_factor(self, calls: float) -> float:
        """The factor by which the bound is inflated for so many steps, each at most ``learning_rate`` of an atom.

        Parameters
        ----------
        calls : float
            Maximum number of oracle calls.
        """
        return 1 + self._rate * calls

    def iterate(
        self,
        risk: Risk,
        active: ActiveSet,
        basis: Basis,
        line_search: LineSearch,
        bound: Tensor,
        streams: Streams,
        context: FitContext | None = None,
        held_out: HeldOut | None = None,
    ) -> Iterator[Step]:
        model = risk.modelled if basis.fits_quadratics else None
        if model is None:
            if risk.division is not None:
                raise ValueError(f"rows that are divided need a smooth loss, got {risk.loss}")
            yield from super().iterate(risk, active, basis, line_search, bound, streams, context)
            return
        check_parameters(self)
        context = FitContext() if context is None else context
        booster = basis.booster(risk.loss, bound, active.X, context)
        if booster is None or held_out is None:
            yield from self._round_by_round(risk, model, active, basis, bound, streams, context)
        else:
            yield from self._in_blocks(risk, model, active, booster, bound, streams, held_out)

    def _round_by_round(
        self,
        risk: Risk,
        model: Risk,
        active: ActiveSet,
        basis: Basis,
        bound: Tensor,
        streams: Streams,
        context: FitContext,
    ) -> Iterator[Step]:
        began = time.perf_counter()
        # numbers that the host knows need no transfer from a device
        members, calls = active.members.cpu(), active.calls.cpu()
        for t in count(active.t + 1):
            if len(active.members) < len(members):
                calls = calls[torch.isin(members, active.members.cpu())]
                members = active.members.cpu()
            everyone = len(active.members) == len(risk.weight)
            here, smooth = (own if everyone else own.select(active.members) for own in (risk, model))
            gradient = smooth.gradient(active.train_pred)
            level = here.sum_rows(gradient * active.train_pred)
            if not is_finite(level):
                raise here.non_finite("gradient", gradient, active.train_pred)
            rng = streams.at(t, members, calls)
            objective = self.objective(smooth, active, gradient, bound)
            proposal = basis.minimize(objective, active.X, rng=rng, context=context)
            assert proposal.outputs is not None
            assert proposal.step_length is not None
            inner = here.sum_rows(gradient * proposal.outputs[:, : active.train_rows])
            gap = (level - inner.clamp(max=0)).clamp(min=0)
            # still a lower estimate, where outputs have different factors
            gap = gap / model.scale.max() if isinstance(model, ScaledRisk) else gap
            max_step = active.weights[:, 0].clone()
            size = torch.minimum(self._rate * proposal.step_length[:, None], max_step)
            # two operations: fused, they would round otherwise than those of other devices
            active.add(proposal, size, gap, active.pred + size[:, None] * proposal.outputs)
            calls = calls + 1
            step = _step(active, here.value(active.train_pred), size, max_step, time.perf_counter() - began)
            yield replace(step, members=members.tolist(), calls=calls)

    def _in_blocks(
        self,
        risk: Risk,
        model: Risk,
        active: ActiveSet,
        booster: Booster,
        bound: Tensor,
        streams: Streams,
        held_out: HeldOut,
    ) -> Iterator[Step]:
        """Several rounds in one call; members that are retired within them end them."""
        began, monitors = time.perf_counter(), bool(held_out.weight.any())
        while True:
            members = active.members
            at_once = max(1, min(booster.at_once(members.tolist()), held_out.ahead - active.t))
            here = risk if len(members) == len(risk.weight) else risk.select(members)
            state = BoostingState(
                here,
                held_out.y,
                held_out.weight if len(members) == len(held_out.weight) else held_out.weight[members],
                bound,
                active.pred,
                active.weights[:, 0, 0],
                self._rate,
                members.tolist(),
                model,
            )
            drawn = [streams.at(active.t + 1 + i, members, active.calls + i) for i in range(at_once)]
            block = booster.run(state, np.stack([rng.member_keys() for rng in drawn]))
            for i in range(block.count):
                size, limit = block.size[i, :, None], block.limit[i, :, None]
                active.add(Proposal(block.atoms(i)), size, block.gap[i], partial(block.pred, i))
                step = _step(active, block.risk[i], size, limit, time.perf_counter() - began)
                yield replace(step, validation=block.validation[i]) if monitors else step
                if len(active.members) < len(members):
                    break

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        return Quadratic(risk, active.train_pred, gradient, bound)

    def products(self, gradient: Tensor, active: ActiveSet) -> Tensor:
        if active.has_keys:
            # an atom that the oracle returns again is not appended: without its product the gap is no certificate
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
        newest = active.slots[-1]
        if newest.step_length is None or not risk.smooth:
            size, limit = super().search(risk, active, line_search, go, t)
            return self._rate * size, limit
        limit = active.limit(go)
        return torch.minimum(self._rate * newest.step_length[newest.position][:, None], limit), limit


def _step(active: ActiveSet, risk: Tensor, size: Tensor, max_step: Tensor, seconds: float) -> Step:
    """The record of a round that added an atom of ``size`` ``(M, 1)``."""
    newest = torch.full_like(active.members, len(active.slots) - 1)[:, None]
    return Step(
        t=active.t,
        members=active.members.tolist(),
        risk=risk,
        gap=active.last_gap,
        certified=False,
        step_size=size,
        max_step=max_step,
        direction=Direction(newest, torch.zeros_like(newest)),
        calls=active.calls.clone(),
        seconds=seconds,
    )


class NonlinearGreedy(Algorithm):
    """Steps toward an atom that was trained, with its mixing weight, on the risk itself.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.frank_wolfe import NonlinearGreedy
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = GCERegressor(basis="neuron", algorithm=NonlinearGreedy(), cv=2, max_iter=3, random_state=0)
    >>> model.fit(X, X[:, 0]).n_iter_
    3
    """

    linear = False

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        return Joint(risk, active.train_pred, bound, start=1 / (active.t + 2))

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        toward = new[:, None].expand_as(level)
        return Direction(toward, no_slot(toward))


ALGORITHMS: dict[str, Algorithm] = {
    "pairwise": Pairwise(),
    "away": AwayStep(),
    "frank-wolfe": FrankWolfe(),
    "nonlinear": NonlinearGreedy(),
    "blended": Blended(),
    "boosting": Boosting(),
}
