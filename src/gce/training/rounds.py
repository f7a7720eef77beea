"""Rounds and epochs as immutable records: what files, plots and predictions after each round read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble, collect, tighten_bound

#: What is said where rounds are needed that a file did not keep.
NO_ROUNDS = (
    "this model was loaded from a file that holds its ensemble, not its rounds, so that it has no predictions after "
    "each round and cannot be continued: save it with save(path, resumable=True), or set warm_start=False and fit again"
)

#: Of a slot: the round that added it, its atoms, and which of them belongs to which member.
Slot = tuple[int, Atoms, dict[int, int]]


@dataclass(frozen=True)
class Round:
    """What one round changed.

    Parameters
    ----------
    t : int
        The round, from 1.
    seconds : float
        Since the fit began.
    members : list of int
        The members that ran.
    columns : dict of str to list of float
        Of each of them ``risk``, ``gap`` and ``suboptimality`` (exact oracles) or ``gap_lower``, ``step_size``,
        ``n_atoms`` and, where rows are held out, ``validation``.
    weights : Tensor of shape (M, T, J)
        Their weights after the round, on the CPU.
    calls : list of int
        Their oracle calls so far.
    last_gap : list of float
        Their gaps at the last oracle call.
    finished : list of int
        The members that this round finished.
    atoms : Atoms or None
        The atoms that the round added.
    position : dict of int to int
        Which of these atoms belongs to which member.
    """

    t: int
    seconds: float
    members: list[int]
    columns: dict[str, list[float]]
    weights: Tensor
    calls: list[int]
    last_gap: list[float]
    finished: list[int]
    atoms: Atoms | None
    position: dict[int, int]


@dataclass(frozen=True, eq=False)
class FamilyRecord:
    """Every round of one family, and the round at which each member was stopped.

    Parameters
    ----------
    name : str
    members : int
    rounds : tuple of Round
        Empty where the fit ended before the family began.
    best_round : tuple of int
        Of each member the round that is kept, as early stopping decided it.
    bound : Tensor of shape (k,) or None
        The hull of the rounds; None before the first one.
    inflated_bound : bool
        The hull was made wide enough for any number of rounds: the ensemble's is as narrow as its weights allow.
    shared_stopping : bool
        All members stop at the same round.
    """

    name: str
    members: int
    rounds: tuple[Round, ...]
    best_round: tuple[int, ...]
    bound: Tensor | None
    inflated_bound: bool = False
    shared_stopping: bool = False

    unit: ClassVar[str] = "round"

    def __getstate__(self) -> dict[str, Any]:
        # what is computed from the fields is computed again
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    def seconds(self) -> float:
        """Duration of all rounds."""
        return self.rounds[-1].seconds if self.rounds else 0.0

    @property
    def atoms(self) -> list[Atoms]:
        """The atoms that the rounds added; the zero function is not among them."""
        return [record.atoms for record in self.rounds if record.atoms is not None]

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """One plain dict per round: means over members, whose own values are lists."""
        last: dict[str, list[float]] = {}
        return [_entry(record, last, self.members) for record in self.rounds]

    def ensemble(self, offset: Tensor) -> ConvexEnsemble:
        """The average of the members, each at its best round, without atoms of weight zero."""
        bound = self._bound(offset)
        weights = [path[best - 1] for path, best in zip(self._paths, self.best_round, strict=True)]
        found = collect(self._weighted(weights, len(bound)), offset, bound)
        return tighten_bound(found) if self.inflated_bound else found

    def stages(self, offset: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Every atom that ever had weight, and the weights ``(A, J)`` of all of them after each round.

        A member keeps the weights of its best round from then on, so that the last stage is the ensemble.
        """
        bound = self._bound(offset)
        paths = [path[:best] for path, best in zip(self._paths, self.best_round, strict=True)]
        ever = [torch.stack([padded(w, len(path[-1])) for w in path]).amax(0) for path in paths]
        everyone = collect(self._weighted(ever, len(bound)), offset, bound)
        slot_of = {born: slot for slot, (born, *_) in enumerate(self._slots(len(bound)))}
        where = [(m, slot_of[born]) for m, born in everyone.origin.tolist()]
        stages = []
        for t in range(1, len(self.rounds) + 1):
            now = [padded(path[min(t, len(path)) - 1], len(path[-1])) for path in paths]
            stages.append(torch.stack([now[m][slot] for m, slot in where]).to(bound.device) / self.members)
        return everyone, stages

    @property
    def _paths(self) -> list[list[Tensor]]:
        return weight_paths(self.rounds, self.members)

    def _bound(self, offset: Tensor) -> Tensor:
        assert self.bound is not None
        return self.bound.to(offset.device)

    def _slots(self, outputs: int) -> list[Slot]:
        everyone = {m: m for m in range(self.members)}
        added = [(record.t, record.atoms, record.position) for record in self.rounds if record.atoms is not None]
        return [(0, Zero(self.members, outputs), everyone), *added]

    def _weighted(self, weights: list[Tensor], outputs: int) -> Iterator[tuple[int, int, Atoms, int, Tensor]]:
        slots = self._slots(outputs)
        for m, own in enumerate(weights):
            for (born, atoms, position), weight in zip(slots, own, strict=False):
                if (weight > 0).any():
                    yield m, born, atoms, position[m], weight / self.members


