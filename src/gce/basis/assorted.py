"""Atoms of several kinds side by side, each remembering which it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from gce.basis.base import Atoms
from gce.parts import Parts
from gce.rows import Inputs


class Assorted(Atoms):
    """What members of a fit got in one round, where each may have got an atom of another kind.

    Parameters
    ----------
    parts : sequence of Atoms
        One of each kind, and of those kinds' own classes.
    kind, place : Tensor of shape (A,)
        An atom is the one at ``place`` in the part ``kind``.
    """

    kind: Tensor
    place: Tensor
    #: The rows of a fit, and the outputs there ``(A, N, k)``, while it runs.
    known: tuple[Inputs, Tensor] | None = None

    def __init__(self, parts: Sequence[Atoms], kind: Tensor, place: Tensor) -> None:
        super().__init__()
        self._parts = nn.ModuleList(parts)
        self.register_buffer("kind", kind)
        self.register_buffer("place", place)

    def __getstate__(self) -> dict[str, Any]:
        # rows belong to a fit
        return {**self.__dict__, "known": None}

    @property
    def parts(self) -> list[Atoms]:
        return [part for part in self._parts if isinstance(part, Atoms)]

    @property
    def foreign(self) -> str | None:
        if type(self) is not Assorted:
            return super().foreign
        return next((part.foreign for part in self.parts if part.foreign is not None), None)

    def stored(self) -> Parts:
        from gce.basis import stored

        parts = Parts({}, {"kind": self.kind, "place": self.place})
        parts.add("parts", stored.store(self.parts))
        return parts

    @classmethod
    def restored(cls, parts: Parts, inputs: int, bound: Tensor) -> Assorted:
        from gce.basis import stored

        kind = parts.tensor("kind", None, dtype=torch.int64)
        place = parts.tensor("place", len(kind), dtype=torch.int64)
        some = parts.within("parts")
        # parts of parts would be read without end
        if "assorted" in some.words("kinds"):
            raise ValueError("atoms of several kinds hold others of several kinds")
        own = stored.restore(some, inputs, bound)
        sizes = torch.tensor([len(part) for part in own])
        if kind.min() < 0 or kind.max() >= len(own) or place.min() < 0 or (place >= sizes[kind]).any():
            raise ValueError("atoms of several kinds are not where they should be")
        return Assorted(own, kind, place)

    def __len__(self) -> int:
        return len(self.kind)

    def forward(self, X: Inputs) -> Tensor:
        if self.known is not None and self.known[0] is X:
            return self.known[1]
        # one by one, so that none rounds differently for who stands beside it: a resumed fit has other neighbours
        apart = [self.at(position) for position in range(len(self))]
        return torch.cat([part.select(torch.tensor([place]))(X).double() for part, place in apart])

    def at(self, position: int) -> tuple[Atoms, int]:
        part = self.parts[int(self.kind[position])]
        assert isinstance(part, Atoms)
        return part.at(int(self.place[position]))

    def select(self, index: Tensor) -> Self:
        kind, place = self.kind[index], self.place[index]
        used, kind = kind.unique(return_inverse=True)
        parts, moved = [], place.clone()
        for i, old in enumerate(used.tolist()):
            parts.append(self.parts[old].select(place[kind == i]))
            moved[kind == i] = torch.arange(len(parts[-1]), device=place.device)
        return type(self)(parts, kind, moved)

    def scaled(self, factor: float) -> Self:
        return type(self)([part.scaled(factor) for part in self.parts], self.kind, self.place)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        stacks: dict[tuple[object, ...], tuple[int, list[Atoms]]] = {}
        kinds, places = [], []
        for some in parts:
            to, shift = [], []
            for part in some.parts:
                number, stack = stacks.setdefault(part.form, (len(stacks), []))
                to.append(number)
                shift.append(sum(map(len, stack)))
                stack.append(part)
            kinds.append(some.kind.new_tensor(to)[some.kind])
            places.append(some.place.new_tensor(shift)[some.kind] + some.place)
        joined = [type(stack[0]).cat(stack) for _, stack in stacks.values()]
        return cls(joined, torch.cat(kinds), torch.cat(places))
