"""Parameters that are objects with parameters of their own, such as ``basis__hidden``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from gce.bases import BASES
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.losses import REGRESSION
from gce.losses.line_search import LINE_SEARCHES

#: Parameters that are objects, and the objects that go by names.
OBJECTS: dict[str, Mapping[str, BaseEstimator]] = {
    "algorithm": ALGORITHMS,
    "basis": BASES,
    "line_search": LINE_SEARCHES,
    "loss": REGRESSION,
}
#: Where their classes are public.
_PACKAGES = {
    "algorithm": "gce.frank_wolfe",
    "basis": "gce.bases",
    "line_search": "gce.frank_wolfe",
    "loss": "gce.losses",
}


def check_owners(model: BaseEstimator, given: Mapping[str, Any]) -> None:
    """Refuse parameters of objects, such as ``basis__hidden``, where a name is given instead of the object."""
    for key in given:
        name, _, own = key.partition("__")
        owner = given.get(name, getattr(model, name, None))
        if own and isinstance(owner, str):
            known = next((type(one) for one in OBJECTS.get(name, {}).values() if own in one.get_params()), None)
            example = "" if known is None else f", such as {name}={_PACKAGES[name]}.{known.__name__}({own}=...)"
            raise ValueError(f"{key} cannot be set, because {name}={owner!r} is a name: give an object{example}")
