"""The reference lists what gce defines, not what its classes inherit from torch or scikit-learn."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def is_foreign(member: Any) -> bool:
    """Whether a method or property was defined outside gce."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and not module.startswith("gce")


def skip_foreign(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Skip a foreign member; for all others autodoc decides."""
    return True if what == "class" and is_foreign(member) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Ask before a member is listed."""
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
