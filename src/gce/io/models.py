"""A fitted model as one file, and the model that is read from it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import sklearn
import torch
from sklearn.base import is_classifier, is_regressor
from torch import Tensor

from gce._utils.codecs import Parts
from gce._utils.params import check_parameters
from gce._utils.version import __version__
from gce._utils.warn import warn_user
from gce.bases.base import Basis
from gce.bases.registry import first_unstorable
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.io import attributes, container, families, values
from gce.io.atomic import write_bytes
from gce.io.migration import upgrade
from gce.losses import Ordinal
from gce.preprocessing.mixed import Widths
from gce.training.calibration import Calibration
from gce.training.family_weights import mix_families
from gce.training.result import FitResult
from gce.training.rounds import NO_ROUNDS, FamilyRecord
from gce.training.targets import ClassTarget, NumberTarget, Target

#: Characters of a parameter's JSON: what is longer is data, and opaque.
_MOST_TEXT = 2**20
#: The format since which parameters have the names that they have now.
_RENAMED_IN = 3


class SavedKind(NamedTuple):
    """A class of estimators that a file may name.

    Parameters
    ----------
    estimator : type
    unit : {"round", "epoch"}
        What its history counts.
    editable : bool
        Whether its weights can be re-optimised after the fit.
    """

    estimator: type[Any]
    unit: str
    editable: bool


Kinds = Mapping[str, SavedKind]


def save(model: Any, path: str | Path, kinds: Kinds, resumable: bool = False) -> None:
    """Write a fitted model to one file.

    Parameters
    ----------
    model : estimator
    path : str or Path
    kinds : dict of SavedKind
        The classes of estimators that can be saved, by name.
    resumable : bool, default=False
        Keep the rounds of a greedy ensemble too, so that it can be continued.

    Raises
    ------
    ValueError
        An atom, the loss or the model's class is not gce's own, or the model could not be loaded again.
    """
    result, kind = model.result_, type(model)
    if resumable and not result.has_stages and any(family.unit == "round" for family in result.families):
        raise ValueError(NO_ROUNDS)
    kept = result.families if resumable else ()
    atoms = [*result.ensemble.parts, *(atoms for family in kept for atoms in _atoms(family))]
    foreign = first_unstorable([*atoms, *result.external])
    if kinds.get(kind.__name__, SavedKind(object, "", False)).estimator is not kind:
        foreign = f"a {kind.__name__}"
    if foreign is not None:
        raise ValueError(
            f"{foreign} is not gce's own and cannot go into a model file: use joblib.dump(model, {str(path)!r})"
        )
    parts = Parts({"content": "model", "estimator": kind.__name__})
    parts.add("fitted", attributes.store_all(_fitted(model, result)))
    parts.meta["parameters"], parts.meta["opaque"] = _parameters(model)
    parts.meta["written"] = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "versions": _versions()}
    parts.meta["bases"] = _encoded_bases(result)
    if resumable and result.has_stages:
        parts.add("families", families.store_families(result))
        parts.add("covers", families.store_covers(result.ensemble))
    else:
        parts.add("ensemble", families.store_ensemble(result.ensemble))
        if result.families and result.unit == "round":
            parts.add("summary", families.store_summary(result))
        elif result.families:
            parts.add("history", families.store_epochs(result.families[0]))
    if result.calibration.scale is not None:
        parts.add("scale", families.store_scale(result.calibration.scale))
    data = container.serialize(path, parts.meta, parts.tensors)
    _prove(path, data, kinds)
    write_bytes(Path(path), data)


def digest(model: Any) -> str | None:
    """A hash of all that the predictions of a fitted model depend on, the same after :func:`gce.load`.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    str or None
        None where an atom, the loss or another part of the model is not gce's own.
    """
    result = model.result_
    if first_unstorable([*result.ensemble.parts, *result.external]) is not None:
        return None
    parts = Parts({"estimator": type(model).__name__})
    try:
        parts.add("fitted", attributes.store_all(_fitted(model, result)))
    except (ValueError, TypeError):
        return None
    parts.add("ensemble", families.store_ensemble(result.ensemble))
    ready = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in parts.tensors.items()}
    return container.checksum(parts.meta, ready)


def _atoms(family: Any) -> list[Any]:
    return [record.atoms for record in family.rounds if record.atoms is not None]


def _fitted(model: Any, result: FitResult) -> dict[str, Any]:
    """What a file keeps of a result beside atoms, weights and history."""
    fitted = {
        "n_features_in_": model.n_features_in_,
        "n_samples_fit_": result.n_samples,
        "table_": result.table,
        "loss_": result.loss,
        "offset_": result.offset,
        "bound_": result.bound,
        "_seed": result.seed,
        "_kept": None if result.signs is None else list(result.signs),
    }
    if "feature_names_in_" in vars(model):
        fitted["feature_names_in_"] = model.feature_names_in_
    fitted |= result.target.stored(result.calibration)
    if result.folds is not None:
        fitted["_folds"] = list(result.folds)
    if result.interactions is not None:
        sets = result.interactions
        fitted["_interactions"] = sets if isinstance(sets, str) else [list(one) for one in sets]
    if result.importances is not None:
        fitted["_importances"] = result.importances
    if result.left_out:
        fitted["_left_out"] = [list(one) for one in result.left_out]
    if result.held_out is not None:
        fitted["_held_out"] = dict(result.held_out)
    if result.base_score:
        fitted["_base_score"] = True
    if result.samples is not None:
        fitted["_samples"] = result.samples
    if result.edited:
        fitted |= {"gap_": result.gap, "_joint": result.one_simplex}
    return fitted


def _prove(path: str | Path, data: bytes, kinds: Kinds) -> None:
    """Read a file before it is written, as :func:`gce.load` will: what cannot be read must not replace anything."""
    meta, tensors = container.deserialize(path, data)
    try:
        restored(Parts(meta, tensors), kinds, torch.device("cpu"))
    except Exception as error:
        raise ValueError(
            f"the model cannot be kept in a file, because gce.load would refuse it ({container.first_line(error)}); "
            f"nothing was written to {str(path)!r}"
        ) from error


def restored(parts: Parts, kinds: Kinds, device: torch.device) -> Any:
    """The model of a file, of one of the given classes, on a device; a ValueError where there is none."""
    if parts.meta.get("content") != "model":
        raise ValueError("it holds no model")
    # kept for people to read: words
    written = parts.within("written")
    about = (written.meta.get("time"), *parts.within("opaque").meta.values(), *written.within("versions").meta.values())
    if not all(isinstance(word, str) for word in about):
        raise ValueError("what it says about itself is no text")
    kind = kinds[parts.choice("estimator", kinds)]
    model = _estimator(parts, kind.estimator)
    fitted = attributes.restore_all(parts.within("fitted"))
    attributes.check_complete(fitted, _task(model, fitted), kind.editable)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in fitted:
            setattr(model, name, fitted[name])
    model._result = _result(parts, kind, model, fitted, device)
    return model


def _result(parts: Parts, kind: SavedKind, model: Any, fitted: dict[str, Any], device: torch.device) -> FitResult:
    widths, (offset, bound) = fitted["table_"].widths, map(torch.from_numpy, (fitted["offset_"], fitted["bound_"]))
    edited = "gap_" in fitted
    stored = families.StoredFamilies((), (), None)
    if kind.unit == "round" and not edited and "summary" in parts.meta:
        stored = families.restore_summary(parts.within("summary"))
    if kind.unit == "round" and not edited and not stored.families:
        stored = _families(parts, widths, bound)
        own = cast(tuple[FamilyRecord, ...], stored.families)
        families.check_links((atoms for family in own for atoms in family.atoms), fitted["loss_"])
        for atoms in [atoms for family in own for atoms in family.atoms]:
            atoms.to(device)
        ensemble = _mixed(own, stored, offset.to(device))
        if not torch.equal(ensemble.bound.cpu(), bound):
            raise ValueError("the ensemble's bound is another one than that of its atoms and weights")
        ensemble = families.restore_covers(parts.within("covers"), ensemble) if "covers" in parts.meta else ensemble
    else:
        joint = fitted.get("_joint", False)
        ensemble = families.restore_ensemble(parts.within("ensemble"), widths, offset, bound, joint).to(device)
        families.check_links(ensemble.parts, fitted["loss_"])
    records: tuple[Any, ...] = stored.families
    if any(family.members != ensemble.members for family in records):
        raise ValueError("the ensemble has other members than its families")
    if kind.unit == "epoch" and not edited:
        members = len(ensemble.origin[:, 0].unique())
        records = (families.restore_epochs(parts.within("history"), members),)
    signs, folds = fitted.get("_kept"), fitted.get("_folds")
    return FitResult(
        fitted["table_"],
        _target(model, fitted),
        fitted["loss_"],
        records,
        stored.weights or (1.0,) * len(records),
        ensemble,
        _calibration(parts, fitted, device),
        fitted["n_samples_fit_"],
        fitted["_seed"],
        None if folds is None else tuple(folds),
        None if signs is None else tuple(signs),
        stored.closing,
        bases=_bases(parts, kind, records),
        gap=fitted.get("gap_"),
        one_simplex=fitted.get("_joint", False),
        round_weights=stored.rounds,
        interactions=fitted.get("_interactions"),
        importances=fitted.get("_importances"),
        left_out=tuple(map(tuple, fitted.get("_left_out", ()))),
        held_out=fitted.get("_held_out"),
        base_score=fitted.get("_base_score", False),
        samples=fitted.get("_samples"),
    )


def _families(parts: Parts, widths: Widths, bound: Tensor) -> families.StoredFamilies:
    """The families of a file of any format."""
    for name in ("families", "mixed"):
        if name in parts.meta:
            return families.restore_families(parts.within(name), widths, bound)
    return families.restore_family(parts.within("fit"), widths, bound)


def _mixed(records: tuple[FamilyRecord, ...], stored: families.StoredFamilies, offset: Tensor) -> ConvexEnsemble:
    if len(records) == 1:
        return records[0].ensemble(offset)
    weights = {family.name: weight for family, weight in zip(records, stored.weights, strict=True)}
    return mix_families(records, weights, offset, stored.rounds)


def _encoded_bases(result: FitResult) -> dict[str, Any]:
    """The classes of models of the families, where all of them have a form in a file."""
    with suppress(values.OpaqueError):
        return {name: values.encode(basis) for name, basis in result.bases.items()}
    return {}


def _bases(parts: Parts, kind: SavedKind, records: tuple[Any, ...]) -> dict[str, Basis]:
    given = parts.within("bases").meta if "bases" in parts.meta else {}
    found = {name: _decoded(name, basis) for name, basis in given.items()}
    for name, basis in found.items():
        if not isinstance(basis, Basis):
            raise ValueError(f"the basis of family {name!r} is none")
        check_parameters(basis)
    # an edited model has no families, but was made of some
    names = [family.name for family in records] or list(found)
    if found and (kind.unit != "round" or found.keys() != set(names)):
        raise ValueError(f"{', '.join(map(repr, found))} are not the families of this model")
    return {name: found[name] for name in names if found}


def _task(model: Any, fitted: dict[str, Any]) -> str:
    """The task of an estimator, of which classifiers have two."""
    if is_classifier(model):
        return "labels" if "_labels" in fitted else "classes"
    return "numbers" if is_regressor(model) else "survival"


def _target(model: Any, fitted: dict[str, Any]) -> Target:
    if "event_times_" in fitted:
        # most files hold no such model
        from gce.training.survival import SurvivalTarget

        return SurvivalTarget(fitted["event_times_"], fitted["_scale"], fitted["loss_"])
    if "_labels" in fitted or isinstance(fitted["loss_"], Ordinal):
        from gce.training.labels import MultiLabelTarget, OrdinalTarget

        if "_labels" in fitted:
            return MultiLabelTarget(fitted["_labels"], model.temperature)
        return OrdinalTarget(fitted["classes_"], model.class_weight, model.temperature)
    if "classes_" in fitted:
        return ClassTarget(fitted["classes_"], model.class_weight, model.temperature)
    repeats, limits = fitted["loss_"].outputs_per_target, fitted.get("_limits")
    return NumberTarget(len(fitted["offset_"]), fitted["_one_dimensional"], repeats, limits)


def _calibration(parts: Parts, fitted: dict[str, Any], device: torch.device) -> Calibration:
    scale = None
    if "scale" in parts.meta:
        if "residuals_" not in fitted:
            raise ValueError("a model without residuals has no scale of them")
        scale = families.restore_scale(parts.within("scale"), fitted["table_"].widths, len(fitted["offset_"]), device)
    known = {"temperature": "temperature_", "residuals": "residuals_", "baseline": "baseline_"}
    return Calibration(**{name: fitted[kept] for name, kept in known.items() if kept in fitted}, scale=scale)


def _versions() -> dict[str, str]:
    libraries = {"numpy": np.__version__, "torch": str(torch.__version__), "scikit-learn": sklearn.__version__}
    return {"gce": __version__, "python": platform.python_version(), **libraries}


def _parameters(model: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters as JSON, and the ``repr`` of those that have no such form."""
    known, opaque = {}, {}
    for name, value in model.get_params(deep=False).items():
        try:
            known[name] = values.encode(value)
            if len(json.dumps(known[name])) > _MOST_TEXT:
                raise values.OpaqueError("too long")
        except values.OpaqueError:
            known.pop(name, None)
            opaque[name] = repr(value)[:1000]
    if opaque:
        warn_user(
            f"{', '.join(opaque)} cannot go into a model file and will be restored as the default: predictions do not "
            "depend on it, another fit may",
            UserWarning,
        )
    return known, opaque


def _estimator(parts: Parts, kind: type[Any]) -> Any:
    given = parts.within("parameters").meta
    if parts.integer("version", 1) < _RENAMED_IN:
        given = {name: upgrade(value) for name, value in given.items()}
    unknown = given.keys() - set(kind._get_param_names())
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {sorted(unknown)[0]!r}")
    parameters = {name: _decoded(name, value) for name, value in given.items()}
    # the one parameter that predictions look at
    jobs = parameters.get("n_jobs")
    if isinstance(jobs, bool) or not (jobs is None or isinstance(jobs, int)) or jobs == 0:
        raise ValueError(f"'n_jobs' must be an integer other than 0, or null, but is {jobs!r}")
    return kind(**parameters)


def _decoded(name: str, value: Any) -> Any:
    try:
        return values.decode(value)
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from error
