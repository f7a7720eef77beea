"""Parameters as JSON: plain values, arrays, and instances of a few known classes.

Other values are *opaque*: a file stores their ``repr`` for information only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator

from gce import bases, losses
from gce.frank_wolfe import algorithms
from gce.losses import line_search

#: Classes of gce whose instances can be parameters; they are recreated from their parameters.
_OWN: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind
    for kind in (
        losses.Squared,
        losses.Power,
        losses.PseudoHuber,
        losses.Quantile,
        losses.Quantiles,
        losses.Huber,
        losses.Poisson,
        losses.Gamma,
        losses.Tweedie,
        losses.Hazards,
        losses.Logistic,
        losses.CrossEntropy,
        losses.MultiLabel,
        losses.Ordinal,
        algorithms.FrankWolfe,
        algorithms.AwayStep,
        algorithms.Pairwise,
        algorithms.Blended,
        algorithms.NonlinearGreedy,
        algorithms.Boosting,
        bases.Neural,
        bases.Neuron,
        bases.Tree,
        bases.Forest,
        bases.SymmetricTree,
        bases.SignTree,
        line_search.Exact,
        line_search.Brent,
        line_search.OpenLoop,
    )
}
_FOLDS = ("n_splits", "shuffle", "random_state")
_SHARES = ("n_splits", "test_size", "train_size", "random_state")
#: scikit-learn's splitters and their parameters.
_SPLITTERS: dict[str, tuple[type, tuple[str, ...]]] = {
    kind.__name__: (kind, names)
    for kind, names in (
        (model_selection.KFold, _FOLDS),
        (model_selection.StratifiedKFold, _FOLDS),
        (model_selection.GroupKFold, _FOLDS),
        (model_selection.StratifiedGroupKFold, _FOLDS),
        (model_selection.ShuffleSplit, _SHARES),
        (model_selection.StratifiedShuffleSplit, _SHARES),
        (model_selection.GroupShuffleSplit, _SHARES),
        (model_selection.TimeSeriesSplit, ("n_splits", "max_train_size", "test_size", "gap")),
        (model_selection.LeaveOneOut, ()),
        (model_selection.LeaveOneGroupOut, ()),
    )
}
#: Parameters of objects that are lists or tuples.
_SEQUENCES = {("Quantiles", "levels"), ("Hazards", "ends"), ("Huber", "delta"), ("PseudoHuber", "delta")}
#: Maximum size of arrays and lists: larger ones are data, not parameters.
_MAX_ITEMS = 10_000
_ARRAYS = {"float64": np.float64, "float32": np.float32, "int64": np.int64, "bool": np.bool_}


class OpaqueError(TypeError):
    """A value cannot be stored in a file."""


def encode(value: Any) -> Any:
    """Encode a parameter as JSON.

    Parameters
    ----------
    value : object
        The parameter.

    Returns
    -------
    object
        None, bool, int, float, str, list or dict.

    Raises
    ------
    OpaqueError
        The value cannot be stored.

    Examples
    --------
    >>> from gce.losses import Quantile
    >>> encode((1, float("inf"))), encode(Quantile(0.9))
    ({'tuple': [1, {'float': 'inf'}]}, {'object': 'Quantile', 'parameters': {'quantile': 0.9}})
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) in (list, tuple, dict, set, frozenset, np.ndarray):
        return _encode_items(value)
    for name, kind in _OWN.items():
        if type(value) is kind:
            return {"object": name, "parameters": _encode_plain(name, value.get_params(deep=False))}
    for name, (kind, names) in _SPLITTERS.items():
        if type(value) is kind:
            return {"object": name, "parameters": _encode_plain(name, {key: getattr(value, key) for key in names})}
    raise OpaqueError(f"{type(value).__name__} cannot be stored in a file")


def decode(value: Any) -> Any:
    """Decode a parameter from JSON.

    Parameters
    ----------
    value : object
        A result of :func:`encode`.

    Raises
    ------
    ValueError
        :func:`encode` does not write such a value.
    """
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        raise ValueError("a parameter is not a JSON value")
    keys = frozenset(value)
    for expected, decoder in _DECODERS.items():
        if keys == expected:
            return decoder(value)
    raise ValueError(f"a parameter has the unknown form {sorted(keys)}")


