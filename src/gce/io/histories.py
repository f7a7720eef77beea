"""Histories of families in files that keep no rounds."""

from __future__ import annotations

from typing import Any

import torch

from gce._utils.codecs import Parts, narrowed
from gce.io.rounds import COLUMNS, in_file, restore_columns
from gce.training.result import FitResult
from gce.training.rounds import FamilyRecord, FamilySummary, Round


def store_histories(result: FitResult) -> Parts:
    """The history of each family, and the round that each member was kept at.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    Parts
    """
    parts = Parts({"members": result.members})
    for i, family in enumerate(result.families):
        parts.add(str(i), _store(family.history, family.best_round, family.members))
    return parts


def _store(history: list[dict[str, Any]], best: tuple[int, ...], members: int) -> Parts:
    if not history:
        return Parts()
    columns = [in_file(entry["members"]) for entry in history]
    names = [name for name in COLUMNS if any(name in own for own in columns)]
    running = torch.zeros(len(history), members, dtype=torch.uint8)
    for i, entry in enumerate(history):
        running[i, entry["running"]] = 1
    missing = [float("nan")] * members
    tensors = {
        f"columns.{name}": torch.tensor([own.get(name, missing) for own in columns], dtype=torch.float64)
        for name in names
    }
    tensors |= {
        "running": running,
        "noted": torch.tensor([[name in own for name in names] for own in columns], dtype=torch.uint8),
        "seconds": torch.tensor([entry["seconds"] for entry in history], dtype=torch.float64),
        "best": narrowed(torch.tensor(best)),
    }
    return Parts({"rounds": len(history), "columns": names}, tensors)


def restore_histories(parts: Parts, names: list[str]) -> tuple[FamilySummary, ...]:
    """The families of a file, by the names of all.

    Parameters
    ----------
    parts : Parts
    names : list of str

    Returns
    -------
    tuple of FamilySummary
    """
    members = parts.integer("members", 1)
    return tuple(_restore(name, parts.within(str(i)), members) for i, name in enumerate(names))


def _restore(name: str, parts: Parts, members: int) -> FamilySummary:
    if not parts.meta:
        return FamilySummary(name, members, [], ())
    running = parts.mask("running", parts.integer("rounds", 1), members)
    count, seconds = len(running), parts.finite("seconds", len(running)).tolist()
    columns, best = restore_columns(parts, count, members), parts.whole("best", members)
    if (best < 1).any() or (best > count).any():
        raise ValueError("a member was kept at a round that was not run")
    rounds = []
    if any("risk" not in noted or ("validation" in noted) != ("validation" in columns[0]) for noted in columns):
        raise ValueError("a round has no risk, or no validation score where others have one")
    for i, (own, noted) in enumerate(zip(running, columns, strict=True)):
        ran = own.nonzero().flatten().tolist()
        values = {key: column[i, ran].tolist() for key, column in noted.items()}
        nothing = torch.zeros(len(ran), 1, 1)
        rounds.append(Round(i + 1, seconds[i], ran, values, nothing, [], [], [], None, {}))
    record = FamilyRecord(name, members, tuple(rounds), tuple(best.tolist()), None)
    return FamilySummary(name, members, record.history, record.best_round)
