"""Cases by their numbers: what is odd, and the calls that are watched."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from polars.exceptions import PanicException

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
from campaign.inputs_oracle import OWN, watched
from campaign.inputs_tables import CONTAINERS, Cells, Given, contained, numeric_cells, odd_table, plain_cells, rows_of
from campaign.inputs_targets import odd_groups, odd_target, odd_weight, plain_target
from campaign.inputs_uses import fitted, watched_method
from campaign.inputs_values import odd
from campaign.inputs_words import about, mentioned, shortened

ROWS = (8, 12, 24, 40)


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
        except (Exception, PanicException) as error:
            # pandas, polars and Arrow do not make everything, but what is of this library is a fault
            if any(frame.filename.startswith(OWN) for frame in traceback.extract_tb(error.__traceback__)):
                raise
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
    given, mentions = {"X": X.value, "y": y}, about("X", "y")
    return Case("X of fit", f"{words} X: {X.words}", lambda folder: fitted(model, given, mentions, folder, rng))


def prediction_case(rng: Random) -> Case:
    """A prediction of odd rows by a model of a valid table."""
    from campaign.inputs_fitted import fitted_model

    kept = fitted_model(rng)
    X = odd_rows(rng, kept.cells, kept.container)
    method = rng.choice([name for name in ("predict", "predict_proba", "predict_interval", "predict_survival_function",
                                           "decision_function", "staged_predict") if hasattr(kept.model,
                                           name)])  # fmt: skip

    def calls(folder: Path) -> str:
        watched_method(kept.model, method, {"X": X.value}, about("X"))
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
    said, parts = [], set()
    for what in rng.sample(["y", "y", "weight", "weight", "groups", "validation", "base_score"], rng.choice([1, 1, 2])):
        if what == "y":
            part, (given["y"], name) = what, odd_target(rng, y)
        elif what == "weight":
            part, (given["sample_weight"], name) = "sample_weight", odd_weight(rng, cells.rows)
        elif what == "groups":
            part, (given["groups"], name) = what, odd_groups(rng, cells.rows)
        elif what == "base_score" and what in accepted:
            part, (given["base_score"], name) = what, odd_weight(rng, cells.rows)
            name = f"base_score {name}"
        elif "X_val" in accepted:
            given["y_val"], name = odd_target(rng, y) if rng.random() < 0.7 else (y, "y valid")
            given["X_val"] = X if rng.random() < 0.7 else odd_table(rng, cells, "array", 1).value
            part, name = "validation", f"validation {name}"
        else:
            continue
        said.append(name)
        parts.add(part)
    mentions = about(*sorted(parts))
    return Case(
        "targets and weights", f"{words} {', '.join(said)}", lambda folder: fitted(model, given, mentions, folder, rng)
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
    mentions = mentioned(odd_ones)
    model_kind = ESTIMATORS[TASK_MODEL[task]][0]
    given = {**greedy(rng), "cv": rng.choice([2, None])}
    if parameter == "algorithm":
        given["basis"] = gce.bases.Tree(max_leaf_nodes=3, min_samples_leaf=1)
    data = {"X": contained(plain_cells(rng, 12, 2), "array", rng), "y": plain_target(rng, task, 12)}

    def calls(folder: Path) -> str:
        made = watched(f"{name}(...)", lambda: kind(**{**valid, **odd_ones}), mentions)
        return fitted(model_kind(**{**given, parameter: made}), data, mentions, folder, rng)

    article = "an" if parameter[0] in "aeiou" else "a"
    return Case(f"parameters of {article} {parameter}", f"{name} {described(odd_ones)}", calls)


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
