"""Bounded classes of models with one verb, ``minimize``."""

from gce.basis.base import Atoms, Basis, Zero
from gce.basis.forest import Forest, ForestAtoms
from gce.basis.network import Networks
from gce.basis.neural import Neural, Neuron
from gce.basis.pool import Pool
from gce.basis.regressor import RegressorBasis
from gce.basis.sign_tree import SignTree
from gce.basis.tree import SymmetricTree, Tree, TreeAtoms
from gce.basis.union import Union

__all__ = [
    "Atoms",
    "Basis",
    "Forest",
    "ForestAtoms",
    "Networks",
    "Neural",
    "Neuron",
    "Pool",
    "RegressorBasis",
    "SignTree",
    "SymmetricTree",
    "Tree",
    "TreeAtoms",
    "Union",
    "Zero",
]

BASES: dict[str, Basis] = {
    "neural": Neural(),
    "neuron": Neuron(),
    "tree": Tree(),
    "symmetric": SymmetricTree(),
    "forest": Forest(),
}
