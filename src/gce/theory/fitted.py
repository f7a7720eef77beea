"""What a report asks of a fitted estimator."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length
from torch import Tensor, as_tensor

from gce._utils.devices import as_numpy
from gce._utils.params import look_up
from gce.bases import BASES, Basis, Networks
from gce.bases.base import Zero
from gce.bases.neural.network import TwoLayer
from gce.losses import Loss
from gce.preprocessing.mixed import Rows
from gce.theory.bounds import exponent
from gce.training.families import choose_bases
from gce.training.result import FitResult

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
    def result_(self) -> FitResult: ...
    def raw_predict(self, X: Any) -> Tensor: ...
    def code_rows(self, X: Any) -> Array: ...
    def encode_rows(self, X: Any) -> Rows: ...


def check_possible(result: FitResult) -> None:
    """The bounds are for one output and three kinds of loss."""
    for model in result.external:
        raise ValueError(
            f"a bound report is about one class of atoms, and {model.unstorable_name} is not of it: remove it first"
        )
    try:
        exponent(result.loss)
    except ValueError as error:
        raise ValueError(f"a bound report is not possible for this model: {error}") from error
    if len(result.bound) != 1:
        raise ValueError(
            "a bound report is possible for one output only (squared error, |f - y|^q or the logistic loss), "
            f"but this model has {len(result.bound)}: fit one model per output"
        )
    if not np.isfinite(result.bound).all():
        raise ValueError("a bound report is possible for a bounded hull only, and this model has none")


def check_rows(X: Any, X_held_out: Any, y_held_out: Any) -> None:
    """Rows held out come with their targets, and all rows are dense."""
    if (X_held_out is None) != (y_held_out is None):
        raise ValueError("X_held_out and y_held_out must be given together")
    if issparse(X) or issparse(X_held_out):
        raise ValueError("a bound report needs dense rows, got sparse ones: pass X.toarray()")


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
    """The loss of each row, and its target as the loss takes it, ``(n,)`` both."""
    pred, result = model.raw_predict(X), model.result_
    # pandas may return read-only memory, which torch does not accept
    target = np.array(result.target.encode(np.asarray(as_numpy(y))))
    check_consistent_length(pred, target)
    if target.shape[1] != 1:
        raise ValueError(f"y has {target.shape[1]} columns, but the model was fitted to one")
    cost = result.loss.value(pred, as_tensor(target, dtype=pred.dtype, device=pred.device))
    return cost.cpu().numpy(), target[:, 0]


def basis_of(model: Fitted, oracle: str | Basis | None = None) -> Basis:
    """The model's basis, or another oracle for its class; a size left open is read off the model's atoms."""
    result = model.result_
    bases = dict(result.bases) or _named_bases(model, result)
    if not bases and oracle is None:
        raise ValueError(f"{type(model).__name__} has no basis: pass oracle=, a basis for the class of its atoms")
    if len(bases) > 1:
        raise ValueError(
            f"a bound report is about one class of atoms, and this model mixes {', '.join(bases)}: fit with one of "
            "them, for instance basis='neural'"
        )
    basis = look_up("basis", next(iter(bases.values())) if oracle is None else oracle, BASES, Basis)
    if basis.get_params().get("hidden", 0) is None:
        for part in result.ensemble.parts:
            if isinstance(part, Networks) and isinstance(part.architecture, TwoLayer):
                return basis.set_params(hidden=part.architecture.hidden)
    return basis


def _named_bases(model: Any, result: FitResult) -> dict[str, Basis]:
    """The bases of a model whose result does not say them: one of an older file, or networks trained at once."""
    given = model.get_params(deep=False).get("basis")
    if given is None:
        return {}
    networks = all(isinstance(part, Networks | Zero) for part in result.ensemble.parts)
    return choose_bases(given, result.n_samples, result.table.encoder.width, trees=not networks)
