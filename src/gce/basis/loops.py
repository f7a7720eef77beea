"""Two-layer networks as compiled loops know them, and their evaluation on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce import native
from gce.native import WORTH_A_THREAD, workers

if TYPE_CHECKING:
    from gce.basis.network import Parameters, TwoLayer

Array = NDArray[Any]

#: Hidden units whose values for a tile of rows stay in the first-level cache: networks are evaluated in such groups.
_UNITS_AT_ONCE = 48


class Form:
    """Shape and nonlinearities of two-layer networks, and scratch memory for one thread.

    Parameters
    ----------
    architecture : TwoLayer
    parameters : list of Tensor
        ``W1 (nets, h, d)``, ``b1``, ``W2 (nets, k, h)``, ``b2``.
    """

    def __init__(self, architecture: TwoLayer, parameters: Parameters) -> None:
        kernels = native.loops()
        assert kernels is not None
        self.kernels = kernels
        (_, self.h, self.d), self.k = parameters[0].shape, parameters[2].shape[1]
        self.nets = [p.reshape(-1).numpy() for p in parameters]
        self.dtype = self.nets[0].dtype
        curved = np.array([architecture.activation == "tanh", architecture.output == "tanh"])
        #: What every loop wants to know: the shape, which layers are curved, and 0 and 1 in the networks' precision.
        self.known = np.array([self.d, self.h, self.k]), curved, np.array([0, 1], self.dtype)

    @property
    def group(self) -> int:
        """How many networks are evaluated at once."""
        return max(1, _UNITS_AT_ONCE // self.h)

    def for_training(self) -> tuple[Array, Array, Array]:
        """``W2`` transposed, a tile's layers (and zeros), a tile."""
        tile, layers = self.kernels.TILE, 2 * self.h + 2 * self.k
        sizes = self.h * self.k, layers * tile + self.h, (self.d + self.k) * tile
        turned, work, rows = (np.zeros(size, self.dtype) for size in sizes)
        return turned, work, rows

    def for_evaluation(self) -> tuple[Array, Array, Array, Array]:
        """A tile, hidden units and outputs of a group, and no slopes."""
        tile = self.kernels.TILE
        sizes = self.d * tile, self.group * self.h * tile, self.group * self.k * tile
        rows, hidden, out = (np.empty(size, self.dtype) for size in sizes)
        return rows, hidden, out, np.empty((0, 0), self.dtype)


def outputs(architecture: TwoLayer, parameters: Parameters, bound: Tensor, models: int, X: Tensor) -> Tensor:
    """Outputs of every atom, ``(A, n, k)``, in the parameters' precision."""
    form = Form(architecture, parameters)
    rows = X.contiguous().numpy()
    out = np.empty((len(parameters[0]) // models, len(X), len(bound)), form.dtype)

    def some(first: int, last: int) -> None:
        form.kernels.outputs(
            rows,
            tuple(form.nets),
            bound.numpy(),
            models,
            form.group,
            out,
            first,
            last,
            form.for_evaluation(),
            *form.known,
        )

    _over_rows(some, len(X), form)
    return torch.from_numpy(out)


def mixture(
    architecture: TwoLayer, parameters: Parameters, bound: Tensor, models: int, weights: Tensor, X: Tensor
) -> Tensor:
    """``sum_a weights_a atom_a``, ``(n, k)`` in float64; ``weights`` of shape ``(A, k)``."""
    form = Form(architecture, parameters)
    rows = X.contiguous().numpy()
    total = np.zeros((len(X), len(bound)))

    def some(first: int, last: int) -> None:
        form.kernels.mixture(
            rows,
            tuple(form.nets),
            bound.numpy(),
            models,
            form.group,
            weights.numpy(),
            total,
            first,
            last,
            form.for_evaluation(),
            *form.known,
        )

    _over_rows(some, len(X), form)
    return torch.from_numpy(total)


def _over_rows(some: Callable[[int, int], None], n: int, form: Form) -> None:
    """Rows divided among threads, in whole tiles."""
    threads = min(native.threads(), 1 + n * len(form.nets[0]) // WORTH_A_THREAD)
    tiles = -(-n // form.kernels.TILE)
    ends = [min(n, form.kernels.TILE * (tiles * i // threads)) for i in range(threads + 1)]
    with workers(threads) as run:
        run([partial(some, first, last) for first, last in pairwise(ends)])
