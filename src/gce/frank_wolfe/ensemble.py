"""Convex combinations of frozen atoms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gce._utils.params import counted, short_list
from gce.bases.base import Atoms, Zero
from gce.preprocessing.mixed import Rows

#: Below this a factor is summed from weights: ``1 - z`` would lose its digits.
_SMALL = 1e-3


class ConvexEnsemble(nn.Module):
    """``f(x) = offset + sum_j weights_j atom_j(x)``, weights on the simplex.

    Parameters
    ----------
    atoms : sequence of Atoms
        Of one or several kinds; ``weights`` and ``origin`` follow their order.
    weights : Tensor of shape (A,), or (A, k) where each output has its own simplex
    origin : Tensor of shape (A, 2)
        The member and the round of each atom (round 0: the zero function that every fit starts from).
    offset, bound : Tensor of shape (k,)
        ``|f - offset| <= bound``, because it holds for every atom and so for their convex combinations.

    Examples
    --------
    >>> import torch
    >>> from gce.bases import Zero
    >>> from gce.frank_wolfe import ConvexEnsemble
    >>> zero, one = Zero(count=1, outputs=1), torch.ones(1, dtype=torch.float64)
    >>> ensemble = ConvexEnsemble([zero], weights=one, origin=torch.zeros(1, 2).long(), offset=3 * one, bound=one)
    >>> ensemble(torch.zeros(2, 5, dtype=torch.float64)).tolist()
    [[3.0], [3.0]]
    """

    weights: Tensor
    origin: Tensor
    offset: Tensor
    bound: Tensor
    #: Weights, and what :meth:`_weighted_parts` made of them.
    _known: tuple[Tensor, list[tuple[Atoms, Tensor]]] | None = None

    def __init__(self, atoms: Sequence[Atoms], weights: Tensor, origin: Tensor, offset: Tensor, bound: Tensor) -> None:
        super().__init__()
        self.parts = nn.ModuleList(atoms)
        for name, value in (("weights", weights), ("origin", origin), ("offset", offset), ("bound", bound)):
            self.register_buffer(name, value)

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        """How many atoms of each kind there are, with their weights, in three lines."""
        kinds: dict[str, tuple[int, float]] = {}
        each, first = self.weights.reshape(len(self), -1).mean(1), 0
        for part in self.parts:
            assert isinstance(part, Atoms)
            count, weight = kinds.get(type(part).__name__, (0, 0.0))
            share = float(each[first : first + len(part)].sum())
            kinds[type(part).__name__], first = (count + len(part), weight + share), first + len(part)
        listed = ", ".join(f"{count:,} {kind} (weight {weight:.3g})" for kind, (count, weight) in kinds.items())
        offset, bound = (short_list([round(v, 6) for v in own.tolist()]) for own in (self.offset, self.bound))
        atoms, members = counted(len(self), "atom"), counted(self.members, "member")
        return f"ConvexEnsemble of {atoms} in {members}\n  {listed}\n  offset {offset}, bound {bound}"

    @property
    def members(self) -> int:
        """The number of members that are averaged."""
        return int(self.origin[:, 0].max()) + 1

    def select(self, chosen: Tensor) -> ConvexEnsemble:
        """Some of the atoms, with the weights they have.

        Parameters
        ----------
        chosen : bool Tensor of shape (A,)
        """
        parts, first = [], 0
        for part in self.parts:
            assert isinstance(part, Atoms)
            own = chosen[first : first + len(part)].nonzero().flatten()
            first += len(part)
            if len(own):
                parts.append(part.select(own))
        return ConvexEnsemble(parts, self.weights[chosen], self.origin[chosen], self.offset, self.bound)

    def of_member(self, m: int) -> ConvexEnsemble:
        """The ensemble of one member, with its weights before averaging.

        Parameters
        ----------
        m : int
            The member, from 0.
        """
        own = self.select(self.origin[:, 0] == m)
        own.weights = self.members * own.weights
        return own

    def outputs(self, X: Rows) -> Tensor:
        """Outputs of every atom, ``(A, n, k)``, in float64.

        Parameters
        ----------
        X : Tensor, SparseRows or MixedRows of shape (n, d)
            Rows of a table.
        """
        parts = [part for part in self.parts if isinstance(part, Atoms)]
        return torch.cat([part(part.seen(X)).double() for part in parts])

    def forward(self, X: Rows) -> Tensor:
        """Raw scores, ``(n, k)``, in float64.

        Parameters
        ----------
        X : Tensor, SparseRows or MixedRows of shape (n, d)
            Rows of a table.
        """
        outs = [part.mix(part.seen(X), weights) for part, weights in self._weighted_parts()]
        if self.offset.device.type == "cpu" and not any(out.requires_grad for out in outs):
            # not by torch: its threads wait for more to do at full speed, on the cores that kernels need
            total = np.tile(self.offset.numpy(), (len(X), 1))
            for out in outs:
                total += out.numpy()
            return torch.from_numpy(total)
        pred = self.offset.expand(len(X), -1).clone()
        for out in outs:
            pred += out
        return pred

    def _weighted_parts(self) -> list[tuple[Atoms, Tensor]]:
        """The atoms with their weights ``(A, J)``, those of the zero function left out."""
        # weights change with the device; parts know by the same tensor that they have been asked before
        if self._known is None or self._known[0] is not self.weights:
            by_output = self.weights if self.weights.ndim == 2 else self.weights[:, None]
            found, first = [], 0
            for part in self.parts:
                assert isinstance(part, Atoms)
                if not isinstance(part, Zero):
                    found.append((part, by_output[first : first + len(part)]))
                first += len(part)
            self._known = self.weights, found
        return self._known[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}


def collect(chosen: Iterable[tuple[int, int, Atoms, int, Tensor]], offset: Tensor, bound: Tensor) -> ConvexEnsemble:
    """Collect weighted atoms in an ensemble, with atoms of the same form stacked.

    Parameters
    ----------
    chosen : iterable of (member, round, atoms, position, weight)
        ``weight`` of shape ``(J,)``, already divided by the number of members.
    offset, bound : Tensor of shape (k,)

    Returns
    -------
    ConvexEnsemble
    """
    kinds: dict[tuple[object, ...], _Stack] = {}
    for member, t, atoms, position, weight in chosen:
        own, place = atoms.at(position)
        kinds.setdefault(own.form, _Stack()).add(own, place, (member, t), weight)
    weights = torch.stack([weight for stack in kinds.values() for weight in stack.weights]).to(bound.device)
    origin = torch.tensor([born for stack in kinds.values() for born in stack.origin], device=weights.device)
    stacked = [stack.atoms(bound.device) for stack in kinds.values()]
    return ConvexEnsemble(stacked, weights[:, 0] if weights.shape[1] == 1 else weights, origin, offset, bound)


class _Stack:
    """Atoms of one form, concatenated and selected from only once."""

    def __init__(self) -> None:
        self._parts: list[Atoms] = []
        self._first: dict[int, int] = {}
        self._count = 0
        self._index: list[int] = []
        self.origin: list[tuple[int, int]] = []
        self.weights: list[Tensor] = []

    def add(self, atoms: Atoms, position: int, born: tuple[int, int], weight: Tensor) -> None:
        if id(atoms) not in self._first:
            self._first[id(atoms)] = self._count
            self._parts.append(atoms)
            self._count += len(atoms)
        self._index.append(self._first[id(atoms)] + position)
        self.origin.append(born)
        self.weights.append(weight)

    def atoms(self, device: torch.device) -> Atoms:
        return type(self._parts[0]).cat(self._parts).select(torch.tensor(self._index, device=device))


def tighten_bound(ensemble: ConvexEnsemble) -> ConvexEnsemble:
    """Return the same function with the smallest bound that its weights allow.

    Where the zero function has weight ``z`` or more in every member, let ``c = 1 - z``: atoms times ``c`` with weights
    divided by ``c`` are the same function, and the zero function takes the rest: ``B -> c B``, ``g -> c g``,
    ``w -> w / c``.
    """
    zero, member = _zeros(ensemble), ensemble.origin[:, 0]
    spared, used = (
        ensemble.members * torch.stack([ensemble.weights[some & (member == m)].sum() for m in range(ensemble.members)])
        for some in (zero, ~zero)
    )
    factor, left = 1 - float(spared.min()), ensemble.members * ensemble.weights[zero] - spared.min()
    if factor < _SMALL and ensemble.weights.ndim == 1:
        factor = float(used.max())
        left = factor - used[member[zero]]
    if not 0 < factor < 1 or ensemble.weights.ndim > 1:
        return ensemble
    weights = ensemble.weights / factor
    weights[zero] = left.clamp(min=0) / (ensemble.members * factor)
    scaled = [part.scaled(factor) for part in ensemble.parts if isinstance(part, Atoms)]
    return drop_zero_atoms(ConvexEnsemble(scaled, weights, ensemble.origin, ensemble.offset, factor * ensemble.bound))


def drop_zero_atoms(ensemble: ConvexEnsemble) -> ConvexEnsemble:
    """Return the same function without zero functions of weight 0; a member with no other atom keeps its own."""
    zero, member = _zeros(ensemble), ensemble.origin[:, 0]
    kept = ~zero | (ensemble.weights > 0) | ~torch.isin(member, member[~zero])
    parts, first = [], 0
    for part in ensemble.parts:
        assert isinstance(part, Atoms)
        chosen = kept[first : first + len(part)].nonzero().flatten()
        first += len(part)
        if len(chosen):
            parts.append(part if len(chosen) == len(part) else part.select(chosen))
    return ConvexEnsemble(parts, ensemble.weights[kept], ensemble.origin[kept], ensemble.offset, ensemble.bound)


def _zeros(ensemble: ConvexEnsemble) -> Tensor:
    """Mask ``(A,)`` of the zero functions."""
    parts = [part for part in ensemble.parts if isinstance(part, Atoms)]
    zero = torch.cat([torch.full((len(part),), isinstance(part, Zero)) for part in parts])
    return zero.to(ensemble.weights.device)
