"""The interfaces of bases and atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gce._utils.codecs import Parts
from gce._utils.params import Component
from gce._utils.random import RoundStreams
from gce.bases.context import FitContext, FitDefaults
from gce.bases.objectives import Objective
from gce.losses import Loss
from gce.preprocessing.mixed import Rows, SeesRows, Widths
from gce.preprocessing.sparse import Inputs

if TYPE_CHECKING:
    from gce.bases.boosted import Booster
    from gce.bases.proposal import Proposal

_ROWS_MIXED_AT_ONCE = 1024
_CONSTRAINED = "gce.bases.Tree, SymmetricTree, Forest, Neural or Neuron"


class Atoms(nn.Module, SeesRows):
    """``A`` frozen models evaluated together: ``X`` of shape ``(n, d)`` to outputs ``(A, n, k)``.

    During a fit the leading dimension holds one atom per member; in an ensemble it holds all its atoms. A subclass
    defines ``forward``, ``__len__``, ``select`` and ``cat``, and ``scaled`` where its bound may be tightened.

    Parameters
    ----------
    *args, **kwargs
        For ``torch.nn.Module``, which takes none.

    Examples
    --------
    Two constant functions:

    >>> import torch
    >>> from gce.bases import Atoms
    >>> class Constants(Atoms):
    ...     def __init__(self, values):
    ...         super().__init__()
    ...         self.values = values
    ...
    ...     def __len__(self):
    ...         return len(self.values)
    ...
    ...     def forward(self, X):
    ...         return self.values[:, None, None].expand(-1, len(X), 1)
    >>> atoms = Constants(torch.tensor([1.0, -1.0]))
    >>> atoms(torch.zeros(3, 2)).shape
    torch.Size([2, 3, 1])
    >>> atoms.mix(torch.zeros(3, 2), torch.tensor([[0.75], [0.25]]).double()).flatten().tolist()
    [0.5, 0.5, 0.5]
    """

    #: They interpolate their training rows, so that their weights can only be optimised on other rows.
    interpolates: ClassVar[bool] = False
    #: Identifiers of atoms that an oracle may return again, ``(A,)``; None where each atom is new.
    keys: Tensor | None = None

    @property
    def unstorable_name(self) -> str | None:
        """A description of atoms that cannot be written to a file, for error messages; None for atoms that can."""
        return f"a member of type {type(self).__name__}"

    def stored(self) -> Parts:
        """The content of a file, for atoms that can be written to one."""
        raise NotImplementedError

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> Self:
        """Read atoms from a file.

        A class that defines it has an entry in :mod:`gce.bases.registry`.

        Parameters
        ----------
        parts : Parts
            The content of the file.
        widths : Widths
            Numbers of inputs and columns.
        bound : Tensor of shape (k,)
            The ensemble's.

        Raises
        ------
        ValueError
            The content is no valid atoms.
        """
        raise NotImplementedError

    @property
    def form(self) -> tuple[object, ...]:
        """What atoms must have in common to be stacked by :meth:`cat`."""
        return (type(self),)

    def __len__(self) -> int:
        raise NotImplementedError

    def forward(self, X: Inputs) -> Tensor:
        raise NotImplementedError

    def rows_at_once(self, X: Inputs) -> int:
        """How many rows :meth:`mix` evaluates at a time.

        Parameters
        ----------
        X : Tensor or SparseRows of shape (n, d)
            Rows as atoms see them.
        """
        return _ROWS_MIXED_AT_ONCE

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        """The weighted sum of the atoms in float64, ``(n, k)``, for weights ``(A, 1)`` or ``(A, k)``.

        Parameters
        ----------
        X : Tensor or SparseRows of shape (n, d)
            Rows as atoms see them.
        weights : Tensor of shape (A, 1) or (A, k)
            Weights of the atoms, shared by all outputs or one per output.
        """
        total = []
        for block in X.split(self.rows_at_once(X)):
            out = self(block).double()
            total.append(torch.einsum("ak,ank->nk", weights.expand(-1, out.shape[2]), out))
        return torch.cat(total)

    def select(self, index: Tensor) -> Self:
        """The atoms at the given positions.

        Parameters
        ----------
        index : Tensor of shape (S,)
            Positions of the atoms.
        """
        raise NotImplementedError

    def at(self, position: int) -> tuple[Atoms, int]:
        """The atoms of one kind that hold an atom, and its position there; other than itself for mixed atoms only.

        Parameters
        ----------
        position : int
            The position of the atom.
        """
        return self, position

    def among(self, columns: NDArray[np.intp], inputs: NDArray[np.intp], widths: Widths) -> Self:
        """The same atoms, for rows with more columns than they look at.

        Parameters
        ----------
        columns, inputs : arrays of shape (c,) and (w,)
            Which of all columns and inputs are theirs.
        widths : Widths
            Numbers of all inputs and columns.
        """
        raise NotImplementedError

    def scaled(self, factor: float) -> Self:
        """The same atoms, multiplied by a factor.

        Parameters
        ----------
        factor : float
            Multiplies all outputs.
        """
        raise NotImplementedError

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """Stack atoms of the same form.

        Parameters
        ----------
        parts : sequence of Atoms
            Atoms of the same form.
        """
        raise NotImplementedError


class Zero(Atoms):
    """The zero function: in every class, and the start of every fit. Around an offset it *is* the offset.

    Parameters
    ----------
    count : int
        How many atoms.
    outputs : int
        Outputs of each.

    Examples
    --------
    >>> import torch
    >>> from gce.bases import Zero
    >>> Zero(count=2, outputs=1)(torch.ones(3, 4)).shape
    torch.Size([2, 3, 1])
    """

    def __init__(self, count: int, outputs: int) -> None:
        super().__init__()
        self.count, self.outputs = count, outputs

    @property
    def unstorable_name(self) -> str | None:
        return None if type(self) is Zero else super().unstorable_name

    def stored(self) -> Parts:
        return Parts({"count": self.count})

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> Zero:
        return Zero(parts.integer("count", 1), len(bound))

    def __len__(self) -> int:
        return self.count

    def seen(self, X: Rows) -> Inputs:
        # whatever they are, only their number counts
        return cast(Inputs, X)

    def forward(self, X: Inputs) -> Tensor:
        return X.new_zeros(self.count, len(X), self.outputs)

    def select(self, index: Tensor) -> Zero:
        return Zero(len(index), self.outputs)

    def scaled(self, factor: float) -> Zero:
        return self

    @classmethod
    def cat(cls, parts: Sequence[Zero]) -> Zero:
        return Zero(sum(map(len, parts)), parts[0].outputs)


class Basis(Component, SeesRows):
    """A class of models whose outputs stay in ``[-bound, bound]``, with an oracle: ``minimize``.

    A basis holds parameters only. What is computed once per fit goes into the :class:`FitContext`.

    Attributes
    ----------
    exact : bool
        ``minimize`` finds the minimum over the whole class, so that the gap is a certificate.
    inherits : bool
        ``minimize`` also takes ``last``, each member's last atom, to start from; None in the first round.
    fits_quadratics : bool
        ``minimize`` fits the quadratic model of an objective, and returns atoms with their outputs and the step to its
        minimum.

    Examples
    --------
    Constant functions at either end of the bound:

    >>> import torch
    >>> from gce.bases import Atoms, Basis, Proposal
    >>> class Constants(Atoms):
    ...     def __init__(self, values):
    ...         super().__init__()
    ...         self.values = values
    ...
    ...     def __len__(self):
    ...         return len(self.values)
    ...
    ...     def forward(self, X):
    ...         return self.values[:, None].expand(-1, len(X), -1)
    ...
    ...     def select(self, index):
    ...         return Constants(self.values[index])
    ...
    ...     @classmethod
    ...     def cat(cls, parts):
    ...         return cls(torch.cat([part.values for part in parts]))
    >>> class ConstantBasis(Basis):
    ...     def minimize(self, objective, X, *, rng, context):
    ...         return Proposal(Constants(-objective.gradient.sum(1).sign() * objective.bound))
    >>> from gce import GCERegressor
    >>> model = GCERegressor(basis=ConstantBasis(), algorithm="frank-wolfe", max_iter=3, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 3.0, 4.0]).predict([[5.0]]).shape
    (1,)
    """

    exact: ClassVar[bool] = False
    inherits: ClassVar[bool] = False
    fits_quadratics: ClassVar[bool] = False

    def __init__(self) -> None:
        # without it, signature() would show the arguments of __new__, and scikit-learn reads parameters there
        super().__init__()

    @property
    def fit_defaults(self) -> FitDefaults:
        """What "auto" means for its models."""
        return FitDefaults()

    @property
    def separate(self) -> bool:
        """Each output has its own model and simplex weights."""
        return False

    @property
    def grows_on_codes(self) -> bool:
        """Boosting needs nothing of the rows but the codes of their columns."""
        return False

    def prepare(self, X: Inputs, context: FitContext) -> None:
        """Compute what every round needs of the rows ``(N, d)``, before the first round.

        Parameters
        ----------
        X : Tensor or SparseRows of shape (N, d)
            All rows of the fit.
        context : FitContext
            Keeps what is computed.
        """

    def dtype(self, rows: int) -> torch.dtype:
        """The precision in which atoms are trained and evaluated, for a number of training rows.

        Parameters
        ----------
        rows : int
            Number of training rows.
        """
        return torch.float64

    def monotone(self, signs: Tensor) -> Basis:
        """A copy whose models are increasing (1), decreasing (-1) or unconstrained (0) in each input, ``(d,)``.

        Parameters
        ----------
        signs : Tensor of shape (d,)
            1, -1 or 0 for each input.
        """
        raise ValueError(f"{type(self).__name__} does not support monotonic_cst: use {_CONSTRAINED}")

    def restrict_interactions(self, groups: NDArray[np.uint64]) -> Basis:
        """A copy whose models are sums of functions of the inputs of one set each.

        Parameters
        ----------
        groups : array of shape (d, W)
            The sets that each input belongs to, one bit each in ``W`` words.
        """
        raise ValueError(f"{type(self).__name__} does not support interaction_cst: use {_CONSTRAINED}")

    def booster(self, loss: Loss, bound: Tensor, X: Inputs, context: FitContext) -> Booster | None:
        """What runs whole rounds of boosting, where the basis can; None: the algorithm calls :meth:`minimize`.

        Parameters
        ----------
        loss : Loss
        bound : Tensor of shape (k,)
        X : Tensor or SparseRows of shape (N, d)
        context : FitContext
        """
        return None

    def replay(self, X: Inputs, rounds: Sequence[tuple[Atoms, Tensor]]) -> Tensor | None:
        """Predictions after rounds of boosting, ``(M, N, k)``, of rows that atoms cannot see; None where they can.

        Parameters
        ----------
        X : Tensor or SparseRows of shape (N, d)
        rounds : sequence of tuples
            The atoms of each round, and the step that was taken, ``(M, 1)``.
        """
        return None

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        """Find one atom per member that makes the objective small.

        Parameters
        ----------
        objective : Objective
            Of ``M`` members, on the first ``n`` rows of ``X``.
        X : Tensor or SparseRows of shape (N, d)
            The training rows, then rows that are only evaluated.
        rng : RoundStreams
            Random numbers of this round.
        context : FitContext
            Caches of this fit, its deadline (a call that may take long returns what it has by then, and calls
            :meth:`FitContext.note_cut_short`), and the processes that make the same call.

        Returns
        -------
        Proposal
            ``M`` atoms, with their outputs where they are known.
        """
        raise NotImplementedError
