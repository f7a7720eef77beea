"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : dict of str
        The module of each name, relative to the package (".b" is one beside it); a name that is its own module stands
        for the module itself.

    Returns
    -------
    callable

    Examples
    --------
    >>> lazy_names("collections", {"Mapping": "abc", "abc": "abc"})("abc").__name__
    'collections.abc'
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{modules[name]}", package)
        return module if modules[name] == name else getattr(module, name)

    return get
