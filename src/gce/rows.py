"""Rows that are mostly zeros, and the few things that networks do with rows, whichever kind they are.

Sparse rows stay on the CPU and are multiplied by scipy: torch's own sparse tensors can neither be sliced by rows nor
put in another order, which is what mini-batches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

Array = NDArray[np.float64]

#: Numbers up to which sparse rows are written out to be trained on: compiled loops are several times faster there.
WRITTEN_OUT = 1 << 19
#: Numbers of sparse rows that are written out at a time, by whoever can read them no other way.
WRITTEN_AT_ONCE = 1 << 22

_DTYPES: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


@dataclass(frozen=True)
class SparseRows:
    """``n`` rows of ``d`` numbers that are mostly the same: a sparse matrix, and what is added to each of its rows.

    It answers to what an engine asks of a dense tensor of rows, and to no more.

    Parameters
    ----------
    matrix : csr_array of shape (n, d)
        In float32 or float64; of each row every column at most once, in order.
    centre : Tensor of shape (d,)
        What a number is that the matrix does not hold: centred columns are not 0 where they were. Products add it
        afterwards, so that it never fills the matrix.
    """

    matrix: csr_array
    centre: Tensor

    device: ClassVar[torch.device] = torch.device("cpu")

    @classmethod
    def of(cls, given: Any) -> SparseRows:
        """Rows from a sparse matrix of any format, or from a dense one; a given matrix is left as it is."""
        matrix = csr_array(given, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(matrix, torch.zeros(matrix.shape[1], dtype=torch.float64))

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.matrix.shape
        return n, d

    @property
    def dtype(self) -> torch.dtype:
        return self.centre.dtype

    def __getitem__(self, rows: slice | Tensor | NDArray[Any]) -> SparseRows:
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            if (first, last, step) == (0, len(self), 1):
                return self
            return replace(self, matrix=self.matrix[first:last:step])
        return replace(self, matrix=self.matrix[np.asarray(rows)])

    def split(self, size: int) -> Iterator[SparseRows]:
        """Some rows at a time."""
        return (self[first : first + size] for first in range(0, max(len(self), 1), size))

    def to(self, dtype: torch.dtype) -> SparseRows:
        """The same rows in another precision."""
        return self if dtype == self.dtype else SparseRows(self.matrix.astype(_DTYPES[dtype]), self.centre.to(dtype))

    def new_zeros(self, *shape: int) -> Tensor:
        """A dense tensor of zeros, in this precision."""
        return torch.zeros(*shape, dtype=self.dtype)

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """A dense tensor, in this precision if none is named."""
        return torch.empty(*shape, dtype=dtype or self.dtype)

    def toarray(self) -> NDArray[Any]:
        """The rows written out."""
        out = self.matrix.toarray()
        out += self.centre.numpy()
        return out

    def written_out(self) -> Iterator[NDArray[np.float64]]:
        """The rows written out, at most ``WRITTEN_AT_ONCE`` numbers at a time but never less than a row."""
        for some in self.split(max(1, WRITTEN_AT_ONCE // max(self.shape[1], 1))):
            yield some.toarray().astype(np.float64, copy=False)

    def columns(self) -> Iterator[NDArray[np.float64]]:
        """Each column written out, ``(n,)``."""
        by_column, centre = self.matrix.tocsc(), self.centre.double().numpy()
        ends, values = by_column.indptr, by_column.data.astype(np.float64)
        for j, start in enumerate(ends[:-1]):
            column, kept = np.full(len(self), centre[j]), slice(start, ends[j + 1])
            column[by_column.indices[kept]] += values[kept]
            yield column


#: Rows as numpy and scipy have them, and as networks see them.
Matrix = Array | SparseRows
Inputs = Tensor | SparseRows


def stacked(first: Matrix, second: Matrix) -> Matrix:
    """Rows as users gave them and further rows after them, of the first one's kind."""
    if isinstance(first, SparseRows):
        more = second if isinstance(second, SparseRows) else SparseRows.of(second)
        return replace(first, matrix=vstack([first.matrix, more.matrix], format="csr"))
    return np.concatenate([first, second.toarray() if isinstance(second, SparseRows) else second])


def on_device(X: Matrix, device: torch.device) -> Inputs:
    """Rows where networks can see them."""
    if isinstance(X, np.ndarray):
        return torch.from_numpy(X).to(device)
    if device.type != "cpu":
        raise ValueError(f"sparse rows stay on the CPU, got device={str(device)!r}: use 'cpu', or give X.toarray()")
    return X


def for_training(X: Inputs) -> Inputs:
    """Rows as they are trained on."""
    if isinstance(X, SparseRows) and len(X) * X.shape[1] <= WRITTEN_OUT:
        return torch.from_numpy(X.toarray())
    return X


def times(W: Tensor, X: Inputs) -> Tensor:
    """``W X'`` for ``W`` of shape ``(h, d)``, shape ``(h, n)``."""
    if isinstance(X, Tensor):
        return W @ X.T
    return torch.from_numpy(X.matrix @ W.numpy().T).T + (W @ X.centre)[:, None]


def pulled(back: Tensor, X: Inputs, into: Tensor) -> None:
    """Write ``back X`` for ``back`` of shape ``(h, n)`` into a tensor of shape ``(h, d)``."""
    if isinstance(X, Tensor):
        torch.mm(back, X, out=into)
    else:
        into.copy_(torch.from_numpy(X.matrix.T @ back.numpy().T).T).addr_(back.sum(1), X.centre)


def with_ones(X: Inputs) -> Inputs:
    """Rows with a last column of ones."""
    if isinstance(X, Tensor):
        return torch.cat([X, X.new_ones(len(X), 1)], 1)
    own, (n, d) = X.matrix, X.shape
    wider = csr_array((own.data, own.indices, own.indptr), shape=(n, d + 1))
    return SparseRows(wider, torch.cat([X.centre, torch.ones(1, dtype=X.dtype)]))
