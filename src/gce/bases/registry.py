"""Atoms in files: a name for each class of atoms that can be written to one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from torch import Tensor

from gce._utils.codecs import Parts
from gce.bases.base import Atoms, Zero
from gce.bases.mixed_atoms import MixedAtoms
from gce.bases.neural.network import Networks
from gce.bases.trees.forest import ForestAtoms
from gce.bases.trees.tree import TreeAtoms
from gce.preprocessing.mixed import Widths

#: Classes of atoms by their names in files.
KINDS: dict[str, type[Atoms]] = {
    "zero": Zero,
    "networks": Networks,
    "trees": TreeAtoms,
    "forests": ForestAtoms,
    "assorted": MixedAtoms,
}
#: Maximum number of stacks of atoms in a file, one per form: more than any fit makes.
_MOST_STACKS = 1000


class Named(Protocol):
    """Anything with a description for error messages where it cannot be written to a file."""

    @property
    def unstorable_name(self) -> str | None: ...


def first_unstorable(objects: Iterable[Named]) -> str | None:
    """The description of the first object that cannot be written to a file; None where all can."""
    return next((name for name in (one.unstorable_name for one in objects) if name is not None), None)


def store(atoms: Sequence[Atoms]) -> Parts:
    """The content of a file for atoms of several kinds, all of which can be written to one."""
    parts = Parts({"kinds": []})
    for i, part in enumerate(atoms):
        (kind,) = (name for name, known in KINDS.items() if type(part) is known)
        parts.meta["kinds"].append(kind)
        parts.add(str(i), part.stored())
    return parts


def restore(parts: Parts, widths: Widths, bound: Tensor) -> list[Atoms]:
    """Read atoms for rows of some widths, within a bound ``(k,)``; a ValueError where the content is no such atoms."""
    kinds = parts.words("kinds")
    if len(kinds) > _MOST_STACKS:
        raise ValueError(f"{len(kinds)} stacks of atoms are more than {_MOST_STACKS}")
    if unknown := set(kinds) - KINDS.keys():
        raise ValueError(f"{sorted(unknown)[0]!r} is not a known kind of atoms")
    return [KINDS[kind].restored(parts.within(str(i)), widths, bound) for i, kind in enumerate(kinds)]
