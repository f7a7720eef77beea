"""Atoms and weights as operators: batched products for networks, tree ensembles, and one weighted sum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.bases.base import Atoms, Zero
from gce.bases.neural.network import Networks, SingleNeuron, TwoLayer
from gce.bases.trees.forest import ForestAtoms
from gce.bases.trees.tree import TreeAtoms
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.io.onnx import trees
from gce.io.onnx.encoder import EncodedRows
from gce.io.onnx.graph import Graph

Array = NDArray[Any]


def raw_scores(graph: Graph, ensemble: ConvexEnsemble, X: EncodedRows) -> str:
    """Add the raw scores of an ensemble, in float64, without atoms of weight 0.

    Parameters
    ----------
    graph : Graph
        The graph.
    ensemble : ConvexEnsemble
        The atoms and weights.
    X : EncodedRows
        The rows; if they have no inputs, only their number matters.

    Returns
    -------
    str
        Raw scores ``(rows, k)``.
    """
    offset, used = ensemble.offset.cpu().numpy(), list(_used(ensemble))
    if not used or X.width == 0:
        # the zero function alone, or no inputs: the same for every row
        same = ensemble(ensemble.offset.new_zeros(1, X.width)).cpu().numpy()
        return graph("Expand", same, graph("Concat", graph("Shape", X.codes, end=1), np.array([len(offset)]), axis=0))
    return graph("Sum", *(_mixture(graph, part, weights, X) for part, weights in used), offset)


def _used(ensemble: ConvexEnsemble) -> Iterator[tuple[Atoms, Array]]:
    """Atoms of positive weight, with their weights ``(A, k)``."""
    weights = ensemble.weights.cpu().numpy().reshape(len(ensemble), -1)
    by_output = np.broadcast_to(weights, (len(ensemble), len(ensemble.offset)))
    first = 0
    for part in ensemble.parts:
        assert isinstance(part, Atoms)
        own = by_output[first : first + len(part)]
        first += len(part)
        if own.any() and not isinstance(part, Zero):
            yield _check_supported(part), own


def _check_supported(part: Atoms) -> Atoms:
    """The atoms, if they can be exported; else a ValueError."""
    if part.unstorable_name is not None:
        raise ValueError(
            f"{part.unstorable_name} is not part of gce and cannot be exported to ONNX: save the model with joblib.dump"
        )
    return part


def _mixture(graph: Graph, part: Atoms, weights: Array, X: EncodedRows) -> str:
    """``sum_a weights_a atom_a``, ``(rows, k)``, for weights ``(A, k)``."""
    if isinstance(part, TreeAtoms):
        return trees.boosted(graph, part, weights, X)
    if isinstance(part, ForestAtoms):
        return trees.forests(graph, part, weights, X)
    assert isinstance(part, Networks)
    return _networks(graph, part, weights, X)


def _networks(graph: Graph, part: Networks, weights: Array, X: EncodedRows) -> str:
    """Weighted sum of networks, ``(rows, k)``."""
    parameters = [p.cpu().numpy() for p in part.parameters_]
    dtype = parameters[0].dtype
    # an atom is `models` networks, each with its own outputs
    height = (weights * part.bound.cpu().numpy()).reshape(len(parameters[0]), -1)
    used = height.any(1)
    output = np.arange(len(used)) % part.models
    parameters = [p[used] for p in parameters]
    if isinstance(part.architecture, SingleNeuron):
        unit = _neurons(graph, parameters[0], X.inputs_as(dtype))
    else:
        unit = _two_layer(graph, part.architecture, parameters, X.inputs_as(dtype))
    if dtype != np.float64:
        unit = graph.cast(unit, np.float64)
    return _weighted_sum(graph, unit, height[used], output[used], weights.shape[1])


def _two_layer(graph: Graph, architecture: TwoLayer, parameters: list[Array], X: str) -> str:
    """Unit outputs of ``N`` networks, ``(N, rows, o)``."""
    W1, b1, W2, b2 = parameters
    # the activation is between transposition and product, and not next to the first product: onnxruntime would fuse
    # them to operators that old versions lack in float64 and that new ones cannot run on 0 rows
    by_network = _split_networks(graph, graph("Gemm", X, W1.reshape(-1, W1.shape[2]).T, b1.ravel()), *W1.shape[:2])
    hidden = graph("Relu" if architecture.activation == "relu" else "Tanh", by_network)
    z = graph("Add", graph("MatMul", hidden, W2.transpose(0, 2, 1)), b2.transpose(0, 2, 1))
    if architecture.output == "identity":
        return z
    if architecture.output == "tanh":
        return graph("Tanh", z)
    one = W2.dtype.type(1)
    return graph("Clip", z, -one, one)


def _neurons(graph: Graph, u: Array, X: str) -> str:
    """Unit outputs of ``N`` neurons for each of ``o`` outputs, ``(N, rows, o)``."""
    return _split_networks(graph, graph("Tanh", graph("MatMul", X, u.reshape(-1, u.shape[2]).T)), *u.shape[:2])


def _split_networks(graph: Graph, columns: str, networks: int, width: int) -> str:
    """Columns ``(rows, N c)`` by network, ``(N, rows, c)``."""
    # 0 keeps the number of rows, which may be 0
    return graph("Transpose", graph("Reshape", columns, np.array([0, networks, width])), perm=[1, 0, 2])


def _weighted_sum(graph: Graph, unit: str, height: Array, output: Array, k: int) -> str:
    """Unit outputs ``(N, rows, o)`` times their heights ``(N, o)``, summed by output, ``(rows, k)``.

    A network has all ``k`` outputs, or one: ``output`` says which, ``(N,)``.
    """
    if height.shape[1] == k > 1:
        return graph("ReduceSum", graph("Mul", unit, height[:, None]), np.array([0]), keepdims=0)
    by_output = np.where(output[:, None] == np.arange(k), height, 0.0)
    return graph("Gemm", graph("Squeeze", unit, np.array([2])), by_output, transA=1)
