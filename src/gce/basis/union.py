"""The union of several classes: all propose in each round, and each member takes the best proposal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gce.basis.assorted import Assorted
from gce.basis.base import Atoms, Basis
from gce.basis.regressor import best_step
from gce.objectives import Model, Objective
from gce.parameters import Rules, among, check_parameters, shown
from gce.rows import Inputs
from gce.streams import RoundStreams


class Union(Basis):
    """A class of models that is the union of several.

    The best model of a union is the best of the classes' best: every class is asked in every round, with the same
    random numbers that it would have alone, and each member takes one proposal. Networks start anew in every round. A
    model that repeats its training rows, such as a :class:`gce.Forest`, would win every round: classes of such
    models are fitted apart, and mixed on rows held out (``basis=[...]``).

    Parameters
    ----------
    bases : sequence of Basis
    choose : {"linear", "risk"}, default="linear"
        What makes a proposal the best, on the rows trained on. "linear": the least ``<D, g>``, which is the linear
        oracle of the union. "risk": the largest decrease of the risk's quadratic model from where the ensemble is
        along the proposal, at the best step of at most 1. An algorithm that asks for the risk itself (``"nonlinear"``)
        takes the least risk along the line to the proposal, whatever is chosen here.
    """

    parameter_rules: ClassVar[Rules] = {"choose": among("linear", "risk")}

    def __init__(self, bases: Sequence[Basis], choose: Literal["linear", "risk"] = "linear") -> None:
        self.bases = bases
        self.choose = choose

    def _check(self) -> None:
        listed = isinstance(self.bases, Sequence) and not isinstance(self.bases, str)
        if not listed or not all(isinstance(base, Basis) for base in self.bases):
            raise ValueError(f"Union needs a list of bases such as [gce.Tree(), gce.Neural()], got {shown(self.bases)}")
        if not self.bases:
            raise ValueError("Union needs at least one basis, got bases=[]")
        if known := [base for base in self.bases if base.exact]:
            raise ValueError(
                f"{type(known[0]).__name__} names its members, which a Union cannot: give its models by another basis"
            )
        check_parameters(self)

    @property
    def separate(self) -> bool:
        self._check()
        apart = {base.separate for base in self.bases}
        if len(apart) > 1:
            raise ValueError("some bases of a Union have a model for each output and others do not: make them agree")
        return apart.pop()

    def dtype(self, rows: int) -> torch.dtype:
        """The finest that a base asks for."""
        self._check()
        return max((base.dtype(rows) for base in self.bases), key=lambda dtype: dtype.itemsize)

    def monotone(self, signs: Tensor) -> Union:
        self._check()
        return Union([base.monotone(signs) for base in self.bases], self.choose)

    def hurried(self, end: float) -> None:
        self.rushed = False
        for base in self.bases:
            base.hurried(end)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> Assorted:
        self._check()
        n, model = objective.rows, objective.model
        proposals, outs = [], []
        for base in self.bases:
            rows = self._rows(X, base.dtype(n))
            proposals.append(base.minimize(objective, rows, rng=_copied(rng)))
            outs.append(proposals[-1](rows).double())
            self.rushed |= base.rushed
        values = torch.stack([self._values(objective, model, out[:, :n]) for out in outs])
        best = values.argmin(0)
        member = torch.arange(len(best), device=best.device)
        atoms = _taken(proposals, best)
        atoms.known = X, atoms(X)
        if model.free:
            own = [_length(some, model, out[:, :n]) for some, out in zip(proposals, outs, strict=True)]
            atoms.length = torch.stack(own)[best, member]
        # outputs on the rows of the fit are asked for in the round that made them, and in no other
        if (last := getattr(self, "_last", None)) is not None:
            last.known = None
        self._last = atoms
        return atoms

    def _rows(self, X: Inputs, dtype: torch.dtype) -> Inputs:
        """Rows in a base's precision, the same object in every round: bases remember what they know of it."""
        seen: tuple[Inputs, dict[torch.dtype, Inputs]] | None = getattr(self, "_seen", None)
        if seen is None or seen[0] is not X:
            self._seen = seen = (X, {X.dtype: X})
        return seen[1].setdefault(dtype, X.to(dtype))

    def _values(self, objective: Objective, model: Model, outs: Tensor) -> Tensor:
        """How good each member's proposal is, ``(M,)`` for outputs ``(M, n, k)``: less is better."""
        if self.choose == "linear" or not model.free:
            everyone = torch.arange(len(outs), device=outs.device)[:, None]
            own = [objective.select(m).score(out[None])[0, 0] for m, out in zip(everyone, outs, strict=True)]
            return torch.stack(own)
        step = best_step(model, outs).clamp(max=1)[:, None, None] * outs
        return (step * (model.slope + model.bend * step / 2)).sum((1, 2))

    def __getstate__(self) -> dict[str, Any]:
        # rows belong to a fit
        return {
            name: value for name, value in super().__getstate__().items() if name not in ("_seen", "_last", "rushed")
        }


def _copied(rng: RoundStreams) -> RoundStreams:
    """The same streams, to be drawn from again."""
    return RoundStreams(rng.rows.clone_state(), [stream.clone_state() for stream in rng.members])


def _length(atoms: Atoms, model: Model, outs: Tensor) -> Tensor:
    """Where the quadratic is least along each atom, by its own account where it has one."""
    return best_step(model, outs) if atoms.length is None else atoms.length


def _taken(proposals: Sequence[Atoms], best: Tensor) -> Assorted:
    """Of each member's proposals the one that was chosen, by its number ``(M,)``."""
    used, kind = best.unique(return_inverse=True)
    parts, place = [], torch.zeros_like(best)
    for i, number in enumerate(used.tolist()):
        own = (kind == i).nonzero().flatten()
        parts.append(proposals[number].select(own))
        place[own] = torch.arange(len(own), device=place.device)
    return Assorted(parts, kind, place)
