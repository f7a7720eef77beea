"""Bounded classes of models with one verb, ``minimize``."""

from gce.basis.base import Atoms, Basis, Zero
from gce.basis.network import Networks
from gce.basis.neural import Neural, Neuron
from gce.basis.pool import Pool

__all__ = ["Atoms", "Basis", "Networks", "Neural", "Neuron", "Pool", "Zero"]

BASES: dict[str, Basis] = {"neural": Neural(), "neuron": Neuron()}
