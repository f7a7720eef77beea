"""``--set name=value``: an estimator's parameters from the command line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import typer
from sklearn.base import BaseEstimator, clone

from gce.estimators._objects import OBJECTS

#: Accepted besides Python's spelling.
_BOOLEANS = {"true": True, "false": False}


def apply(model: Any, settings: Sequence[str]) -> dict[str, Any]:
    """Set parameters given as ``name=value``, and return them as a dict.

    A value is a Python literal (``0.1``, ``None``, ``[1, 2]``), ``true`` or ``false`` in any case, or else text.
    """
    given = read(settings)
    # objects before their own parameters
    for name in sorted(given, key=lambda name: "__" in name):
        owner, _, own = name.partition("__")
        _check(name, owner, model)
        if own:
            _check(name, own, _object(model, owner, name))
        model.set_params(**{name: given[name]})
    return given


def read(settings: Sequence[str]) -> dict[str, Any]:
    """The values of ``name=value`` by their names."""
    return dict(_pair(setting) for setting in settings)


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
    value = getattr(model, owner)
    if isinstance(value, str) and value in OBJECTS.get(owner, {}):
        value = clone(OBJECTS[owner][value])
        model.set_params(**{owner: value})
    if not isinstance(value, BaseEstimator):
        hint = f": choose an object first, as in {owner}={next(iter(OBJECTS[owner]))}" if owner in OBJECTS else ""
        raise typer.BadParameter(f"{name!r}: {owner}={value!r} has no parameters of its own{hint}", param_hint="--set")
    return value


def _check(name: str, own: str, model: BaseEstimator) -> None:
    names = list(model.get_params(deep=False))
    if own in names:
        return
    # only errors need the names of other libraries
    from gce._utils.peer_names import setting_advice

    objects = {owner: {type(one).__name__: called for called, one in known.items()} for owner, known in OBJECTS.items()}
    advice = setting_advice(own, name.removesuffix(own), names, objects)
    words = advice or f"the parameters are {', '.join(names)}"
    raise typer.BadParameter(f"{name!r} is not a parameter: {words}", param_hint="--set")
