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

from gce import native
from gce.parts import Parts
from gce.trees.coding import LEAVES, Coding

#: Places of rows in trees that tensor operations keep at once.
_PLACES_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Grove:
    """Trees one after another: node by node, each tree's root first and no child before its parent.

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
        feature, threshold, left, value = columns
        # nobody asks for these numbers: a file does without them, and brings the same trees back
        value = value.masked_fill((left > 0)[:, None], 0).to(dtype)
        feature, threshold = feature.masked_fill(left == 0, 0), threshold.masked_fill(left == 0, 0)
        return cls(torch.tensor([len(tree[0]) for tree in trees]), feature, threshold, left, value)

    def __len__(self) -> int:
        return len(self.size)

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def first(self) -> Tensor:
        """Where each tree's root stands, ``(T,)``."""
        return self.size.cumsum(0) - self.size

    @property
    def outputs(self) -> int:
        """Numbers that a leaf says."""
        return self.value.shape[1]

    def stored(self) -> Parts:
        """What a file keeps: inner nodes' cuts and leaves' values."""
        inner = self.left > 0
        cuts = {name: getattr(self, name)[inner] for name in ("feature", "threshold", "left")}
        return Parts({}, {"size": self.size, "inner": inner.byte(), **cuts, "value": self.value[~inner]})

    @classmethod
    def restored(cls, parts: Parts, inputs: int, outputs: int, dtype: torch.dtype) -> Self:
        """Trees from a file, for so many inputs and numbers a leaf; a ValueError where these are no trees."""
        size, inner = parts.tensor("size", None, dtype=torch.int64), parts.mask("inner", None)
        nodes, cuts = len(inner), int(inner.sum())
        if (size < 1).any() or (size > nodes).any() or int(size.sum()) != nodes:
            raise ValueError("the trees' sizes do not add up to their nodes")
        place = {name: parts.tensor(name, cuts, dtype=torch.int32) for name in ("feature", "left")}
        threshold, value = parts.finite("threshold", cuts), parts.finite("value", nodes - cuts, outputs, dtype=dtype)
        if cuts and not 0 <= int(place["feature"].min()) <= int(place["feature"].max()) < inputs:
            raise ValueError(f"a tree looks at a column that is none of {inputs}")
        root = (size.cumsum(0) - size).repeat_interleave(size)
        child, parent = root[inner] + place["left"], torch.arange(nodes)[inner]
        if (child <= parent).any() or (child + 1 >= (root + size.repeat_interleave(size))[inner]).any():
            raise ValueError("a node's children must stand after it and in its own tree")
        # so that no part of a tree is met twice
        parents = torch.bincount(torch.cat([child, child + 1]), minlength=nodes)
        if not torch.equal(parents, (torch.arange(nodes) > root).long()):
            raise ValueError("each node but the roots must be a child of one other")
        feature, left = (_spread(place[name], inner) for name in ("feature", "left"))
        return cls(size, feature, _spread(threshold, inner), left, _spread(value, ~inner))

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

    def summed(self, X: Tensor, weights: Tensor, into: Tensor, count: int) -> Tensor:
        """Sums of what a row's leaves say times the trees' weights, ``(count, n, v)`` in float64.

        Each is added up in the order of the trees, whoever else is asked for: a row's answer is the same to the last
        bit beside any others, on any number of threads, and by either of the two ways.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        weights : Tensor of shape (T, v)
        into : Tensor of shape (T,)
            Which of the sums a tree belongs to.
        count : int
        """
        falling = native.falling() if X.device.type == "cpu" else None
        if falling is None:
            return self._summed_by_tensors(X, weights, into.tolist(), count)
        out = torch.zeros(count, len(X), self.outputs, dtype=torch.float64)
        trees = self._sieved(falling)
        threads = max(1, min(native.threads(), len(X) * len(self) // falling.WORTH_A_THREAD))
        tiles = -(-len(X) // falling.TILE)
        ends = [min(len(X), falling.TILE * (tiles * i // threads)) for i in range(threads + 1)]
        # a leaf that is a root looks at the first column too, to no effect
        rows = (X.detach() if X.shape[1] else X.new_zeros(len(X), 1)).double().contiguous().numpy()
        known = rows, *trees, weights.double().contiguous().numpy(), into.numpy(), out.numpy()
        with native.workers(threads) as run:
            run([partial(falling.fall, *known, *part) for part in pairwise(ends)])
        return out

    def _sieved(self, falling: ModuleType) -> tuple[tuple[NDArray[Any], ...], ...]:
        """What compiled loops want to know, found out once: nodes, how rows are coded, cuts."""
        if "_known" not in vars(self):
            size, first, left, value = (part.numpy() for part in (self.size, self.first, self.left, self.value))
            feature, threshold = self.feature.numpy(), self.threshold.numpy()
            coding = Coding.of(size, feature, threshold, left)
            sieve = falling.sieve(size, first, coding.asked, coding.code, left, value, LEAVES)
            vars(self)["_known"] = (first, feature, threshold, left, value), coding.known(), sieve
        known: tuple[tuple[NDArray[Any], ...], ...] = vars(self)["_known"]
        return known

    def _summed_by_tensors(self, X: Tensor, weights: Tensor, into: list[int], count: int) -> Tensor:
        """The same, some trees and all rows a level at a time."""
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


def _spread(column: Tensor, where: Tensor) -> Tensor:
    """Numbers put to some of the nodes (mask ``(nodes,)``), 0 to the others."""
    out = column.new_zeros(len(where), *column.shape[1:])
    out[where] = column
    return out
