"""Trees as plain arrays: columns coded, trees grown on the codes, rows dropped through them."""

from gce.bases.trees.binning import Bins
from gce.bases.trees.tree_arrays import TreeArrays

__all__ = ["Bins", "TreeArrays"]
