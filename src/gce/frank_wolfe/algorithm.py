"""The loop that all greedy algorithms share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from gce._utils.random import Streams
from gce.bases.base import Basis
from gce.bases.context import FitContext
from gce.bases.objectives import Linear, Objective
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.step import Direction, HeldOut, Step
from gce.losses.base import is_finite
from gce.losses.line_search import LineSearch
from gce.losses.risk import Risk


class Algorithm(BaseEstimator):
    """A greedy algorithm over the convex hull of a basis. A subclass defines ``direction``.

    Examples
    --------
    Frank-Wolfe steps toward the newest atom:

    >>> import torch
    >>> from gce.frank_wolfe import Algorithm
    >>> from gce.frank_wolfe.step import Direction
    >>> class Newest(Algorithm):
    ...     def direction(self, inner, level, active, new):
    ...         toward = new[:, None].expand_as(level)
    ...         return Direction(toward, away=torch.full_like(toward, -1))
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> GCERegressor(basis="neuron", algorithm=Newest(), max_iter=3, random_state=0).fit(X, X[:, 0]).n_iter_
    3
    """

    #: The oracle minimises the linear objective, so that with an exact oracle the gap is the duality gap.
    linear = True
    #: Atoms keep the weights they got: outputs need not be cached, the bound can be inflated, and all members share
    #: their best round.
    append_only = False

    def objective(self, risk: Risk, active: ActiveSet, gradient: Tensor, bound: Tensor) -> Objective:
        """The objective of the oracle.

        Parameters
        ----------
        risk : Risk
            Of the members that run.
        active : ActiveSet
            Atoms and weights before the step.
        gradient : Tensor of shape (M, n, k)
            Functional gradient of the risk.
        bound : Tensor of shape (k,)
            Half the width of the hull.
        """
        return Linear(gradient, bound, separate=active.weights.shape[2] > 1, risk=risk)

    def bound_factor(self, calls: float) -> float:
        """The factor by which the bound is inflated for a number of oracle calls.

        Parameters
        ----------
        calls : float
            Maximum number of oracle calls.
        """
        return 1.0

    def products(self, gradient: Tensor, active: ActiveSet) -> Tensor:
        """``<D, g>`` of the atoms known before the oracle is called, ``(M, T, J)``.

        Parameters
        ----------
        gradient : Tensor of shape (M, n, k)
            Functional gradient of the risk.
        active : ActiveSet
            Atoms and weights before the step.
        """
        return active.inner(gradient)

    def needs_oracle(self, inner: Tensor, active: ActiveSet) -> Tensor:
        """Mask ``(M,)`` of the members that need the oracle in this round.

        Parameters
        ----------
        inner : Tensor of shape (M, T, J)
            ``<D, g>`` of the atoms known.
        active : ActiveSet
            Atoms and weights before the step.
        """
        return torch.ones_like(active.members, dtype=torch.bool)

    def direction(self, inner: Tensor, level: Tensor, active: ActiveSet, new: Tensor) -> Direction:
        """The direction of the step.

        Parameters
        ----------
        inner : Tensor of shape (M, T, J)
            ``<D, g>`` of every atom.
        level : Tensor of shape (M, J)
            ``<D, F>``.
        active : ActiveSet
        new : Tensor of shape (M,)
            Slot of the atom that the oracle just returned, -1 where it was not called.
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
        context: FitContext | None = None,
        held_out: HeldOut | None = None,
    ) -> Iterator[Step]:
        """Run rounds without end; the caller decides when to stop, and may retire members in between.

        Parameters
        ----------
        risk : Risk
        active : ActiveSet
        basis : Basis
        line_search : LineSearch
        bound : Tensor of shape (k,)
        streams : Streams
        context : FitContext, optional
            Caches of the fit; default: a new one.
        held_out : HeldOut, optional
            Rows on which an algorithm may compute the loss itself, as the ``validation`` of its steps.

        Yields
        ------
        Step
        """
        context = FitContext() if context is None else context
        began = time.perf_counter()
        certified = basis.exact and self.linear
        for t in count(active.t + 1):
            here = risk if len(active.members) == len(risk.weight) else risk.select(active.members)
            before = here.value(active.train_pred) if certified else None
            gradient = here.gradient(active.train_pred)
            aligned = here.inner_by_output(gradient, active.train_pred)
            if not is_finite(aligned):
                raise here.non_finite("gradient", gradient, active.train_pred)
            inner = self.products(gradient, active)
            called = self.needs_oracle(inner, active)
            new = torch.full_like(active.members, -1)
            if called.any():
                objective = self.objective(here, active, gradient, bound)
                part = objective if called.all() else objective.select(called.nonzero().flatten())
                rng = streams.at(t, active.members[called], active.calls[called])
                inherited = {"last": active.newest(called)} if basis.inherits else {}
                proposal = basis.minimize(part, active.X, rng=rng, context=context, **inherited)
                known = len(active.slots)
                new = active.admit(proposal, called)
                active.calls += called
                inner = torch.cat([inner, active.inner(gradient, first=known)], 1)
            level = _by_block(aligned, inner)
            gap = (level - inner.amin(1)).sum(1).clamp(min=0)
            active.last_gap = torch.where(called, gap, active.last_gap)
            go = self.direction(inner, level, active, new)
            step_size, max_step = self.search(here, active, line_search, go, t)
            active.apply(go, step_size)
            value = here.value(active.train_pred)
            if before is not None:
                gap = gap.masked_fill(~called, torch.nan)
                active.certify(gap, value - before)
            yield Step(
                t=t,
                members=active.members.tolist(),
                risk=value,
                gap=gap,
                certified=certified,
                step_size=step_size,
                max_step=max_step,
                direction=go,
                calls=active.calls.clone(),
                seconds=time.perf_counter() - began,
                suboptimality=active.suboptimality.clone() if certified else None,
            )

    def search(
        self, risk: Risk, active: ActiveSet, line_search: LineSearch, go: Direction, t: int
    ) -> tuple[Tensor, Tensor]:
        """The step size and the longest step allowed, ``(M, J)`` each.

        Parameters
        ----------
        risk : Risk
            Of the members that run.
        active : ActiveSet
            Atoms and weights before the step.
        line_search : LineSearch
            Chooses the step size.
        go : Direction
            The atoms whose weights move.
        t : int
            The round, from 1.
        """
        limit = active.limit(go)
        delta = active.delta(go)[:, : active.train_rows]
        if limit.shape[1] > 1 and not risk.loss.separable:
            # the outputs' step sizes depend on each other through the loss: they move together, each by the same
            # fraction of its own limit, which is a line in the product of their simplices
            share = line_search(risk.along(active.train_pred, limit[:, None] * delta, torch.ones_like(limit[:, :1])), t)
            return share * limit, limit
        return line_search(risk.along(active.train_pred, delta, limit), t), limit


def _by_block(by_output: Tensor, inner: Tensor) -> Tensor:
    """Sums ``(M, k)``, added up over outputs where these share their weights: ``(M, J)``."""
    return by_output if inner.shape[2] > 1 else by_output.sum(1, keepdim=True)