def describe_opaque(value: Any) -> str:
    """A description of an opaque value that is the same in every process: a callable's name, or the class."""
    named = value if hasattr(value, "__qualname__") else type(value)
    is_own = named.__module__.partition(".")[0] == "gce"
    return named.__qualname__ if is_own else f"{named.__module__}.{named.__qualname__}"


def _encode_items(value: Any) -> Any:
    size = value.size if isinstance(value, np.ndarray) else len(value)
    if size > _MAX_ITEMS:
        raise OpaqueError(f"{size} items are data, not a parameter")
    if isinstance(value, np.ndarray):
        if value.dtype.name not in _ARRAYS:
            raise OpaqueError(f"arrays of {value.dtype} cannot be stored in a file")
        return {"array": encode(value.tolist()), "dtype": value.dtype.name}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    items = [encode(item) for item in value]
    if isinstance(value, set | frozenset):
        if not all(map(_is_plain, items)):
            raise OpaqueError("a set of other things than numbers and strings cannot be stored in a file")
        # a set of strings is iterated over in another order in every process
        return {type(value).__name__: sorted(items, key=repr)}
    return items if isinstance(value, list) else {"tuple": items}


def _encode_plain(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Encode the parameters of an object, which must be numbers, strings or None."""
    encoded = {key: encode(value) for key, value in values.items()}
    for key, value in values.items():
        if not all(map(_is_plain, _items(name, key, value) or [decode(encoded[key])])):
            raise OpaqueError(f"{key} of {name} is neither a number nor a string")
    return encoded


def _items(name: str, key: str, value: Any) -> list[Any] | None:
    """The items of a parameter that may be a list or tuple; None of others."""
    return list(value) if (name, key) in _SEQUENCES and type(value) in (list, tuple) else None


def _decode_float(value: Any) -> float:
    if value["float"] not in ("nan", "inf", "-inf"):
        raise ValueError("a parameter is not a number")
    return float(value["float"])


def _decode_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(_decode_list(value["tuple"]))


def _decode_set(value: Any) -> set[Any] | frozenset[Any]:
    ((kind, listed),) = value.items()
    items = _decode_list(listed)
    if not all(map(_is_plain, items)):
        raise ValueError("a parameter is not a set")
    return set(items) if kind == "set" else frozenset(items)


def _decode_dict(value: Any) -> dict[Any, Any]:
    pairs = _decode_list(value["dict"])
    if not all(isinstance(pair, list) and len(pair) == 2 and _is_plain(pair[0]) for pair in pairs):
        raise ValueError("a parameter is not a dictionary")
    return dict(pairs)


def _decode_array(value: Any) -> Any:
    if value["dtype"] not in _ARRAYS:
        raise ValueError("a parameter is not an array")
    return np.array(decode(value["array"]), dtype=_ARRAYS[value["dtype"]])


def _decode_object(value: Any) -> Any:
    name, encoded = value["object"], value["parameters"]
    if not isinstance(name, str) or not isinstance(encoded, dict) or not (name in _OWN or name in _SPLITTERS):
        raise ValueError("a parameter is an object of an unknown class")
    parameters = {key: decode(item) for key, item in encoded.items()}
    for key, value in parameters.items():
        if not all(map(_is_plain, _items(name, key, value) or [value])):
            raise ValueError(f"a parameter of {name} is neither a number nor a string")
    if name in _SPLITTERS:
        kind, names = _SPLITTERS[name]
    else:
        kind, names = _OWN[name], tuple(_OWN[name]._get_param_names())
    if not parameters.keys() <= set(names):
        raise ValueError(f"{name} has no parameters {sorted(parameters.keys() - set(names))}")
    return kind(**parameters)


def _decode_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a parameter is not a list")
    return [decode(item) for item in value]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


_DECODERS: dict[frozenset[str], Callable[[Any], Any]] = {
    frozenset({"float"}): _decode_float,
    frozenset({"tuple"}): _decode_tuple,
    frozenset({"set"}): _decode_set,
    frozenset({"frozenset"}): _decode_set,
    frozenset({"dict"}): _decode_dict,
    frozenset({"array", "dtype"}): _decode_array,
    frozenset({"object", "parameters"}): _decode_object,
}
