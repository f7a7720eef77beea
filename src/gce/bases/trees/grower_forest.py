"""Random forests grown on a CUDA device: the kernels of ``gce/kernels/grow_forest.cuh``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import cuda
from gce._utils.memory import available, format_gib
from gce.bases.trees import TreeArrays
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.bases.trees.integers import SHORT, halves

#: Threads of blocks that grow the first nodes of a tree, and of those whose warps grow nodes of few rows.
_LARGE, _SMALL, _WARP = 512, 256, 32
#: Most columns that are kept in shared memory.
_NEAR = 128
#: Most rows of a node that one warp grows.
_FEW = 1024
#: Bytes of a node that waits for a warp.
_WAITING = 24
#: Bytes that the columns of all warps may take.
_COLUMN_BYTES = 1 << 28
#: Bytes per row of a tree, and for each of its outputs: while it grows, and while nodes are put in order.
_ROW_BYTES, _OUTPUT_BYTES = 44 + 2 * 90, 8 + 2 * 20
#: The share of free memory that trees which grow together may take.
_SHARE = 0.5

_POINTERS = [
    *("records", "record_start", "scale", "units", "least", "member", "start", "seed", "values", "value_start"),
    *("order", "depth", "split", "value", "block_columns", "warp_columns", "waiting", "pushed", "taken"),
]
_NUMBERS = ["rows", "d", "k", "words", "tries", "few", "weighted"]


class _Forest(ctypes.Structure):
    """As in ``gce/kernels/forest_node.cuh``."""

    _fields_ = [(name, ctypes.c_void_p) for name in _POINTERS] + [(name, ctypes.c_int64) for name in _NUMBERS]


def can_grow(trees: RandomTrees, device: torch.device) -> bool:
    """Whether :class:`DeviceForest` can grow trees on a device: it knows no constraints, and no kinds of columns."""
    # 0/1 targets of one member may happen to be those of classes
    kinds = {own.weighted.ndim for _, own in trees.members}
    free = trees.constraints.none and trees.binned.bins.kinds is None
    return cuda.missing(device) is None and len(kinds) == 1 and free


class DeviceForest:
    """Random trees of several members on a device, equal to :meth:`RandomTrees.grown` to the bit.

    Parameters
    ----------
    trees : RandomTrees
        What they are grown from; all members have classes, or none has.
    device : torch.device

    Raises
    ------
    MemoryError
        The device's memory does not suffice for one tree.
    """

    def __init__(self, trees: RandomTrees, device: torch.device) -> None:
        targets = [own for _, own in trees.members]
        self._of, self._device, self._k = trees, device, targets[0].k
        self._rows = np.array([len(rows) for rows, _ in trees.members])
        self._weighted = any(len(own.weight) for own in targets)
        self._kind = "classes" if targets[0].weighted.ndim == 1 else "single" if self._k == 1 else "several"
        codes = trees.binned.tensor.to(device).view(torch.int32)[..., 0].T
        records = [
            torch.cat([codes[self._tensor(rows.astype(np.int64))], self._record(own)], 1) for rows, own in trees.members
        ]
        least = [SHORT * trees.least / own.unit for own in targets]
        bins = trees.binned.bins
        self._given = {
            "records": torch.cat(records),
            "record_start": self._tensor(np.append(0, np.cumsum(self._rows))),
            "scale": self._tensor(np.stack([own.relative for own in targets])),
            "units": self._tensor(np.stack([halves(own.exponent) for own in targets])),
            "least": self._tensor(np.array(least)),
            "values": self._tensor(bins.values),
            "value_start": self._tensor(np.append(0, np.cumsum(bins.widths))),
        }
        # a place for leaves, which have no edge
        self._edges = self._tensor(np.concatenate([*bins.edges, np.zeros(1)]))
        self._edge_start = self._tensor(np.cumsum(bins.widths - 1) - (bins.widths - 1))

    def grown(self, seeds: Sequence[Sequence[int]], dtype: torch.dtype) -> TreeArrays:
        """Trees of given seeds of each member, one member after another; see :meth:`RandomTrees.grown`."""
        member = np.repeat(np.arange(len(seeds)), [len(own) for own in seeds])
        seed = np.array([seed for own in seeds for seed in own], dtype=np.int64)
        parts, rows, most = [], self._rows[member], self._most_rows()
        first = 0
        while first < len(seed):
            last = first + max(1, int(np.searchsorted(np.cumsum(rows[first:]), most, side="right")))
            parts.append(self._some(member[first:last], seed[first:last], dtype))
            first = last
        return parts[0] if len(parts) == 1 else TreeArrays.cat(parts)

    def _tensor(self, values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device)

    def _record(self, targets: WeightedTargets) -> Tensor:
        """What a row has beside its codes, ``(n, words)``."""
        numbers = np.atleast_2d(targets.weighted)
        weight = targets.weight if len(targets.weight) else np.ones(numbers.shape[1], np.int32)
        # where weights do not differ within a member, targets are the weighted ones
        plain = targets.plain if len(targets.plain) else numbers
        parts = [weight[None], numbers] if self._weighted else [numbers]
        if self._weighted and self._kind != "classes":
            parts.append(plain)
        return self._tensor(np.concatenate(parts).T)

    def _most_rows(self) -> int:
        """How many rows the trees that grow together may have."""
        free, each = available(self._device), _ROW_BYTES + _OUTPUT_BYTES * self._k
        need = each * int(self._rows.max())
        if free is None:
            return need
        if need > free:
            raise MemoryError(
                f"a random tree of {self._rows.max():,} rows needs about {format_gib(need)} of memory on "
                f"{self._device}, which has {format_gib(free)} free: use fewer rows, basis='tree' or another device"
            )
        return int(_SHARE * free) // each

    def _some(self, member: NDArray[np.int64], seed: NDArray[np.int64], dtype: torch.dtype) -> TreeArrays:
        """Grow some trees at once."""
        rows = self._rows[member]
        total, d, empty = int(rows.sum()), len(self._of.binned.bins.widths), self._empty
        large, small = (
            cuda.kernel(f"grow_{self._kind}.cu", f"grow_{size}_{self._kind}", self._device)
            for size in ("large", "small")
        )
        warps = _SMALL // _WARP
        blocks = small.resident_blocks(_SMALL)
        far = 0 if d <= _NEAR else d
        if far:
            blocks = max(1, min(blocks, _COLUMN_BYTES // (warps * 4 * d)))
        counts = torch.zeros(2, dtype=torch.int64, device=self._device)
        start = self._tensor(np.cumsum(rows) - rows)
        made = {
            **self._given,
            "member": self._tensor(member),
            "start": start,
            "seed": self._tensor(seed),
            "order": empty(2, total, dtype=torch.int32),
            "depth": torch.zeros(2 * total, dtype=torch.int32, device=self._device),
            "split": empty(total, dtype=torch.int32),
            "value": empty(total, self._k, dtype=torch.float64),
            "block_columns": empty(len(seed), far, dtype=torch.int32),
            "warp_columns": empty(blocks * warps, far, dtype=torch.int32),
            "waiting": empty(total, _WAITING, dtype=torch.uint8),
            "pushed": counts[0],
            "taken": counts[1],
        }
        numbers = (total, d, self._k, made["records"].shape[1], min(self._of.tries, d), _FEW, int(self._weighted))
        forest = _Forest(*(made[name].data_ptr() for name in _POINTERS), *numbers)
        large(len(seed), _LARGE, forest)
        small(blocks, _SMALL, forest)
        del made["order"], made["waiting"], made["warp_columns"]
        return self._ordered(made["depth"], made["split"], made["value"], start, dtype)

    def _empty(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)

    def _ordered(self, depth: Tensor, split: Tensor, value: Tensor, start: Tensor, dtype: torch.dtype) -> TreeArrays:
        """Nodes of each tree level by level, from those by their rows.

        Parameters
        ----------
        depth : Tensor of shape (2 * rows,), int32
            One more than that of the cut whose right side begins at a row, and of the leaf that begins there, in turn;
            0 where there is none. Those of one depth have no row in common, and are in the order of their rows.
        split : Tensor of shape (rows,), int32
            Column and code of cuts.
        value : Tensor of shape (rows, k)
            Of leaves.
        start : Tensor of shape (trees,)
        dtype : torch.dtype
            Of the values of trees.
        """
        place = depth.nonzero().squeeze(1)
        level = depth[place].long()
        tree = torch.searchsorted(2 * start, place, right=True) - 1
        levels = int(level.amax()) + 1
        key, order = (tree * levels + level).sort(stable=True)
        place, tree = place[order], key.div_(levels, rounding_mode="floor")
        inner, at = place & 1 == 0, place >> 1
        cut = split[at].masked_fill_(~inner, 0)
        feature = cut >> 8
        # beyond the last edge where no column has any
        edge = torch.where(inner, self._edge_start[feature] + (cut & 255), len(self._edges) - 1)
        size = tree.bincount(minlength=len(start))
        before = inner.cumsum(0)
        root = size.cumsum(0) - size
        # children of a level's cuts follow each other in the next
        left = torch.where(inner, 2 * (before - (before - inner.long())[root][tree]) - 1, 0)
        leaves = value[at].masked_fill_(inner[:, None], 0).to(dtype)
        return TreeArrays(size, feature, self._edges[edge], left.int(), leaves)
