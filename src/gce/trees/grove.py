"""Many trees as one set of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce import native
from gce.trees import falling


@dataclass(frozen=True)
class Grove:
    """Trees one after another: node by node, each tree's root first.

    Parameters
    ----------
    size : Tensor of shape (T,), int64
        Nodes of each tree.
    feature : Tensor of shape (nodes,), int32
        The column that a node looks at.
    threshold : Tensor of shape (nodes,), float64
        A row whose value is at most that goes left.
    left : Tensor of shape (nodes,), int32
        Where in its tree the left child stands, right before the other one; 0 for a leaf.
    value : Tensor of shape (nodes, v)
        What a leaf says.
    """

    size: Tensor
    feature: Tensor
    threshold: Tensor
    left: Tensor
    value: Tensor

    @classmethod
    def of(cls, trees: Sequence[tuple[NDArray[np.generic], ...]], dtype: torch.dtype = torch.float64) -> Self:
        """Trees given as (feature, threshold, left, value) each, values ``(nodes, v)``."""
        columns = [torch.from_numpy(np.concatenate(column)) for column in zip(*trees, strict=True)]
        size = torch.tensor([len(tree[0]) for tree in trees])
        return cls(size, *columns[:3], columns[3].to(dtype))

    def __len__(self) -> int:
        return len(self.size)

    @property
    def first(self) -> Tensor:
        """Where each tree's root stands, ``(T,)``."""
        return self.size.cumsum(0) - self.size

    @property
    def outputs(self) -> int:
        """Numbers that a leaf says."""
        return self.value.shape[1]

    def to(self, device: torch.device) -> Self:
        return type(self)(*(getattr(self, field.name).to(device) for field in fields(self)))

    def select(self, index: Tensor) -> Self:
        """Some of the trees."""
        size, first = self.size[index], self.first[index]
        start = size.cumsum(0) - size
        nodes = torch.arange(int(size.sum()), device=size.device) + (first - start).repeat_interleave(size)
        return type(self)(size, self.feature[nodes], self.threshold[nodes], self.left[nodes], self.value[nodes])

    @classmethod
    def cat(cls, groves: Sequence[Self]) -> Self:
        """Groves one after another."""
        return cls(*(torch.cat([getattr(grove, field.name) for grove in groves]) for field in fields(cls)))

    def summed(self, X: Tensor, weights: Tensor, trees: int) -> Tensor:
        """Sums over ``trees`` neighbours each of what a row's leaves say times the trees' weights, ``(T / trees, n, v)``.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        weights : Tensor of shape (T, v)
        trees : int
        """
        if X.device.type != "cpu":
            return self._summed_by_tensors(X, weights, trees)
        out = torch.zeros(len(self) // trees, len(X), self.outputs, dtype=torch.float64)
        rows, first = X.double().contiguous().numpy(), self.first.numpy()
        own = [part.numpy() for part in (self.feature, self.threshold, self.left, self.value)]
        threads = max(1, min(native.threads(), len(X) * len(self) // falling.WORTH_A_THREAD))
        ends = [len(X) * i // threads for i in range(threads + 1)]
        result, w = out.numpy(), weights.double().contiguous().numpy()
        with native.workers(threads) as run:
            run([partial(falling.fall, rows, first, *own, w, trees, result, *part) for part in pairwise(ends)])
        return out

    def _summed_by_tensors(self, X: Tensor, weights: Tensor, trees: int) -> Tensor:
        """The same, all rows a level at a time."""
        out = X.new_zeros(len(self) // trees, len(X), self.outputs, dtype=torch.float64)
        row = torch.arange(len(X), device=X.device)
        for tree, (first, weight) in enumerate(zip(self.first.tolist(), weights, strict=True)):
            node = torch.full_like(row, first)
            while True:
                left = self.left[node]
                inner = left > 0
                if not inner.any():
                    break
                beyond = X[row, self.feature[node].long()] > self.threshold[node]
                node = torch.where(inner, first + left + beyond, node)
            out[tree // trees] += weight * self.value[node]
        return out
