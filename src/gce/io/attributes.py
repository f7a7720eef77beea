"""Fitted attributes in files: one line each in :data:`FITTED`, with the codec that stores it and brings it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils.codecs import Parts
from gce.io import values
from gce.losses import Hazards, Loss
from gce.preprocessing import Table
from gce.preprocessing.interactions import NO_INTERACTIONS, PAIRWISE, Interactions
from gce.training.metrics import TITLES

_LABELS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_TEXT = re.compile(r"<U([1-9][0-9]{0,4})")
#: Bytes of an array of text; each of its items takes as much as the longest.
_MOST_TEXT = 2**28


@dataclass(frozen=True)
class Codec:
    """How one attribute is stored as parts, and brought back from them; what cannot be is a ValueError."""

    store: Callable[[Any], Parts]
    restore: Callable[[Parts], Any]


def restore_all(parts: Parts) -> dict[str, Any]:
    """Every attribute that is there."""
    unknown = parts.meta.keys() - FITTED.keys()
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]!r} is no attribute of a fitted model")
    return {name: _restored(name, parts) for name in FITTED if name in parts.meta}


def _restored(name: str, parts: Parts) -> Any:
    try:
        return FITTED[name].restore(parts.within(name))
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from error


def store_all(attributes: dict[str, Any]) -> Parts:
    """Every attribute that a model has."""
    parts = Parts()
    for name, codec in FITTED.items():
        if name in attributes:
            parts.add(name, codec.store(attributes[name]))
    return parts


def _store_value(value: Any) -> Parts:
    return Parts({"value": value})


def _store_array(array: NDArray[np.float64]) -> Parts:
    return Parts({}, {"array": torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64))})


def _restore_vector(parts: Parts) -> NDArray[np.float64]:
    return parts.finite("array", None).numpy()


def _restore_importances(parts: Parts) -> NDArray[np.float64]:
    shares = parts.finite("array", None).numpy()
    if (shares < 0).any() or not (abs(shares.sum() - 1) < 1e-6 or (shares == 0).all()):
        raise ValueError("importances must be shares of 1")
    return shares


def _restore_metrics(parts: Parts) -> dict[str, float]:
    given = parts.meta.get("value")
    if not isinstance(given, dict) or not given.keys() <= TITLES.keys():
        raise ValueError(f"metrics must be some of {', '.join(TITLES)}")
    own = parts.within("value")
    return {name: own.number(name, 0) for name in given}


def _restore_bound(parts: Parts) -> NDArray[np.float64]:
    bound = parts.tensor("array", None)
    if not (bound > 0).all():
        raise ValueError("a bound must be positive")
    return bound.numpy()


def _restore_residuals(parts: Parts) -> NDArray[np.float64]:
    array = parts.tensors.get("array", torch.empty(0))
    residuals = parts.finite("array", len(array), None)
    if (residuals.diff(dim=0) < 0).any():
        raise ValueError("residuals must be sorted")
    return residuals.numpy()


def _restore_limits(parts: Parts) -> NDArray[np.float64]:
    limits = parts.finite("array", 2, None)
    if (limits[0] > limits[1]).any():
        raise ValueError("a lower limit must not be above the upper one")
    return limits.numpy()


def _restore_times(parts: Parts) -> NDArray[np.float64]:
    times = parts.finite("array", None)
    if times[0] <= 0 or (times.diff() <= 0).any():
        raise ValueError("times must be positive and increase")
    return times.numpy()


def _restore_baseline(parts: Parts) -> NDArray[np.float64]:
    baseline = parts.finite("array", None)
    if baseline[0] < 0 or (baseline.diff() < 0).any():
        raise ValueError("a cumulative hazard must not decrease")
    return baseline.numpy()


def _restore_temperature(parts: Parts) -> float:
    temperature = parts.number("value", 0)
    if temperature == 0:
        raise ValueError("a temperature must be positive")
    return temperature


def _store_labels(labels: NDArray[Any]) -> Parts:
    kind = labels.dtype.str if labels.dtype.kind == "U" else labels.dtype.name
    listed = [label.item() if isinstance(label, np.generic) else label for label in labels.tolist()]
    if not _typed(kind, listed):
        raise ValueError(f"labels of type {labels.dtype} cannot go into a file: use numbers or short text")
    return Parts({"dtype": kind, "labels": listed})


def _restore_labels(parts: Parts) -> NDArray[Any]:
    kind, listed = parts.meta.get("dtype"), parts.meta.get("labels")
    if not isinstance(kind, str) or not isinstance(listed, list) or not _typed(kind, listed):
        raise ValueError("labels must be numbers or text of a known type")
    labels = np.array(listed, dtype=kind)
    if labels.shape != (len(listed),) or labels.tolist() != listed or len(set(listed)) != len(listed):
        raise ValueError("labels must differ and be of the type they claim to be")
    return labels


def _typed(kind: str, labels: list[Any]) -> bool:
    """Whether an array of a type may hold these labels, without taking memory out of proportion."""
    text = _TEXT.fullmatch(kind)
    small = text is None or 4 * int(text[1]) * len(labels) <= _MOST_TEXT
    plain = all(isinstance(label, bool | int | float | str) for label in labels)
    return small and plain and (text is not None or kind == "object" or kind in _LABELS)


def _restore_names(parts: Parts) -> NDArray[Any]:
    return np.array(parts.words("value"), dtype=object)


def _restore_signs(parts: Parts) -> list[int] | None:
    signs = parts.meta.get("value")
    if signs is not None and not (isinstance(signs, list) and all(sign in (-1, 0, 1) for sign in signs)):
        raise ValueError("signs must be -1, 0 or 1")
    return signs


def _restore_interactions(parts: Parts) -> Interactions:
    given = parts.meta.get("value")
    if given in (PAIRWISE, NO_INTERACTIONS):
        return str(given)
    if not isinstance(given, list) or not all(isinstance(one, list) and one for one in given):
        raise ValueError("'_interactions' must be sets of columns")
    if not all(type(column) is int and column >= 0 for one in given for column in one):
        raise ValueError("'_interactions' must have indices of columns")
    return tuple(map(tuple, given))


def _restore_left_out(parts: Parts) -> list[list[str]]:
    pairs = parts.meta.get("value")
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError("'_left_out' must have pairs of a family and a reason")
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise ValueError("'_left_out' must have names and reasons that are text")
    return pairs


def _restore_folds(parts: Parts) -> list[int]:
    folds = parts.meta.get("value")
    if not isinstance(folds, list) or not all(type(name) is int and 0 <= name < 2**64 for name in folds):
        raise ValueError("'_folds' must be a list of the names of held-out rows")
    return folds


def _store_loss(loss: Loss) -> Parts:
    try:
        return _store_value(values.encode(loss))
    except values.OpaqueError as error:
        raise ValueError(f"the loss {loss!r} is not one of gce's: keep the model with joblib.dump") from error


def _restore_loss(parts: Parts) -> Loss:
    loss = values.decode(parts.meta.get("value"))
    if not isinstance(loss, Loss):
        raise ValueError("'loss_' is no loss")
    return loss


def _store_table(table: Table) -> Parts:
    meta, arrays = table.state()
    for column in meta["columns"]:
        try:
            column["levels"] = values.encode(list(column["levels"]))
        except values.OpaqueError as error:
            raise ValueError(
                f"a level of column {column['name']!r} cannot go into a file ({error}): fit with numbers or text "
                "there, or keep the model with joblib.dump"
            ) from error
    return Parts({"state": meta}, {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()})


def _restore_table(parts: Parts) -> Table:
    # components of text check their own type
    own = (tensor for name, tensor in parts.tensors.items() if not name.endswith(".parts.components"))
    state, dtypes = parts.within("state").meta, {tensor.dtype for tensor in own}
    for column in state["columns"]:
        column["levels"] = levels = values.decode(column["levels"])
        sound = isinstance(column["name"], str) and isinstance(levels, list) and _typed("object", levels)
        if not sound or len(set(levels)) != len(levels):
            raise ValueError("a column of the table must have a name and levels that differ")
    if not dtypes <= {torch.float64, torch.int64}:
        raise ValueError("the table's arrays are of other types than a fit leaves")
    return Table.from_state(state, {name: tensor.numpy() for name, tensor in parts.tensors.items()})


#: What a file keeps of a fitted model beside its atoms and weights. A new attribute needs a line here.
FITTED = {
    "n_features_in_": Codec(_store_value, lambda parts: parts.integer("value", 1)),
    "n_samples_fit_": Codec(_store_value, lambda parts: parts.integer("value", 1, 2**53)),
    "feature_names_in_": Codec(lambda names: _store_value(names.tolist()), _restore_names),
    "table_": Codec(_store_table, _restore_table),
    "classes_": Codec(_store_labels, _restore_labels),
    "loss_": Codec(_store_loss, _restore_loss),
    "offset_": Codec(_store_array, _restore_vector),
    "bound_": Codec(_store_array, _restore_bound),
    "temperature_": Codec(_store_value, _restore_temperature),
    "residuals_": Codec(_store_array, _restore_residuals),
    "_kept": Codec(_store_value, _restore_signs),
    "_importances": Codec(_store_array, _restore_importances),
    "_left_out": Codec(_store_value, _restore_left_out),
    "_held_out": Codec(_store_value, _restore_metrics),
    "_interactions": Codec(_store_value, _restore_interactions),
    "_seed": Codec(_store_value, lambda parts: parts.integer("value", 0, 2**256)),
    "_folds": Codec(_store_value, _restore_folds),
    "_samples": Codec(_store_value, lambda parts: parts.integer("value", 0, 2**64)),
    "gap_": Codec(_store_value, lambda parts: parts.number("value", 0)),
    "_joint": Codec(_store_value, lambda parts: parts.flag("value")),
    "_one_dimensional": Codec(_store_value, lambda parts: parts.flag("value")),
    "_base_score": Codec(_store_value, lambda parts: parts.flag("value")),
    "_limits": Codec(_store_array, _restore_limits),
    "_labels": Codec(_store_value, lambda parts: parts.integer("value", 2, 2**31)),
    "event_times_": Codec(_store_array, _restore_times),
    "_scale": Codec(_store_array, _restore_times),
    "baseline_": Codec(_store_array, _restore_baseline),
}
#: What each model must have of it, and models of each task, and no other, beside.
ALWAYS = {"n_features_in_", "n_samples_fit_", "table_", "loss_", "offset_", "bound_", "_seed"}
OWN = {
    "numbers": {"residuals_", "_one_dimensional"},
    "classes": {"classes_", "temperature_"},
    "labels": {"_labels", "temperature_"},
    "survival": {"event_times_", "_scale", "baseline_"},
}
#: What an edited model has beside.
EDITED = {"gap_", "_joint"}


def check_complete(fitted: dict[str, Any], task: str, editable: bool) -> None:
    """Refuse attributes that no fit of a task, one of :data:`OWN`, leaves, editable or not."""
    own = OWN[task]
    others = set().union(*OWN.values()) - own
    if task != "numbers":
        others = others | {"_base_score"}
    if EDITED & fitted.keys() and editable:
        own = own | EDITED
    else:
        others = others | EDITED
    if wrong := (ALWAYS | own) - fitted.keys() or others & fitted.keys():
        raise ValueError(f"{sorted(wrong)[0]!r} is missing, or not of this kind of model")
    outputs, columns = len(fitted["offset_"]), fitted["n_features_in_"]
    score = torch.zeros(1, outputs, dtype=torch.float64)
    consistent = (
        len(fitted["table_"].columns) == columns
        and len(fitted.get("feature_names_in_", range(columns))) == columns
        and len(fitted["bound_"]) == outputs
        and len(fitted.get("_importances", range(columns))) == columns
        and fitted["loss_"].predict(score).shape == (1, _answers(fitted, task))
        and bool(fitted["loss_"].value(score, score).isfinite().all())
        and (task != "numbers" or fitted["residuals_"].shape[1] == outputs)
        and (task != "survival" or _is_survival(fitted))
        and not (fitted.get("_one_dimensional") and outputs > 1)
        and ("_limits" not in fitted or (task == "numbers" and fitted["_limits"].shape[1] == outputs))
        and _spans(fitted.get("_interactions"), columns)
    )
    if not consistent:
        raise ValueError("the fitted attributes are inconsistent")


def _answers(fitted: dict[str, Any], task: str) -> int:
    """How many numbers a row's predictions are; -1 for a single class."""
    if task == "survival":
        return 1
    if task == "classes":
        return len(fitted["classes_"]) if len(fitted["classes_"]) >= 2 else -1
    return fitted["_labels"] if task == "labels" else len(fitted["offset_"])


def _is_survival(fitted: dict[str, Any]) -> bool:
    """Whether a baseline has a value for each time, and the loss is that of times."""
    loss, lengths = fitted["loss_"], {len(fitted[name]) for name in OWN["survival"]}
    return isinstance(loss, Hazards) and loss.degree + 1 == len(fitted["offset_"]) and len(lengths) == 1


def _spans(interactions: Interactions | None, columns: int) -> bool:
    """Whether sets of columns hold all columns of a table, and no others."""
    if interactions is None or isinstance(interactions, str):
        return True
    return {column for one in interactions for column in one} == set(range(columns))
