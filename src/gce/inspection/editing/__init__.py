"""Fitted ensembles edited: atoms removed, added and pruned, weights re-optimised; nothing is trained again."""

from gce.inspection.editing.edit_data import EditData, as_one_simplex, atom_names, simplices
from gce.inspection.editing.edits import (
    add,
    check_removable,
    explain_weights,
    prune,
    pruning_steps,
    remove,
    reoptimize,
)

__all__ = [
    "EditData",
    "add",
    "as_one_simplex",
    "atom_names",
    "check_removable",
    "explain_weights",
    "prune",
    "pruning_steps",
    "remove",
    "reoptimize",
    "simplices",
]
