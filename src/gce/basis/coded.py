"""Rows of a fit as trees see them: columns as bytes, made once for all classes of trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from gce.basis.base import Basis
from gce.memory import gib
from gce.parameters import Rules, check_parameters, count, within
from gce.rows import Inputs, SparseRows
from gce.streams import names_of_rows
from gce.trees import Bins
from gce.trees.binning import CODES


@dataclass(frozen=True)
class Coding:
    """Columns as bytes.

    Parameters
    ----------
    bins : Bins
    codes : array of shape (d, N)
    """

    bins: Bins
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, X: Inputs, codes: int) -> Coding:
        """Code rows ``(N, d)``; sparse ones are coded without being written out as a whole."""
        n, d = X.shape
        if isinstance(X, SparseRows) and n * d > CODED_BYTES:
            raise ValueError(
                f"trees see every number of sparse rows as a byte, and {n:,} rows of {d:,} columns would take "
                f"{gib(n * d)}, more than {gib(CODED_BYTES)}: use basis='neural', or fewer columns"
            )
        if isinstance(X, SparseRows):
            bins = Bins.learn(X.columns(), n, codes)
            return cls(bins, bins.code(X.columns(), n))
        columns = X.double().cpu().numpy().T
        bins = Bins.learn(columns, n, codes)
        return cls(bins, bins.code(columns, n))


#: Bytes that the codes of sparse rows may take.
CODED_BYTES = 1 << 30
#: Leaves of a tree: as many as rows can have.
_MOST_LEAVES = 2**31 - 1

#: What is known of rows that a fit still holds, by the number of codes: one fit may grow several classes of trees.
_CODINGS: WeakIdKeyDictionary = WeakIdKeyDictionary()


@dataclass(frozen=True)
class Rows:
    """The rows of a fit as trees see them.

    Parameters
    ----------
    X : Tensor or SparseRows of shape (N, d)
    coding : Coding
    """

    X: Inputs
    coding: Coding

    @property
    def bins(self) -> Bins:
        return self.coding.bins

    @property
    def codes(self) -> NDArray[np.uint8]:
        """Columns as bytes, ``(d, N)``."""
        return self.coding.codes

    @cached_property
    def names(self) -> NDArray[np.uint64]:
        """A number for what each row holds, ``(N,)``."""
        blocks = [self.X.double().cpu().numpy()] if isinstance(self.X, Tensor) else self.X.written_out()
        # scaling rounds with the sums of weights, and the last digits are not the row's own
        return np.concatenate([names_of_rows(np.round(some * 2.0**20)) for some in blocks])


class Coded(Basis):
    """A class of models that see columns as codes, which are made once for the rows of a fit."""

    codes: int = CODES

    parameter_rules: ClassVar[Rules] = {
        "leaves": count(2, _MOST_LEAVES),
        "depth": count(1, _MOST_LEAVES),
        "least": within(0, np.inf, "[)"),
        "codes": count(2, CODES),
    }

    def prepare(self, X: Inputs) -> None:
        self.coded(X)

    def coded(self, X: Inputs) -> Rows:
        """The rows of a fit, coded."""
        seen: Rows | None = getattr(self, "_seen", None)
        if seen is None or seen.X is not X:
            check_parameters(self)
            known = _CODINGS.setdefault(X, {})
            if self.codes not in known:
                known[self.codes] = Coding.of(X, self.codes)
            self._seen = seen = Rows(X, known[self.codes])
        return seen

    def __getstate__(self) -> dict[str, Any]:
        # rows, and the time there is for them, belong to a fit
        own = ("_seen", "_last", "_end", "rushed")
        return {name: value for name, value in super().__getstate__().items() if name not in own}
