"""The rounds of a fit, as tensors over rounds and members, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gce.basis import stored
from gce.basis.base import Atoms
from gce.fitting import Round
from gce.parts import Parts
from gce.storage import paths
from gce.storage.paths import MOST_READ, MOST_WRITTEN, Room

#: What rounds may say of each member.
COLUMNS = ("risk", "gap", "gap_lower", "size", "atoms", "validation")
#: How far sums of weights may be from 1 by rounding.
ROUNDING = 1e-6


def store(course: Sequence[Round], members: int, room: Room | None = None) -> Parts:
    """Rounds of a fit of so many members, whose atoms are not foreign; a file of several fits has one room for all."""

    def table(dtype: torch.dtype, fill: float = 0) -> Tensor:
        return torch.full((len(course), members), fill, dtype=dtype)

    names = [name for name in COLUMNS if any(name in news.columns for news in course)]
    columns = {name: table(torch.float64) for name in names}
    running, finished = table(torch.uint8), table(torch.uint8)
    calls, promise, place = table(torch.int64), table(torch.float64), table(torch.int64, -1)
    for i, news in enumerate(course):
        running[i, news.members] = 1
        finished[i, news.finished] = 1
        calls[i, news.members] = torch.tensor(news.calls)
        promise[i, news.members] = torch.tensor(news.promise, dtype=torch.float64)
        for m, position in news.place.items():
            place[i, m] = position
        for name, values in news.columns.items():
            columns[name][i, news.members] = torch.tensor(values, dtype=torch.float64)
    added, atoms = _stacked(course)
    tensors = {
        "running": running,
        "finished": finished,
        "calls": calls,
        "promise": promise,
        "place": place,
        "added": added,
        "noted": torch.tensor([[name in news.columns for name in names] for news in course], dtype=torch.uint8),
        "seconds": torch.tensor([news.seconds for news in course], dtype=torch.float64),
        **{f"columns.{name}": column for name, column in columns.items()},
    }
    parts = Parts({"first": course[0].t, "rounds": len(course), "columns": names}, tensors)
    parts.add("path", paths.store([(news.members, news.weights) for news in course], room or Room(MOST_WRITTEN)))
    parts.add("atoms", stored.store(atoms))
    return parts


def restore(
    parts: Parts, members: int, known: int, inputs: int, bound: Tensor, room: Room | None = None
) -> list[Round]:
    """Rounds from a file, before which ``known`` slots stood, the zero function's among them.

    Whether they follow from the rounds before them is for :class:`Sequel` to say.
    """
    rounds, first = parts.integer("rounds", 1), parts.integer("first", 1)
    running, finished = parts.mask("running", rounds, members), parts.mask("finished", rounds, members)
    calls = parts.tensor("calls", rounds, members, dtype=torch.int64)
    place = parts.tensor("place", rounds, members, dtype=torch.int64)
    promise, seconds = parts.tensor("promise", rounds, members), parts.finite("seconds", rounds)
    atoms = _unstacked(parts, rounds, members, inputs, bound)
    slots = known + torch.tensor([some is not None for some in atoms]).cumsum(0)
    everyone = [own.nonzero().flatten().tolist() for own in running]
    path = paths.restore(parts, everyone, slots.tolist(), room or Room(MOST_READ))
    columns = _columns(parts, rounds, members)
    course = []
    for i, (who, own, some) in enumerate(zip(everyone, path, atoms, strict=True)):
        course.append(
            Round(
                t=first + i,
                seconds=float(seconds[i]),
                members=who,
                columns={name: column[i, who].tolist() for name, column in columns[i].items()},
                weights=own,
                calls=calls[i, who].tolist(),
                promise=promise[i, who].tolist(),
                finished=finished[i].nonzero().flatten().tolist(),
                atoms=some,
                place={m: p for m, p in enumerate(place[i].tolist()) if p >= 0},
            )
        )
    return course


class Sequel:
    """What the next round of a fit can be, given those before it.

    Parameters
    ----------
    members, outputs : int
    """

    def __init__(self, members: int, outputs: int) -> None:
        self._members, self._blocks, self._t = members, {1, outputs}, 0
        # who has an atom in which slot: all have the zero function
        self._present = torch.ones(members, 1, dtype=torch.bool)

    @property
    def slots(self) -> int:
        return self._present.shape[1]

    def check(self, news: Round) -> None:
        """Refuse, by a ValueError, what cannot be the next round; otherwise go on to the one after."""
        self._t += 1
        if news.atoms is not None:
            self._present = torch.cat(
                [self._present, torch.tensor([[m in news.place] for m in range(self._members)])], 1
            )
        sound = (
            news.t == self._t
            and len(news.members) > 0
            and (news.t > 1 or len(news.members) == self._members)
            and news.place.keys() <= set(news.members)
            and max(news.place.values(), default=-1) < (0 if news.atoms is None else len(news.atoms))
            and "risk" in news.columns
            and not any(map(math.isnan, news.columns.get("validation", ())))
            and min(news.calls) >= 0
            and all(promise >= 0 for promise in news.promise)
            and news.weights.shape[1] == self.slots
            and news.weights.shape[2] in self._blocks
        )
        if not sound:
            raise ValueError(f"round {self._t} does not follow from the rounds before it")
        self._blocks = {news.weights.shape[2]}
        off = bool((news.weights < 0).any()) or float((news.weights.sum(1) - 1).abs().max()) > ROUNDING
        if off or news.weights[~self._present[news.members]].any():
            raise ValueError(f"the weights of round {self._t} are not on the simplex of its atoms")


def _stacked(course: Sequence[Round]) -> tuple[Tensor, list[Atoms]]:
    """Of each round which stack its atoms went to and how many they are, ``(rounds, 2)``; the stacks, one a form."""
    stacks: dict[tuple[object, ...], tuple[int, list[Atoms]]] = {}
    added = []
    for news in course:
        if news.atoms is None:
            added.append([-1, 0])
            continue
        number, stack = stacks.setdefault(news.atoms.form, (len(stacks), []))
        stack.append(news.atoms)
        added.append([number, len(news.atoms)])
    return torch.tensor(added), [type(stack[0]).cat(stack) for _, stack in stacks.values()]


def _unstacked(parts: Parts, rounds: int, members: int, inputs: int, bound: Tensor) -> list[Atoms | None]:
    stacks = stored.restore(parts.within("atoms"), inputs, bound)
    used = [0] * len(stacks)
    atoms: list[Atoms | None] = []
    for number, count in parts.tensor("added", rounds, 2, dtype=torch.int64).tolist():
        if number == -1:
            atoms.append(None)
            continue
        if not 0 <= number < len(stacks) or not 0 < count <= min(members, len(stacks[number]) - used[number]):
            raise ValueError("the rounds' atoms do not fit those in the file")
        atoms.append(stacks[number].select(torch.arange(used[number], used[number] + count)))
        used[number] += count
    return atoms


def _columns(parts: Parts, rounds: int, members: int) -> list[dict[str, Tensor]]:
    """The columns that each round has."""
    names = parts.words("columns")
    if not set(names) <= set(COLUMNS):
        raise ValueError("the history has columns that no fit writes")
    noted = parts.mask("noted", rounds, len(names)).tolist()
    columns = {name: parts.tensor(f"columns.{name}", rounds, members) for name in names}
    return [{name: columns[name] for name, has in zip(names, own, strict=True) if has} for own in noted]
