"""Evaluation of networks by compiled loops on the CPU: the result of a row does not depend on its position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel, rowwise
from gce._utils.parallel import WORTH_A_THREAD, workers
from gce.bases.neural.kernels import tile_rows
from gce.preprocessing.sparse import Inputs, matmul_transposed

if TYPE_CHECKING:
    from gce.bases.neural.network import Parameters

Array = NDArray[Any]

#: Nonlinearities of a layer, in the loops' order.
CURVES = ("identity", "relu", "hardtanh", "tanh")


def serve(X: Inputs) -> bool:
    """Whether compiled loops can evaluate networks on these rows; otherwise tensor operations do."""
    known = X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64)
    return known and not (isinstance(X, Tensor) and X.requires_grad)


class Evaluator:
    """Frozen networks, ready for compiled loops.

    Parameters
    ----------
    layers : list of Tensor
        ``W1 (nets, h, d)``, ``b1 (nets, h, 1)``, ``W2 (nets, k, h)``, ``b2 (nets, k, 1)``; the first two alone where
        hidden units are the outputs.
    curves : sequence of str
        Of the layers' nonlinearities, see :data:`CURVES`.
    bound : Tensor of shape (models * k,)
        In the precision of the layers.
    models : int
        Networks of an atom.
    """

    def __init__(self, layers: Parameters, curves: Sequence[str], bound: Tensor, models: int) -> None:
        self._models, self._bound = models, np.ascontiguousarray(bound.numpy())
        (self._nets, self._h, self._d), self._first = layers[0].shape, layers[:2]
        self._k = layers[-1].shape[1]
        flat = [p.reshape(-1).numpy() for p in layers]
        self._dtype = flat[0].dtype
        none = np.zeros(0, self._dtype)
        self._layers = tuple(flat) if len(flat) == 4 else (*flat, none, none)
        self._curves = [CURVES.index(curve) for curve in curves]

    def outputs(self, X: Inputs) -> Tensor:
        """Outputs of every atom, ``(A, n, k)``, in the networks' precision."""
        out = np.empty((self._nets // self._models, len(X), len(self._bound)), self._dtype)
        self._over_rows(X, rowwise.outputs, out)
        return torch.from_numpy(out)

    def mixture(self, X: Inputs, weights: Tensor) -> Tensor:
        """``sum_a weights_a atom_a``, ``(n, k)`` in float64; ``weights`` of shape ``(A, k)``."""
        total = np.zeros((len(X), len(self._bound)))
        self._over_rows(X, rowwise.mixture, np.ascontiguousarray(weights.numpy()), total)
        return torch.from_numpy(total)

    def _over_rows(self, X: Inputs, loop: Callable[..., None], *given: Array) -> None:
        """Rows divided among threads, in whole tiles."""
        n, tile = len(X), tile_rows()
        rows, d = self._inputs(X)
        shape = np.array([d, self._h, self._k, *self._curves, self._models, self._nets], np.int64)

        def some(first: int, last: int) -> None:
            loop(rows, self._layers, self._bound, shape, *given, first, last)

        threads = min(parallel.threads(), 1 + n * len(self._layers[0]) // WORTH_A_THREAD)
        tiles = -(-n // tile)
        ends = [min(n, tile * (tiles * i // threads)) for i in range(threads + 1)]
        with workers(threads) as run:
            run([partial(some, first, last) for first, last in pairwise(ends)])

    def _inputs(self, X: Inputs) -> tuple[Array, int]:
        """The input of the loops and its width: dense rows, or for sparse rows the first layer's sums and -1.

        Sparse rows are multiplied one by one, each in the order of its columns.
        """
        if isinstance(X, Tensor):
            return X.contiguous().numpy(), self._d
        W1, b1 = self._first
        sums = matmul_transposed(W1.flatten(0, 1), X.to(W1.dtype)) + b1.reshape(-1, 1)
        return sums.T.contiguous().numpy(), -1
