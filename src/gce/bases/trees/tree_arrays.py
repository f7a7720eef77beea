"""Many trees as one set of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.codecs import Parts, narrowed
from gce.bases.trees.binning import CODES, FIRST_CODE_BIN, IN_SET, MISSING_BIN, MISSING_RIGHT, OTHER_BIN
from gce.bases.trees.predictor import PreparedTrees, restored_nodes
from gce.preprocessing.mixed import Widths

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
    rule : Tensor of shape (nodes,), uint8, optional
        Of trees that look at the columns of a table, with missing values and codes of categories: 0 and 1 for nodes
        where missing values go left and right, 2 for nodes of categories. Default: the trees look at inputs of
        networks, none of which is missing.
    sets : Tensor of shape (S, 4), int64, optional
        Sets of 256 categories, one bit each, see :func:`gce.bases.trees.binning.category_bins`. The threshold of a node
        of categories is the index of its set: those in it go left, all others right.
    cover : Tensor of shape (nodes,), float32, optional
        The weight of the training rows in each leaf, 0 for inner nodes: Shapley values need it, predictions do not.
    """

    size: Tensor
    feature: Tensor
    threshold: Tensor
    left: Tensor
    value: Tensor
    rule: Tensor | None = None
    sets: Tensor | None = None
    cover: Tensor | None = None

    @classmethod
    def of(cls, trees: Sequence[tuple[NDArray[np.generic], ...]], dtype: torch.dtype = torch.float64) -> Self:
        """Trees given as (feature, threshold, left, value) each, or with rule and sets; values ``(nodes, v)``."""
        return cls.cat([cls._of_one(*(torch.from_numpy(part) for part in tree), dtype=dtype) for tree in trees])

    @classmethod
    def _of_one(
        cls,
        feature: Tensor,
        threshold: Tensor,
        left: Tensor,
        value: Tensor,
        rule: Tensor | None = None,
        sets: Tensor | None = None,
        *,
        dtype: torch.dtype,
    ) -> Self:
        # values of inner nodes and splits of leaves are unused: a file omits them, and restores the same trees
        value = value.masked_fill((left > 0)[:, None], 0).to(dtype)
        feature, threshold = feature.masked_fill(left == 0, 0), threshold.masked_fill(left == 0, 0)
        rule = None if rule is None else rule.masked_fill(left == 0, 0)
        return cls(torch.tensor([len(left)]), feature, threshold, left, value, rule, sets)

    def __len__(self) -> int:
        return len(self.size)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that there are, by name."""
        return {field.name: own for field in fields(self) if (own := getattr(self, field.name)) is not None}

    def _rules_and_values(self) -> list[Tensor]:
        """What predictions need, in order."""
        return [own for name, own in self.tensors().items() if name != "cover"]

    def among(self, columns: NDArray[np.intp]) -> Self:
        """The same trees, for rows of which their columns are those with indices ``(c,)``."""
        index = torch.from_numpy(columns).to(self.feature)
        return replace(self, feature=torch.where(self.left > 0, index[self.feature.long()], 0))

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

        Trees share thresholds, which are few where columns are binned: these are stored once, and counted. So are sets
        of categories, without the words that no set needs.
        """
        inner = self.left > 0
        trees, sets = self, {}
        if self.rule is not None and self.sets is not None:
            trees = self._with_sets(*self.sets.unique(dim=0, return_inverse=True))
            assert trees.sets is not None
            sets = {"rule": self.rule[inner]}
            if len(trees.sets):
                last = np.flatnonzero(trees.sets.any(0).cpu().numpy()).max(initial=0)
                sets["sets"] = trees.sets[:, : 1 + int(last)].contiguous()
        table, cut = trees.threshold[inner].unique(return_inverse=True)
        tensors = {
            "size": narrowed(self.size),
            "splits": torch.from_numpy(np.packbits(inner.cpu().numpy())),
            "feature": narrowed(self.feature[inner]),
            "left": narrowed(self.left[inner]),
            "value": self.value[~inner],
            **sets,
        }
        if self.cover is not None:
            tensors["cover"] = _whole_if_exact(self.cover[~inner])
        cut = narrowed(cut)
        if table.nbytes + cut.nbytes < trees.threshold[inner].nbytes:
            return Parts({}, {**tensors, "table": table, "cut": cut})
        return Parts({}, {**tensors, "threshold": trees.threshold[inner]})

    def _with_sets(self, sets: Tensor, index: Tensor) -> Self:
        """The same trees with other sets, given the index there of each set that they have."""
        assert self.rule is not None
        threshold, parts_categories = self.threshold.clone(), self.rule == IN_SET
        threshold[parts_categories] = index[threshold[parts_categories].long()].double()
        return replace(self, threshold=threshold, sets=sets)

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, outputs: int, dtype: torch.dtype) -> Self:
        """Read trees with a number of values per leaf from a file; a ValueError where it holds no trees."""
        size, inner = parts.whole("size", None), _inner_nodes(parts)
        inputs = widths.columns if "rule" in parts.tensors else widths.inputs
        nodes, cuts = len(inner), int(inner.sum())
        feature, left = (parts.whole(name, cuts).int() for name in ("feature", "left"))
        threshold, value = _thresholds(parts, cuts), parts.finite("value", nodes - cuts, outputs, dtype=dtype)
        places = restored_nodes(size.numpy(), inner.numpy(), feature.numpy(), threshold.numpy(), left.numpy(), inputs)
        leaves = value.new_zeros(nodes, outputs)
        leaves.numpy()[~inner.numpy()] = value.numpy()
        feature, threshold, left = map(torch.from_numpy, places)
        return cls(size, feature, threshold, left, leaves, *_rules(parts, inner, threshold), _cover(parts, inner))

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
        of_nodes = {name: own[nodes] for name, own in self.tensors().items() if name not in ("size", "sets")}
        if isinstance(nodes, slice):
            # memory of their own: slices would be pickled with all of it
            of_nodes = {name: own.clone() for name, own in of_nodes.items()}
        trees = replace(self, size=self.size[index], **of_nodes)
        return trees if self.sets is None else trees._with_own_sets()

    def _with_own_sets(self) -> Self:
        """The same trees without sets that no node has."""
        assert self.rule is not None
        assert self.sets is not None
        used, index = self.threshold[self.rule == IN_SET].long().unique(), self.threshold.new_zeros(len(self.sets))
        index[used] = torch.arange(len(used), device=index.device).double()
        return self._with_sets(self.sets[used], index)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate trees, all of which look at columns or at inputs."""
        if parts[0].rule is not None and len(parts) > 1:
            ends = np.cumsum([0 if part.sets is None else len(part.sets) for part in parts])
            parts = [part._with_later_sets(int(end)) for part, end in zip(parts, [0, *ends[:-1]], strict=True)]
        # weights that some trees have not are of no use
        kept = [name for name in parts[0].tensors() if all(getattr(some, name) is not None for some in parts)]
        return cls(**{name: torch.cat([getattr(some, name) for some in parts]) for name in kept})

    def _with_later_sets(self, first: int) -> Self:
        """The same trees where sets are numbered from ``first`` on."""
        assert self.rule is not None
        return replace(self, threshold=self.threshold + first * (self.rule == IN_SET)) if first else self

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

    @property
    def handle(self) -> int:
        """The prepared trees, for other kernels; on the CPU."""
        return self._prepared.handle

    @cached_property
    def _prepared(self) -> PreparedTrees:
        """What kernels need to know, found out once."""
        return PreparedTrees(*(part.contiguous().numpy() for part in self._rules_and_values()))

    @cached_property
    def _on_device(self) -> DeviceTrees | None:
        """The same for the kernel of a GPU; None where it cannot run, as of trees that split categories."""
        if self.rule is not None:
            return None
        # most processes have no use for it
        from gce.bases.trees.predictor_cuda import DeviceTrees, can_sum

        return DeviceTrees(*self._rules_and_values()) if can_sum(len(self.left), self.left.device) else None

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
                beyond = self._beyond(node, X[row, self.feature[node].long()])
                node = torch.where(left > 0, roots + left + beyond, node)
                left = self.left[node]
            for leaf in node:
                weight, place = next(trees)
                out[place] += weight * self.value[leaf].double()
        return out

    def _beyond(self, node: Tensor, value: Tensor) -> Tensor:
        """Whether values pass nodes to the right, ``(T, n)`` each."""
        threshold = self.threshold[node]
        beyond = value > threshold
        if self.rule is None or self.sets is None:
            return beyond
        rule = self.rule[node]
        beyond = torch.where(rule == MISSING_RIGHT, ~(value <= threshold), beyond)
        if len(self.sets) == 0:
            return beyond
        has_code = (value >= 0) & (value < CODES - FIRST_CODE_BIN)
        bins = torch.where(has_code, value + FIRST_CODE_BIN, OTHER_BIN)
        bins = torch.where(value.isnan(), MISSING_BIN, bins).long()
        word = self.sets[torch.where(rule == IN_SET, threshold, 0.0).long(), bins >> 6]
        return torch.where(rule == IN_SET, (word >> (bins & 63)) & 1 == 0, beyond)


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


def _whole_if_exact(cover: Tensor) -> Tensor:
    """Weights of leaves in as few bytes as hold them: most are counts of rows."""
    whole = cover.long()
    return narrowed(whole) if torch.equal(whole.to(cover.dtype), cover) else cover


def _cover(parts: Parts, inner: Tensor) -> Tensor | None:
    """The weight of the training rows in each leaf, ``(nodes,)``; None in files before it was counted."""
    if "cover" not in parts.tensors:
        return None
    leaves = len(inner) - int(inner.sum())
    counted = not parts.tensors["cover"].is_floating_point()
    own = parts.whole("cover", leaves) if counted else parts.finite("cover", leaves, dtype=torch.float32)
    if (own < 0).any():
        raise ValueError("the weight of the training rows in a leaf must not be negative")
    cover = torch.zeros(len(inner), dtype=torch.float32)
    cover[~inner] = own.float()
    return cover


def _rules(parts: Parts, inner: Tensor, threshold: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Rules ``(nodes,)`` and sets ``(S, 4)`` of trees with thresholds ``(nodes,)``; None where they look at inputs."""
    if "rule" not in parts.tensors:
        return None, None
    own = parts.tensor("rule", int(inner.sum()), dtype=torch.uint8)
    given = torch.zeros(0, 4, dtype=torch.int64)
    if "sets" in parts.tensors:
        given = parts.tensor("sets", None, None, dtype=torch.int64)
    if (own > IN_SET).any() or given.shape[1] > 4:
        raise ValueError("a node has a rule that does not exist, or a set more than 256 categories")
    rule, sets = torch.zeros(len(inner), dtype=torch.uint8), given.new_zeros(len(given), 4)
    rule[inner], sets[:, : given.shape[1]] = own, given
    index = threshold[rule == IN_SET]
    if len(index) and not ((index >= 0) & (index < len(sets)) & (index == index.floor())).all():
        raise ValueError("a node refers to a set of categories that does not exist")
    return rule, sets


def _thresholds(parts: Parts, cuts: int) -> Tensor:
    """The thresholds ``(cuts,)`` of the inner nodes."""
    if "table" not in parts.tensors:
        return parts.finite("threshold", cuts)
    table, cut = parts.finite("table", None), parts.whole("cut", cuts)
    if cuts and not 0 <= int(cut.min()) <= int(cut.max()) < len(table):
        raise ValueError("a node refers to a threshold that does not exist")
    return table[cut]
