"""Oracle calls on rows of which each member may look at columns of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gce._utils.random import RoundStreams
from gce.bases.context import FitContext
from gce.bases.objectives import Objective
from gce.bases.proposal import Proposal
from gce.preprocessing.mixed import MixedRows


@dataclass(frozen=True, eq=False)
class MemberInputs:
    """Inputs of networks, of which each member has its own.

    Parameters
    ----------
    parts : tuple of Tensor of shape (n, d)
        Those of each of ``M`` members.
    """

    parts: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def device(self) -> torch.device:
        """Of all of them."""
        return self.parts[0].device

    @property
    def width(self) -> int:
        """Number of inputs of each member, ``d``."""
        return self.parts[0].shape[1]

    def select(self, members: Tensor) -> MemberInputs:
        """The inputs of some members."""
        return replace(self, parts=tuple(self.parts[m] for m in members.tolist()))


def member_inputs(X: MixedRows, rows: int, rng: RoundStreams, context: FitContext) -> MemberInputs:
    """The inputs of each member's first rows; kept for the whole fit.

    Parameters
    ----------
    X : MixedRows of shape (N, d)
    rows : int
    rng : RoundStreams
        Knows which members are asked for.
    context : FitContext

    Returns
    -------
    MemberInputs
    """

    def own(member: int) -> Tensor:
        return X.inputs[:rows, torch.from_numpy(X.inputs_of(member)).to(X.device)].contiguous()

    return MemberInputs(
        tuple(context.cached((X,), ("inputs", m, rows), lambda m=m: own(m)) for m in rng.numbers)  # type: ignore[misc]
    )


def minimize_by_member(
    minimize: Callable[..., Proposal], objective: Objective, X: MixedRows, *, rng: RoundStreams, context: FitContext
) -> Proposal:
    """Call an oracle for one member after another, each on the columns that it may look at.

    Parameters
    ----------
    minimize : callable
        :meth:`gce.bases.Basis.minimize`.
    objective : Objective
        Of ``M`` members.
    X : MixedRows of shape (N, d)
    rng : RoundStreams
    context : FitContext

    Returns
    -------
    Proposal
        Its atoms look at all columns again.
    """
    found = []
    for place, member in enumerate(rng.numbers):
        part = objective.select(torch.tensor([place], device=X.device))
        own = minimize(part, X.of_member(member), rng=rng.of(place), context=context)
        found.append(replace(own, atoms=own.atoms.among(X.columns_of(member), X.inputs_of(member), X.widths)))
    atoms = type(found[0].atoms).cat([own.atoms for own in found])
    outputs, lengths = [own.outputs for own in found], [own.step_length for own in found]
    return Proposal(
        atoms,
        None if any(own is None for own in outputs) else torch.cat([own for own in outputs if own is not None]),
        None if any(own is None for own in lengths) else torch.cat([own for own in lengths if own is not None]),
    )
