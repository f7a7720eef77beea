"""Atoms and weights as operators: products for all networks at once, leaves of trees, then one weighted sum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.basis.base import Atoms, Zero
from gce.basis.forest import ForestAtoms
from gce.basis.network import Networks, SingleNeuron, TwoLayer
from gce.basis.tree import TreeAtoms
from gce.ensemble import ConvexEnsemble
from gce.export import trees
from gce.export.graph import Graph

Array = NDArray[Any]


def scores(graph: Graph, ensemble: ConvexEnsemble, X: str, width: int) -> str:
    """Raw scores ``(rows, k)`` of encoded rows ``(rows, width)``, in float64. Atoms without weight are left out.

    Where no column says anything (``width`` is 0) only the number of rows of ``X`` counts.
    """
    offset, used = ensemble.offset.cpu().numpy(), list(_used(ensemble))
    if not used or width == 0:
        # the zero function alone, or no columns: the same for every row
        same = ensemble(ensemble.offset.new_zeros(1, width)).cpu().numpy()
        return graph("Expand", same, graph("Concat", graph("Shape", X, end=1), np.array([len(offset)]), axis=0))
    rows = {np.dtype(np.float64): X}
    return graph("Sum", *(_mixture(graph, part, weights, rows) for part, weights in used), offset)


def _used(ensemble: ConvexEnsemble) -> Iterator[tuple[Atoms, Array]]:
    """Atoms that carry weight, with their weights ``(A, k)``."""
    weights = ensemble.weights.cpu().numpy().reshape(len(ensemble), -1)
    by_output = np.broadcast_to(weights, (len(ensemble), len(ensemble.offset)))
    first = 0
    for part in ensemble.parts:
        assert isinstance(part, Atoms)
        own = by_output[first : first + len(part)]
        first += len(part)
        if own.any() and not isinstance(part, Zero):
            yield _known(part), own


def _known(part: Atoms) -> Atoms:
    """Atoms that are tensors of ours; others are refused."""
    if part.foreign is not None:
        raise ValueError(
            f"{part.foreign} is not gce's own and cannot be written as ONNX: keep the model with joblib.dump"
        )
    return part


def _mixture(graph: Graph, part: Atoms, weights: Array, rows: dict[Any, str]) -> str:
    """``sum_a weights_a atom_a``, ``(rows, k)``, for weights ``(A, k)``; ``rows`` holds the rows in every precision."""
    double = rows[np.dtype(np.float64)]
    if isinstance(part, TreeAtoms):
        return trees.boosted(graph, part, weights, double)
    if isinstance(part, ForestAtoms):
        return trees.forests(graph, part, weights, double)
    assert isinstance(part, Networks)
    return _networks(graph, part, weights, rows)


def _networks(graph: Graph, part: Networks, weights: Array, rows: dict[Any, str]) -> str:
    """The same of networks."""
    parameters = [p.cpu().numpy() for p in part.parameters_]
    dtype = parameters[0].dtype
    if dtype not in rows:
        rows[dtype] = graph.cast(rows[np.dtype(np.float64)], dtype)
    # an atom is `models` networks, each with its own outputs
    height = (weights * part.bound.cpu().numpy()).reshape(len(parameters[0]), -1)
    used = height.any(1)
    output = np.arange(len(used)) % part.models
    parameters = [p[used] for p in parameters]
    if isinstance(part.architecture, SingleNeuron):
        unit = _neurons(graph, parameters[0], rows[dtype])
    else:
        unit = _two_layer(graph, part.architecture, parameters, rows[dtype])
    if dtype != np.float64:
        unit = graph.cast(unit, np.float64)
    return _weighed(graph, unit, height[used], output[used], weights.shape[1])


def _two_layer(graph: Graph, architecture: TwoLayer, parameters: list[Array], X: str) -> str:
    """Unit outputs of ``N`` networks, ``(N, rows, o)``."""
    W1, b1, W2, b2 = parameters
    # the nonlinearity stands between turn and product, and apart from the first product: onnxruntime would join such
    # neighbours to operators that old versions lack in float64 and that new ones cannot run without rows
    apart = _apart(graph, graph("Gemm", X, W1.reshape(-1, W1.shape[2]).T, b1.ravel()), *W1.shape[:2])
    hidden = graph("Relu" if architecture.activation == "relu" else "Tanh", apart)
    z = graph("Add", graph("MatMul", hidden, W2.transpose(0, 2, 1)), b2.transpose(0, 2, 1))
    if architecture.output == "identity":
        return z
    if architecture.output == "tanh":
        return graph("Tanh", z)
    one = W2.dtype.type(1)
    return graph("Clip", z, -one, one)


def _neurons(graph: Graph, u: Array, X: str) -> str:
    """Unit outputs of ``N`` neurons for each of ``o`` outputs, ``(N, rows, o)``."""
    return _apart(graph, graph("Tanh", graph("MatMul", X, u.reshape(-1, u.shape[2]).T)), *u.shape[:2])


def _apart(graph: Graph, columns: str, networks: int, width: int) -> str:
    """Columns ``(rows, N c)`` by network, ``(N, rows, c)``."""
    # 0 keeps the number of rows, which may be 0
    return graph("Transpose", graph("Reshape", columns, np.array([0, networks, width])), perm=[1, 0, 2])


def _weighed(graph: Graph, unit: str, height: Array, output: Array, k: int) -> str:
    """Unit outputs ``(N, rows, o)`` times their heights ``(N, o)``, summed by output, ``(rows, k)``.

    A network has all ``k`` outputs, or one: ``output`` says which, ``(N,)``.
    """
    if height.shape[1] == k > 1:
        return graph("ReduceSum", graph("Mul", unit, height[:, None]), np.array([0]), keepdims=0)
    by_output = np.where(output[:, None] == np.arange(k), height, 0.0)
    return graph("Gemm", graph("Squeeze", unit, np.array([2])), by_output, transA=1)
