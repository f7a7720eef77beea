"""The fitted model: estimator, parameters, size."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from typing import Any

import numpy as np

from gce._utils.params import changed_parameters
from gce._utils.version import __version__
from gce.inspection.report.evaluation import Evaluation, name_of
from gce.inspection.report.markup import (
    Markup,
    Section,
    card,
    facts,
    percent,
    rounded,
    seconds,
    short,
    shown,
    table,
)
from gce.training.metrics import SHARES, TITLES

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")


def section(evaluation: Evaluation) -> Section:
    """What was fitted."""
    cards = [
        card("The model", facts(_model(evaluation)), wide=True),
        *_held_out(evaluation),
        settings(changed_parameters(evaluation.model)),
        card("Versions", facts(versions())),
    ]
    return Section("fitted", "What was fitted", "The model, its size, and the parameters that were set.", cards)


def settings(changed: list[tuple[str, Any, Any]]) -> Markup:
    """Parameters that differ from their defaults."""
    if not changed:
        return card("Settings", facts([("All parameters", "at their defaults")]))
    rows = [(name, written(value), written(usual)) for name, value, usual in changed]
    body = table(["parameter", "here", "default"], rows, caption="Parameters that were set", class_="words")
    return card("Settings that differ from the defaults", body)


def _model(evaluation: Evaluation) -> list[tuple[str, str]]:
    model, curves = evaluation.model, evaluation.curves
    members, joint = len(np.unique(evaluation.shares.member)), model.result_.one_simplex
    found = [("Estimator", type(model).__name__), ("Task", _task(evaluation)), ("Loss", name_of(model.loss_))]
    found += [
        ("Training rows", shown(model.n_samples_fit_)),
        ("Columns", shown(model.n_features_in_)),
        ("Members", f"{members}, {'weighted jointly' if joint else 'averaged'}" if members > 1 else "1"),
        ("Atoms with weight", shown(len(model.ensemble_))),
        *(
            (f"External model {other.name}", f"{type(other.model).__name__}, weight {shown(other.weight)}")
            for other in evaluation.external
        ),
    ]
    if curves is None:
        found.append(("Edited", f"weights re-optimised to a duality gap of {shown(model.gap_)}"))
    else:
        found.append((f"{curves.unit.capitalize()}s run", shown(model.n_iter_)))
        found.append(("Fit time", seconds(float(curves.seconds[-1]))))
    found.append(("Scores lie in", _hull(model)))
    if evaluation.classifies:
        found.append(("Temperature of probabilities", shown(model.temperature_)))
    return found


def _held_out(evaluation: Evaluation) -> list[Markup]:
    """Metrics of the rows that the fit held out."""
    values = evaluation.model.result_.held_out
    if not values:
        return []
    numbers = [
        (title[0].upper() + title[1:], percent(values[key]) if key in SHARES else shown(values[key]))
        for key, title in TITLES.items()
        if key in values
    ]
    note = "Each row is predicted by the members that did not train on it"
    if evaluation.model.result_.round_weights is not None:
        note += ", with weights that it had no part in"
    else:
        note += ". Rounds and weights of families were chosen on the same rows, so that this is a little too good"
    return [card("On the rows held out by the fit", facts(numbers), note=f"{note}.")]


def _task(evaluation: Evaluation) -> str:
    if not evaluation.plain:
        return "several labels per row" if evaluation.classifies else "survival analysis"
    if evaluation.classifies:
        return f"classification, {len(evaluation.model.classes_)} classes"
    outputs = evaluation.target.shape[1]
    return "regression" if outputs == 1 else f"regression, {outputs} targets"


def _hull(model: Any) -> str:
    if not np.isfinite(model.bound_).all():
        return "no bound (a plain network)"
    if len(model.bound_) > 1:
        return f"offsets ± {_span(model.bound_)}"
    bound = float(model.bound_[0])
    return f"{rounded(float(model.offset_[0]), bound, 4)} ± {shown(bound)}"


def _span(values: Any) -> str:
    low, high = shown(float(np.min(values))), shown(float(np.max(values)))
    return low if low == high else f"{low} to {high}"


def versions() -> list[tuple[str, str]]:
    """Versions of the libraries."""
    ours = [("gce", __version__), ("Python", platform.python_version())]
    return [*ours, *((name, version(name)) for name in _LIBRARIES)]


def written(value: Any) -> str:
    """The value of a parameter as text."""
    # memory addresses are noise
    return short(re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split())), 120)
