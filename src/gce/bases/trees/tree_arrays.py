"""Many trees as one set of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.codecs import Parts
from gce.bases.trees.bin_thresholds import LEAVES, ThresholdBins

#: Places of rows in trees that tensor operations keep at once.
_PLACES_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class TreeArrays:
    """Trees in flat arrays: node by node, each tree's root first and no child before its parent.

    Parameters
    ----------
    size : Tensor of shape (T,), int64
        Nodes of each tree.
    feature : Tensor of shape (nodes,), int32
        The column that a node looks at.
    threshold : Tensor of shape (nodes,), float64
        A row whose value is at most that goes left.
    left : Tensor of shape (nodes,), int32
        Index in the tree of the left child, which the right child follows; 0 for a leaf.
    value : Tensor of shape (nodes, v)
        Values of the leaves.
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
        feature, threshold, left, value = columns
        # values of inner nodes and splits of leaves are unused: a file omits them, and restores the same trees
        value = value.masked_fill((left > 0)[:, None], 0).to(dtype)
        feature, threshold = feature.masked_fill(left == 0, 0), threshold.masked_fill(left == 0, 0)
        return cls(torch.tensor([len(tree[0]) for tree in trees]), feature, threshold, left, value)

    def __len__(self) -> int:
        return len(self.size)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def first(self) -> Tensor:
        """Index of each tree's root, ``(T,)``."""
        return self.size.cumsum(0) - self.size

    @property
    def outputs(self) -> int:
        """Number of values of a leaf."""
        return self.value.shape[1]

    def stored(self) -> Parts:
        """The content of a file: splits of inner nodes and values of leaves."""
        inner = self.left > 0
        cuts = {name: getattr(self, name)[inner] for name in ("feature", "threshold", "left")}
        return Parts({}, {"size": self.size, "inner": inner.byte(), **cuts, "value": self.value[~inner]})

    @classmethod
    def restored(cls, parts: Parts, inputs: int, outputs: int, dtype: torch.dtype) -> Self:
        """Read trees with a number of inputs and values per leaf from a file; a ValueError where it holds no trees."""
        size, inner = parts.tensor("size", None, dtype=torch.int64), parts.mask("inner", None)
        nodes, cuts = len(inner), int(inner.sum())
        if (size < 1).any() or (size > nodes).any() or int(size.sum()) != nodes:
            raise ValueError("the sizes of the trees do not sum to the number of nodes")
        place = {name: parts.tensor(name, cuts, dtype=torch.int32) for name in ("feature", "left")}
        threshold, value = parts.finite("threshold", cuts), parts.finite("value", nodes - cuts, outputs, dtype=dtype)
        if cuts and not 0 <= int(place["feature"].min()) <= int(place["feature"].max()) < inputs:
            raise ValueError(f"a tree splits on a column that does not exist: there are {inputs}")
        root = (size.cumsum(0) - size).repeat_interleave(size)
        child, parent = root[inner] + place["left"], torch.arange(nodes)[inner]
        if (child <= parent).any() or (child + 1 >= (root + size.repeat_interleave(size))[inner]).any():
            raise ValueError("a node's children must come after it in its own tree")
        # so that no part of a tree is met twice
        parents = torch.bincount(torch.cat([child, child + 1]), minlength=nodes)
        if not torch.equal(parents, (torch.arange(nodes) > root).long()):
            raise ValueError("each node except the roots must be the child of exactly one node")
        feature, left = (_spread(place[name], inner) for name in ("feature", "left"))
        return cls(size, feature, _spread(threshold, inner), left, _spread(value, ~inner))

    def select(self, index: Tensor) -> Self:
        """The trees at the given positions."""
        size, first = self.size[index], self.first[index]
        start = size.cumsum(0) - size
        nodes = torch.arange(int(size.sum()), device=size.device) + (first - start).repeat_interleave(size)
        return type(self)(size, self.feature[nodes], self.threshold[nodes], self.left[nodes], self.value[nodes])

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate trees."""
        return cls(*(torch.cat([getattr(some, field.name) for some in parts]) for field in fields(cls)))

    def summed(self, X: Tensor, weights: Tensor, into: Tensor, count: int) -> Tensor:
        """Weighted sums of the leaf values of each row, ``(count, n, v)`` in float64.

        Each sum is in the order of the trees: the result of a row is the same to the last bit whatever the other rows
        are, on any number of threads, and with compiled loops or tensor operations.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        weights : Tensor of shape (T, v)
        into : Tensor of shape (T,)
            The sum that each tree belongs to.
        count : int
        """
        kernels = predictor_kernels() if X.device.type == "cpu" else None
        if kernels is None:
            return self._summed_by_tensors(X, weights, into.tolist(), count)
        out = torch.zeros(count, len(X), self.outputs, dtype=torch.float64)
        trees = self._prepared(kernels)
        threads = max(1, min(parallel.threads(), len(X) * len(self) // kernels.WORTH_A_THREAD))
        tiles = -(-len(X) // kernels.TILE)
        ends = [min(len(X), kernels.TILE * (tiles * i // threads)) for i in range(threads + 1)]
        # a leaf that is a root looks at the first column too, to no effect
        rows = (X.detach() if X.shape[1] else X.new_zeros(len(X), 1)).double().contiguous().numpy()
        known = rows, *trees, weights.double().contiguous().numpy(), into.numpy(), out.numpy()
        with parallel.workers(threads) as run:
            run([partial(kernels.fall, *known, *part) for part in pairwise(ends)])
        return out

    def _prepared(self, kernels: ModuleType) -> tuple[tuple[NDArray[Any], ...], ...]:
        """Arrays for the compiled loops, computed once: nodes, bins of thresholds, masks of leaves."""
        if "_known" not in vars(self):
            size, first, left, value = (part.numpy() for part in (self.size, self.first, self.left, self.value))
            feature, threshold = self.feature.numpy(), self.threshold.numpy()
            bins = ThresholdBins.of(size, feature, threshold, left)
            sieve = kernels.sieve(size, first, bins.column_index, bins.code, left, value, LEAVES)
            vars(self)["_known"] = (first, feature, threshold, left, value), bins.arrays(), sieve
        known: tuple[tuple[NDArray[Any], ...], ...] = vars(self)["_known"]
        return known

    def _summed_by_tensors(self, X: Tensor, weights: Tensor, into: list[int], count: int) -> Tensor:
        """The same with tensor operations, level by level, for some trees and all rows at a time."""
        out = X.new_zeros(count, len(X), self.outputs, dtype=torch.float64)
        row, trees = torch.arange(len(X), device=X.device), iter(zip(weights, into, strict=True))
        for roots in self.first[:, None].split(max(1, _PLACES_AT_ONCE // max(1, len(X)))):
            node = roots.expand(-1, len(X))
            left = self.left[node]
            while left.any():
                beyond = X[row, self.feature[node].long()] > self.threshold[node]
                node = torch.where(left > 0, roots + left + beyond, node)
                left = self.left[node]
            for leaf in node:
                weight, place = next(trees)
                out[place] += weight * self.value[leaf].double()
        return out


def predictor_kernels() -> ModuleType | None:
    """The compiled loops that drop rows through trees, or None without numba."""
    return parallel.compiled_module("gce.bases.trees.predictor")


def _spread(column: Tensor, where: Tensor) -> Tensor:
    """Numbers put to some of the nodes (mask ``(nodes,)``), 0 to the others."""
    out = column.new_zeros(len(where), *column.shape[1:])
    out[where] = column
    return out
