"""What a report asks of a fitted estimator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length
from torch import Tensor, as_tensor

from gce.basis import BASES, Basis, Networks
from gce.basis.base import Zero
from gce.basis.network import TwoLayer
from gce.ensemble import ConvexEnsemble
from gce.families import chosen
from gce.losses import Loss
from gce.settings import as_numpy, look_up
from gce.table import Table
from gce.theory.bounds import exponent

Array = NDArray[np.float64]


class Fitted(Protocol):
    """GCERegressor and GCEClassifier after ``fit``, and whatever else has these."""

    @property
    def n_jobs(self) -> int | None: ...
    @property
    def bound(self) -> Any: ...
    @property
    def offset(self) -> Any: ...
    @property
    def n_samples_fit_(self) -> int: ...
    @property
    def table_(self) -> Table: ...
    @property
    def loss_(self) -> Loss: ...
    @property
    def bound_(self) -> Array: ...
    @property
    def offset_(self) -> Array: ...
    @property
    def ensemble_(self) -> ConvexEnsemble: ...
    def _scores(self, X: Any) -> Tensor: ...
    def _checked(self, X: Any) -> Array: ...
    def _rows(self, X: Array) -> Tensor: ...
    def _encode_y_val(self, y: Any) -> Array: ...


def check_possible(model: Fitted) -> None:
    """The bounds are for one output and three kinds of loss."""
    try:
        exponent(model.loss_)
    except ValueError as error:
        raise ValueError(f"a bound report is not possible for this model: {error}") from error
    if len(model.bound_) != 1:
        raise ValueError(
            "a bound report is possible for one output only (squared error, |f - y|^q or the logistic loss), "
            f"but this model has {len(model.bound_)}: fit one model an output"
        )
    if not np.isfinite(model.bound_).all():
        raise ValueError("a bound report is possible for a bounded hull only, and this model has none")


def check_rows(X: Any, X_held_out: Any, y_held_out: Any) -> None:
    """Rows held out come with their targets, and all rows are dense."""
    if (X_held_out is None) != (y_held_out is None):
        raise ValueError("X_held_out and y_held_out must be given together")
    if issparse(X) or issparse(X_held_out):
        raise ValueError("a bound report is made from dense rows, got sparse ones: give X.toarray()")


def loss_name(loss: Loss) -> str:
    """What a reader calls a loss that the bounds are for.

    Examples
    --------
    >>> from gce.losses import Logistic, Power, Squared
    >>> loss_name(Squared()), loss_name(Power(1.0)), loss_name(Power(1.5)), loss_name(Logistic())
    ('squared error', 'absolute error', '|f - y|^1.5', 'logistic loss')
    """
    q = exponent(loss)
    if q is None:
        return "logistic loss"
    return {1.0: "absolute error", 2.0: "squared error"}.get(q, f"|f - y|^{q:g}")


def costs_of(model: Fitted, X: Any, y: Any) -> tuple[Array, Array]:
    """Each row's loss, and its target as the loss knows it, ``(n,)`` both."""
    pred = model._scores(X)
    # pandas' memory is not ours to write, and torch takes none that is not
    target = np.array(model._encode_y_val(np.asarray(as_numpy(y))))
    check_consistent_length(pred, target)
    if target.shape[1] != 1:
        raise ValueError(f"y has {target.shape[1]} columns, but the model was fitted to one")
    cost = model.loss_.value(pred, as_tensor(target, dtype=pred.dtype, device=pred.device))
    return cost.cpu().numpy(), target[:, 0]


def _classes(model: Fitted, given: Any) -> dict[str, Basis]:
    """The classes of a model's atoms: what "auto" came to is read off the atoms, because rows, signs and the algorithm
    all had a say in it.
    """
    networks = all(isinstance(part, Networks | Zero) for part in model.ensemble_.parts)
    return chosen(given, model.n_samples_fit_, model.table_.encoder.width, 1, plain=not networks)


def basis_of(model: Fitted, oracle: str | Basis | None = None) -> Basis:
    """The model's basis, or another oracle for its class; a size left open is read off the model's atoms."""
    given = getattr(model, "basis", None)
    if given is None and oracle is None:
        raise ValueError(
            f"{type(model).__name__} has no basis to ask: give oracle=, a basis for the class of its atoms"
        )
    if given is not None:
        own = _classes(model, given)
        if len(own) > 1:
            raise ValueError(
                f"a bound report is about one class of atoms, and this model of basis={given!r} mixes "
                f"{', '.join(own)}: fit with one of them, for instance basis='neural'"
            )
        (given,) = own.values()
    basis = look_up("basis", given if oracle is None else oracle, BASES, Basis)
    if basis.get_params().get("hidden", 0) is None:
        for part in model.ensemble_.parts:
            if isinstance(part, Networks) and isinstance(part.architecture, TwoLayer):
                return basis.set_params(hidden=part.architecture.hidden)
    return basis
