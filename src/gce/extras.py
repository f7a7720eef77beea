"""Optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def extra(module: str, name: str) -> Any:
    """A module of an optional package, or one sentence saying how to get it.

    Parameters
    ----------
    module : str
        What to import.
    name : str
        The extra of this package that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error.name} is not installed: pip install "greedy-convex-ensemble[{name}]"', name=error.name
        ) from error
