"""Trees as operators: which leaf a row falls into is asked for, and what leaves say is looked up in float64.

ONNX's trees compare in float64, but what they say is rounded to float32. The number of a leaf survives that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.basis.forest import DOUBT, ForestAtoms
from gce.basis.tree import TreeAtoms
from gce.export.graph import Graph
from gce.trees import Grove

Array = NDArray[Any]

#: Trees whose leaves a row knows at a time.
_TREES_AT_ONCE = 256
#: Leaves of a tree that float32 can count, and nodes that fit a graph's two GiB.
_MOST_LEAVES, _MOST_NODES = 2**24, 2**25


def boosted(graph: Graph, part: TreeAtoms, weights: Array, X: str) -> str:
    """``sum_a weights_a atom_a``, ``(rows, k)``, for weights ``(A, k)``."""
    k = len(part.bound)
    height = (weights * part.bound.cpu().numpy()).reshape(-1)
    sums = []
    for atoms in _groups(weights, max(1, _TREES_AT_ONCE // k)):
        trees = (atoms[:, None] * k + np.arange(k)).ravel()
        grove = part.grove.select(torch.from_numpy(trees).to(part.bound.device))
        number, value = _leaves(graph, grove, X)
        says = value[:, 0] * np.repeat(height[trees], _leaf_counts(grove))
        apart = graph("Reshape", graph("Gather", says, number, axis=0), np.array([0, len(atoms), k]))
        sums.append(graph("ReduceSum", apart, np.array([1]), keepdims=0))
    return sums[0] if len(sums) == 1 else graph("Sum", *sums)


def forests(graph: Graph, part: ForestAtoms, weights: Array, X: str) -> str:
    """The same of forests."""
    bound, offset = part.bound.cpu().numpy(), part.offset.cpu().numpy()
    outs = []
    for (atom,) in _groups(weights, 1):
        grove = part.select(torch.tensor([atom], device=part.bound.device)).grove
        means = []
        for trees in _groups(np.ones((len(grove), 1)), max(1, _TREES_AT_ONCE // len(bound))):
            number, value = _leaves(graph, grove.select(torch.from_numpy(trees).to(part.bound.device)), X)
            says = graph("Gather", value.astype(np.float64) / part.trees, number, axis=0)
            means.append(graph("ReduceSum", says, np.array([1]), keepdims=0))
        mean = means[0] if len(means) == 1 else graph("Sum", *means)
        apart = graph("Sub", _linked(graph, part, mean), offset)
        outs.append(graph("Mul", graph("Max", graph("Min", apart, bound), -bound), weights[atom]))
    return outs[0] if len(outs) == 1 else graph("Sum", *outs)


def _groups(weights: Array, most: int) -> Iterator[Array]:
    """Places of what carries weight ``(A, k)``, some at a time."""
    places = np.flatnonzero(weights.max(1))
    for first in range(0, len(places), most):
        yield places[first : first + most]


def _leaf_counts(grove: Grove) -> Array:
    """Leaves of each tree, ``(T,)``: one more than it has cuts."""
    return (grove.size.cpu().numpy() + 1) // 2


def _leaves(graph: Graph, grove: Grove, X: str) -> tuple[str, Array]:
    """The leaf that each row falls into in each tree, ``(rows, T)``, and what all leaves say, ``(leaves, v)``."""
    size, feature, threshold, left, value = (tensor.cpu().numpy() for tensor in grove.tensors().values())
    leaf, count, tree = left == 0, _leaf_counts(grove), np.repeat(np.arange(len(size)), size)
    node = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
    first = np.cumsum(count) - count
    if count.max() > _MOST_LEAVES or len(left) > _MOST_NODES:
        raise ValueError(f"{len(left)} nodes of trees are too many for an ONNX graph: prune the model before")
    modes = np.where(leaf, "LEAF", "BRANCH_LEQ")
    reached = graph(
        "TreeEnsembleRegressor",
        X,
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=len(size),
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=feature.tolist(),
        nodes_modes=modes.tolist(),
        nodes_values_as_tensor=graph.tensor(threshold),
        nodes_truenodeids=left.tolist(),
        nodes_falsenodeids=np.where(leaf, 0, left + 1).tolist(),
        target_treeids=tree[leaf].tolist(),
        target_nodeids=node[leaf].tolist(),
        target_ids=tree[leaf].tolist(),
        target_weights_as_tensor=graph.tensor((np.arange(leaf.sum()) - np.repeat(first, count)).astype(np.float64)),
    )
    return graph("Add", graph.cast(reached, np.int64), first), value[leaf]


def _linked(graph: Graph, part: ForestAtoms, mean: str) -> str:
    """Scores of means ``(rows, k)``, as :class:`ForestAtoms` makes them."""
    if part.link == "identity":
        return mean
    p = graph("Add", graph("Mul", mean, np.float64(1 - DOUBT)), part.prior.cpu().numpy())
    if part.link == "logit":
        return graph("Sub", graph("Log", p), graph("Log", graph("Sub", np.float64(1), p)))
    scores = graph("Log", p)
    total = graph("ReduceSum", scores, np.array([1]), keepdims=1)
    return graph("Sub", scores, graph("Div", total, np.float64(len(part.bound))))
