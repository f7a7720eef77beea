"""A fitted model as one file, and the model that comes out of it."""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gce.basis.stored import first_foreign
from gce.fitting import Fit
from gce.mixing import MixedFit
from gce.parts import Parts
from gce.storage import attributes, container, learned, values

#: Characters of a parameter's JSON: what is longer is data, and opaque.
_MOST_TEXT = 2**20


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file.

    Raises
    ------
    ValueError
        A member, the loss or the model's class is not gce's own, its last fit did not come to its end, or something in
        it is not what a fit leaves behind, so that it could not be loaded.
    """
    check_is_fitted(model, "ensemble_")
    kind = type(model)
    fit = getattr(model, "_fit", None)
    if fit is not None and fit.history != model.history_:
        raise ValueError(
            "the last fit was interrupted, and the model is partly of that and partly of the one before: fit it again"
        )
    atoms = model.ensemble_.parts if fit is None else fit.atoms
    foreign = first_foreign([*atoms, *getattr(model, "_guests", ())])
    if not kind.__module__.startswith("gce.estimators."):
        foreign = f"a {kind.__name__}"
    if foreign is not None:
        raise ValueError(
            f"{foreign} is not gce's own and cannot go into a model file: use joblib.dump(model, {str(path)!r})"
        )
    parts = Parts({"content": "model", "estimator": kind.__name__})
    parts.add("fitted", attributes.store_all(vars(model)))
    parts.meta["parameters"], parts.meta["opaque"] = _parameters(model)
    parts.meta["written"] = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "versions": _versions()}
    if fit is None:
        parts.add("ensemble", learned.store_ensemble(model.ensemble_))
    elif isinstance(fit, MixedFit):
        parts.add("mixed", learned.store_mixed(fit))
    else:
        parts.add("fit", learned.store_fit(fit))
    if fit is None and hasattr(model, "history_"):
        parts.add("history", learned.store_history(model.history_))
    data = container.packed(path, parts.meta, parts.tensors)
    _prove(kind, path, data)
    container.put(Path(path), data)


def _prove(kind: type[Any], path: str | Path, data: bytes) -> None:
    """Read a file before it is written, as :func:`gce.load` will: what cannot be read must not replace anything."""
    meta, tensors = container.unpacked(path, data)
    try:
        restored(Parts(meta, tensors), {kind.__name__: kind}, torch.device("cpu"))
    except Exception as error:
        raise ValueError(
            f"the model cannot be kept in a file, because gce.load would refuse it ({container.first_line(error)}); "
            f"nothing was written to {str(path)!r}"
        ) from error


def restored(parts: Parts, kinds: Mapping[str, type[Any]], device: torch.device) -> Any:
    """The model of a file, of one of the given classes, on a device; a ValueError where there is none."""
    if parts.meta.get("content") != "model":
        raise ValueError("it holds no model")
    # kept for people to read: words
    about = (parts.within("opaque"), parts.within("written").within("versions"))
    if not all(isinstance(word, str) for some in about for word in some.meta.values()):
        raise ValueError("what it says about itself is no text")
    model = _estimator(parts, kinds)
    fitted = attributes.restore_all(parts.within("fitted"))
    _check(model, fitted)
    vars(model).update(fitted)
    inputs, (offset, bound) = model.table_.width, map(torch.from_numpy, (model.offset_, model.bound_))
    if "gap_" in fitted:
        model.ensemble_ = learned.restore_ensemble(parts.within("ensemble"), inputs, offset, bound, fitted["_joint"])
        model.ensemble_.to(device)
        return model
    if hasattr(model, "staged_predict"):
        mixed = "mixed" in parts.meta
        fit: Fit | MixedFit = (
            learned.restore_mixed(parts.within("mixed"), inputs, bound)
            if mixed
            else learned.restore_fit(parts.within("fit"), inputs, bound)
        )
        for atoms in fit.atoms:
            atoms.to(device)
        model._fit, model.ensemble_, model.history_ = fit, fit.ensemble(offset.to(device)), fit.history
        if not torch.equal(model.ensemble_.bound.cpu(), bound):
            raise ValueError("the ensemble's bound is another one than that of its atoms and weights")
    else:
        model.ensemble_ = learned.restore_ensemble(parts.within("ensemble"), inputs, offset, bound).to(device)
        model.history_ = learned.restore_history(parts.within("history"), len(model.ensemble_.origin[:, 0].unique()))
    model.n_iter_ = len(model.history_)
    return model


def _versions() -> dict[str, str]:
    own = sys.modules["gce"].__version__
    libraries = {"numpy": np.__version__, "torch": str(torch.__version__), "scikit-learn": sklearn.__version__}
    return {"gce": own, "python": platform.python_version(), **libraries}


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
        warnings.warn(
            f"{', '.join(opaque)} cannot go into a model file and will come back at the default: predictions do not "
            "depend on that, another fit may",
            UserWarning,
            stacklevel=4,
        )
    return known, opaque


def _estimator(parts: Parts, kinds: Mapping[str, type[Any]]) -> Any:
    kind, given = kinds[parts.choice("estimator", kinds)], parts.within("parameters").meta
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


def _check(model: Any, fitted: dict[str, Any]) -> None:
    """Refuse attributes that no fit of this model leaves."""
    own, others = attributes.REGRESSOR, attributes.CLASSIFIER
    if is_classifier(model):
        own, others = others, own
    if attributes.EDITED & fitted.keys() and hasattr(model, "reweight"):
        own = own | attributes.EDITED
    else:
        others = others | attributes.EDITED
    if wrong := (attributes.ALWAYS | own) - fitted.keys() or others & fitted.keys():
        raise ValueError(f"{sorted(wrong)[0]!r} is missing, or not of this kind of model")
    outputs, columns = len(fitted["offset_"]), fitted["n_features_in_"]
    score = torch.zeros(1, outputs, dtype=torch.float64)
    answers = len(fitted["classes_"]) if is_classifier(model) else outputs
    sound = (
        len(fitted["table_"].columns) == columns
        and len(fitted.get("feature_names_in_", range(columns))) == columns
        and len(fitted["bound_"]) == outputs
        and fitted["loss_"].predict(score).shape == (1, answers)
        and bool(fitted["loss_"].value(score, score).isfinite().all())
        and (not is_classifier(model) or answers >= 2)
        and (is_classifier(model) or fitted["residuals_"].shape[1] == outputs)
        and not (fitted.get("_one_dimensional") and outputs > 1)
    )
    if not sound:
        raise ValueError("what was fitted does not fit together")
