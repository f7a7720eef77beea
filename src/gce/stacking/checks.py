"""Members at the door: names, and whether each can be used as it is given."""

from __future__ import annotations

from collections.abc import Collection
from inspect import Parameter, signature
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from gce.responses import called


def is_dropped(estimator: Any) -> bool:
    """Whether a member was taken out by ``set_params(name="drop")``, as in scikit-learn."""
    return isinstance(estimator, str) and estimator == "drop"


def models_of(estimators: Any) -> list[Any]:
    """The members, dropped or not, of a list that need not be sound yet: tags are asked for before it is checked."""
    return [given[1] for given in estimators if _is_pair(given)] if isinstance(estimators, list | tuple) else []


def named(estimators: Any, reserved: Collection[str]) -> dict[str, Any]:
    """The members by name, those dropped left out.

    Parameters
    ----------
    estimators : list of (str, estimator)
        As given by the user.
    reserved : collection of str
        The stack's own parameters.
    """
    if not isinstance(estimators, list | tuple) or not all(_is_pair(given) for given in estimators):
        raise ValueError(f"estimators must be a list of (name, estimator), got {estimators!r}")
    names = [name for name, _ in estimators]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must differ, but {twice} stand for several members")
    wrong = [name for name in names if "__" in name or name in reserved]
    if wrong:
        raise ValueError(f"members cannot be called {wrong}: '__' and the stack's own parameters are taken")
    members = {name: estimator for name, estimator in estimators if not is_dropped(estimator)}
    if not members:
        raise ValueError(f"there is no member to combine, got estimators={estimators!r}: give at least one")
    for name, model in members.items():
        if isinstance(model, type):
            raise ValueError(f"member {name!r} is the class {model.__name__}: give an instance, {model.__name__}()")
    return members


def _is_pair(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) == 2 and isinstance(given[0], str)


def check_fittable(name: str, model: Any, weighted: bool, shared: bool) -> None:
    """Refuse what cannot be cloned and fitted, with sample weights where there are some.

    ``shared``: its models of folds are asked about other rows than those of the fold too.
    """
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise ValueError(
            f"{called(name, model)} lacks fit or get_params and cannot be fitted here: fit it and use prefit=True"
        )
    if weighted and not _takes(model, "sample_weight"):
        raise TypeError(no_weights(name, model))
    if shared and hasattr(model, "__sklearn_tags__") and get_tags(model).input_tags.pairwise:
        raise ValueError(
            f"{called(name, model)} takes a column for each row that it learns from, and models of folds learn from "
            "fewer: set fold_share=0"
        )


def no_weights(name: str, model: Any) -> str:
    """The sentence for a member that takes no sample weights."""
    return (
        f"{called(name, model)} takes no sample_weight in its fit: leave it out, or say who takes it by metadata "
        "routing (sklearn.set_config(enable_metadata_routing=True))"
    )


def _takes(model: Any, parameter: str) -> bool:
    """Whether ``fit`` has a parameter of that name, or takes any."""
    known = signature(model.fit).parameters
    return parameter in known or any(p.kind is Parameter.VAR_KEYWORD for p in known.values())


def check_prefit(name: str, model: Any, stack: Any) -> None:
    """Refuse a member that is not fitted, or was fitted on other columns than the stack is given."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"{called(name, model)} is not fitted, and members of this stack are used as they are, as with "
            "prefit=True: fit it before (clone() forgets fits of members that are not wrapped in "
            "sklearn.frozen.FrozenEstimator)"
        ) from None
    except (TypeError, AttributeError):
        pass  # not scikit-learn's kind of estimator: it says so itself when it is asked
    _check_columns(name, model, stack, "n_features_in_")
    _check_columns(name, model, stack, "feature_names_in_")


def _check_columns(name: str, model: Any, stack: Any, attribute: str) -> None:
    own, given = getattr(model, attribute, None), getattr(stack, attribute, None)
    if own is not None and given is not None and _plain(own) != _plain(given):
        raise ValueError(
            f"{called(name, model)} was fitted on other columns: its {attribute} is {np.asarray(own).tolist()}, but X "
            f"has {np.asarray(given).tolist()}"
        )


def _plain(columns: Any) -> list[str]:
    """Names, or their number, as LightGBM keeps them: it writes an underscore for a space."""
    return [str(column).replace(" ", "_") for column in np.ravel(columns)]
