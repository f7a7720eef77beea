"""The rounds of a fit, as tensors over rounds and members, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.codecs import Parts
from gce.bases import registry
from gce.bases.base import Atoms
from gce.io import paths
from gce.io.paths import MOST_READ, MOST_WRITTEN, SizeBudget
from gce.preprocessing.mixed import Widths
from gce.training.rounds import Round

#: Columns of the history, by their names in files.
COLUMNS = {
    "risk": "risk",
    "gap": "gap",
    "gap_lower": "gap_lower",
    "suboptimality": "suboptimality",
    "weights_gap": "weights_gap",
    "size": "step_size",
    "atoms": "n_atoms",
    "validation": "validation",
}
#: How far sums of weights may be from 1 by rounding.
ROUNDING = 1e-6


def store_rounds(rounds: Sequence[Round], members: int, room: SizeBudget | None = None) -> Parts:
    """Rounds of a fit of so many members, whose atoms are not foreign; a file of several fits has one room for all."""

    def table(dtype: torch.dtype, fill: float = 0) -> Tensor:
        return torch.full((len(rounds), members), fill, dtype=dtype)

    names = [name for name, key in COLUMNS.items() if any(key in record.columns for record in rounds)]
    columns = {name: table(torch.float64) for name in names}
    running, finished = table(torch.uint8), table(torch.uint8)
    calls, last_gap, place = table(torch.int64), table(torch.float64), table(torch.int64, -1)
    for i, record in enumerate(rounds):
        running[i, record.members] = 1
        finished[i, record.finished] = 1
        calls[i, record.members] = torch.tensor(record.calls)
        last_gap[i, record.members] = torch.tensor(record.last_gap, dtype=torch.float64)
        for m, position in record.position.items():
            place[i, m] = position
        for name, values in in_file(record.columns).items():
            columns[name][i, record.members] = torch.tensor(values, dtype=torch.float64)
    added, atoms = _stacked(rounds)
    tensors = {
        "running": running,
        "finished": finished,
        "calls": calls,
        "promise": last_gap,
        "place": place,
        "added": added,
        "noted": torch.tensor(
            [[COLUMNS[name] in record.columns for name in names] for record in rounds], dtype=torch.uint8
        ),
        "seconds": torch.tensor([record.seconds for record in rounds], dtype=torch.float64),
        **{f"columns.{name}": column for name, column in columns.items()},
    }
    parts = Parts({"first": rounds[0].t, "rounds": len(rounds), "columns": names}, tensors)
    parts.add(
        "path", paths.store([(record.members, record.weights) for record in rounds], room or SizeBudget(MOST_WRITTEN))
    )
    parts.add("atoms", registry.store(atoms))
    return parts


def restore_rounds(
    parts: Parts, members: int, known: int, widths: Widths, bound: Tensor, room: SizeBudget | None = None
) -> list[Round]:
    """Rounds from a file that follow ``known`` slots, that of the zero function included.

    Whether they follow from the rounds before them is for :class:`Sequel` to say.
    """
    count, first = parts.integer("rounds", 1), parts.integer("first", 1)
    running, seconds = parts.mask("running", count, members), parts.finite("seconds", count)
    # as arrays, whose entries are read far faster
    finished = parts.mask("finished", count, members).numpy()
    calls = parts.tensor("calls", count, members, dtype=torch.int64).numpy()
    place = parts.tensor("place", count, members, dtype=torch.int64).numpy()
    last_gap = parts.tensor("promise", count, members).numpy()
    atoms = _unstacked(parts, count, members, widths, bound)
    slots = known + torch.tensor([added is not None for added in atoms]).cumsum(0)
    everyone = [own.nonzero().flatten().tolist() for own in running]
    path = paths.restore(parts, everyone, slots.tolist(), room or SizeBudget(MOST_READ))
    columns = restore_columns(parts, count, members)
    records = []
    for i, (ran, own, added) in enumerate(zip(everyone, path, atoms, strict=True)):
        records.append(
            Round(
                t=first + i,
                seconds=float(seconds[i]),
                members=ran,
                columns={name: column[i][ran].tolist() for name, column in columns[i].items()},
                weights=own,
                calls=calls[i][ran].tolist(),
                last_gap=last_gap[i][ran].tolist(),
                finished=finished[i].nonzero()[0].tolist(),
                atoms=added,
                position={m: p for m, p in enumerate(place[i].tolist()) if p >= 0},
            )
        )
    return records


class Sequel:
    """What the next round of a fit can be, given those before it.

    Parameters
    ----------
    members, outputs : int
    """

    def __init__(self, members: int, outputs: int) -> None:
        self._members, self._blocks, self._t = members, {1, outputs}, 0
        # which member has an atom in which slot: all have the zero function
        self._present = torch.ones(members, 1, dtype=torch.bool)

    @property
    def slots(self) -> int:
        return self._present.shape[1]

    def check(self, record: Round) -> None:
        """Refuse, by a ValueError, what cannot be the next round; otherwise go on to the one after."""
        self._t += 1
        if record.atoms is not None:
            self._present = torch.cat(
                [self._present, torch.tensor([[m in record.position] for m in range(self._members)])], 1
            )
        sound = (
            record.t == self._t
            and len(record.members) > 0
            and (record.t > 1 or len(record.members) == self._members)
            and record.position.keys() <= set(record.members)
            and max(record.position.values(), default=-1) < (0 if record.atoms is None else len(record.atoms))
            and "risk" in record.columns
            and not any(map(math.isnan, record.columns.get("validation", ())))
            and min(record.calls) >= 0
            and all(last_gap >= 0 for last_gap in record.last_gap)
            and record.weights.shape[1] == self.slots
            and record.weights.shape[2] in self._blocks
        )
        if not sound:
            raise ValueError(f"round {self._t} does not follow from the rounds before it")
        self._blocks = {record.weights.shape[2]}
        off = bool((record.weights < 0).any()) or float((record.weights.sum(1) - 1).abs().max()) > ROUNDING
        if off or record.weights[~self._present[record.members]].any():
            raise ValueError(f"the weights of round {self._t} are not on the simplex of its atoms")


def _stacked(rounds: Sequence[Round]) -> tuple[Tensor, list[Atoms]]:
    """Of each round which stack its atoms went to and how many they are, ``(rounds, 2)``; the stacks, one a form."""
    stacks: dict[tuple[object, ...], tuple[int, list[Atoms]]] = {}
    added = []
    for record in rounds:
        if record.atoms is None:
            added.append([-1, 0])
            continue
        number, stack = stacks.setdefault(record.atoms.form, (len(stacks), []))
        stack.append(record.atoms)
        added.append([number, len(record.atoms)])
    return torch.tensor(added), [type(stack[0]).cat(stack) for _, stack in stacks.values()]


def _unstacked(parts: Parts, rounds: int, members: int, widths: Widths, bound: Tensor) -> list[Atoms | None]:
    stacks = registry.restore(parts.within("atoms"), widths, bound)
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


def restore_columns(parts: Parts, rounds: int, members: int) -> list[dict[str, NDArray[np.float64]]]:
    """The columns that each round has."""
    names = parts.words("columns")
    if not set(names) <= set(COLUMNS):
        raise ValueError("the history has columns that no fit writes")
    noted = parts.mask("noted", rounds, len(names)).tolist()
    columns = {name: parts.tensor(f"columns.{name}", rounds, members).numpy() for name in names}
    return [{COLUMNS[name]: columns[name] for name, has in zip(names, own, strict=True) if has} for own in noted]


def in_file(columns: dict[str, list[float]]) -> dict[str, list[float]]:
    """Columns of the history under their names in files."""
    names = {key: name for name, key in COLUMNS.items()}
    return {names[key]: values for key, values in columns.items()}
