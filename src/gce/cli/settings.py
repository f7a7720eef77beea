"""``--set name=value``: an estimator's parameters from the command line."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from typing import Any

import typer
from sklearn.base import BaseEstimator, clone

from gce.settings import OBJECTS

#: Not every shell's user writes Python.
_BOOLEANS = {"true": True, "false": False}


def apply(model: Any, settings: Sequence[str]) -> dict[str, Any]:
    """Set parameters given as ``name=value``, and tell which.

    A value is Python's (``0.1``, ``None``, ``[1, 2]``) or ``true`` or ``false`` in any case, and else text.
    """
    given = dict(_pair(setting) for setting in settings)
    # objects first: what follows may be theirs
    for name in sorted(given, key=lambda name: "__" in name):
        owner, _, own = name.partition("__")
        _check(name, owner, model)
        if own:
            _check(name, own, _object(model, owner, name))
        model.set_params(**{name: given[name]})
    return given


def _pair(setting: str) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{setting!r} is not of the form name=value", param_hint="--set")
    if text.lower() in _BOOLEANS:
        return name, _BOOLEANS[text.lower()]
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, text


def _object(model: Any, owner: str, name: str) -> BaseEstimator:
    held = getattr(model, owner)
    if isinstance(held, str) and held in OBJECTS.get(owner, {}):
        held = clone(OBJECTS[owner][held])
        model.set_params(**{owner: held})
    if not isinstance(held, BaseEstimator):
        named = f": name one first, as in {owner}={next(iter(OBJECTS[owner]))}" if owner in OBJECTS else ""
        raise typer.BadParameter(f"{name!r}: {owner}={held!r} has no parameters of its own{named}", param_hint="--set")
    return held


def _check(name: str, own: str, model: BaseEstimator) -> None:
    known = list(model.get_params(deep=False))
    if own in known:
        return
    near = difflib.get_close_matches(own, known, n=1)
    guess = f"did you mean {near[0]!r}? There are" if near else "there are"
    raise typer.BadParameter(f"{name!r} is no parameter: {guess} {', '.join(known)}", param_hint="--set")
