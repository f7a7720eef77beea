"""Optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(module: str, name: str) -> Any:
    """Import a module of an optional dependency; Ctrl-C takes effect when that is done.

    Parameters
    ----------
    module : str
        Name of the module.
    name : str
        The extra of this package that installs it.

    Raises
    ------
    ModuleNotFoundError
        It is not installed; the message says how to install it.
    """
    # loaded with the first optional package, and not by fits without one
    from gce._utils.interrupts import HeldInterrupts

    try:
        with HeldInterrupts():
            return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'{error.name} is not installed: pip install "greedy-convex-ensemble[{name}]"', name=error.name
        ) from error


def import_pandas() -> Any:
    """Import pandas, which the package itself does not need.

    Raises
    ------
    ModuleNotFoundError
        If pandas is not installed, with the command that installs it.
    """
    try:
        return import_module("pandas")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("to_frame() needs pandas: pip install pandas", name="pandas") from error
