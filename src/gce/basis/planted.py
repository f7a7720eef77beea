"""Atoms made of trees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gce.basis.base import Atoms
from gce.rows import Inputs
from gce.trees import Grove


class Planted(Atoms):
    """Frozen trees, as buffers of a module.

    Parameters
    ----------
    grove : Grove
    bound : Tensor of shape (k,)
    """

    bound: Tensor
    #: The rows of a fit, and the outputs there ``(A, N, k)``, while it runs.
    known: tuple[Inputs, Tensor] | None = None
    #: The trees with what was found out about them.
    _grove: Grove | None = None

    def __init__(self, grove: Grove, bound: Tensor) -> None:
        super().__init__()
        for name, value in grove.tensors().items():
            self.register_buffer(name, value)
        self.register_buffer("bound", bound)

    @property
    def grove(self) -> Grove:
        size = self.get_buffer("size")
        # on another device the buffers are others
        if self._grove is None or self._grove.size is not size:
            self._grove = Grove(size, *(self.get_buffer(name) for name in ("feature", "threshold", "left", "value")))
        return self._grove

    def __getstate__(self) -> dict[str, Any]:
        # rows belong to a fit, and the rest is found out again
        return {**self.__dict__, "known": None, "_grove": None}


def dropped(grove: Grove, X: Inputs, weights: Tensor, into: Tensor, count: int) -> Tensor:
    """:meth:`Grove.summed` for rows of either kind: sparse ones are written out some at a time."""
    if isinstance(X, Tensor):
        return grove.summed(X, weights, into, count)
    blocks = (torch.from_numpy(some) for some in X.written_out())
    return torch.cat([grove.summed(some, weights, into, count) for some in blocks], 1)


def within(own: Tensor, bound: Tensor) -> bool:
    """Whether a bound is one, and inside an ensemble's."""
    return bool(((own > 0) & (own <= bound)).all())
