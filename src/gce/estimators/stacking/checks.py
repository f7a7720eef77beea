"""Validation of members: their names, and whether each can be used as given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from gce._utils.devices import as_numpy
from gce._utils.params import short_list
from gce.preprocessing.sample_weights import check_sample_weight
from gce.preprocessing.sparse import check_sparse
from gce.preprocessing.values import fill_masked, refuse_class
from gce.training.predictions import Array, member_label


def is_dropped(estimator: Any) -> bool:
    """Whether a member was left out by ``set_params(name="drop")``, as in scikit-learn."""
    return isinstance(estimator, str) and estimator == "drop"


def models_of(estimators: Any) -> list[Any]:
    """The members, dropped or not, of a list that need not be valid yet: tags are read before it is checked."""
    return [given[1] for given in estimators if _is_pair(given)] if isinstance(estimators, list | tuple) else []


def check_names(estimators: Any, reserved: Collection[str]) -> dict[str, Any]:
    """Check the list of members and return them by name, without those dropped.

    Parameters
    ----------
    estimators : list of (str, estimator)
        As given by the user.
    reserved : collection of str
        Names of the stack's own parameters.
    """
    if not isinstance(estimators, list | tuple) or not all(_is_pair(given) for given in estimators):
        raise ValueError(f"estimators must be a list of (name, estimator), got {estimators!r}")
    names = [name for name, _ in estimators]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names of members must be unique, but {twice} occur more than once")
    wrong = [name for name in names if "__" in name or name in reserved]
    if wrong:
        raise ValueError(
            f"members cannot be named {wrong}: names must not contain '__' or equal a parameter of the stack"
        )
    members = {name: estimator for name, estimator in estimators if not is_dropped(estimator)}
    if not members:
        raise ValueError(f"there is no member to combine, got estimators={estimators!r}: give at least one")
    for name, model in members.items():
        if isinstance(model, type):
            raise ValueError(f"member {name!r} is the class {model.__name__}: give an instance, {model.__name__}()")
    return members


def _is_pair(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) == 2 and isinstance(given[0], str)


def check_fittable(name: str, model: Any, weighted: bool, keep_folds: bool) -> None:
    """Refuse a member that cannot be cloned and fitted.

    Parameters
    ----------
    name : str
    model : estimator
    weighted : bool
        Whether it is fitted with sample weights.
    keep_folds : bool
        Whether its models of folds are kept, and so predict rows outside their fold.
    """
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise ValueError(
            f"{member_label(name, model)} lacks fit or get_params and cannot be fitted here: fit it and use prefit=True"
        )
    if weighted and not _takes(model, "sample_weight"):
        raise TypeError(no_weights(name, model))
    if keep_folds and hasattr(model, "__sklearn_tags__") and get_tags(model).input_tags.pairwise:
        raise ValueError(
            f"{member_label(name, model)} has one column per training row (a precomputed kernel or distance), and "
            "folds have fewer: set fold_weight=0"
        )


def no_weights(name: str, model: Any) -> str:
    """The error message for a member that takes no sample weights."""
    return (
        f"{member_label(name, model)} takes no sample_weight in its fit: drop this member, or select the members that "
        "get sample weights by metadata routing (sklearn.set_config(enable_metadata_routing=True))"
    )


def _takes(model: Any, parameter: str) -> bool:
    """Whether ``fit`` has a parameter of that name, or takes ``**params``."""
    known = signature(model.fit).parameters
    return parameter in known or any(p.kind is Parameter.VAR_KEYWORD for p in known.values())


def check_prefit(name: str, model: Any, stack: Any) -> None:
    """Refuse a member that is not fitted, or was fitted on other columns than the stack."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"{member_label(name, model)} is not fitted, and members of this stack are used as they are, as with "
            "prefit=True: fit it first (clone() discards the fit, unless a member is wrapped in "
            "sklearn.frozen.FrozenEstimator)"
        ) from None
    except (TypeError, AttributeError):
        pass  # not a scikit-learn estimator: it raises its own error when it predicts
    _check_columns(name, model, stack, "n_features_in_")
    _check_columns(name, model, stack, "feature_names_in_")


def _check_columns(name: str, model: Any, stack: Any, attribute: str) -> None:
    own, given = getattr(model, attribute, None), getattr(stack, attribute, None)
    if own is not None and given is not None and _plain(own) != _plain(given):
        raise ValueError(
            f"{member_label(name, model)} was fitted on other columns: its {attribute} is {_few(own)}, "
            f"but X has {_few(given)}"
        )


def _few(columns: Any) -> str:
    """A number of columns, or some of their names."""
    return short_list(columns.tolist()) if np.ndim(columns) else str(columns)


def check_rows(X: Any) -> Any:
    """Rows of any kind that members can be given: those of a tensor as an array, all else as it is.

    Raises
    ------
    ValueError
        There are none, they are a class or a dict, or they are a sparse matrix with indices outside of it.
    """
    X = check_sparse(fill_masked(as_numpy(X)))
    refuse_class(X)
    # a sparse matrix of keys is a dict too
    if isinstance(X, Mapping) and not issparse(X):
        raise ValueError("X is a dict: give rows, as an array, a list or a data frame")
    if isinstance(X, list | tuple) and not len(X):
        raise ValueError("X has 0 samples: give at least one row")
    return X


def check_weights(sample_weight: Any, y: NDArray[Any]) -> Array:
    """Return sample weights ``(n,)``, 1 each by default; refuse those that are all zero."""
    weight = check_sample_weight(sample_weight, y)
    if not weight.any():
        raise ValueError("all sample weights are zero: give at least one sample a positive weight")
    return weight


def check_unused(fit_params: Mapping[str, Any], groups: Any) -> None:
    """Refuse parameters that a fit with ``prefit=True`` would ignore."""
    unused = [*fit_params, *([] if groups is None else ["groups"])]
    if unused:
        raise ValueError(f"prefit=True fits no members and needs no folds: leave out {', '.join(unused)}")


def _plain(columns: Any) -> list[str]:
    """Names, or their number, with underscores for spaces, as LightGBM stores them."""
    return [str(column).replace(" ", "_") for column in np.ravel(columns)]
