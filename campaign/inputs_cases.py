"""Cases by their numbers: what is odd, and the calls that are watched."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import gce
from campaign.inputs_models import (
    ESTIMATORS,
    OBJECTS,
    STACKS,
    TASK_MODEL,
    affordable,
    estimator_name,
    greedy,
)
from campaign.inputs_oracle import FaultError, Hang, Refused, check_predictions, check_probabilities, shortened, watched
from campaign.inputs_tables import CONTAINERS, Cells, Given, contained, numeric_cells, odd_table, plain_cells, rows_of
from campaign.inputs_targets import odd_groups, odd_target, odd_weight, plain_target
from campaign.inputs_values import odd

ROWS = (8, 12, 24, 40)
#: Words of which an error about data has one.
DATA = (
    "X", "y", "column", "row", "sample", "feature", "class", "target", "weight", "group", "array", "value", "label",
    "NaN", "time", "event", "estimators_", "member", "base_score",
)  # fmt: skip


#: Parts of the paths of the members of stacks, and of what they call.
MEMBERS = ("sklearn/", "scipy/", "numpy/", "pandas/", "polars/")


class Case:
    """A case: what is odd in words, and a function that makes the calls."""

    def __init__(self, kind: str, words: str, calls: Callable[[Path], str]) -> None:
        self.kind, self.words, self.calls = kind, words, calls


def case_of(seed: int, number: int) -> Case:
    """The case with a number, which depends on it and on the seed alone."""
    from campaign.inputs_calls import methods_case, objects_case

    rng = Random(f"{seed} {number}")
    maker = rng.choices(
        [table_case, prediction_case, target_case, parameters_case, object_case, objects_case, methods_case],
        [0.2, 0.1, 0.15, 0.2, 0.12, 0.05, 0.18],
    )[0]
    for _ in range(5):
        try:
            return maker(rng)
        except Hang:
            raise
        except BaseException as error:  # of pandas, polars or Arrow, which do not make everything
            last = error
    raise last


def table_case(rng: Random) -> Case:
    """A fit of an odd table."""
    model, words, task = valid_model(rng)
    makes = numeric_cells if words.startswith(STACKS) else plain_cells
    cells = makes(rng, rng.choice(ROWS), rng.randint(1, 4))
    y = plain_target(rng, task, cells.rows)
    X = odd_table(rng, cells, rng.choice(sorted(CONTAINERS)), rng.choice([1, 1, 2, 3]))
    if rng.random() < 0.8 and (rows_of(X.value) or 0) > 0:
        y = y[: rows_of(X.value)]
    return Case(
        "X of fit", f"{words} X: {X.words}", lambda folder: fitted(model, {"X": X.value, "y": y}, DATA, folder, rng)
    )


def prediction_case(rng: Random) -> Case:
    """A prediction of odd rows by a model of a valid table."""
    from campaign.inputs_fitted import fitted_model

    kept = fitted_model(rng)
    X = odd_rows(rng, kept.cells, kept.container)
    method = rng.choice([name for name in ("predict", "predict_proba", "predict_interval", "predict_survival_function",
                                           "decision_function", "staged_predict") if hasattr(kept.model,
                                           name)])  # fmt: skip

    def calls(folder: Path) -> str:
        watched_method(kept.model, method, {"X": X.value}, DATA)
        return "finite"

    return Case(f"X of {method}", f"{kept.words} X: {X.words}", calls)


def odd_rows(rng: Random, cells: Cells, container: str) -> Given:
    """Rows like those of a fit, with some mutations."""
    rows = rng.choice([1, 3, cells.rows])
    some = Cells(list(cells.names), [column[:rows] for column in cells.columns])
    kind = container if rng.random() < 0.6 else rng.choice(sorted(CONTAINERS))
    return odd_table(rng, some, kind, rng.choice([1, 1, 2]))


def target_case(rng: Random) -> Case:
    """A fit with odd targets, weights, groups or validation rows."""
    model, words, task = valid_model(rng)
    makes = numeric_cells if words.startswith(STACKS) else plain_cells
    cells = makes(rng, rng.choice(ROWS), rng.randint(1, 3))
    y = plain_target(rng, task, cells.rows)
    X = contained(cells, rng.choice(["array", "pandas"]), rng)
    given = {"X": X, "y": y}
    accepted = inspect.signature(model.fit).parameters
    said = []
    for what in rng.sample(["y", "y", "weight", "weight", "groups", "validation", "base_score"], rng.choice([1, 1, 2])):
        if what == "y":
            given["y"], name = odd_target(rng, y)
        elif what == "weight":
            given["sample_weight"], name = odd_weight(rng, cells.rows)
        elif what == "groups":
            given["groups"], name = odd_groups(rng, cells.rows)
        elif what == "base_score" and what in accepted:
            given["base_score"], name = odd_weight(rng, cells.rows)
            name = f"base_score {name}"
        elif "X_val" in accepted:
            given["y_val"], name = odd_target(rng, y) if rng.random() < 0.7 else (y, "y valid")
            given["X_val"] = X if rng.random() < 0.7 else odd_table(rng, cells, "array", 1).value
            name = f"validation {name}"
        else:
            continue
        said.append(name)
    return Case(
        "targets and weights", f"{words} {', '.join(said)}", lambda folder: fitted(model, given, DATA, folder, rng)
    )


def parameters_case(rng: Random) -> Case:
    """A fit with odd parameters of the estimator."""
    name = estimator_name(rng)
    kind, tasks, valid = ESTIMATORS[name]
    given, task = valid(rng), rng.choice(tasks)
    odd_ones = odd_parameters(rng, kind, rng.choice([1, 1, 1, 2, 3]))
    mentions = mentioned(odd_ones)
    cells = numeric_cells(rng, 12, 3) if name.startswith(STACKS) else plain_cells(rng, 12, 3)
    data = {"X": contained(cells, rng.choice(["array", "pandas"]), rng), "y": plain_target(rng, task, 12)}
    words = f"{name} {described(odd_ones)}"

    def calls(folder: Path) -> str:
        model = watched(f"{name}(...)", lambda: kind(**{**given, **odd_ones}), mentions)
        return fitted(model, data, mentions, folder, rng)

    return Case(f"parameters of {name}", words, calls)


def object_case(rng: Random) -> Case:
    """A fit with odd parameters of one of its objects: a basis, a loss, an algorithm, a line search."""
    name = rng.choice(sorted(OBJECTS))
    parameter, kind, valid, task = OBJECTS[name]
    odd_ones = odd_parameters(rng, kind, rng.choice([1, 1, 2]))
    mentions = (*mentioned(odd_ones), name)
    model_kind = ESTIMATORS[TASK_MODEL[task]][0]
    given = {**greedy(rng), "cv": rng.choice([2, None])}
    if parameter == "algorithm":
        given["basis"] = gce.bases.Tree(max_leaf_nodes=3, min_samples_leaf=1)
    data = {"X": contained(plain_cells(rng, 12, 2), "array", rng), "y": plain_target(rng, task, 12)}

    def calls(folder: Path) -> str:
        made = watched(f"{name}(...)", lambda: kind(**{**valid, **odd_ones}), mentions)
        return fitted(model_kind(**{**given, parameter: made}), data, mentions, folder, rng)

    return Case(f"parameters of a {parameter}", f"{name} {described(odd_ones)}", calls)


def odd_parameters(rng: Random, kind: type, count: int) -> dict[str, Any]:
    """Odd values of some parameters of a class."""
    names = [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")]
    found = {}
    for name in rng.sample(names, min(count, len(names))):
        value = odd(rng)
        while not affordable(name, value):
            value = odd(rng)
        found[name] = value
    return found


def mentioned(values: dict[str, Any]) -> tuple[str, ...]:
    """What an error about odd values may mention: their names, or the values themselves."""
    shown = [shortened(repr(value), 20).removesuffix("...") for value in values.values()]
    shown += [shortened(value, 20).removesuffix("...") for value in values.values() if isinstance(value, str)]
    kinds = [type(value).__name__ for value in values.values()]
    # members of a stack are named themselves
    return (*values, *filter(None, shown), *kinds, *["member"] * ("estimators" in values))


def described(values: dict[str, Any]) -> str:
    """Odd values in words."""
    return ", ".join(f"{name}={shortened(repr(value), 60)} ({type(value).__name__})" for name, value in values.items())


def valid_model(rng: Random) -> tuple[Any, str, str]:
    """A small model with valid parameters, what it is in words, and a task of it."""
    name = estimator_name(rng)
    kind, tasks, valid = ESTIMATORS[name]
    given = valid(rng)
    task = rng.choice(tasks)
    words = f"{name} {task}" + (f" basis={type(given['basis']).__name__} cv={given['cv']}" if "basis" in given else "")
    return kind(**given), words, task


def fitted(model: Any, given: dict[str, Any], mentions: tuple[str, ...], folder: Path, rng: Random) -> str:
    """Fit, predict, and now and then save and load; what came of it in a word."""
    watched("fit", lambda: model.fit(**given), mentions, others_of(model))
    X = given["X"]
    before = watched_method(model, "predict", {"X": X}, ())
    if hasattr(model, "predict_proba"):
        watched_method(model, "predict_proba", {"X": X}, ())
    if not type(model).__name__.startswith(STACKS) and rng.random() < 0.3:
        path = folder / "model.safetensors"
        try:
            watched("save", lambda: model.save(path))
        except Refused:
            return "finite, refused by save"
        again = watched("load", lambda: gce.load(path))
        after = watched_method(again, "predict", {"X": X}, ())
        if not np.array_equal(np.asarray(before), np.asarray(after)):
            raise FaultError("predictions differ after save and load")
        return "finite, saved and loaded bit-equal"
    return "finite"


def watched_method(model: Any, method: str, given: dict[str, Any], mentions: tuple[str, ...]) -> Any:
    """The result of a method that predicts, checked; after a fit (no ``mentions``) it may not be refused."""
    call = getattr(model, method)
    try:
        result = watched(method, lambda: _listed(call(**given)), mentions, others_of(model))
    except Refused as refused:
        if mentions:
            raise
        raise FaultError(f"refused after a fit: {refused}") from refused
    rows = rows_of(given["X"])
    if method.endswith("predict_proba"):
        for stage in result if method.startswith("staged") else [result]:
            labels = np.ndim(getattr(model, "classes_", [])) == 1 and np.ndim(stage) == 2
            one_class = labels and not is_multilabel(model)
            check_probabilities(method, stage, rows, one_class)
    elif method.startswith("staged"):
        for stage in result:
            check_predictions(method, stage, rows)
    elif method == "predict_interval":
        # too few held-out rows for the coverage
        check_predictions(method, np.nan_to_num(result, nan=np.nan, posinf=0.0, neginf=0.0), rows)
    else:
        check_predictions(method, result, rows)
    return result


def others_of(model: Any) -> tuple[str, ...]:
    """Modules that warn for themselves: the members of a stack are fitted one by one, as they are."""
    return MEMBERS if type(model).__name__.startswith(STACKS) else ()


def is_multilabel(model: Any) -> bool:
    """Whether a classifier predicts several labels per row."""
    target = getattr(getattr(model, "result_", None), "target", None)
    return type(target).__name__ == "MultiLabelTarget"


def _listed(result: Any) -> Any:
    return list(result) if isinstance(result, Iterable) and not hasattr(result, "__len__") else result
