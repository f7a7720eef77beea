"""What was learned: a greedy ensemble's whole fit, or the ensemble and history of one that was trained at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gce.basis import stored
from gce.basis.base import Atoms
from gce.callbacks import EarlyStopping, Together
from gce.ensemble import ConvexEnsemble
from gce.fitting import Fit
from gce.mixing import MixedFit
from gce.parts import Parts
from gce.storage import courses
from gce.storage.courses import ROUNDING
from gce.storage.paths import MOST_READ, MOST_WRITTEN, Room

#: Families in a file: more than a user would name are refused before they cost anything.
_MOST_FAMILIES = 1000


def store_fit(fit: Fit, room: Room | None = None) -> Parts:
    """A fit whose atoms are not foreign."""
    parts = Parts({"members": fit.members, "roomy": fit.roomy, "together": isinstance(fit.stopping, Together)})
    if fit.bound is not None:
        parts.tensors["bound"] = fit.bound
        parts.add("course", courses.store(fit.course, fit.members, room))
    return parts


def restore_fit(parts: Parts, inputs: int, bound: Tensor, room: Room | None = None) -> Fit:
    """A fit as it stood after its last round; its limits are set by whoever goes on with it.

    Parameters
    ----------
    parts : Parts
    inputs : int
    bound : Tensor of shape (k,)
        The ensemble's, which is also the fit's own in files of version 1.
    room : Room, optional
        What a file of several fits may still take.
    """
    members, course = parts.integer("members", 1), parts.within("course")
    # before anything of that length is made, a tensor of it is asked for
    course.mask("running", None, members)
    fit = _fit_of_no_rounds(parts, members)
    fit.bound = parts.tensor("bound", len(bound)) if "roomy" in parts.meta else bound
    if not (fit.bound > 0).all():
        raise ValueError("a bound must be positive")
    rounds = courses.restore(course, members, 1, inputs, fit.bound, room)
    sequel = courses.Sequel(members, len(bound))
    for news in rounds:
        sequel.check(news)
    fit.replay(rounds)
    if fit.stopping.best_round.keys() != set(range(members)):
        raise ValueError("a member has no best round")
    return fit


def _fit_of_no_rounds(parts: Parts, members: int) -> Fit:
    """A fit as it began; files of version 1 say nothing of how."""
    together = "together" in parts.meta and parts.flag("together")
    fit = Fit(members, (Together if together else EarlyStopping)(None, 0.0))
    fit.roomy = "roomy" in parts.meta and parts.flag("roomy")
    return fit


def store_mixed(mixed: MixedFit) -> Parts:
    """Fits of several families whose atoms are not foreign, with their shares and their last entry."""
    assert mixed.closing is not None
    said, shares = mixed.closing["members"], list(mixed.shares.values())
    parts = Parts(
        {"families": list(mixed.fits), "columns": list(said), "seconds": mixed.closing["seconds"]},
        {"shares": torch.tensor(shares, dtype=torch.float64)},
    )
    parts.tensors |= {f"columns.{name}": torch.tensor(column, dtype=torch.float64) for name, column in said.items()}
    room = Room(MOST_WRITTEN)
    for i, fit in enumerate(mixed.fits.values()):
        parts.add(str(i), store_fit(fit, room))
    return parts


def restore_mixed(parts: Parts, inputs: int, bound: Tensor) -> MixedFit:
    """Fits of several families, as they stood after their last rounds."""
    families, names = parts.words("families"), parts.words("columns")
    if not 1 < len(families) == len(set(families)) <= _MOST_FAMILIES:
        raise ValueError("the families must be some, and have names that differ")
    own = [parts.within(str(i)) for i in range(len(families))]
    room = Room(MOST_READ)
    begun = [restore_fit(part, inputs, bound, room) if "course" in part.meta else None for part in own]
    members = {fit.members for fit in begun if fit is not None}
    if len(members) != 1 or any(part.meta.get("members") not in members for part in own):
        raise ValueError("the families are of different members, or none has begun")
    fits = [fit or _fit_of_no_rounds(part, *members) for fit, part in zip(begun, own, strict=True)]
    mixed = MixedFit(dict(zip(families, fits, strict=True)))
    shares = parts.finite("shares", len(mixed.begun))
    if (shares < 0).any() or float(shares.sum()) > 1 + ROUNDING:
        raise ValueError("the families' shares are not on the simplex")
    if not {"risk"} <= set(names) <= set(courses.COLUMNS):
        raise ValueError("the history has columns that no fit writes")
    mixed.shares = dict(zip(mixed.begun, shares.tolist(), strict=True))
    said = {name: parts.tensor(f"columns.{name}", mixed.members).tolist() for name in names}
    mixed.closing = mixed.entry(said, parts.number("seconds", 0))
    return mixed


def store_ensemble(ensemble: ConvexEnsemble) -> Parts:
    """An ensemble whose atoms are not foreign."""
    parts = Parts({}, {"weights": ensemble.weights, "origin": ensemble.origin})
    parts.add("atoms", stored.store([atoms for atoms in ensemble.parts if isinstance(atoms, Atoms)]))
    return parts


def restore_ensemble(parts: Parts, inputs: int, offset: Tensor, bound: Tensor, joint: bool = False) -> ConvexEnsemble:
    """An ensemble; weights off the simplex and atoms that are not as many as the weights are refused.

    Where weights are ``joint``, whole members may be without any.
    """
    atoms = stored.restore(parts.within("atoms"), inputs, bound)
    count = sum(map(len, atoms))
    given = parts.tensors.get("weights", torch.empty(0))
    weights = parts.finite("weights", count, *([len(bound)] if given.ndim == 2 else []))
    origin = parts.tensor("origin", count, 2, dtype=torch.int64)
    if (weights < 0).any() or (weights.sum(0) - 1).abs().max() > ROUNDING:
        raise ValueError("the weights are not on the simplex")
    # each member has an atom, so that there are no more members than atoms
    if (origin < 0).any() or (origin[:, 0] >= (2**31 if joint else count)).any():
        raise ValueError("the ensemble's parts do not fit together")
    return ConvexEnsemble(atoms, weights, origin, offset, bound)


def store_history(history: list[dict[str, Any]]) -> Parts:
    """Epochs: what all members did in each."""
    names = list(history[0]["members"])
    columns = {name: torch.tensor([entry["members"][name] for entry in history], dtype=torch.float64) for name in names}
    seconds = torch.tensor([entry["seconds"] for entry in history], dtype=torch.float64)
    return Parts({"columns": names}, {"seconds": seconds, **{f"columns.{name}": c for name, c in columns.items()}})


def restore_history(parts: Parts, members: int) -> list[dict[str, Any]]:
    """Epochs of so many members, with the means over them made anew."""
    names = parts.words("columns")
    if not set(names) <= {"risk", "validation"} or "risk" not in names:
        raise ValueError("the history has columns that no training writes")
    risk = parts.tensor("columns.risk", None, members)
    seconds = parts.finite("seconds", len(risk)).tolist()
    columns: dict[str, Tensor] = {name: parts.tensor(f"columns.{name}", *risk.shape) for name in names}
    entries = []
    for i, spent in enumerate(seconds):
        each = {name: column[i].tolist() for name, column in columns.items()}
        means = {name: sum(own) / len(own) for name, own in each.items()}
        entries.append({"epoch": i + 1, "validation": None, **means, "seconds": spent, "members": each})
    return entries
