"""Atoms of several kinds in one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

import torch
from torch import Tensor, nn

from gce._utils.codecs import Parts
from gce.bases.base import Atoms
from gce.preprocessing.mixed import Rows, Widths
from gce.preprocessing.sparse import Inputs


class MixedAtoms(Atoms):
    """The atoms of one round, where members may have atoms of different kinds.

    Parameters
    ----------
    parts : sequence of Atoms
        The atoms of each kind.
    kind, place : Tensor of shape (A,)
        Each atom's part, and its position there.
    """

    kind: Tensor
    place: Tensor

    def __init__(self, parts: Sequence[Atoms], kind: Tensor, place: Tensor) -> None:
        super().__init__()
        self._parts = nn.ModuleList(parts)
        self.register_buffer("kind", kind)
        self.register_buffer("place", place)

    @property
    def parts(self) -> list[Atoms]:
        return [part for part in self._parts if isinstance(part, Atoms)]

    @property
    def unstorable_name(self) -> str | None:
        if type(self) is not MixedAtoms:
            return super().unstorable_name
        return next((part.unstorable_name for part in self.parts if part.unstorable_name is not None), None)

    def stored(self) -> Parts:
        from gce.bases import registry

        parts = Parts({}, {"kind": self.kind, "place": self.place})
        parts.add("parts", registry.store(self.parts))
        return parts

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> MixedAtoms:
        from gce.bases import registry

        kind = parts.tensor("kind", None, dtype=torch.int64)
        place = parts.tensor("place", len(kind), dtype=torch.int64)
        some = parts.within("parts")
        # parts of parts would be read without end
        if "assorted" in some.words("kinds"):
            raise ValueError("mixed atoms must not contain mixed atoms")
        own = registry.restore(some, widths, bound)
        sizes = torch.tensor([len(part) for part in own])
        if kind.min() < 0 or kind.max() >= len(own) or place.min() < 0 or (place >= sizes[kind]).any():
            raise ValueError("indices of mixed atoms are out of range")
        return MixedAtoms(own, kind, place)

    def __len__(self) -> int:
        return len(self.kind)

    def seen(self, X: Rows) -> Inputs:
        # each part sees them as it does
        return cast(Inputs, X)

    def forward(self, X: Inputs) -> Tensor:
        # one by one, so that rounding does not depend on neighbours: those of a resumed fit differ
        apart = [self.at(position) for position in range(len(self))]
        return torch.cat([part.select(torch.tensor([place]))(part.seen(X)).double() for part, place in apart])

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
