"""The rounds of all families side by side: outputs of their atoms on held-out rows, and mixtures of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.clock import check_time
from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.training.family_fit import FamilyFit
from gce.training.family_weights import best_outputs, mix_rounds
from gce.training.problem import Problem
from gce.training.rounds import factors_of

Array = NDArray[np.float64]

#: Numbers in a block of outputs of all rounds.
_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class RoundOutputs:
    """The rounds of all families that have weight in any member.

    Parameters
    ----------
    problem : Problem
    names : list of str
        The family of each round, ``(G,)``.
    times : array of shape (G,)
        Its number in the family, from 1.
    mass : array of shape (G,)
        Its weight in the family's ensemble, the mean over members.
    deep : array of shape (G,)
        Whether its atoms interpolate the rows they are trained on.
    ensembles : dict of ConvexEnsemble
        Each family alone.
    shapes : dict of (int, int)
        Members and rounds of each family.
    known : dict of Tensor of shape (M, N, k)
        Of families with a single round, such as forests, the predictions of each member: they are not computed again.
    deadline : float, default=math.inf
        On the clock of ``time.monotonic``: outputs that are asked for later are an
        :class:`~gce._utils.clock.OutOfTimeError`.
    """

    problem: Problem
    names: list[str]
    times: NDArray[np.intp]
    mass: Array
    deep: NDArray[np.bool_]
    ensembles: Mapping[str, ConvexEnsemble]
    shapes: Mapping[str, tuple[int, int]]
    known: Mapping[str, Tensor]
    deadline: float = math.inf

    @classmethod
    def of(cls, fits: Sequence[FamilyFit], problem: Problem, deadline: float) -> RoundOutputs:
        """The rounds of fitted families."""
        ensembles = {fit.name: fit.record.ensemble(problem.offset) for fit in fits}
        names, times, mass, deep = [], [], [], []
        for name, own in ensembles.items():
            born = own.origin[:, 1].cpu().numpy()
            total = np.bincount(born, own.weights.cpu().numpy())
            interpolates = any(part.interpolates for part in own.parts if isinstance(part, Atoms))
            for t in np.flatnonzero(total[1:] > 0) + 1:
                names.append(name)
                times.append(t)
                mass.append(total[t])
                deep.append(interpolates)
        shapes = {fit.name: (fit.members, fit.n_rounds) for fit in fits}
        known = {fit.name: best_outputs(fit, problem) for fit in fits if fit.n_rounds == 1}
        columns = np.array(times, dtype=np.intp), np.array(mass), np.array(deep, dtype=bool)
        return cls(problem, names, *columns, ensembles, shapes, known, deadline)

    def __len__(self) -> int:
        return len(self.names)

    def of_member(self, m: int) -> MemberOutputs:
        """The outputs of one member's atoms."""
        parts, known = [], []
        mass, everyone = torch.from_numpy(np.append(1.0, self.mass)), self.problem.members
        for name, own in self.ensembles.items():
            place, first = self._places(name), 0
            if name in self.known:
                known += [(int(at), self.known[name][m] / mass[at]) for at in place[1:]]
                continue
            for part in own.parts:
                assert isinstance(part, Atoms)
                born, weights = own.origin[first : first + len(part)], own.weights[first : first + len(part)]
                first += len(part)
                index = (born[:, 0] == m).nonzero().flatten()
                if not isinstance(part, Zero) and len(index):
                    at = place.to(index.device)[born[index, 1]]
                    share = everyone * weights[index] / mass.to(index.device)[at]
                    parts.append((at, share[:, None, None], part.select(index)))
        return MemberOutputs(self.problem, 1 + len(self), parts, known, self.deadline)

    def _places(self, name: str) -> Tensor:
        """Of each round of a family its place among the outputs, that of the zero function for round 0."""
        own = np.array(self.names) == name
        found = torch.zeros(1 + int(self.times[own].max(initial=0)), dtype=torch.long)
        found[torch.from_numpy(self.times[own])] = 1 + torch.from_numpy(np.flatnonzero(own))
        return found

    def scores(self, weights: Array) -> Tensor:
        """Scores ``(c, h, k)`` of members on the rows that they hold out, by each of some weights ``(c, 1 + G)``."""
        problem, k = self.problem, self.problem.y.shape[1]
        found = [problem.y.new_zeros(len(weights), 0, k)]
        spent = torch.stack([self._spent(self._unscaled(own)) for own in weights])
        for m, held_out in enumerate(problem.held_out):
            outputs, mixing = self.of_member(m), (torch.from_numpy(weights) / spent[:, m, None]).to(problem.y)
            for block in held_out.nonzero().flatten().split(max(1, _BLOCK // (k * weights.shape[1]))):
                found.append((mixing @ outputs(block).flatten(1)).view(len(weights), len(block), k))
        return torch.cat(found, 1) + problem.offset

    def mixed(self, weights: Array) -> ConvexEnsemble:
        """The ensemble of weights ``(1 + G,)``."""
        return mix_rounds(self.ensembles, self.factors(weights))

    def predictions(self, weights: Array) -> Tensor:
        """Predictions of each member on all rows by weights ``(1 + G,)``, ``(M, N, k)``, measured from the offset."""
        factors, problem = self.factors(weights), self.problem
        found = torch.zeros_like(problem.y).repeat(problem.members, 1, 1)
        others = {name: own for name, own in self.ensembles.items() if name not in self.known}
        if others:
            mixed = mix_rounds(others, {name: factors[name] for name in others})
            for m, own in enumerate(found):
                check_time(self.deadline)
                own += mixed.of_member(m)(problem.X) - problem.offset
        for name, outputs in self.known.items():
            found += factors[name].to(found)[:, :, None] * outputs
        return found

    def factors(self, weights: Array) -> dict[str, Tensor]:
        """Weights ``(1 + G,)`` as factors ``(M, T)`` of the weights of each family's members.

        Members of unequal weights in a round may exceed the simplex: these are scaled down to it.
        """
        found = self._unscaled(weights)
        spent = self._spent(found)
        return {name: own / spent[:, None] for name, own in found.items()}

    def _unscaled(self, weights: Array) -> dict[str, Tensor]:
        found = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in self.shapes.items()}
        for name, t, share, mass in zip(self.names, self.times.tolist(), weights[1:], self.mass, strict=True):
            found[name][:, t - 1] = float(share / mass)
        return found

    def _spent(self, factors: Mapping[str, Tensor]) -> Tensor:
        """What the weights of each member sum to, and at least 1, ``(M,)``."""
        total = sum(_member_totals(own, factors[name]) for name, own in self.ensembles.items())
        assert isinstance(total, Tensor)
        return total.clamp(min=1)


@dataclass(frozen=True, eq=False)
class MemberOutputs:
    """Outputs of one member's atoms, in units of the mean weight of their rounds.

    Parameters
    ----------
    problem : Problem
    count : int
        Number of rounds and the zero function.
    parts : list of (Tensor of shape (A,), Tensor of shape (A, 1, 1), Atoms)
        Atoms, which rounds they belong to and their factors.
    known : list of (int, Tensor of shape (N, k))
        Rounds whose outputs are known, and these outputs on all rows.
    deadline : float
    """

    problem: Problem
    count: int
    parts: list[tuple[Tensor, Tensor, Atoms]]
    known: list[tuple[int, Tensor]]
    deadline: float

    def __call__(self, rows: Tensor) -> Tensor:
        """Outputs on some rows, ``(1 + G, n, k)``, those of the zero function first."""
        check_time(self.deadline)
        X, y = self.problem.X[rows], self.problem.y
        found = y.new_zeros(self.count, len(rows), y.shape[1])
        for at, share, part in self.parts:
            # a member has one atom of a round at most
            found[at] = share * part(part.seen(X))
        for place, outputs in self.known:
            found[place] = outputs[rows]
        return found


def _member_totals(own: ConvexEnsemble, factors: Tensor) -> Tensor:
    """What weights of an ensemble, times factors ``(M, T)``, sum to in each member, ``(M,)``."""
    weights = own.members * own.weights * factors_of(factors, own.origin)
    return torch.zeros_like(factors[:, 0]).index_add_(0, own.origin[:, 0].cpu(), weights.cpu())
