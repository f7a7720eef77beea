"""Calls of methods of fitted models, and of public functions, with odd arguments."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.linear_model import Ridge

import gce
from campaign.inputs_cases import Case, described, odd_parameters, odd_rows
from campaign.inputs_fitted import Fitted, fitted_model
from campaign.inputs_models import STACKS, affordable, greedy
from campaign.inputs_oracle import FaultError, Refused, watched
from campaign.inputs_tables import rows_of
from campaign.inputs_targets import odd_groups, odd_target, odd_weight
from campaign.inputs_uses import (
    check_onnx,
    check_result,
    check_saved,
    check_score,
    fitted,
    listed,
    others_of,
    watched_method,
)
from campaign.inputs_values import odd
from campaign.inputs_words import OF_METHODS, PARTS, Mention, about, mentioned
from gce.inspection.editing.edit_data import atom_names
from gce.inspection.editing.naming import is_zero

METHODS = (
    "predict_interval", "predict_survival_function", "predict_cumulative_hazard_function", "staged_predict",
    "staged_predict_proba", "score", "prune", "pruning_path", "reweight", "remove", "add", "shap_values",
    "shap_interaction_values", "report", "save", "explain", "bound_report", "to_onnx", "predict", "set_params",
    "without_unused", "predict_log_proba",
)  # fmt: skip
#: Methods of stacks that need no rows.
OF_KEPT = ("prune", "remove", "pruning_path", "explain")
EDITS = ("prune", "reweight", "remove", "add", "without_unused")


def methods_case(rng: Random) -> Case:
    """A method of a fitted model with one or two odd arguments."""
    kept = fitted_model(rng)
    method = rng.choice([name for name in METHODS if hasattr(kept.model, name)])
    if method in ("report", "to_onnx") and rng.random() < 0.6:  # these take long
        method = "score"
    given = valid_arguments(rng, kept, method)
    odd_ones = odd_arguments(rng, kept, method, given)
    words = f"{kept.words}.{method} {', '.join(odd_ones.values())}"
    mentions = (*OF_METHODS.get(method, ()), *about_arguments({name: given[name] for name in odd_ones}))

    def calls(folder: Path) -> str:
        model = copy.deepcopy(kept.model)
        before = model.predict(kept.X)
        arguments = {
            name: folder / value if name == "path" and isinstance(value, str) and "\0" not in value else value
            for name, value in given.items()
        }
        try:
            result = watched(method, lambda: listed(getattr(model, method)(**arguments)), mentions, others_of(model))
        except Refused:
            if method != "set_params" and not np.array_equal(before, model.predict(kept.X)):
                raise FaultError(f"{method} was refused, and yet changed the model") from None
            raise
        if method == "set_params":
            return fitted(model, {"X": kept.X, "y": kept.y}, mentions, folder, rng)
        return checked(kept, method, model, result, arguments)

    return Case(f"arguments of {method}", words, calls)


def about_arguments(odd_ones: dict[str, Any]) -> tuple[Mention, ...]:
    """What an error about odd arguments names: those of data as in a fit, others with their values."""
    data = about(*[name for name in odd_ones if name in PARTS])
    others = mentioned({name: value for name, value in odd_ones.items() if name not in PARTS})
    return (*(data if PARTS.keys() & odd_ones else ()), *others)


def removable(model: Any) -> str:
    """The name of an atom that can be removed."""
    return next(name for name in atom_names(model.result_) if not is_zero(name))


def checked(kept: Fitted, method: str, model: Any, result: Any, arguments: dict[str, Any]) -> str:
    """Check the result of a method; what came of it in a word."""
    rows = rows_of(arguments["X"]) if "X" in arguments else None
    if method in EDITS:
        watched_method(result if hasattr(result, "predict") else model, "predict", {"X": kept.X}, ())
        return "edited, finite"
    if method == "save":
        check_saved(arguments["path"], kept.X, model.predict(kept.X))
        return "saved and loaded bit-equal"
    if method == "to_onnx":
        check_onnx(arguments["path"])
        return "a valid graph"
    if method == "score":
        check_score(result, rows)
        return "a number"
    if method.startswith(("predict", "staged", "shap")):
        check_result(model, method, result.values if method.startswith("shap") else result, rows)
        return "finite"
    return "done"


def valid_arguments(rng: Random, kept: Fitted, method: str) -> dict[str, Any]:
    """Arguments that a method takes."""
    accepted = inspect.signature(getattr(kept.model, method)).parameters
    given: dict[str, Any] = {name: value for name, value in (("X", kept.X), ("y", kept.y)) if name in accepted}
    if method in ("report", "save", "to_onnx"):
        given["path"] = {"report": "report.html", "save": "model.safetensors", "to_onnx": "model.onnx"}[method]
    if method == "prune":
        given[rng.choice(["k", "tol"])] = 1
    if method == "remove":
        given["names"] = "mean" if kept.words.startswith(STACKS) else removable(kept.model)
    if method == "add":
        given["name"], given["model"] = "new", Ridge().fit(np.zeros((3, 3)), np.zeros(3))
    if "groups" in accepted and rng.random() < 0.2:
        given["groups"] = np.arange(len(kept.y)) % 4
    # a stack that keeps its members' predictions refuses rows, except for `explain`
    if kept.words.startswith(STACKS) and method in OF_KEPT and rng.random() < 0.8:
        given = {name: value for name, value in given.items() if name not in ("X", "y")}
    if method == "set_params":
        given = {rng.choice(sorted(kept.model.get_params())): None}
    return given


def odd_arguments(rng: Random, kept: Fitted, method: str, given: dict[str, Any]) -> dict[str, str]:
    """Make one or two arguments odd, in place; their names, and what they are now in words."""
    accepted = [
        name
        for name in inspect.signature(getattr(kept.model, method)).parameters
        if name not in ("validation", "given", "params", "self")
    ]
    names = accepted or list(given)
    said = {}
    for name in rng.sample(names, min(rng.choice([1, 1, 2]), len(names))):
        if name in ("X", "background"):
            table = odd_rows(rng, kept.cells, kept.container)
            given[name], words = table.value, table.words
        elif name == "y":
            given[name], words = odd_target(rng, kept.y)
        elif name == "sample_weight":
            given[name], words = odd_weight(rng, len(kept.y))
        elif name == "groups":
            given[name], words = odd_groups(rng, len(kept.y))
        else:
            value = odd(rng)
            while not affordable(name, value):
                value = odd(rng)
            # a number is a handle of an open file
            given[name] = "text" if name == "path" and not isinstance(value, str) else value
            words = described({name: given[name]})
        said[name] = words
    return said


def objects_case(rng: Random) -> Case:
    """Shards, early stopping and other public objects with odd parameters."""
    batches = [pa.table({"a": [1.0, 2.0, 3.0, 4.0] * 3, "b": ["u", "v"] * 6, "y": [0.0, 1.0, 2.0, 3.0] * 3})] * 2
    if rng.random() < 0.5:
        odd_ones = odd_parameters(rng, gce.Shards, rng.choice([1, 1, 2]))
        mentions = mentioned(odd_ones)

        def calls(folder: Path) -> str:
            valid = {"source": batches, "target": "y", "folder": folder / "shards"}
            shards = watched("Shards(...)", lambda: gce.Shards(**{**valid, **odd_ones}), mentions)
            model = gce.GCERegressor(**{**greedy(rng), "basis": gce.bases.Tree(max_leaf_nodes=3), "cv": "auto"})
            watched("fit", lambda: model.fit(shards), mentions)
            return "finite"

        return Case("parameters of Shards", described(odd_ones), calls)
    kind = rng.choice([gce.training.EarlyStopping, gce.training.SharedEarlyStopping])
    odd_ones = {"n_iter_no_change": 1, "tol": 0.0, **odd_parameters(rng, kind, 1)}

    def stopped(folder: Path) -> str:
        mentions = (*mentioned(odd_ones), kind.__name__)
        made = watched(f"{kind.__name__}(...)", lambda: kind(**odd_ones), mentions)
        X = np.arange(24.0).reshape(12, 2)
        return fitted(
            gce.GCERegressor(**{**greedy(rng), "callbacks": [made]}), {"X": X, "y": X[:, 0]}, mentions, folder, rng
        )

    return Case("parameters of a callback", f"{kind.__name__} {described(odd_ones)}", stopped)