@dataclass(frozen=True, eq=False)
class FamilySummary:
    """The history of a family whose rounds were left out of a file: what remains when only the ensemble is kept.

    Parameters
    ----------
    name : str
    members : int
    history : list of dict
        One plain dict per round, as of a :class:`FamilyRecord`; empty where the family never began.
    best_round : tuple of int
        Of each member the round that is kept.
    """

    name: str
    members: int
    history: list[dict[str, Any]]
    best_round: tuple[int, ...]

    unit: ClassVar[str] = "round"
    rounds: ClassVar[tuple[Round, ...]] = ()

    def stages(self, offset: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Refused: the file has no rounds."""
        raise ValueError(NO_ROUNDS)


@dataclass(frozen=True, eq=False)
class EpochRecord:
    """Every epoch of networks that were trained all at once.

    Parameters
    ----------
    name : str
    members : int
    history : list of dict
        One plain dict per epoch: means over members, whose own values are lists.
    best_round : tuple of int
        Of each member the epoch that is kept.
    """

    name: str
    members: int
    history: list[dict[str, Any]]
    best_round: tuple[int, ...]

    unit: ClassVar[str] = "epoch"
    rounds: ClassVar[tuple[Round, ...]] = ()

    def stages(self, offset: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Refused: atoms and weights changed in every epoch, and only those of the best one are kept."""
        raise ValueError("a jointly trained model has no rounds")


def weight_paths(rounds: Sequence[Round], members: int) -> list[list[Tensor]]:
    """Each member's weights ``(T, J)`` after each round, up to the last one it ran in."""
    paths: list[list[Tensor]] = [[] for _ in range(members)]
    for record in rounds:
        for m, weights in zip(record.members, record.weights, strict=True):
            # a round without the member leaves its weights as they were
            paths[m].extend(paths[m][-1:] * (record.t - 1 - len(paths[m])))
            paths[m].append(weights)
    return paths


def factors_of(rounds: Tensor, origin: Tensor) -> Tensor:
    """Factors ``(M, T)`` of members and rounds, for atoms of the given origins ``(A, 2)``; 0 for the zero function."""
    return torch.nn.functional.pad(rounds.to(origin.device), (1, 0))[origin[:, 0], origin[:, 1]]


def padded(weights: Tensor, slots: int) -> Tensor:
    """Weights ``(T, J)`` followed by zeros for the slots that were added later."""
    return torch.cat([weights, weights.new_zeros(slots - len(weights), weights.shape[1])])


def _entry(record: Round, last: dict[str, list[float]], members: int) -> dict[str, Any]:
    """One entry of a history; ``last`` holds the values of members that are done, and is updated."""
    entry: dict[str, Any] = {"t": record.t, "seconds": record.seconds, "validation": None}
    lists = {}
    for name, values in record.columns.items():
        column = last.setdefault(name, [float("nan")] * members)
        for m, number in zip(record.members, values, strict=True):
            column[m] = number
        lists[name] = list(column)
        entry[name] = sum(column) / members
    return {**entry, "running": list(record.members), "members": lists}
