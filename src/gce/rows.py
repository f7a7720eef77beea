"""Rows that are mostly zeros, and the few things that networks do with rows, whichever kind they are.

Sparse rows stay on the CPU and are multiplied by scipy: torch's own sparse tensors can neither be sliced by rows nor
put in another order, which is what mini-batches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

_DTYPES: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


@dataclass(frozen=True)
class SparseRows:
    """``n`` rows of ``d`` numbers, of which only those that are not 0 are kept.

    It answers to what an engine asks of a dense tensor of rows, and to no more.

    Parameters
    ----------
    matrix : csr_array of shape (n, d)
        In float32 or float64; of each row every column at most once, in order.
    """

    matrix: csr_array

    device: ClassVar[torch.device] = torch.device("cpu")

    @classmethod
    def of(cls, given: Any) -> SparseRows:
        """Rows from a sparse matrix of any format, or from a dense one; a given matrix is left as it is."""
        matrix = csr_array(given, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(matrix)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.matrix.shape
        return n, d

    @cached_property
    def dtype(self) -> torch.dtype:
        return next(ours for ours, theirs in _DTYPES.items() if self.matrix.dtype == theirs)

    def __getitem__(self, rows: slice | Tensor | NDArray[Any]) -> SparseRows:
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            return self if (first, last) == (0, len(self)) else SparseRows(self.matrix[first:last])
        return SparseRows(self.matrix[np.asarray(rows)])

    def split(self, size: int) -> Iterator[SparseRows]:
        """Some rows at a time."""
        return (self[first : first + size] for first in range(0, max(len(self), 1), size))

    def to(self, dtype: torch.dtype) -> SparseRows:
        """The same rows in another precision."""
        return self if dtype == self.dtype else SparseRows(self.matrix.astype(_DTYPES[dtype]))

    def new_zeros(self, *shape: int) -> Tensor:
        """A dense tensor of zeros, in this precision."""
        return torch.zeros(*shape, dtype=self.dtype)

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """A dense tensor, in this precision if none is named."""
        return torch.empty(*shape, dtype=dtype or self.dtype)

    def with_values(self, values: NDArray[Any]) -> SparseRows:
        """Other numbers in the same places."""
        own = self.matrix
        return SparseRows(csr_array((values, own.indices, own.indptr), shape=own.shape))


Inputs = Tensor | SparseRows


def times(W: Tensor, X: Inputs) -> Tensor:
    """``W X'`` for ``W`` of shape ``(h, d)``, shape ``(h, n)``."""
    if isinstance(X, Tensor):
        return W @ X.T
    return torch.from_numpy(X.matrix @ W.numpy().T).T.contiguous()


def pulled(back: Tensor, X: Inputs, into: Tensor) -> None:
    """Write ``back X`` for ``back`` of shape ``(h, n)`` into a tensor of shape ``(h, d)``."""
    if isinstance(X, Tensor):
        torch.mm(back, X, out=into)
    else:
        into.copy_(torch.from_numpy(X.matrix.T @ back.numpy().T).T)


def with_ones(X: Inputs) -> Inputs:
    """Rows with a last column of ones."""
    if isinstance(X, Tensor):
        return torch.cat([X, X.new_ones(len(X), 1)], 1)
    own, (n, d) = X.matrix, X.shape
    ends = own.indptr[1:]
    values, columns = np.insert(own.data, ends, 1), np.insert(own.indices, ends, d)
    return SparseRows(csr_array((values, columns, own.indptr + np.arange(n + 1)), shape=(n, d + 1)))


def padded(X: Inputs, short: int) -> Inputs:
    """Rows with so many rows of zeros after them."""
    if isinstance(X, Tensor):
        return torch.cat([X, X.new_zeros(short, X.shape[1])])
    return SparseRows(vstack([X.matrix, csr_array((short, X.shape[1]), dtype=X.matrix.dtype)], format="csr"))
