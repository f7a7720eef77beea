"""Random trees of rows in files: each is grown from a sample of its own, by one of several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from gce._utils import parallel
from gce.bases.trees import TreeArrays
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import Grown
from gce.bases.trees.grower_divided import join_trees
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.bases.trees.samples import Array, RowSamples, TreeSample
from gce.bases.trees.tree_data import UNCONSTRAINED, Constraints


@dataclass(frozen=True, eq=False)
class SampledTrees:
    """Random trees of one member, known by their seeds, however many processes grow them.

    Parameters
    ----------
    samples : RowSamples
    max_bins : int
        Of the basis.
    centre : array of shape (k,)
        What leaves measure targets from.
    tries : int
        Columns that vary at a node and are tried there, by one random cut each.
    least : float
        Least weight of a leaf.
    constrain : callable, optional
        From binned rows to what their trees may not do.
    """

    samples: RowSamples
    max_bins: int
    centre: Array
    tries: int
    least: float
    constrain: Callable[[BinnedRows], Constraints] = lambda binned: UNCONSTRAINED

    def grown(self, seeds: Sequence[Sequence[int]], dtype: torch.dtype) -> TreeArrays:
        """Trees of given seeds of the one member, with leaves of a dtype."""
        (every,) = seeds
        stored = self.samples.stored
        world, bins = stored.division.world, stored.codes(self.max_bins)[0]
        shares = [every[world.share(len(every), rank)] for rank in range(world.size)]
        # processes may have different numbers of threads, and must exchange samples alike
        at_once = np.array([parallel.threads()])
        world.take_largest(at_once)
        most, own = max(map(len, shares)), shares[world.rank]
        grown: list[Grown] = []
        with parallel.workers(min(parallel.threads(), max(len(own), 1))) as run:
            # no more samples in memory than trees that grow at once
            for first in range(0, most, int(at_once[0])):
                slots = range(first, min(first + int(at_once[0]), most))
                drawn = [sample for slot in slots if (sample := self._exchanged(shares, slot)) is not None]
                # some processes have no tree left in the last slot
                now = own[first : first + len(drawn)]
                grown += run([partial(self._tree, *given) for given in zip(drawn, now, strict=True)])
            return join_trees(grown, bins, dtype, world, run)

    def _exchanged(self, shares: Sequence[Sequence[int]], slot: int) -> TreeSample | None:
        """The sample of one of this process' trees, while every other process gets that of one of its own."""
        return self.samples.exchange(self.max_bins, [own[slot] if slot < len(own) else None for own in shares])

    def _tree(self, sample: TreeSample, seed: int) -> Grown:
        stored = self.samples.stored
        binned = BinnedRows(stored, stored.codes(self.max_bins)[0], torch.from_numpy(sample.codes))
        targets = WeightedTargets.of(sample.weight, sample.y - self.centre)
        rows = np.arange(len(sample.weight), dtype=np.uint32)
        return RandomTrees(binned, ((rows, targets),), self.tries, self.least, self.constrain(binned)).nodes(0, seed)
