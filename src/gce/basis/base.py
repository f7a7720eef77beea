"""What every basis and every atom can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from gce.objectives import Objective
from gce.parts import Parts
from gce.rows import Inputs
from gce.streams import RoundStreams

_ROWS_MIXED_AT_ONCE = 1024


class Atoms(nn.Module):
    """``A`` frozen models evaluated together: ``X`` of shape ``(n, d)`` to outputs ``(A, n, k)``.

    During a fit the leading dimension holds one atom a member; in an ensemble it holds all its atoms.
    """

    #: They repeat the rows that they learned from, so that their weights can be found on other rows only.
    repeats: ClassVar[bool] = False
    #: Names of atoms that may be found again, ``(A,)``; None where each atom is new.
    keys: Tensor | None = None
    #: Steps to each atom at which the quadratic model that it was grown on is least, ``(A,)``; None where unknown.
    length: Tensor | None = None

    @property
    def foreign(self) -> str | None:
        """What to call atoms that no file can hold, because they are not tensors alone; None for those it can."""
        return f"a member of type {type(self).__name__}"

    def stored(self) -> Parts:
        """What a file keeps of atoms that are not foreign."""
        raise NotImplementedError

    @classmethod
    def restored(cls, parts: Parts, inputs: int, bound: Tensor) -> Self:
        """Atoms from a file, for so many inputs and a hull's bound ``(k,)``; a ValueError where that cannot be.

        A class that has it belongs into the table of names in :mod:`gce.basis.stored`.
        """
        raise NotImplementedError

    @property
    def form(self) -> tuple[object, ...]:
        """What atoms must have in common to stand side by side."""
        return (type(self),)

    def __len__(self) -> int:
        raise NotImplementedError

    def forward(self, X: Inputs) -> Tensor:
        raise NotImplementedError

    def rows_at_once(self, X: Inputs) -> int:
        """How many rows are mixed at a time."""
        return _ROWS_MIXED_AT_ONCE

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        """``sum_a weights_a atom_a`` in float64, ``(n, k)``, for weights ``(A, 1)`` or ``(A, k)``."""
        total = []
        for block in X.split(self.rows_at_once(X)):
            out = self(block).double()
            total.append(torch.einsum("ak,ank->nk", weights.expand(-1, out.shape[2]), out))
        return torch.cat(total)

    def select(self, index: Tensor) -> Self:
        """Some of the atoms."""
        raise NotImplementedError

    def at(self, position: int) -> tuple[Atoms, int]:
        """Where an atom stands among its own kind: these atoms and its place, unless they are of several kinds."""
        return self, position

    def scaled(self, factor: float) -> Self:
        """The same atoms, times a factor."""
        raise NotImplementedError

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Atoms of one kind side by side."""
        raise NotImplementedError


class Zero(Atoms):
    """The zero function: in every class, and where every fit starts. Around an offset it *is* the offset."""

    def __init__(self, count: int, outputs: int) -> None:
        super().__init__()
        self.count, self.outputs = count, outputs

    @property
    def foreign(self) -> str | None:
        return None if type(self) is Zero else super().foreign

    def stored(self) -> Parts:
        return Parts({"count": self.count})

    @classmethod
    def restored(cls, parts: Parts, inputs: int, bound: Tensor) -> Zero:
        return Zero(parts.integer("count", 1), len(bound))

    def __len__(self) -> int:
        return self.count

    def forward(self, X: Inputs) -> Tensor:
        return X.new_zeros(self.count, len(X), self.outputs)

    def select(self, index: Tensor) -> Zero:
        return Zero(len(index), self.outputs)

    def scaled(self, factor: float) -> Zero:
        return self

    @classmethod
    def cat(cls, parts: Sequence[Zero]) -> Zero:
        return Zero(sum(map(len, parts)), parts[0].outputs)


class Habit(NamedTuple):
    """How models of a class are best learned.

    Parameters
    ----------
    algorithm, line_search : str
        Their names.
    calls : int
        Most oracle calls of a member.
    patience : int
        Rounds without progress after which a member is done.
    shrinkage : float
        What short steps take of the whole one.
    trial : int
        Rounds after which such models must count for something beside families fitted before them; 0: they need not.
    """

    algorithm: str = "pairwise"
    line_search: str = "exact"
    calls: int = 100
    patience: int = 20
    shrinkage: float = 0.1
    trial: int = 0


class Basis(BaseEstimator):
    """A class of models whose outputs stay in ``[-bound, bound]``, with one verb: ``minimize``.

    Attributes
    ----------
    exact : bool
        ``minimize`` finds the minimum over the whole class, so that the gap is a certificate.
    inherits : bool
        ``minimize`` also takes ``last``, each member's last atom, to start from; None in the first round.
    """

    exact: ClassVar[bool] = False
    inherits: ClassVar[bool] = False
    #: A call since the last :meth:`hurried` ended sooner than it would have, because time ran out.
    rushed: bool = False

    @property
    def habit(self) -> Habit:
        """How its models are best learned, where the user does not say."""
        return Habit()

    @property
    def separate(self) -> bool:
        """Each output has a model and simplex weights of its own."""
        return False

    def hurried(self, end: float) -> None:
        """Be done by ``end``, on the clock of ``time.monotonic``, with what can be done until then.

        For classes whose one call may take longer than a fit is given; others are asked less often.
        """

    def prepare(self, X: Inputs) -> None:
        """Find out once, before the first round, what every round wants to know of the rows ``(N, d)``."""

    def dtype(self, rows: int) -> torch.dtype:
        """In which precision atoms are trained and evaluated on that many training rows."""
        return torch.float64

    def monotone(self, signs: Tensor) -> Basis:
        """A copy whose models rise (1) or fall (-1) with inputs, or are free (0): ``signs`` of shape ``(d,)``."""
        raise ValueError(
            f"{type(self).__name__} cannot be kept monotone: use gce.Neural or gce.Neuron for monotonic_cst"
        )

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> Atoms:
        """One atom a member that makes the objective small.

        Parameters
        ----------
        objective : Objective
            Of ``M`` members, on the first ``n`` rows of ``X``.
        X : Tensor or SparseRows of shape (N, d)
            The training rows, then rows that are only evaluated.
        rng : RoundStreams

        Returns
        -------
        Atoms
            ``M`` of them.
        """
        raise NotImplementedError
