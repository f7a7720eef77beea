"""What pictures are drawn from: a model's history, weights and stages as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import root_mean_squared_error, zero_one_loss

from gce.inspection.atom_families import atom_families
from gce.training.result import Family, FitResult

Array = NDArray[np.float64]

#: From ``(y, predictions, sample_weight=...)`` to one number, lower is better.
Error = Callable[..., float]

#: The part of the held-out loss below which a training risk says nothing.
_VANISHING = 1e-2


@dataclass(frozen=True)
class TrainingCurves:
    """The history of a fit as arrays, one row per round (greedy) or epoch (trained at once).

    Parameters
    ----------
    unit : {"round", "epoch"}
    steps : array of shape (T,)
    risk, seconds : array of shape (T,)
    validation, gap : array of shape (T,) or None
    certified : bool
        The gap is the proved bound on the suboptimality, not a lower estimate of the duality gap.
    watches_loss : bool
        Validation values are the loss, in the unit of the risk; otherwise a negated score.
    members : dict of array of shape (T, M)
        The members' own risk, validation and gap.
    families : tuple of str
        The names of the families that have rounds.
    best : array of shape (F, M)
        The round of each family at which each member is kept.
    first : array of shape (F,)
        How many steps come before those of each family.
    """

    unit: str
    steps: Array
    risk: Array
    seconds: Array
    validation: Array | None
    gap: Array | None
    certified: bool
    watches_loss: bool
    members: dict[str, Array]
    families: tuple[str, ...]
    best: NDArray[np.intp]
    first: NDArray[np.intp]

    @property
    def best_steps(self) -> NDArray[np.intp]:
        """The kept rounds of all families and members as steps of the whole history."""
        return np.unique(self.first[:, None] + self.best)


def training_curves(model: Any) -> TrainingCurves:
    """The curves of a fitted model, from its result."""
    result = _unedited(model)
    families = result.fitted_families
    lengths = [len(family.history) for family in families]
    return _curves(model, result.history, result.unit, families, np.cumsum([0, *lengths[:-1]]))


@dataclass(frozen=True)
class FamilyCurves:
    """One family of a fit by itself.

    Parameters
    ----------
    name : str
    weight : float
        The weight of the family in the ensemble.
    n_atoms : int
        How many atoms of the ensemble are its own.
    curves : TrainingCurves
        Steps are counted from 1, seconds from the beginning of the family.
    """

    name: str
    weight: float
    n_atoms: int
    curves: TrainingCurves

    @property
    def interpolates(self) -> bool:
        """Whether the training risk vanishes beside the loss on held-out rows, as that of forests does."""
        curves = self.curves
        if curves.validation is None or not curves.watches_loss:
            return False
        return bool(curves.risk.max() < _VANISHING * curves.validation.min())

    @property
    def kept_validation(self) -> float:
        """The mean validation value of the members at the rounds kept; NaN where nothing was held out."""
        if self.curves.validation is None:
            return float("nan")
        own = self.curves.members["validation"]
        return float(np.mean([own[t - 1, m] for m, t in enumerate(self.curves.best[0])]))


def family_curves(model: Any) -> tuple[FamilyCurves, ...]:
    """The curves of each family that has rounds, with what it weighs in the ensemble."""
    result = _unedited(model)
    shares_of = dict(zip((family.name for family in result.families), result.family_weights, strict=True))
    atoms = atom_families(result)
    return tuple(
        FamilyCurves(
            family.name,
            float(shares_of[family.name]),
            len(atoms.members_of(family.name)),
            _curves(model, family.history, result.unit, (family,), np.zeros(1, dtype=np.intp)),
        )
        for family in result.fitted_families
    )


def _of_rounds(model: Any) -> FitResult:
    """The result of a model that was fitted in rounds or epochs."""
    result: FitResult = model.result_
    if result.solved_at_once:
        raise ValueError(f"this {type(model).__name__} has no rounds to plot: a stack solves for its weights at once")
    return result


def _unedited(model: Any) -> FitResult:
    result = _of_rounds(model)
    if result.edited:
        raise ValueError("an edited model has no rounds to plot: use the model that was edited")
    return result


def _curves(
    model: Any,
    history: Sequence[Mapping[str, Any]],
    unit: str,
    families: Sequence[Family],
    first: NDArray[np.intp],
) -> TrainingCurves:
    gap = next((name for name in ("suboptimality", "gap_lower") if name in history[0]), None)
    first_members = history[0]["members"]
    # the entry of all families together has no gap of its atoms
    unknown = [np.nan] * len(first_members["risk"])
    members = {name: np.array([entry["members"].get(name, unknown) for entry in history]) for name in first_members}
    if gap is not None:
        members["gap"] = members[gap]

    def column(name: str) -> Array:
        return np.array([entry.get(name, np.nan) for entry in history], dtype=np.float64)

    return TrainingCurves(
        unit,
        column("t" if unit == "round" else "epoch"),
        column("risk"),
        column("seconds"),
        column("validation") if "validation" in members else None,
        None if gap is None else column(gap),
        gap == "suboptimality",
        model.scoring is None,
        members,
        tuple(family.name for family in families),
        np.array([family.best_round for family in families]),
        first,
    )


@dataclass(frozen=True)
class Shares:
    """What each atom weighs in the ensemble.

    Parameters
    ----------
    weights : array of shape (A,)
        On the simplex but for the weights of external models; means over outputs where each has a simplex of its own.
    member, born : array of shape (A,)
        The member and the round that made the atom; round 0 is the zero function that every fit starts from.
    by_round : bool
        False where all atoms were trained at once.
    """

    weights: Array
    member: NDArray[np.int64]
    born: NDArray[np.int64]
    by_round: bool


def shares(model: Any) -> Shares:
    """The weights of a fitted model's atoms, and where they come from."""
    result: FitResult = model.result_
    weights = result.ensemble.weights.detach().cpu().numpy()
    member, born = result.ensemble.origin.cpu().numpy().T
    # atoms that were trained at once are all of one round
    by_round = result.has_stages or int(born.max()) > 1
    return Shares(weights if weights.ndim == 1 else weights.mean(1), member, born, by_round)


def default_error(model: Any) -> tuple[str, Error]:
    """What a stage is judged by, and its name."""
    return ("error", zero_one_loss) if is_classifier(model) else ("RMSE", root_mean_squared_error)


def staged_errors(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None, error: Error) -> Array:
    """The error on given rows after each round, ``(T,)``."""
    if not _of_rounds(model).has_stages:
        raise ValueError(
            f"this {type(model).__name__} has no rounds to plot: stages are those of a GCERegressor or "
            "GCEClassifier where it was fitted"
        )
    y = np.asarray(y)
    return np.array([error(y, answer, sample_weight=sample_weight) for answer in model.staged_predict(X)])
