"""Bounded classes of models with one verb, ``minimize``."""

from gce.bases.base import Atoms, Basis, Zero
from gce.bases.context import FitContext
from gce.bases.neural.basis import Neural
from gce.bases.neural.network import Networks
from gce.bases.neural.neuron import Neuron
from gce.bases.pool import Pool
from gce.bases.proposal import Proposal
from gce.bases.regressor import RegressorBasis
from gce.bases.trees.forest import Forest, ForestAtoms
from gce.bases.trees.sign_tree import SignTree
from gce.bases.trees.tree import SymmetricTree, Tree, TreeAtoms
from gce.bases.union import Union

__all__ = [
    "Atoms",
    "Basis",
    "FitContext",
    "Forest",
    "ForestAtoms",
    "Networks",
    "Neural",
    "Neuron",
    "Pool",
    "Proposal",
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
