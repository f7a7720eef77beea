"""What pictures are drawn from: a model's history, weights and stages as plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import root_mean_squared_error, zero_one_loss
from sklearn.utils.validation import check_is_fitted

Array = NDArray[np.float64]

#: From ``(y, predictions, sample_weight=...)`` to one number, lower is better.
Error = Callable[..., float]


@dataclass(frozen=True)
class Course:
    """How a fit went, a row a round (greedy) or an epoch (trained at once).

    Parameters
    ----------
    unit : {"round", "epoch"}
    steps : array of shape (T,)
    risk, seconds : array of shape (T,)
    validation, gap : array of shape (T,) or None
    certified : bool
        The gap is the duality gap, not a lower estimate of it.
    watches_loss : bool
        Validation values are the loss, in the risk's unit; otherwise a scorer's, its sign turned.
    members : dict of array of shape (T, M)
        The members' own risk, validation and gap.
    best : array of shape (M,)
        The step at which each member stands in the ensemble.
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
    best: NDArray[np.intp]


def course(model: Any) -> Course:
    """The course of a fitted model's fit, from its ``history_``."""
    check_is_fitted(model)
    if not hasattr(model, "history_"):
        raise ValueError("an edited model has no rounds to look back on: ask the model it was made of")
    history = model.history_
    unit = "round" if "t" in history[0] else "epoch"
    gap = next((name for name in ("gap", "gap_lower") if name in history[0]), None)
    members = {name: np.array([entry["members"][name] for entry in history]) for name in history[0]["members"]}
    if gap is not None:
        members["gap"] = members[gap]

    def column(name: str) -> Array:
        return np.array([entry[name] for entry in history], dtype=np.float64)

    return Course(
        unit,
        column("t" if unit == "round" else "epoch"),
        column("risk"),
        column("seconds"),
        column("validation") if "validation" in members else None,
        None if gap is None else column(gap),
        gap == "gap",
        model.scoring is None,
        members,
        _best(history, members, unit),
    )


def _best(history: list[dict[str, Any]], members: dict[str, Array], unit: str) -> NDArray[np.intp]:
    """Where nothing is held out the last round is best, or the epoch of the least risk; see who decides it there."""
    if "validation" in members:
        return np.nanargmin(members["validation"], 0) + 1
    if unit == "epoch":
        return np.nanargmin(members["risk"], 0) + 1
    last = {m: entry["t"] for entry in history for m in entry["running"]}
    return np.array([last[m] for m in sorted(last)])


@dataclass(frozen=True)
class Shares:
    """What each atom weighs in the ensemble.

    Parameters
    ----------
    weights : array of shape (A,)
        On the simplex but for what guests weigh; means over outputs where each output has a simplex of its own.
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
    check_is_fitted(model)
    weights = model.ensemble_.weights.detach().cpu().numpy()
    member, born = model.ensemble_.origin.cpu().numpy().T
    return Shares(weights if weights.ndim == 1 else weights.mean(1), member, born, hasattr(model, "staged_predict"))


def has_stages(model: Any) -> bool:
    """Whether a fitted model can still say what it predicted after each round."""
    return hasattr(model, "staged_predict") and hasattr(model, "_fit")


def default_error(model: Any) -> tuple[str, Error]:
    """What a stage is judged by, and its name."""
    return ("error", zero_one_loss) if is_classifier(model) else ("RMSE", root_mean_squared_error)


def staged_errors(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None, error: Error) -> Array:
    """The error on given rows after each round, ``(T,)``."""
    check_is_fitted(model)
    if not has_stages(model):
        raise ValueError(
            f"this {type(model).__name__} has no rounds to look back on: stages are those of a GCERegressor or "
            "GCEClassifier where it was fitted"
        )
    y = np.asarray(y)
    return np.array([error(y, answer, sample_weight=sample_weight) for answer in model.staged_predict(X)])
