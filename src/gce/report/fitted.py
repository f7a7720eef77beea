"""What was fitted: the estimator, what was set, what came out."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np

from gce.report.markup import Markup, Section, card, facts, rounded, seconds, short, shown, table
from gce.report.trial import Trial, name_of

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")


def section(trial: Trial) -> Section:
    """What was fitted."""
    cards = [
        card("The model", facts(_model(trial)), wide=True),
        settings(changed_parameters(trial.model)),
        card("Made with", facts(versions())),
    ]
    return Section("fitted", "What was fitted", "The model, how large it is, and what was set by hand.", cards)


def settings(changed: list[tuple[str, Any, Any]]) -> Markup:
    """Parameters that were set by hand."""
    if not changed:
        return card("Settings", facts([("All parameters", "at their defaults")]))
    rows = [(name, written(value), written(usual)) for name, value, usual in changed]
    body = table(["parameter", "here", "default"], rows, caption="Parameters that were set", class_="words")
    return card("Settings that differ from the defaults", body)


def _model(trial: Trial) -> list[tuple[str, str]]:
    model, course = trial.model, trial.course
    members, joint = len(np.unique(trial.shares.member)), getattr(model, "_joint", False)
    found = [("Estimator", type(model).__name__), ("Task", _task(trial)), ("Loss", name_of(model.loss_))]
    if hasattr(model, "n_samples_fit_"):
        found.append(("Rows it learned from", shown(model.n_samples_fit_)))
    found += [
        ("Columns", shown(model.n_features_in_)),
        ("Members", f"{members}, {'weighed as one' if joint else 'averaged'}" if members > 1 else "1"),
        ("Atoms with weight", shown(len(model.ensemble_))),
        *(
            (f"Guest {guest.name}", f"{type(guest.model).__name__}, weight {shown(guest.weight)}")
            for guest in trial.guests
        ),
    ]
    if course is None:
        found.append(("Edited", f"weights were solved anew, to a gap of {shown(model.gap_)}"))
    else:
        found.append((f"{course.unit.capitalize()}s run", shown(model.n_iter_)))
        found.append(("Fit time", seconds(float(course.seconds[-1]))))
    found.append(("Scores lie in", _hull(model)))
    temperature = getattr(model, "temperature_", None)
    if temperature is not None:
        found.append(("Temperature of probabilities", shown(temperature)))
    return found


def _task(trial: Trial) -> str:
    if trial.classifies:
        return f"classification, {len(trial.model.classes_)} classes"
    outputs = trial.target.shape[1]
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
    """What the page was made with."""
    import gce

    ours = [("gce", gce.__version__), ("Python", platform.python_version())]
    return [*ours, *((name, version(name)) for name in _LIBRARIES)]


def changed_parameters(model: Any) -> list[tuple[str, Any, Any]]:
    """Parameters that are not what the signature says: name, value, default."""
    usual = {p.name: p.default for p in signature(type(model)).parameters.values()}
    given = model.get_params(deep=False)
    return [
        (name, given[name], usual[name]) for name in given if name in usual and repr(given[name]) != repr(usual[name])
    ]


def written(value: Any) -> str:
    """A parameter for readers."""
    # where an object lies in memory says nothing to a reader
    return short(re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split())), 120)
