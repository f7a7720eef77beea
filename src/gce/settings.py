"""Parameters checked and looked up: from what a user writes to the objects that do the work."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from gce.algorithms import ALGORITHMS
from gce.basis import BASES
from gce.line_search import LINE_SEARCHES
from gce.losses import REGRESSION
from gce.parameters import SEED, shown
from gce.parameters import check_count as check_count
from gce.parameters import check_number as check_number
from gce.rows import Matrix, SparseRows

#: Parameters that are objects, and the objects that go by names.
OBJECTS: dict[str, Mapping[str, BaseEstimator]] = {
    "algorithm": ALGORITHMS,
    "basis": BASES,
    "line_search": LINE_SEARCHES,
    "loss": REGRESSION,
}

Kind = TypeVar("Kind", bound=BaseEstimator)


def look_up(what: str, given: Any, known: Mapping[str, Kind], kind: type[Kind]) -> Kind:
    """A fresh copy of an object given by name or as itself."""
    if isinstance(given, str) and given in known:
        return clone(known[given])
    if isinstance(given, kind):
        return clone(given)
    names = ", ".join(map(repr, known))
    raise ValueError(f"unknown {what} {shown(given)}: use one of {names} or a {kind.__name__} object")


def check_owners(model: BaseEstimator, given: Mapping[str, Any]) -> None:
    """Refuse parameters of objects, such as ``basis__hidden``, where a name stands in the object's place."""
    for key in given:
        name, _, own = key.partition("__")
        owner = given.get(name, getattr(model, name, None))
        if own and isinstance(owner, str):
            known = next((type(one) for one in OBJECTS.get(name, {}).values() if own in one.get_params()), None)
            module = "gce.losses" if name == "loss" else "gce"
            example = "" if known is None else f", such as {name}={module}.{known.__name__}({own}=...)"
            raise ValueError(f"{key} cannot be set, because {name}={owner!r} is a name: give an object{example}")


def find_device(name: str | torch.device) -> torch.device:
    """A device that exists; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={name!r} cannot be used here ({reason}); try 'cpu' or 'auto'") from error
    return device


def as_bound(given: Any, outputs: int) -> Tensor:
    """A user's bound as ``(k,)``: one number for all outputs or one each."""
    words = f"bound must be a positive number, or one for each of the {outputs} outputs, got {shown(given)}"
    try:
        bound = np.asarray(as_numpy(given), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(words) from error
    if bound.shape not in ((), (1,), (outputs,)) or not (np.isfinite(bound) & (bound > 0)).all():
        raise ValueError(words)
    return torch.from_numpy(np.broadcast_to(bound, (outputs,)).copy())


def draw_seed(random_state: Any) -> int:
    """A seed for a fit's own streams; a RandomState moves on by one draw, global state is left alone."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    SEED.check("random_state", random_state)
    return int(random_state)


def as_numpy(given: Any) -> Any:
    """Torch tensors as arrays; everything else as it is."""
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else given


def users_line() -> int:
    """How far up the stack, for ``warnings.warn``, the first line is that is neither ours nor scikit-learn's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("gce", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


def support_first(train: NDArray[np.float64]) -> NDArray[np.intp]:
    """An order of rows that puts those that any member trains on first, otherwise unchanged."""
    used = (train > 0).any(0)
    return np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)])


@overload
def taken(array: NDArray[Any], index: NDArray[np.intp], axis: int = 0) -> NDArray[Any]: ...
@overload
def taken(array: Matrix, index: NDArray[np.intp]) -> Matrix: ...
def taken(array: NDArray[Any] | SparseRows, index: NDArray[np.intp], axis: int = 0) -> NDArray[Any] | SparseRows:
    """``array[index]`` along an axis; the array itself where that is everything in its order."""
    everything = len(index) == array.shape[axis] and np.array_equal(index, np.arange(len(index)))
    if everything:
        return array
    return array[index] if isinstance(array, SparseRows) else np.take(array, index, axis=axis)
