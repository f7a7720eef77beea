"""Which family each atom of a fitted ensemble belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.bases.base import Atoms, Zero
from gce.training.result import FitResult

#: What a reader calls the atoms of a model that no longer knows its families, by their class.
_KINDS = {"TreeAtoms": "trees", "ForestAtoms": "forests", "Networks": "networks"}


@dataclass(frozen=True)
class AtomFamilies:
    """The family of each atom.

    Parameters
    ----------
    names : tuple of F str
        The families, in the order of the fit. An edited model of several families only has kinds of atoms.
    index : array of shape (A,)
        The family of each atom; -1 for the zero function, which belongs to none.
    born : array of shape (A,)
        The round of its family that made each atom.
    """

    names: tuple[str, ...]
    index: NDArray[np.intp]
    born: NDArray[np.int64]

    def members_of(self, name: str) -> NDArray[np.intp]:
        """The atoms of a family."""
        return np.flatnonzero(self.index == self.names.index(name))


def atom_families(result: FitResult) -> AtomFamilies:
    """Find the family of each atom by the round that made it: rounds are counted on from family to family.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    AtomFamilies
    """
    zero, born = _is_zero(result), result.ensemble.origin[:, 1].cpu().numpy()
    names = tuple(family.name for family in result.fitted_families) or tuple(result.bases)
    if len(names) == 1:
        return AtomFamilies(names, np.where(zero, -1, 0), born)
    if result.edited:
        return _by_kind(result, born)
    # as in gce.training.family_weights.mix_rounds
    before = np.cumsum([0, *(len(family.history) for family in result.fitted_families)])
    index = np.where(zero, -1, np.searchsorted(before, born, side="left") - 1)
    return AtomFamilies(names, index, np.where(zero, 0, born - before[np.maximum(index, 0)]))


def _is_zero(result: FitResult) -> NDArray[np.bool_]:
    parts = [part for part in result.ensemble.parts if isinstance(part, Atoms)]
    return np.concatenate([np.full(len(part), isinstance(part, Zero)) for part in parts])


def _by_kind(result: FitResult, born: NDArray[np.int64]) -> AtomFamilies:
    kinds = []
    for part in result.ensemble.parts:
        assert isinstance(part, Atoms)
        own = (type(part.at(position)[0]).__name__ for position in range(len(part)))
        kinds += [None if name == "Zero" else _KINDS.get(name, name) for name in own]
    names = tuple(dict.fromkeys(kind for kind in kinds if kind is not None))
    index = np.array([-1 if kind is None else names.index(kind) for kind in kinds])
    return AtomFamilies(names, index, born)
