"""Migration of earlier files to the current parameters."""

from __future__ import annotations

from typing import Any

_TREE = {
    "leaves": "max_leaf_nodes",
    "depth": "max_depth",
    "least": "min_samples_leaf",
    "l2": "l2_regularization",
    "columns": "max_features",
    "rows": "subsample",
    "codes": "max_bins",
    "shrinkage": "learning_rate",
}

#: Renamed parameters of formats 1 and 2, by class.
RENAMED = {
    "Tree": _TREE,
    "SymmetricTree": _TREE,
    "SignTree": _TREE,
    "Forest": {
        "trees": "n_estimators",
        "tries": "max_features",
        "least": "min_samples_leaf",
        "codes": "max_bins",
    },
    "Boosting": {"shrinkage": "learning_rate"},
}


#: Parameters that earlier files do not have, with what they mean there, by class.
ADDED = {name: {"outputs_per_tree": "one"} for name in ("Tree", "SymmetricTree")}


def upgrade(value: Any) -> Any:
    """Rename the parameters of objects in a JSON value of an earlier file, and add those that it does not have.

    Parameters
    ----------
    value : object
        JSON value, which is not modified.

    Returns
    -------
    object

    Examples
    --------
    >>> upgrade([{"object": "Boosting", "parameters": {"shrinkage": 0.1}}])
    [{'object': 'Boosting', 'parameters': {'learning_rate': 0.1}}]
    """
    if isinstance(value, list):
        return [upgrade(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"object", "parameters"} and isinstance(value["parameters"], dict):
        kind = value["object"]
        if isinstance(kind, str) and kind.startswith("gce."):
            # checkpoints have qualified names of composite classes, whose modules have moved
            kind = kind.rpartition(".")[2]
        names = RENAMED.get(kind, {}) if isinstance(kind, str) else {}
        added = ADDED.get(kind, {}) if isinstance(kind, str) else {}
        given = {names.get(k, k): upgrade(v) for k, v in value["parameters"].items()}
        return {"object": kind, "parameters": {**added, **given}}
    return {key: upgrade(item) for key, item in value.items()}
