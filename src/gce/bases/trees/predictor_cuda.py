"""Rows dropped through trees on a CUDA device: the kernel of ``gce/kernels/predict_trees.cu``."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

from gce._utils import cuda

#: Rows of a tile, one thread each: the first number that shared memory suffices for; the last where there are few rows.
_ROWS, _FEW = (128, 64, 32), 1 << 15
#: Bytes of a block's shared memory.
_TILE_BYTES = 36 << 10
#: Blocks that keep a device busy: where there are fewer tiles of rows, sums are divided as well.
_BLOCKS = 4096
#: Nodes are numbered by 32 bits.
_MOST_NODES = 2**32 - 1


class _Trees(ctypes.Structure):
    """As in the kernel."""

    _fields_ = [("nodes", ctypes.c_void_p), ("roots", ctypes.c_void_p), ("value", ctypes.c_void_p),
                ("outputs", ctypes.c_int64)]  # fmt: skip


class _Sums(ctypes.Structure):
    """As in the kernel."""

    _fields_ = [("order", ctypes.c_void_p), ("start", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("weight", ctypes.c_void_p), ("result", ctypes.c_void_p)]  # fmt: skip


def can_sum(nodes: int, device: torch.device) -> bool:
    """Whether :class:`DeviceTrees` of so many nodes can be used on a device."""
    return cuda.missing(device) is None and nodes <= _MOST_NODES


class DeviceTrees:
    """Trees on a device as the kernel reads them: a node in 16 bytes, its threshold, left child and column.

    Parameters
    ----------
    size : Tensor of shape (T,), int64
    feature : Tensor of shape (nodes,), int32
    threshold : Tensor of shape (nodes,), float64
    left : Tensor of shape (nodes,), int32
    value : Tensor of shape (nodes, v), float32 or float64
        See :class:`gce.bases.trees.TreeArrays`. All are on the device.
    """

    def __init__(self, size: Tensor, feature: Tensor, threshold: Tensor, left: Tensor, value: Tensor) -> None:
        root, inner = size.cumsum(0) - size, left > 0
        # a leaf leads to itself: nothing is beyond infinity
        place = torch.where(inner, left + root.repeat_interleave(size), torch.arange(len(left), device=left.device))
        self._nodes = torch.empty(len(left), 2, dtype=torch.int64, device=left.device)
        self._nodes[:, 0] = threshold.masked_fill(~inner, torch.inf).view(torch.int64)
        column = feature.masked_fill(~inner, 0).long()
        self._nodes[:, 1] = place | column << 32
        # the lower half of a number, which the kernel reads without a sign
        self._roots, self._value = root.int(), value.contiguous()
        self._columns = int(column.amax()) + 1 if len(column) else 1

    def summed(self, X: Tensor, weights: Tensor, into: Tensor, count: int) -> Tensor:
        """``result[into[t], i] += weights[t] * leaf``, tree by tree in their order, ``(count, n, v)``.

        Parameters
        ----------
        X : Tensor of shape (n, d)
            On the device of the trees, as is the result.
        weights : Tensor of shape (T, v)
        into : Tensor of shape (T,), int64
            The sum that each tree belongs to, below ``count``, on the processor.
        count : int
        """
        outputs, trees = self._value.shape[1], len(self._roots)
        # a leaf looks at the first column, to no effect
        X = X.detach() if X.shape[1] else X.new_zeros(len(X), 1)
        X = X.contiguous() if X.dtype in (torch.float32, torch.float64) else X.double().contiguous()
        n, d = X.shape
        if d < self._columns:
            raise ValueError(f"rows have {d} columns, but trees look at {self._columns}")
        if weights.shape != (trees, outputs) or into.shape != (trees,):
            raise ValueError(f"{trees} trees of {outputs} output(s) need a weight and a sum for each")
        result = torch.empty(count, n, outputs, dtype=torch.float64, device=X.device)
        if not result.numel():
            return result
        own, order = into.numpy(), np.argsort(into.numpy(), kind="stable")
        start = np.searchsorted(own[order], np.arange(count + 1))
        given = torch.from_numpy(order.astype(np.int32)).to(X.device), torch.from_numpy(start).to(X.device)
        weights = weights.to(X.device, torch.float64).contiguous()
        of = _Trees(self._nodes.data_ptr(), self._roots.data_ptr(), self._value.data_ptr(), outputs)
        sums = _Sums(given[0].data_ptr(), given[1].data_ptr(), count, weights.data_ptr(), result.data_ptr())
        apart = X.element_size() * d
        rows = next((rows for rows in _ROWS if apart * (rows + 1) <= _TILE_BYTES), _ROWS[0]) if n > _FEW else _ROWS[-1]
        tiles = -(-n // rows)
        blocks = tiles * max(1, min(count, _BLOCKS // tiles))
        cuda.kernel("predict_trees.cu", "predict_trees", X.device)(
            *(blocks, rows, of, sums, X, n, d, X.element_size(), self._value.element_size()),
            int(apart * (rows + 1) <= _TILE_BYTES),
        )
        return result
