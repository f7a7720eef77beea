"""From a fitted ensemble to its shares, with answers on rows, and back to an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.basis.base import Atoms, Zero
from gce.ensemble import ConvexEnsemble, collect
from gce.fitting import Problem
from gce.risk import Risk
from gce.surgery.naming import atom_name, origins
from gce.surgery.share import Share
from gce.weighting import Outputs

Array = NDArray[np.float64]


class Placed(NamedTuple):
    """An atom: where it comes from, and where it stands."""

    member: int
    number: int
    part: Atoms
    position: int

    @property
    def name(self) -> str:
        return atom_name(self.member, self.number)


def placed(ensemble: ConvexEnsemble) -> Iterator[Placed]:
    """The atoms of an ensemble, in their order."""
    own = iter(origins(ensemble).tolist())
    for part in ensemble.parts:
        assert isinstance(part, Atoms)
        for position in range(len(part)):
            member, number = next(own)
            yield Placed(member, number, part, position)


@dataclass(frozen=True)
class Footing:
    """The rows that an edit stands on.

    Parameters
    ----------
    problem : Problem
    total : array of shape (M,)
        What the rows that each share calibrates answers by count beside those of others.
    guests : dict of Tensor of shape (N, k)
        The answers of guests on the problem's rows, by name.
    """

    problem: Problem
    total: Array
    guests: Mapping[str, Tensor]


def share_of(part: ConvexEnsemble, m: int, problem: Problem, weight: Tensor) -> Share:
    """A part of an ensemble whose weights are to be found on rows of weights ``(N,)``.

    The zero functions among its atoms are one, which is there in any case and is called the ``m``-th member's.
    """
    rows = weight.nonzero().flatten()
    answers = [answer for atoms in part.parts if not isinstance(atoms, Zero) for answer in atoms(problem.X[rows])]
    atoms = list(placed(part))
    constant = np.array([isinstance(atom.part, Zero) for atom in atoms])
    weights = part.weights.cpu().numpy()
    risk = Risk(problem.loss, problem.y[rows], weight[rows][None], problem.offset)
    return Share(
        (atom_name(m, 0), *(atom.name for atom in atoms if not isinstance(atom.part, Zero))),
        Outputs([torch.zeros_like(risk.y), *answers]),
        risk,
        np.append(weights[constant].sum(), weights[~constant]),
        (0,),
    )


def assembled(ensemble: ConvexEnsemble, weights: Mapping[str, float], members: int) -> ConvexEnsemble:
    """The atoms that have weight, by name; each of so many members that has none keeps the zero function."""

    def chosen() -> Iterator[tuple[int, int, Atoms, int, Tensor]]:
        empty = set(range(members))
        for atom in placed(ensemble):
            if not isinstance(atom.part, Zero) and weights.get(atom.name, 0.0) > 0:
                empty.discard(atom.member)
                yield *atom, ensemble.weights.new_tensor([weights[atom.name]])
        zero = Zero(1, len(ensemble.bound))
        for m in range(members):
            weight = weights.get(atom_name(m, 0), 0.0)
            if weight > 0 or m in empty:
                yield m, 0, zero, 0, ensemble.weights.new_tensor([weight])

    return collect(chosen(), ensemble.offset, ensemble.bound)
