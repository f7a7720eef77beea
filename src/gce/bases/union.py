"""The union of several bases: each makes a proposal in every round, and each member takes the best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.params import Rules, among, check_parameters, short_repr
from gce._utils.random import RoundStreams
from gce.bases.base import Atoms, Basis
from gce.bases.context import FitContext
from gce.bases.mixed_atoms import MixedAtoms
from gce.bases.objectives import Model, Objective
from gce.bases.proposal import Proposal
from gce.bases.regressor import best_step
from gce.preprocessing.sparse import Inputs


class Union(Basis):
    """The union of several classes of models.

    The best model of a union is the best of the classes' best models: every basis is called in every round, with the
    random numbers that it would have alone, and each member takes one proposal. Networks inherit nothing from earlier
    rounds. A model that interpolates its training rows, such as a :class:`gce.bases.Forest`, would win every round:
    fit such families separately and mix them on held-out rows (``basis=[...]``).

    Parameters
    ----------
    bases : sequence of Basis
    choose : {"linear", "risk"}, default="linear"
        Criterion for the best proposal, on the training rows. "linear": the smallest ``<D, g>``, which is the linear
        oracle of the union. "risk": the largest decrease of the risk's quadratic model along the proposal, with a step
        of at most 1. With ``algorithm="nonlinear"`` it is the smallest risk along the line to the proposal, whatever
        is given here.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Neural, Tree, Union
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> basis = Union([Tree(max_leaf_nodes=4), Neural(hidden=3)])
    >>> model = GCERegressor(basis=basis, cv=2, max_iter=3, random_state=0).fit(X, X[:, 0])
    >>> model.n_iter_
    3
    """

    parameter_rules: ClassVar[Rules] = {"choose": among("linear", "risk")}

    def __init__(self, bases: Sequence[Basis], choose: Literal["linear", "risk"] = "linear") -> None:
        self.bases = bases
        self.choose = choose

    def _check(self) -> None:
        listed = isinstance(self.bases, Sequence) and not isinstance(self.bases, str)
        if not listed or not all(isinstance(base, Basis) for base in self.bases):
            raise ValueError(
                f"Union needs a list of bases such as [gce.bases.Tree(), gce.bases.Neural()], got "
                f"{short_repr(self.bases)}"
            )
        if not self.bases:
            raise ValueError("Union needs at least one basis, got bases=[]")
        if known := [base for base in self.bases if base.exact]:
            raise ValueError(
                f"{type(known[0]).__name__} is a finite pool, which a Union does not support: use another basis"
            )
        check_parameters(self)

    @property
    def separate(self) -> bool:
        self._check()
        apart = {base.separate for base in self.bases}
        if len(apart) > 1:
            raise ValueError(
                "some bases of a Union have one model per output and others do not: use the same 'shared' in all"
            )
        return apart.pop()

    def dtype(self, rows: int) -> torch.dtype:
        """The highest precision that a base needs.

        Parameters
        ----------
        rows : int
            Number of training rows.
        """
        self._check()
        return max((base.dtype(rows) for base in self.bases), key=lambda dtype: dtype.itemsize)

    @property
    def splits_columns(self) -> bool:
        self._check()
        return any(base.splits_columns for base in self.bases)

    def monotone(self, signs: Tensor) -> Union:
        self._check()
        return Union([base.monotone(signs) for base in self.bases], self.choose)

    def restrict_interactions(self, groups: NDArray[np.uint64]) -> Union:
        self._check()
        return Union([base.restrict_interactions(groups) for base in self.bases], self.choose)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        self._check()
        n, model = objective.rows, objective.model
        proposals, outs = [], []
        for base in self.bases:
            dtype = base.dtype(n)
            # the same object in every round: what is cached for it is found again
            rows = context.cached((X,), ("cast", dtype, base.splits_columns), partial(_cast, base.seen(X), dtype))
            proposals.append(base.minimize(objective, rows, rng=_copied(rng), context=context))
            outs.append(proposals[-1].evaluate(rows).double())
        values = torch.stack([self._values(objective, model, out[:, :n]) for out in outs])
        best = values.argmin(0)
        member = torch.arange(len(best), device=best.device)
        atoms, step_length = _chosen([proposal.atoms for proposal in proposals], best), None
        if model.free:
            own = [_step_length(some, model, out[:, :n]) for some, out in zip(proposals, outs, strict=True)]
            step_length = torch.stack(own)[best, member]
        return Proposal(atoms, atoms(atoms.seen(X)), step_length)

    def _values(self, objective: Objective, model: Model, outs: Tensor) -> Tensor:
        """The criterion for each member's proposal, ``(M,)`` for outputs ``(M, n, k)``: lower is better."""
        if self.choose == "linear" or not model.free:
            everyone = torch.arange(len(outs), device=outs.device)[:, None]
            own = [objective.select(m).score(out[None])[0, 0] for m, out in zip(everyone, outs, strict=True)]
            return torch.stack(own)
        step = best_step(model, outs).clamp(max=1)[:, None, None] * outs
        return (step * (model.gradient + model.hessian * step / 2)).sum((1, 2))


def _cast(X: Inputs, dtype: torch.dtype) -> Inputs:
    return X.to(dtype)


def _copied(rng: RoundStreams) -> RoundStreams:
    """Copies of the streams, so that every basis draws the same numbers."""
    return RoundStreams(rng.row_seed, rng.member_seeds)


def _step_length(proposal: Proposal, model: Model, outs: Tensor) -> Tensor:
    """The minimum of the quadratic along each atom: the proposal's own step length, or computed from the outputs."""
    return best_step(model, outs) if proposal.step_length is None else proposal.step_length


def _chosen(proposals: Sequence[Atoms], best: Tensor) -> MixedAtoms:
    """The chosen proposal of each member, by its index ``(M,)``."""
    used, kind = best.unique(return_inverse=True)
    parts, place = [], torch.zeros_like(best)
    for i, number in enumerate(used.tolist()):
        own = (kind == i).nonzero().flatten()
        parts.append(proposals[number].select(own))
        place[own] = torch.arange(len(own), device=place.device)
    return MixedAtoms(parts, kind, place)
