"""Trees as operators: every part of an ensemble is one ``TreeEnsembleRegressor``, which adds leaf values in float64.

The result of that operator is rounded to float32, so that a leaf value is split into two numbers: an integer multiple
of a unit, and the rest. Sums of the integers are exact in float32, and sums of the rest are so small that their
rounding is negligible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from gce.bases.trees import TreeArrays
from gce.bases.trees.binning import IN_SET, MISSING_LEFT
from gce.bases.trees.forest import DOUBT, ForestAtoms
from gce.bases.trees.tree import TreeAtoms
from gce.io.onnx.encoder import EncodedRows
from gce.io.onnx.graph import Graph

Array = NDArray[Any]

#: Integers up to this one are exact in float32.
_EXACT = 2**24
#: Maximum number of nodes and leaf values, for the limit of two GiB of a graph.
_MAX_ENTRIES = 2**26


def boosted(graph: Graph, part: TreeAtoms, weights: Array, X: EncodedRows) -> str:
    """``sum_a weights_a atom_a`` of boosted trees, ``(rows, k)``, for weights ``(A, k)``.

    Parameters
    ----------
    graph : Graph
        The graph.
    part : TreeAtoms
        The atoms.
    weights : array of shape (A, k)
        Their weights.
    X : EncodedRows
        The rows.

    Returns
    -------
    str
    """
    k, values = len(part.bound), part.trees.outputs
    height = (weights * part.bound.cpu().numpy()).reshape(-1, values)
    trees = np.flatnonzero(height.any(1))
    arrays = part.trees.select(torch.from_numpy(trees).to(part.bound.device))
    by_leaf = np.repeat(trees, _leaf_counts(arrays))
    output = by_leaf[:, None] % part.trees_per_atom + np.arange(values)
    return _sum_trees(graph, arrays, _leaf_values(arrays) * height[by_leaf], output, k, X)


def forests(graph: Graph, part: ForestAtoms, weights: Array, X: EncodedRows) -> str:
    """``sum_a weights_a atom_a`` of forests, ``(rows, k)``, for weights ``(A, k)``.

    Parameters
    ----------
    graph : Graph
        The graph.
    part : ForestAtoms
        The atoms.
    weights : array of shape (A, k)
        Their weights.
    X : EncodedRows
        The rows.

    Returns
    -------
    str
    """
    bound, offset = part.bound.cpu().numpy(), part.offset.cpu().numpy()
    k, outs = len(bound), []
    for atom in np.flatnonzero(weights.any(1)):
        arrays = part.select(torch.tensor([atom], device=part.bound.device)).trees
        values = _leaf_values(arrays) / part.n_trees
        mean = _sum_trees(graph, arrays, values, np.broadcast_to(np.arange(k), values.shape), k, X)
        apart = graph("Sub", _apply_link(graph, part, mean), offset)
        outs.append(graph("Mul", graph("Max", graph("Min", apart, bound), -bound), weights[atom]))
    return outs[0] if len(outs) == 1 else graph("Sum", *outs)


def _leaf_counts(arrays: TreeArrays) -> Array:
    """Number of leaves of each tree, ``(T,)``: one more than it has splits."""
    return (arrays.size.cpu().numpy() + 1) // 2


def _leaf_values(arrays: TreeArrays) -> Array:
    """Values of the leaves, ``(leaves, v)``, in float64."""
    return arrays.value[arrays.left == 0].double().cpu().numpy()


def _sum_trees(graph: Graph, arrays: TreeArrays, values: Array, output: Array, k: int, X: EncodedRows) -> str:
    """Sums of each row's leaf values, ``(rows, k)``; values and their outputs are ``(leaves, v)``."""
    unit = _units(arrays, values, output, k)
    whole, rest = _split(values / unit[output])
    both = _ensemble(graph, arrays, np.hstack([whole, rest]), np.hstack([output, output + k]), 2 * k, X)
    apart = graph("Reshape", graph.cast(both, np.float64), np.array([0, 2, k]))
    return graph("Mul", graph("ReduceSum", apart, np.array([1]), keepdims=0), unit)


def _split(values: Array) -> tuple[Array, Array]:
    """The nearest integers, and the remainders."""
    whole = np.rint(values)
    return whole, values - whole


