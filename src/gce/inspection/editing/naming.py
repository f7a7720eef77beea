"""Atoms by name: the member they belong to, and their index in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import is_iterable, short_repr
from gce.frank_wolfe.ensemble import ConvexEnsemble

#: How atoms are called, and nothing else may be.
_ATOM = re.compile(r"\d+:\d+")


def origins(ensemble: ConvexEnsemble) -> NDArray[np.int64]:
    """Of each atom the member and its index there, ``(A, 2)``: the round that made it, 0 for the zero function.

    Atoms that were trained at once share a round: they are numbered from 1.
    """
    own: NDArray[np.int64] = ensemble.origin.cpu().numpy()
    if len(np.unique(own, axis=0)) == len(own):
        return own
    numbered = own.copy()
    for m in np.unique(own[:, 0]):
        where = np.flatnonzero(own[:, 0] == m)
        numbered[where, 1] = np.arange(1, len(where) + 1)
    return numbered


def atom_name(member: int, index: int) -> str:
    """What an atom is called."""
    return f"{member}:{index}"


def is_zero(name: str) -> bool:
    """Whether a name is that of a zero function."""
    return _ATOM.fullmatch(name) is not None and name.endswith(":0")


def check_known(given: str | Iterable[str], known: Collection[str]) -> list[str]:
    """One name or several, each of which must be known."""
    names: list[Any] = [given] if isinstance(given, str) or not is_iterable(given) else list(given)
    if not names:
        raise ValueError(
            f"names is {short_repr(given)}, so there is nothing to remove: give a name, or a list of names"
        )
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=3, cutoff=0.0)
            raise ValueError(
                f"names has {short_repr(name)}, which is not in this model: the nearest are "
                f"{', '.join(map(repr, near))}"
            )
    return names


def check_new(name: str, known: Collection[str]) -> None:
    """A name that is not taken."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name must be text, got {name!r}")
    if name in known:
        raise ValueError(f"there is a {name!r} already: remove it first, or give another name")
    if _ATOM.fullmatch(name):
        raise ValueError(f"{name!r} is what an atom is called: give another name")
