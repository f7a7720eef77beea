"""The result of a fit: one immutable value that predictions, edits, files, plots, reports and theory read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.params import counted
from gce.bases.base import Atoms, Basis
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses import Loss
from gce.preprocessing import Table
from gce.preprocessing.interactions import Interactions
from gce.training.calibration import Calibration
from gce.training.external_models import ExternalModel
from gce.training.rounds import EpochRecord, FamilyRecord, FamilySummary, factors_of
from gce.training.targets import Target

Array = NDArray[np.float64]
Family = FamilyRecord | FamilySummary | EpochRecord


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """What a fit leaves behind.

    Parameters
    ----------
    table : Table
        How columns are encoded.
    target : Target
        What is predicted: numbers or classes.
    loss : Loss
    families : tuple of FamilyRecord, of FamilySummary or of EpochRecord
        The families in the order in which they were fitted, also where there is only one; none after an edit. Files
        keep summaries, unless they are to be resumed.
    family_weights : tuple of float
        The weight of each family; what is left of 1 is the zero function's.
    ensemble : ConvexEnsemble
    calibration : Calibration
    n_samples : int
        Rows of positive sample weight, those for validation left out.
    seed : int
    folds : tuple of int or None
        A hash of the rows that each member holds out; None where an older file does not say.
    signs : tuple of int or None
        Monotonic constraints of the encoded columns.
    closing : dict or None
        The last entry of the history of several families: the ensemble of all of them.
    bases : dict of Basis
        The class of models of each family; empty where an older file does not say, and for networks trained at once.
    cut_short : bool
        The time limit ended the fit.
    external : tuple of ExternalModel
        Models of other libraries among the atoms.
    gap : float or None
        After an edit: an upper bound on how far the mean loss is from the least possible.
    one_simplex : bool
        The weights of all members form one simplex, and not one per member.
    round_weights : dict of Tensor of shape (M, T), or None
        Where rounds have weights of their own: by the name of each family that has rounds, the factors of its members'
        weights in each round. The weight of a family is then the sum of those of its rounds, the mean over members.
    interactions : str, tuple of tuple of int, or None
        Sets of columns of ``X`` that may interact; None where all may.
    held_out : dict of float or None
        Metrics of what each member predicts for the rows that it holds out, with the targets and weights of the user;
        None where none are held out, after an edit, or in an older file. See :mod:`gce.training.metrics`.
    importances : array of shape (d,) or None
        What each column of ``X`` lowered the risk by, as a share of 1; None where an older file does not say, or atoms
        are not gce's own.
    left_out : tuple of (str, str)
        Families that have no weight, each with the reason: they were not fitted, not fitted to the end, or predictions
        are as good without them.
    base_score : bool
        The rows of the fit had base scores, which those that are scored need too.
    samples : int or None
        A hash of the training rows of positive weight with their targets, by which they are known again in any order;
        None where they were in files, or where an older file does not say.
    """

    table: Table
    target: Target
    loss: Loss
    families: tuple[Family, ...]
    family_weights: tuple[float, ...]
    ensemble: ConvexEnsemble
    calibration: Calibration
    n_samples: int
    seed: int
    folds: tuple[int, ...] | None
    signs: tuple[int, ...] | None = None
    closing: dict[str, Any] | None = None
    bases: Mapping[str, Basis] = field(default_factory=dict)
    cut_short: bool = False
    external: tuple[ExternalModel, ...] = ()
    gap: float | None = None
    one_simplex: bool = False
    round_weights: Mapping[str, Tensor] | None = None
    interactions: Interactions | None = None
    importances: Array | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    held_out: Mapping[str, float] | None = None
    base_score: bool = False
    samples: int | None = None

    #: Whether weights were solved for without rounds, as those of stacks are.
    solved_at_once: ClassVar[bool] = False

    def __repr__(self) -> str:
        """Rows, families and ensemble in three lines."""
        rows, columns = counted(self.n_samples, "row"), counted(len(self.table.columns), "column")
        rounds = ", ".join(
            f"{family.name} {weight:.3g} ({counted(len(family.history), family.unit)})"
            for family, weight in zip(self.families, self.family_weights, strict=True)
        )
        atoms = f"{counted(len(self.ensemble), 'atom')} in {counted(self.members, 'member')}"
        loss = "" if self.edited or self.best_validation is None else f", held-out value {self.best_validation:.4g}"
        return (
            f"FitResult of {rows} and {columns}, {self.loss!r}\n"
            f"  weights of families: {rounds or 'none, because an edit re-optimised the weights of atoms'}\n"
            f"  {atoms}{loss}"
        )

    def __getstate__(self) -> dict[str, Any]:
        # what is computed from the fields is computed again
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def offset(self) -> Array:
        """The centre of the hull, ``(k,)``."""
        return self.ensemble.offset.cpu().numpy()

    @cached_property
    def bound(self) -> Array:
        """Half the width of the hull, ``(k,)``."""
        return self.ensemble.bound.cpu().numpy()

    @property
    def edited(self) -> bool:
        """Whether weights were re-optimised after the fit, so that there are no rounds."""
        return self.gap is not None

    @property
    def fitted_families(self) -> tuple[Family, ...]:
        """The families that have rounds: a fit may end before the last family begins."""
        return tuple(family for family in self.families if family.history)

    @property
    def unit(self) -> str:
        """What the history counts: "round" or "epoch"."""
        return self.families[0].unit

    @property
    def has_stages(self) -> bool:
        """Whether predictions after each round can be computed."""
        return any(family.rounds for family in self.families)

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """One dict per round or epoch; of several families one after another, followed by that of the ensemble."""
        closing = None if self.closing is None else {**self.closing, "left_out": dict(self.left_out)}
        return family_history(self.families, closing)

    @property
    def n_rounds(self) -> int:
        """How many rounds or epochs all families ran; the entry of the ensemble of several families is none."""
        return sum(len(family.history) for family in self.families)

    @property
    def best_validation(self) -> float | None:
        """The mean validation value of the members as they are kept; None where nothing was held out.

        Of one family each member at its best round; of several that of the ensemble of all. Rounds and weights were
        chosen on the same rows. Where rounds have weights, ``held_out`` has metrics by weights that a row had no part
        in.
        """
        last = self.history[-1]
        if last["validation"] is None:
            return None
        if len(self.families) > 1:
            return float(last["validation"])
        (family,) = self.families
        values = [family.history[t - 1]["members"]["validation"][m] for m, t in enumerate(family.best_round)]
        return sum(values) / len(values)

    @property
    def members(self) -> int:
        """How many members were averaged."""
        return self.families[0].members if self.families else self.ensemble.members

    def stages(self) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Every atom that ever had weight, and the weights of all of them after each round.

        The rounds of one of several families show that family alone; the last stage is the ensemble.
        """
        offset = self.ensemble.offset
        if not self.has_stages:
            return self.families[0].stages(offset)
        found = [family.stages(offset) for family in self.families if family.rounds]
        if len(self.families) == 1:
            return found[0]
        sizes = [len(everyone) for everyone, _ in found]
        parts = [part for everyone, _ in found for part in everyone.parts if isinstance(part, Atoms)]
        origin = torch.cat([everyone.origin for everyone, _ in found])
        weights = torch.cat([everyone.weights for everyone, _ in found])
        paths = []
        for i, (_, path) in enumerate(found):
            before, after = sum(sizes[:i]), sum(sizes[i + 1 :])
            paths += [torch.nn.functional.pad(own, (0, 0, before, after)) for own in path]
        last = [share * path[-1] for share, (_, path) in zip(self._shares(found), found, strict=True)]
        return ConvexEnsemble(parts, weights, origin, offset, found[0][0].bound), [*paths, torch.cat(last)]

    def _shares(self, found: list[tuple[ConvexEnsemble, list[Tensor]]]) -> list[Any]:
        """What the last weights of each family that has rounds are multiplied by: a number, or one ``(A, 1)`` each."""
        begun = [
            (family.name, w) for family, w in zip(self.families, self.family_weights, strict=True) if family.rounds
        ]
        rounds = self.round_weights
        if rounds is None:
            return [weight for _, weight in begun]
        own = zip(begun, found, strict=True)
        return [factors_of(rounds[name], everyone.origin)[:, None] for (name, _), (everyone, _) in own]


def family_history(families: tuple[Family, ...], closing: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The histories of families as one: rounds and seconds are counted on from family to family."""
    if len(families) == 1:
        return list(families[0].history)
    entries: list[dict[str, Any]] = []
    for family in families:
        rounds, seconds = len(entries), entries[-1]["seconds"] if entries else 0.0
        entries += [
            {**entry, "t": rounds + entry["t"], "seconds": seconds + entry["seconds"], "family": family.name}
            for entry in family.history
        ]
    return entries if closing is None else [*entries, closing]
