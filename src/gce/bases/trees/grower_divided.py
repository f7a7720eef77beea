"""Random trees that several processes grow together: each grows some, then all have all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save

from gce._utils import parallel
from gce._utils.codecs import narrowed
from gce.bases.trees import TreeArrays
from gce.bases.trees.binning import Bins, Grown
from gce.bases.trees.grower_random import RandomTrees
from gce.distributed.world import World


@dataclass(frozen=True)
class DividedTrees:
    """Random trees of several members, equal to :meth:`RandomTrees.grown` to the bit: a tree is known by its seed.

    Parameters
    ----------
    trees : RandomTrees
        What they are grown from, the same in all processes.
    world : World
        The processes.
    """

    trees: RandomTrees
    world: World

    def grown(self, seeds: Sequence[Sequence[int]], dtype: torch.dtype) -> TreeArrays:
        """Trees of given seeds of each member, one member after another; see :meth:`RandomTrees.grown`."""
        jobs = [partial(self.trees.nodes, m, seed) for m, own in enumerate(seeds) for seed in own]
        with parallel.workers(min(parallel.threads(), len(jobs))) as run:
            own = run(jobs[self.world.share(len(jobs))])
            return join_trees(own, self.trees.binned.bins, dtype, self.world, run)


def join_trees(own: Sequence[Grown], bins: Bins, dtype: torch.dtype, world: World, run: parallel.Run) -> TreeArrays:
    """The trees that all processes have grown, in the order of the processes.

    Parameters
    ----------
    own : sequence of tuples of arrays
        Trees of :func:`gce.bases.trees.grower_random.scatter`.
    bins : Bins
        What their cuts are codes of.
    dtype : torch.dtype
        Of the values of leaves.
    world : World
    run : callable
        Runs tasks on threads.

    Returns
    -------
    TreeArrays
    """
    every = [own] if world.size == 1 else map(read_trees, world.gather(write_trees(own, dtype)))
    return TreeArrays.of(run([partial(bins.as_splits, tree) for part in every for tree in part]), dtype)


def write_trees(trees: Sequence[Grown], dtype: torch.dtype) -> bytes:
    """Trees of :func:`gce.bases.trees.grower_random.scatter` as bytes: cuts of inner nodes, and values of leaves.

    A tree whose leaves have a row each would take 20 bytes per node as it is, which is 200 MB for the default forest of
    262,144 rows. Codes of cuts instead of thresholds, without what follows from the order of nodes, take 3.

    Parameters
    ----------
    trees : sequence of tuples of arrays
    dtype : torch.dtype
        Of the values of leaves.

    Returns
    -------
    bytes
    """
    if not trees:
        return b""
    feature, cut, left, value, *kinds = map(np.concatenate, zip(*trees, strict=True))
    inner = left > 0
    numbers = {"size": np.array([len(tree[2]) for tree in trees]), "feature": feature[inner], "cut": cut[inner]}
    parts = {"inner": np.packbits(inner)}
    if kinds:
        missing_left, sets = kinds
        numbers["n_sets"] = np.array([len(tree[5]) for tree in trees])
        parts |= {"missing_left": missing_left[inner], "sets": sets.view(np.int64)}
    tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
    tensors |= {name: narrowed(torch.from_numpy(part)) for name, part in numbers.items()}
    return save({**tensors, "value": torch.from_numpy(value[~inner]).to(dtype)})


def read_trees(written: bytes) -> list[Grown]:
    """The trees of :func:`write_trees`, with values in the type that was written."""
    if not written:
        return []
    parts = {name: part.numpy() for name, part in load(written).items()}
    size = parts["size"].astype(np.int64)
    ends = np.cumsum(size)
    inner = np.unpackbits(parts["inner"], count=int(ends[-1])).astype(bool)
    before = np.cumsum(inner) - inner
    # children of a tree's inner nodes follow each other from its second node on
    left = np.where(inner, 1 + 2 * (before - np.repeat(before[ends - size], size)), 0)
    feature, cut = (_spread(parts[name].astype(np.int32), inner) for name in ("feature", "cut"))
    nodes = [feature, cut, left.astype(np.int32), _spread(parts["value"], ~inner)]
    if "sets" in parts:
        nodes.append(_spread(parts["missing_left"], inner))
    by_tree = [np.split(part, ends[:-1]) for part in nodes]
    if "sets" in parts:
        by_tree.append(np.split(parts["sets"].view(np.uint64), np.cumsum(parts["n_sets"], dtype=np.int64)[:-1]))
    return list(zip(*by_tree, strict=True))


def _spread(values: NDArray[Any], to: NDArray[np.bool_]) -> NDArray[Any]:
    """Values at the places of a mask ``(nodes,)``, and 0 elsewhere."""
    out = np.zeros((len(to), *values.shape[1:]), values.dtype)
    out[to] = values
    return out
