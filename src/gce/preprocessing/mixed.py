"""Rows of tables with categories or missing values: columns for trees, and inputs for all other models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.preprocessing.encoder import Encoder
from gce.preprocessing.sparse import DENSE_BLOCK_SIZE, Inputs, SparseRows

#: What stands for a missing value where rows are hashed: no scaled number and no code.
_MISSING = 2.0**40


class Widths(NamedTuple):
    """How many numbers of a row models may look at.

    Parameters
    ----------
    inputs : int
        Inputs of networks.
    columns : int
        Columns of the table.
    """

    inputs: int
    columns: int


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows in two views: columns, which trees split, and the inputs that all other models see.

    It has the part of a dense tensor's interface that training and prediction need; its shape is that of the inputs,
    which are computed when they are first needed, and kept.

    Parameters
    ----------
    columns : Tensor of shape (n, d)
        Scaled numbers, booleans and codes of categories (-1 for those without a code); NaN where a value is missing.
    encoder : Encoder
        Makes inputs of columns.
    categorical : array of shape (d,)
        Whether a column has categories.
    owner : array of shape (d,), optional
        The member that alone may look at a column, -1 where all may. Default: all may look at all.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.preprocessing.mixed import MixedRows
    >>> from gce.preprocessing import Schema, Column
    >>> from gce.preprocessing.encoder import Encoder
    >>> X, schema = np.array([[0.0, 1.0], [np.nan, 0.0]]), Schema((Column("x", "number"), Column("b", "boolean")))
    >>> encoder = Encoder.fit(X, np.ones(2), schema.numbers, "each", np.inf)
    >>> rows = MixedRows(torch.from_numpy(encoder.scale_columns(X)), encoder, np.array([False, False]))
    >>> rows.shape, rows.inputs.shape
    ((2, 4), torch.Size([2, 4]))
    """

    columns: Tensor
    encoder: Encoder
    categorical: NDArray[np.bool_]
    owner: NDArray[np.intp] | None = None
    #: Which inputs of all these are, ``(d',)``, where they are those of one member.
    chosen: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d')``, of the inputs."""
        return len(self.columns), self.encoder.width

    @property
    def dtype(self) -> torch.dtype:
        """Of both views."""
        return self.columns.dtype

    @property
    def device(self) -> torch.device:
        """Of both views."""
        return self.columns.device

    @cached_property
    def inputs(self) -> Tensor:
        """Scaled numbers and indicators, ``(n, d')``."""
        columns = self.columns.cpu().double().numpy()
        return torch.from_numpy(self.encoder.inputs_of(columns)).to(self.device, self.dtype)

    @cached_property
    def sources(self) -> NDArray[np.intp]:
        """The column that each input is made of, ``(d',)``."""
        return np.concatenate([self.encoder.numbers, self.encoder.flagged])

    def columns_of(self, member: int) -> NDArray[np.intp]:
        """The columns that a member may look at, ``(c,)``, ascending."""
        assert self.owner is not None
        return np.flatnonzero((self.owner < 0) | (self.owner == member))

    def of_member(self, member: int) -> MixedRows:
        """The rows as a member may look at them, the same object each time.

        Parameters
        ----------
        member : int

        Returns
        -------
        MixedRows
        """
        if member not in self._of_member:
            columns = self.columns_of(member)
            own, encoder = self.columns[:, torch.from_numpy(columns).to(self.device)], self.encoder.restricted(columns)
            self._of_member[member] = MixedRows(own, encoder, self.categorical[columns], chosen=self.inputs_of(member))
        return self._of_member[member]

    def inputs_of(self, member: int) -> NDArray[np.intp]:
        """Indices of the inputs that a member may look at, ``(d',)``, ascending."""
        return self.encoder.inputs_from(self.columns_of(member))

    @property
    def widths(self) -> Widths:
        """Numbers of inputs and of columns."""
        return Widths(self.encoder.width, self.columns.shape[1])

    @cached_property
    def _of_member(self) -> dict[int, MixedRows]:
        return {}

    def by_column(self, given: NDArray[Any]) -> NDArray[Any]:
        """What is given for each input, ``(d', ...)``, for each column, ``(d, ...)``: that of its first input, or 0.

        The first input of a column of numbers is the number itself. Rows of one member take what all inputs are given.

        Parameters
        ----------
        given : array of shape (d', ...)

        Returns
        -------
        array of shape (d, ...)
        """
        given = given if self.chosen is None else given[self.chosen]
        out = np.zeros((self.columns.shape[1], *given.shape[1:]), given.dtype)
        out[self.sources[::-1]] = given[::-1]
        return out

    def __getitem__(self, rows: Any) -> MixedRows:
        other = replace(self, columns=self.columns[rows])
        if "inputs" in vars(self):
            # what is known of all rows is not computed again for some of them
            vars(other)["inputs"] = self.inputs[rows]
        return other

    def split(self, size: int) -> Iterator[MixedRows]:
        """Blocks of at most ``size`` rows."""
        return (self[first : first + size] for first in range(0, max(len(self), 1), size))

    def to(self, dtype: torch.dtype) -> MixedRows:
        """The rows in another precision."""
        return self if dtype == self.dtype else replace(self, columns=self.columns.to(dtype))

    def new_zeros(self, *shape: int) -> Tensor:
        """A tensor of zeros of the same dtype and device."""
        return self.columns.new_zeros(*shape)

    def new_empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor on the same device, of the same dtype by default."""
        return self.columns.new_empty(*shape, dtype=dtype)


#: Rows of a fit or of predictions.
Rows = Tensor | SparseRows | MixedRows


def inputs_of(X: Rows) -> Inputs:
    """The inputs of rows, as all models but trees see them.

    Parameters
    ----------
    X : Tensor, SparseRows or MixedRows of shape (n, d)
        Rows.

    Returns
    -------
    Tensor or SparseRows of shape (n, d)
    """
    return X.inputs if isinstance(X, MixedRows) else X


def telling_blocks(X: Rows) -> Iterator[NDArray[np.float64]]:
    """What tells rows apart, for hashes of them: blocks of at most ``DENSE_BLOCK_SIZE`` numbers, or one row.

    Parameters
    ----------
    X : Tensor, SparseRows or MixedRows of shape (n, d)
        Rows.

    Yields
    ------
    array of shape (m, d), or with the columns of a table
        A missing value is a number that no other value is.
    """
    if isinstance(X, SparseRows):
        yield from X.dense_blocks()
        return
    dense = X.columns if isinstance(X, MixedRows) else X
    for block in dense.split(max(1, DENSE_BLOCK_SIZE // max(dense.shape[1], 1))):
        numbers = block.double().cpu().numpy()
        yield np.nan_to_num(numbers, nan=_MISSING) if isinstance(X, MixedRows) else numbers


class SeesRows:
    """Something that is given rows, as inputs of networks unless it says otherwise.

    Attributes
    ----------
    looks_by_member : bool
        Each member can look at columns of its own.
    """

    looks_by_member: ClassVar[bool] = False

    @property
    def splits_columns(self) -> bool:
        """It looks at the columns of a table, with codes of categories and missing values, instead of inputs."""
        return False

    def seen(self, X: Rows) -> Inputs:
        """Rows as it is given them.

        Parameters
        ----------
        X : Tensor, SparseRows or MixedRows of shape (n, d)
            Rows of a table.

        Returns
        -------
        Tensor or SparseRows of shape (n, d)
            MixedRows where columns are looked at, or members have columns of their own.
        """
        by_member = self.looks_by_member and isinstance(X, MixedRows) and X.owner is not None
        return cast(Inputs, X) if self.splits_columns or by_member else inputs_of(X)
