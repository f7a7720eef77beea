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
from gce.parameters import Rules, check_parameters, count, within
from gce.rows import Inputs
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
    def of(cls, X: Tensor, codes: int) -> Coding:
        """Code rows ``(N, d)``."""
        rows = X.double().cpu().numpy()
        bins = Bins.learn(rows, codes)
        return cls(bins, bins.code(rows))


#: Leaves of a tree: as many as rows can have.
_MOST_LEAVES = 2**31 - 1

#: What is known of rows that a fit still holds, by the number of codes: one fit may grow several classes of trees.
_CODINGS: WeakIdKeyDictionary = WeakIdKeyDictionary()


@dataclass(frozen=True)
class Rows:
    """The rows of a fit as trees see them.

    Parameters
    ----------
    X : Tensor of shape (N, d)
    coding : Coding
    """

    X: Tensor
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
        # scaling rounds with the sums of weights, and the last digits are not the row's own
        return names_of_rows(np.round(self.X.double().cpu().numpy() * 2.0**20))


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
            if not isinstance(X, Tensor):
                raise ValueError("trees take dense rows, got sparse ones: give X.toarray(), or use basis='neural'")
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
