"""Trees as operators: every part of an ensemble is one ``TreeEnsembleRegressor``, which falls and adds in float64.

What that operator gives is rounded to float32, so a leaf says two numbers: a whole number of steps and the rest. Sums
of the first are whole numbers that float32 holds exactly, sums of the second are so small that their rounding is too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.basis.forest import DOUBT, ForestAtoms
from gce.basis.tree import TreeAtoms
from gce.export.graph import Graph
from gce.trees import Grove

Array = NDArray[Any]

#: Whole numbers up to this one are exact in float32.
_EXACT = 2**24
#: Nodes and leaves' numbers that fit a graph's two GiB.
_MOST_ENTRIES = 2**26


def boosted(graph: Graph, part: TreeAtoms, weights: Array, X: str) -> str:
    """``sum_a weights_a atom_a``, ``(rows, k)``, for weights ``(A, k)``."""
    k = len(part.bound)
    height = (weights * part.bound.cpu().numpy()).reshape(-1)
    trees = np.flatnonzero(height)
    grove = part.grove.select(torch.from_numpy(trees).to(part.bound.device))
    by_leaf = np.repeat(trees, _leaf_counts(grove))
    return _summed(graph, grove, _said(grove) * height[by_leaf, None], by_leaf[:, None] % k, k, X)


def forests(graph: Graph, part: ForestAtoms, weights: Array, X: str) -> str:
    """The same of forests."""
    bound, offset = part.bound.cpu().numpy(), part.offset.cpu().numpy()
    k, outs = len(bound), []
    for atom in np.flatnonzero(weights.any(1)):
        grove = part.select(torch.tensor([atom], device=part.bound.device)).grove
        says = _said(grove) / part.trees
        mean = _summed(graph, grove, says, np.broadcast_to(np.arange(k), says.shape), k, X)
        apart = graph("Sub", _linked(graph, part, mean), offset)
        outs.append(graph("Mul", graph("Max", graph("Min", apart, bound), -bound), weights[atom]))
    return outs[0] if len(outs) == 1 else graph("Sum", *outs)


def _leaf_counts(grove: Grove) -> Array:
    """Leaves of each tree, ``(T,)``: one more than it has cuts."""
    return (grove.size.cpu().numpy() + 1) // 2


def _said(grove: Grove) -> Array:
    """What leaves say, ``(leaves, v)``, in float64."""
    return grove.value[grove.left == 0].double().cpu().numpy()


def _summed(graph: Graph, grove: Grove, says: Array, output: Array, k: int, X: str) -> str:
    """Sums of what a row's leaves say, ``(rows, k)``: says and the outputs that is meant for are ``(leaves, v)``."""
    step = _steps(grove, says, output, k)
    whole, rest = _split(says / step[output])
    both = _ensemble(graph, grove, np.hstack([whole, rest]), np.hstack([output, output + k]), 2 * k, X)
    apart = graph("Reshape", graph.cast(both, np.float64), np.array([0, 2, k]))
    return graph("Mul", graph("ReduceSum", apart, np.array([1]), keepdims=0), step)


def _split(says: Array) -> tuple[Array, Array]:
    """Whole numbers, and what is left of them."""
    whole = np.rint(says)
    return whole, says - whole


def _steps(grove: Grove, says: Array, output: Array, k: int) -> Array:
    """Units ``(k,)`` so large that the whole numbers of them of all trees sum to no more than float32 holds exactly."""
    count = _leaf_counts(grove)
    largest = np.maximum.reduceat(np.abs(says), np.cumsum(count) - count)
    farthest = np.bincount(output[np.cumsum(count) - 1].ravel(), largest.ravel(), k)
    # each tree's whole number is rounded by at most a half
    step = farthest / (_EXACT - len(count))
    return np.where(step > 0, step, 1.0)


def _ensemble(graph: Graph, grove: Grove, says: Array, target: Array, targets: int, X: str) -> str:
    """Sums of what a row's leaves say, ``(rows, targets)`` in float32."""
    size, feature, threshold, left, _ = (tensor.cpu().numpy() for tensor in grove.tensors().values())
    leaf, tree = left == 0, np.repeat(np.arange(len(size)), size)
    node = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
    # pure leaves of forests say nothing about most classes; a leaf that said nothing at all would be none
    told = says != 0
    told[:, 0] |= ~told.any(1)
    place = np.repeat(np.flatnonzero(leaf), told.sum(1))
    if len(left) + len(place) > _MOST_ENTRIES:
        raise ValueError(f"{len(left)} nodes of trees are too many for an ONNX graph: prune the model before")
    return graph(
        "TreeEnsembleRegressor",
        X,
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=targets,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=feature.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=graph.tensor(threshold),
        nodes_truenodeids=left.tolist(),
        nodes_falsenodeids=np.where(leaf, 0, left + 1).tolist(),
        target_treeids=tree[place].tolist(),
        target_nodeids=node[place].tolist(),
        target_ids=target[told].tolist(),
        target_weights_as_tensor=graph.tensor(says[told]),
    )


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
