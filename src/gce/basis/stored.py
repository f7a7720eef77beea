"""Atoms in files: a name for each class that a file can hold, and the way back from the name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from torch import Tensor

from gce.basis.assorted import Assorted
from gce.basis.base import Atoms, Zero
from gce.basis.forest import ForestAtoms
from gce.basis.network import Networks
from gce.basis.tree import TreeAtoms
from gce.parts import Parts

#: A class of atoms that a file can hold has its name here.
KINDS: dict[str, type[Atoms]] = {
    "zero": Zero,
    "networks": Networks,
    "trees": TreeAtoms,
    "forests": ForestAtoms,
    "assorted": Assorted,
}
#: Stacks of atoms in a file, one a form: more than a fit can make is refused before it costs anything.
_MOST_STACKS = 1000


class Named(Protocol):
    """Whoever says what to call it where no file can hold it."""

    @property
    def foreign(self) -> str | None: ...


def first_foreign(some: Iterable[Named]) -> str | None:
    """What to call the first member that no file can hold; None where there is none."""
    return next((name for name in (one.foreign for one in some) if name is not None), None)


def store(atoms: Sequence[Atoms]) -> Parts:
    """Atoms of several kinds, none of them foreign, in their order."""
    parts = Parts({"kinds": []})
    for i, some in enumerate(atoms):
        (kind,) = (name for name, known in KINDS.items() if type(some) is known)
        parts.meta["kinds"].append(kind)
        parts.add(str(i), some.stored())
    return parts


def restore(parts: Parts, inputs: int, bound: Tensor) -> list[Atoms]:
    """Atoms for so many inputs, within a bound ``(k,)``; a ValueError where a file holds no such atoms."""
    kinds = parts.words("kinds")
    if len(kinds) > _MOST_STACKS:
        raise ValueError(f"{len(kinds)} stacks of atoms are more than {_MOST_STACKS}")
    if unknown := set(kinds) - KINDS.keys():
        raise ValueError(f"{sorted(unknown)[0]!r} is no kind of atoms")
    return [KINDS[kind].restored(parts.within(str(i)), inputs, bound) for i, kind in enumerate(kinds)]
