"""Trees as plain arrays: columns coded, trees grown on the codes, rows dropped through them."""

from gce.trees.binning import Bins
from gce.trees.grove import Grove

__all__ = ["Bins", "Grove"]
