"""Families, ensembles and epochs in files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from gce._utils.codecs import Parts, narrowed
from gce.bases import registry
from gce.bases.base import Atoms
from gce.bases.trees.atoms import TreeAtomsBase
from gce.bases.trees.forest import ForestAtoms, link_of
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.io.histories import restore_histories, store_histories
from gce.io.paths import MOST_READ, MOST_WRITTEN, SizeBudget
from gce.io.rounds import COLUMNS, ROUNDING, Sequel, in_file, restore_rounds, store_rounds
from gce.losses import Loss
from gce.preprocessing.mixed import Widths
from gce.training.covers import covers_of, with_covers
from gce.training.family_fit import FamilyFit
from gce.training.family_weights import closing_entry
from gce.training.result import FitResult
from gce.training.rounds import EpochRecord, FamilyRecord, FamilySummary

if TYPE_CHECKING:
    from gce.training.residual_scale import ResidualScale

#: Families in a file: more than a user would name are refused before they cost anything.
_MOST_FAMILIES = 1000


def store_families(result: FitResult) -> Parts:
    """Families whose atoms can be stored, with their weights and, of several, the last entry of the history."""
    records, begun = cast(tuple[FamilyRecord, ...], result.families), result.fitted_families
    weights = [w for w, family in zip(result.family_weights, records, strict=True) if family in begun]
    parts = _store_weights(result, weights)
    room = SizeBudget(MOST_WRITTEN)
    for i, family in enumerate(records):
        own = _store_family(family, room)
        if result.round_weights is not None and family.rounds:
            own.tensors["factors"] = result.round_weights[family.name]
        parts.add(str(i), own)
    return parts


def store_summary(result: FitResult) -> Parts:
    """Families without their rounds: their names, weights and histories.

    Parameters
    ----------
    result : FitResult

    Returns
    -------
    Parts
    """
    parts = _store_weights(result, list(result.family_weights))
    parts.add("histories", store_histories(result))
    return parts


def _store_weights(result: FitResult, weights: list[float]) -> Parts:
    """Names and weights of the families and, of several, the last entry of the history."""
    names = [family.name for family in result.families]
    parts = Parts({"families": names}, {"shares": torch.tensor(weights, dtype=torch.float64)})
    if result.closing is not None:
        columns = in_file(result.closing["members"])
        parts.meta |= {"columns": list(columns), "seconds": result.closing["seconds"]}
        parts.tensors |= {f"columns.{name}": torch.tensor(own, dtype=torch.float64) for name, own in columns.items()}
    return parts


def _store_family(family: FamilyRecord, room: SizeBudget) -> Parts:
    parts = Parts({"members": family.members, "roomy": family.inflated_bound, "together": family.shared_stopping})
    if family.bound is not None:
        parts.tensors["bound"] = family.bound
        parts.add("course", store_rounds(family.rounds, family.members, room))
    return parts


class StoredFamilies(NamedTuple):
    """Families from a file.

    Parameters
    ----------
    families : tuple of FamilyRecord or of FamilySummary
    weights : tuple of float
    closing : dict or None
        The last entry of the history of several families.
    rounds : dict of Tensor of shape (M, T), or None
        Factors of the weights of rounds, by the family's name.
    """

    families: tuple[FamilyRecord, ...] | tuple[FamilySummary, ...]
    weights: tuple[float, ...]
    closing: dict[str, Any] | None
    rounds: dict[str, Tensor] | None = None


def restore_summary(parts: Parts) -> StoredFamilies:
    """Families without their rounds.

    Parameters
    ----------
    parts : Parts

    Returns
    -------
    StoredFamilies
    """
    names = _names(parts)
    families = restore_histories(parts.within("histories"), names)
    shares = parts.finite("shares", len(names))
    _check_shares(shares)
    begun = [bool(family.history) for family in families]
    if not any(begun) or shares[~torch.tensor(begun)].any() or (len(names) == 1 and float(shares) != 1):
        raise ValueError("a family that never began has weight, or the only one has not all of it")
    return StoredFamilies(families, tuple(shares.tolist()), _closing(parts, families) if len(families) > 1 else None)


def restore_family(parts: Parts, widths: Widths, bound: Tensor) -> StoredFamilies:
    """The only family of a file of format 1 or 2.

    Parameters
    ----------
    parts : Parts
    widths : Widths
        Numbers of inputs and columns.
    bound : Tensor of shape (k,)
        The ensemble's, which is also the family's own in files of format 1.
    """
    return StoredFamilies((_restore_family("family", parts, widths, bound, None),), (1.0,), None)


def restore_families(parts: Parts, widths: Widths, bound: Tensor) -> StoredFamilies:
    """Families of a file, one or several."""
    names = _names(parts)
    own = [parts.within(str(i)) for i in range(len(names))]
    room = SizeBudget(MOST_READ)
    begun = [
        _restore_family(n, p, widths, bound, room) if "course" in p.meta else None
        for n, p in zip(names, own, strict=True)
    ]
    members = {family.members for family in begun if family is not None}
    if len(members) != 1 or any(part.meta.get("members") not in members for part in own):
        raise ValueError("the families are of different members, or none has begun")
    families = tuple(
        family or FamilyRecord(name, max(members), (), (), None, *_stopping(part))
        for family, name, part in zip(begun, names, own, strict=True)
    )
    shares = parts.finite("shares", len([family for family in families if family.rounds]))
    _check_shares(shares)
    if len(families) == 1 and float(shares) != 1:
        raise ValueError("the only family must have weight 1")
    rest = iter(shares.tolist())
    weights = tuple(next(rest) if family.rounds else 0.0 for family in families)
    closing = _closing(parts, families) if len(families) > 1 else None
    return StoredFamilies(families, weights, closing, _round_factors(families, own))


def _names(parts: Parts) -> list[str]:
    names = parts.words("families")
    if not 0 < len(names) == len(set(names)) <= _MOST_FAMILIES:
        raise ValueError("expected at least one family, and different names")
    return names


def _check_shares(shares: Tensor) -> None:
    if (shares < 0).any() or float(shares.sum()) > 1 + ROUNDING:
        raise ValueError("the weights of the families are not on the simplex")


def _round_factors(families: tuple[FamilyRecord, ...], parts: Sequence[Parts]) -> dict[str, Tensor] | None:
    """Factors of the weights of rounds: of all families that have rounds, or of none."""
    begun = [(family, own) for family, own in zip(families, parts, strict=True) if family.rounds]
    having = sum("factors" in own.tensors for own in parts)
    if not having:
        return None
    if having != len(begun):
        raise ValueError("some families have weights of rounds, and others have none")
    found = {family.name: own.finite("factors", family.members, len(family.rounds)) for family, own in begun}
    if any((own < 0).any() for own in found.values()):
        raise ValueError("weights of rounds must not be negative")
    return found


def _closing(parts: Parts, families: tuple[FamilyRecord, ...] | tuple[FamilySummary, ...]) -> dict[str, Any]:
    names = parts.words("columns")
    if not {"risk"} <= set(names) <= set(COLUMNS):
        raise ValueError("the history has columns that no fit writes")
    columns = {COLUMNS[name]: parts.tensor(f"columns.{name}", families[0].members).tolist() for name in names}
    return closing_entry(families, columns, parts.number("seconds", 0))


def _restore_family(name: str, parts: Parts, widths: Widths, bound: Tensor, room: SizeBudget | None) -> FamilyRecord:
    """A family as it was after its last round; its limits are set by whoever continues it."""
    members, stored = parts.integer("members", 1), parts.within("course")
    # before anything of that length is made, a tensor of it is asked for
    stored.mask("running", None, members)
    own = parts.tensor("bound", len(bound)) if "roomy" in parts.meta else bound
    if not (own > 0).all():
        raise ValueError("a bound must be positive")
    rounds = restore_rounds(stored, members, 1, widths, own, room)
    sequel = Sequel(members, len(bound))
    for record in rounds:
        sequel.check(record)
    inflated, shared = _stopping(parts)
    empty = FamilyRecord(name, members, (), (), own, inflated, shared)
    fit = FamilyFit.resumed(empty, name)
    fit.replay(rounds)
    if fit.stopping.best_round.keys() != set(range(members)):
        raise ValueError("a member has no best round")
    return fit.record


def _stopping(parts: Parts) -> tuple[bool, bool]:
    """Whether the bound was inflated and stopping shared; files of format 1 do not say, and both were not known."""
    return (
        "roomy" in parts.meta and parts.flag("roomy"),
        "together" in parts.meta and parts.flag("together"),
    )


def store_ensemble(ensemble: ConvexEnsemble) -> Parts:
    """An ensemble whose atoms are not foreign."""
    parts = Parts({}, {"weights": ensemble.weights, "origin": narrowed(ensemble.origin)})
    parts.add("atoms", registry.store([atoms for atoms in ensemble.parts if isinstance(atoms, Atoms)]))
    return parts


def store_covers(ensemble: ConvexEnsemble) -> Parts:
    """The weights of training rows in leaves, of an ensemble that is made of its families when it is read."""
    return Parts({}, covers_of(ensemble))


def restore_covers(parts: Parts, ensemble: ConvexEnsemble) -> ConvexEnsemble:
    """The same ensemble, with the weights of training rows in its leaves."""
    trees = {str(i): part.trees for i, part in enumerate(ensemble.parts) if isinstance(part, TreeAtomsBase)}
    if not parts.tensors.keys() <= trees.keys():
        raise ValueError("weights of training rows are given for what are no trees")
    given = {name: parts.finite(name, len(trees[name].left), dtype=torch.float32) for name in parts.tensors}
    if any((own < 0).any() for own in given.values()):
        raise ValueError("the weight of the training rows in a leaf must not be negative")
    return with_covers(ensemble, {name: own.to(ensemble.offset.device) for name, own in given.items()})


def check_links(atoms: Iterable[object], loss: Loss) -> None:
    """Refuse forests whose link from means to scores is not that of the loss."""
    for part in atoms:
        if isinstance(part, ForestAtoms) and part.link != link_of(loss):
            raise ValueError(f"forests have the link {part.link!r}, and the loss has {link_of(loss)!r}")


def restore_ensemble(
    parts: Parts, widths: Widths, offset: Tensor, bound: Tensor, joint: bool = False
) -> ConvexEnsemble:
    """An ensemble; weights off the simplex and atoms that are not as many as the weights are refused.

    Where weights are ``joint``, whole members may be without any.
    """
    atoms = registry.restore(parts.within("atoms"), widths, bound)
    count = sum(map(len, atoms))
    given = parts.tensors.get("weights", torch.empty(0))
    weights = parts.finite("weights", count, *([len(bound)] if given.ndim == 2 else []))
    origin = parts.whole("origin", count, 2)
    if (weights < 0).any() or (weights.sum(0) - 1).abs().max() > ROUNDING:
        raise ValueError("the weights are not on the simplex")
    # each member has an atom, so that there are no more members than atoms
    if (origin < 0).any() or (origin[:, 0] >= (2**31 if joint else count)).any():
        raise ValueError("the parts of the ensemble are inconsistent")
    return ConvexEnsemble(atoms, weights, origin, offset, bound)


def store_scale(scale: ResidualScale) -> Parts:
    """The scale of residuals: its ensemble, and the residuals that it scaled."""
    ensemble = scale.ensemble
    tensors = {"offset": ensemble.offset, "bound": ensemble.bound, "residuals": torch.from_numpy(scale.residuals)}
    parts = Parts({}, tensors)
    parts.add("ensemble", store_ensemble(ensemble))
    return parts


def restore_scale(parts: Parts, widths: Widths, outputs: int, device: torch.device) -> ResidualScale:
    """The scale of residuals of so many outputs."""
    # needed by models that have one only
    from gce.training.residual_scale import ResidualScale

    offset, bound = parts.finite("offset", outputs), parts.finite("bound", outputs)
    if not (bound > 0).all():
        raise ValueError("a bound must be positive")
    residuals = parts.finite("residuals", None, outputs)
    if (residuals.diff(dim=0) < 0).any():
        raise ValueError("scaled residuals must be sorted")
    ensemble = restore_ensemble(parts.within("ensemble"), widths, offset, bound)
    return ResidualScale(ensemble.to(device), residuals.numpy())


def store_epochs(epochs: EpochRecord) -> Parts:
    """Epochs: the numbers of all members in each."""
    history = epochs.history
    names = list(history[0]["members"])
    columns = {name: torch.tensor([entry["members"][name] for entry in history], dtype=torch.float64) for name in names}
    seconds = torch.tensor([entry["seconds"] for entry in history], dtype=torch.float64)
    tensors = {"seconds": seconds, **{f"columns.{name}": c for name, c in columns.items()}}
    return Parts({"columns": names}, {**tensors, "best": torch.tensor(epochs.best_round)})


def restore_epochs(parts: Parts, members: int) -> EpochRecord:
    """Epochs of so many members, with the means over them computed again."""
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
    return EpochRecord("networks", members, entries, _best_epoch(parts, columns))


def _best_epoch(parts: Parts, columns: dict[str, Tensor]) -> tuple[int, ...]:
    """The epoch that each member was kept at; files of formats 1 and 2 leave it to be found."""
    monitored = columns.get("validation", columns["risk"])
    if "best" not in parts.tensors:
        return tuple((monitored.nan_to_num(math.inf).argmin(0) + 1).tolist())
    best = parts.tensor("best", monitored.shape[1], dtype=torch.int64)
    if (best < 1).any() or (best > len(monitored)).any():
        raise ValueError("a member was kept at an epoch that was not run")
    return tuple(best.tolist())