def _units(arrays: TreeArrays, values: Array, output: Array, k: int) -> Array:
    """Units ``(k,)`` so large that sums over all trees of integer multiples of them are exact in float32."""
    count = _leaf_counts(arrays)
    largest = np.maximum.reduceat(np.abs(values), np.cumsum(count) - count)
    largest_sum = np.bincount(output[np.cumsum(count) - 1].ravel(), largest.ravel(), k)
    # each tree's integer is rounded by at most a half
    unit = largest_sum / (_EXACT - len(count))
    return np.where(unit > 0, unit, 1.0)


class _Splits(NamedTuple):
    """What nodes look at.

    Parameters
    ----------
    rows : str
        Numbers of rows ``(rows, w)``.
    feature, threshold : arrays of shape (nodes,)
        A row whose number is at most the threshold goes left.
    about_missing : dict
        Attributes: whether missing numbers go left.
    """

    rows: str
    feature: Array
    threshold: Array
    about_missing: dict[str, list[int]]


def _splits(graph: Graph, arrays: TreeArrays, X: EncodedRows) -> _Splits:
    """Splits of numbers as they are; those of categories become splits of a number that says whether a set has them."""
    feature, threshold = arrays.feature.cpu().numpy(), arrays.threshold.cpu().numpy()
    if arrays.rule is None or arrays.sets is None:
        return _Splits(X.inputs, feature, threshold, {})
    rule, sets = arrays.rule.cpu().numpy(), arrays.sets.cpu().numpy()
    in_set, parts, first = rule == IN_SET, [X.columns], len(X.place)
    place, column = X.place[feature], feature
    for j in np.unique(column[in_set]):
        own = in_set & (column == j)
        different, which = np.unique(sets[threshold[own].astype(np.intp)], axis=0, return_inverse=True)
        parts.append(X.memberships(int(j), np.ascontiguousarray(different)))
        place[own] = first + which.ravel()
        first += len(different)
    rows = parts[0] if len(parts) == 1 else graph("Concat", *parts, axis=1)
    missing_left = {"nodes_missing_value_tracks_true": (rule == MISSING_LEFT).astype(np.int64).tolist()}
    return _Splits(rows, place, np.where(in_set, 0.5, threshold), missing_left)


def _ensemble(graph: Graph, arrays: TreeArrays, values: Array, target: Array, targets: int, X: EncodedRows) -> str:
    """Sums of each row's leaf values, ``(rows, targets)`` in float32."""
    size, left = arrays.size.cpu().numpy(), arrays.left.cpu().numpy()
    splits = _splits(graph, arrays, X)
    leaf, tree = left == 0, np.repeat(np.arange(len(size)), size)
    node = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
    # values of 0 are omitted (pure leaves of forests have many), but every leaf needs a value
    stored = values != 0
    stored[:, 0] |= ~stored.any(1)
    index = np.repeat(np.flatnonzero(leaf), stored.sum(1))
    if len(left) + len(index) > _MAX_ENTRIES:
        raise ValueError(f"{len(left)} tree nodes are too many for an ONNX graph: prune the model first")
    return graph(
        "TreeEnsembleRegressor",
        splits.rows,
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=targets,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=splits.feature.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values_as_tensor=graph.tensor(splits.threshold),
        **splits.about_missing,
        nodes_truenodeids=left.tolist(),
        nodes_falsenodeids=np.where(leaf, 0, left + 1).tolist(),
        target_treeids=tree[index].tolist(),
        target_nodeids=node[index].tolist(),
        target_ids=target[stored].tolist(),
        target_weights_as_tensor=graph.tensor(values[stored]),
    )


def _apply_link(graph: Graph, part: ForestAtoms, mean: str) -> str:
    """Scores of means ``(rows, k)``, as in :class:`ForestAtoms`."""
    if part.link == "identity":
        return mean
    p = graph("Add", graph("Mul", mean, np.float64(1 - DOUBT)), part.prior.cpu().numpy())
    if part.link == "logit":
        return graph("Sub", graph("Log", p), graph("Log", graph("Sub", np.float64(1), p)))
    scores = graph("Log", p)
    if part.link == "log_mean":
        return scores
    total = graph("ReduceSum", scores, np.array([1]), keepdims=1)
    return graph("Sub", scores, graph("Div", total, np.float64(len(part.bound))))
