"""Sparse rows, and the operations of networks on dense and sparse rows.

Sparse rows stay on the CPU and are multiplied by scipy: torch's sparse tensors can neither be sliced nor permuted by
rows, which mini-batches need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from torch import Tensor

Array = NDArray[np.float64]
AnyRows = TypeVar("AnyRows")

#: Size up to which sparse rows are made dense for training: compiled loops are then several times faster.
DENSE_TRAINING_LIMIT = 1 << 19
#: Size of the dense blocks of sparse rows, for algorithms that need dense rows.
DENSE_BLOCK_SIZE = 1 << 22

_DTYPES: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


def check_sparse(X: Any) -> Any:
    """A sparse matrix, checked, or anything else: compiled code follows its indices wherever they point.

    Parameters
    ----------
    X : object
        What a user gave as rows.

    Raises
    ------
    ValueError
        A sparse array has not two dimensions, or indices that are outside of it.
    """
    if not issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(f"X is a sparse array of shape {X.shape}: Reshape your data to n rows and d columns")
    if not all(_inside(indices, size) for indices, size in _indices(X)):
        raise ValueError(
            f"X is a sparse matrix of shape {X.shape} with indices outside of it: make it again from rows and columns"
        )
    return X


def _indices(X: Any) -> Iterator[tuple[NDArray[Any], int]]:
    """The indices of a sparse matrix, with the number of what they count."""
    if X.format == "coo":
        yield from zip((X.row, X.col), X.shape, strict=True)
    elif X.format in ("csr", "csc", "bsr"):
        rows, columns = (X.shape[0] // X.blocksize[0], X.shape[1] // X.blocksize[1]) if X.format == "bsr" else X.shape
        outer, inner = (columns, rows) if X.format == "csc" else (rows, columns)
        yield X.indices, inner
        yield X.indptr, len(X.indices) + 1
        # of an increasing sequence no difference is negative
        yield np.diff(X.indptr), len(X.indices) + 1
        yield np.array([len(X.indptr) - 1]), outer + 1


def _inside(indices: NDArray[Any], size: int) -> bool:
    return len(indices) == 0 or (int(indices.min()) >= 0 and int(indices.max()) < size)


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix plus a vector that is added to each of its rows.

    It has the part of a dense tensor's interface that training and prediction need.

    Parameters
    ----------
    matrix : csr_array of shape (n, d)
        float32 or float64 in canonical format: sorted indices without duplicates.
    centre : Tensor of shape (d,)
        Value of the entries that are not stored: 0, or what centring makes of 0. Products add it afterwards, so that it
        never fills the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.preprocessing.sparse import SparseRows
    >>> rows = SparseRows.from_matrix(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> len(rows), rows.matrix.nnz
    (2, 1)
    """

    matrix: csr_array
    centre: Tensor

    device: ClassVar[torch.device] = torch.device("cpu")

    @classmethod
    def from_matrix(cls, X: Any) -> SparseRows:
        """Sparse rows from a sparse matrix of any format, or a dense one ``(n, d)``, which is not changed.

        Parameters
        ----------
        X : sparse or dense matrix of shape (n, d)
            The rows.

        Returns
        -------
        SparseRows
        """
        matrix = csr_array(X, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(matrix, torch.zeros(matrix.shape[1], dtype=torch.float64))

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``."""
        n, d = self.matrix.shape
        return n, d

    @property
    def dtype(self) -> torch.dtype:
        """float32 or float64."""
        return self.centre.dtype

    def __getitem__(self, rows: slice | Tensor | NDArray[Any]) -> SparseRows:
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            if (first, last, step) == (0, len(self), 1):
                return self
            return replace(self, matrix=self.matrix[first:last:step])
        return replace(self, matrix=self.matrix[np.asarray(rows)])

    def split(self, size: int) -> Iterator[SparseRows]:
        """Blocks of at most ``size`` rows."""
        return (self[first : first + size] for first in range(0, max(len(self), 1), size))

    def to(self, dtype: torch.dtype) -> SparseRows:
        """The rows in another precision."""
        return self if dtype == self.dtype else SparseRows(self.matrix.astype(_DTYPES[dtype]), self.centre.to(dtype))

    def new_zeros(self, *shape: int) -> Tensor:
        """A dense tensor of zeros of the same dtype."""
        return torch.zeros(*shape, dtype=self.dtype)

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised dense tensor, of the same dtype by default."""
        return torch.empty(*shape, dtype=dtype or self.dtype)

    def toarray(self) -> NDArray[Any]:
        """The rows as a dense array ``(n, d)``."""
        out = self.matrix.toarray()
        out += self.centre.numpy()
        return out

    def dense_blocks(self) -> Iterator[NDArray[np.float64]]:
        """Dense blocks of rows, of at most ``DENSE_BLOCK_SIZE`` numbers or one row."""
        for block in self.split(max(1, DENSE_BLOCK_SIZE // max(self.shape[1], 1))):
            yield block.toarray().astype(np.float64, copy=False)


#: Rows for numpy and scipy, and rows for networks.
Matrix = Array | SparseRows
Inputs = Tensor | SparseRows


def stack_rows(first: Matrix, second: Matrix) -> Matrix:
    """Rows ``(n, d)`` followed by further rows ``(m, d)``; dense or sparse as the first ones.

    Parameters
    ----------
    first : array or SparseRows of shape (n, d)
        First rows.
    second : array or SparseRows of shape (m, d)
        Rows that follow.

    Returns
    -------
    array or SparseRows of shape (n + m, d)
    """
    if isinstance(first, SparseRows):
        more = second if isinstance(second, SparseRows) else SparseRows.from_matrix(second)
        return replace(first, matrix=vstack([first.matrix, more.matrix], format="csr"))
    return np.concatenate([first, second.toarray() if isinstance(second, SparseRows) else second])


def to_device(X: Matrix, device: torch.device) -> Inputs:
    """Rows on a torch device.

    Raises
    ------
    ValueError
        Sparse rows are not supported on other devices than the CPU.
    """
    if isinstance(X, np.ndarray):
        return torch.from_numpy(X).to(device)
    if device.type != "cpu":
        raise ValueError(f"sparse rows need device='cpu', got device={str(device)!r}: use 'cpu', or pass X.toarray()")
    return X


def densify_small(X: AnyRows) -> AnyRows | Tensor:
    """Rows for training: small sparse rows are made dense."""
    if isinstance(X, SparseRows) and len(X) * X.shape[1] <= DENSE_TRAINING_LIMIT:
        return torch.from_numpy(X.toarray())
    return X


def matmul_transposed(W: Tensor, X: Inputs) -> Tensor:
    """``W X'`` for ``W`` of shape ``(h, d)``, shape ``(h, n)``.

    Parameters
    ----------
    W : Tensor of shape (h, d)
        Matrix.
    X : Tensor or SparseRows of shape (n, d)
        Rows.

    Returns
    -------
    Tensor of shape (h, n)
    """
    if isinstance(X, Tensor):
        return W @ X.T
    return torch.from_numpy(X.matrix @ W.numpy().T).T + (W @ X.centre)[:, None]


def matmul_into(back: Tensor, X: Inputs, into: Tensor) -> None:
    """Write ``back X`` for ``back`` of shape ``(h, n)`` into the tensor ``into`` of shape ``(h, d)``.

    Parameters
    ----------
    back : Tensor of shape (h, n)
        Matrix.
    X : Tensor or SparseRows of shape (n, d)
        Rows.
    into : Tensor of shape (h, d)
        Where the product is written.
    """
    if isinstance(X, Tensor):
        torch.mm(back, X, out=into)
    else:
        into.copy_(torch.from_numpy(X.matrix.T @ back.numpy().T).T).addr_(back.sum(1), X.centre)


def append_ones(X: Inputs) -> Inputs:
    """Rows with a column of ones appended, ``(n, d + 1)``."""
    if isinstance(X, Tensor):
        return torch.cat([X, X.new_ones(len(X), 1)], 1)
    matrix, (n, d) = X.matrix, X.shape
    wider = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(n, d + 1))
    return SparseRows(wider, torch.cat([X.centre, torch.ones(1, dtype=X.dtype)]))


@overload
def take(array: NDArray[Any], index: NDArray[np.intp], axis: int = 0) -> NDArray[Any]: ...
@overload
def take(array: Matrix, index: NDArray[np.intp]) -> Matrix: ...
def take(array: NDArray[Any] | SparseRows, index: NDArray[np.intp], axis: int = 0) -> NDArray[Any] | SparseRows:
    """``array[index]`` along an axis; the array itself, not a copy, where the index is the identity.

    Parameters
    ----------
    array : array or SparseRows
        The array.
    index : array of shape (m,)
        Indices along the axis.
    axis : int, default=0
        The axis; 0 for sparse rows.
    """
    identity = len(index) == array.shape[axis] and np.array_equal(index, np.arange(len(index)))
    if identity:
        return array
    return array[index] if isinstance(array, SparseRows) else np.take(array, index, axis=axis)
