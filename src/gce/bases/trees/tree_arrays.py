"""Many trees as one set of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.codecs import Parts, narrowed
from gce.bases.trees.predictor import PreparedTrees, restored_nodes

if TYPE_CHECKING:
    from gce.bases.trees.predictor_cuda import DeviceTrees

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
        """The content of a file: splits of inner nodes and values of leaves, in as few bytes as hold them.

        Trees share thresholds, which are few where columns are binned: these are stored once, and counted.
        """
        inner = self.left > 0
        table, cut = self.threshold[inner].unique(return_inverse=True)
        tensors = {
            "size": narrowed(self.size),
            "splits": torch.from_numpy(np.packbits(inner.cpu().numpy())),
            "feature": narrowed(self.feature[inner]),
            "left": narrowed(self.left[inner]),
            "value": self.value[~inner],
        }
        cut = narrowed(cut)
        if table.nbytes + cut.nbytes < self.threshold[inner].nbytes:
            return Parts({}, {**tensors, "table": table, "cut": cut})
        return Parts({}, {**tensors, "threshold": self.threshold[inner]})

    @classmethod
    def restored(cls, parts: Parts, inputs: int, outputs: int, dtype: torch.dtype) -> Self:
        """Read trees with a number of inputs and values per leaf from a file; a ValueError where it holds no trees."""
        size, inner = parts.whole("size", None), _inner_nodes(parts)
        nodes, cuts = len(inner), int(inner.sum())
        feature, left = (parts.whole(name, cuts).int() for name in ("feature", "left"))
        threshold, value = _thresholds(parts, cuts), parts.finite("value", nodes - cuts, outputs, dtype=dtype)
        places = restored_nodes(size.numpy(), inner.numpy(), feature.numpy(), threshold.numpy(), left.numpy(), inputs)
        leaves = value.new_zeros(nodes, outputs)
        leaves.numpy()[~inner.numpy()] = value.numpy()
        feature, threshold, left = map(torch.from_numpy, places)
        return cls(size, feature, threshold, left, leaves)

    def select(self, index: Tensor) -> Self:
        """The trees at the given positions."""
        sizes, chosen = self.size.cpu().numpy(), index.cpu().numpy()
        ends = np.cumsum(sizes)
        if len(chosen) and (np.diff(chosen) == 1).all():
            if len(chosen) == len(self):
                return self
            nodes: slice | Tensor = slice(int(ends[chosen[0]] - sizes[chosen[0]]), int(ends[chosen[-1]]))
        else:
            # not by torch, whose threads take longer to wake up than this takes
            size = sizes[chosen]
            places = np.arange(size.sum()) + np.repeat((ends - sizes)[chosen] - (np.cumsum(size) - size), size)
            nodes = torch.from_numpy(places).to(self.size.device)
        parts = (getattr(self, name)[nodes] for name in ("feature", "threshold", "left", "value"))
        # memory of their own: slices would be pickled with all of it
        return type(self)(self.size[index], *(p.clone() if isinstance(nodes, slice) else p for p in parts))

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate trees."""
        return cls(*(torch.cat([getattr(some, field.name) for some in parts]) for field in fields(cls)))

    def summed(self, X: Tensor, weights: Tensor, into: Tensor, count: int) -> Tensor:
        """Weighted sums of the leaf values of each row, ``(count, n, v)`` in float64.

        Each sum is in the order of the trees: the result of a row is the same to the last bit whatever the other rows
        are, on any number of threads, on a processor or a GPU, and with compiled loops or tensor operations.

        Parameters
        ----------
        X : Tensor of shape (n, d)
        weights : Tensor of shape (T, v)
        into : Tensor of shape (T,)
            The sum that each tree belongs to.
        count : int
        """
        if X.device.type != "cpu":
            trees = self._on_device
            if trees is None:
                return self._summed_by_tensors(X, weights, into.tolist(), count)
            return trees.summed(X, weights, into, count)
        rows = X.detach().double().contiguous().numpy()
        found = self._prepared.summed(rows, weights.double().contiguous().numpy(), into.numpy(), count)
        return torch.from_numpy(found)

    @cached_property
    def _prepared(self) -> PreparedTrees:
        """What kernels need to know, found out once."""
        return PreparedTrees(*(getattr(self, field.name).contiguous().numpy() for field in fields(self)))

    @cached_property
    def _on_device(self) -> DeviceTrees | None:
        """The same for the kernel of a GPU; None where it cannot run."""
        # most processes have no use for it
        from gce.bases.trees.predictor_cuda import DeviceTrees, can_sum

        return DeviceTrees(*self.tensors().values()) if can_sum(len(self.left), self.left.device) else None

    def __getstate__(self) -> dict[str, Any]:
        # what kernels need is found out again
        return self.tensors()

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


def _inner_nodes(parts: Parts) -> Tensor:
    """Mask ``(nodes,)`` of the inner nodes: a bit each, or a byte before format 4."""
    if "inner" in parts.tensors:
        return parts.mask("inner", None)
    bits = np.unpackbits(parts.tensor("splits", None, dtype=torch.uint8).numpy())
    # the sizes are checked against what is left
    nodes = int(parts.whole("size", None).clamp(0, len(bits)).sum())
    if not len(bits) - 8 < nodes <= len(bits) or bits[nodes:].any():
        raise ValueError("the sizes of the trees do not sum to the number of nodes")
    return torch.from_numpy(bits[:nodes]).bool()


def _thresholds(parts: Parts, cuts: int) -> Tensor:
    """The thresholds ``(cuts,)`` of the inner nodes."""
    if "table" not in parts.tensors:
        return parts.finite("threshold", cuts)
    table, cut = parts.finite("table", None), parts.whole("cut", cuts)
    if cuts and not 0 <= int(cut.min()) <= int(cut.max()) < len(table):
        raise ValueError("a node refers to a threshold that does not exist")
    return table[cut]
