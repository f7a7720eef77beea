"""What an oracle call returns."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gce.bases.base import Atoms
from gce.preprocessing.mixed import Rows


@dataclass(frozen=True)
class Proposal:
    """What an oracle call returns: one atom per member, and what is already known of them.

    Parameters
    ----------
    atoms : Atoms
        ``M`` of them.
    outputs : Tensor of shape (M, N, k), optional
        Their outputs on all rows that the oracle was given. None: evaluate the atoms.
    step_length : Tensor of shape (M,), optional
        The steps toward each atom that minimise the quadratic model it was fitted to. None: unknown.

    Examples
    --------
    >>> import torch
    >>> from gce.bases import Proposal, Zero
    >>> proposal = Proposal(Zero(count=2, outputs=1))
    >>> proposal.evaluate(torch.ones(3, 4)).shape
    torch.Size([2, 3, 1])
    """

    atoms: Atoms
    outputs: Tensor | None = None
    step_length: Tensor | None = None

    def evaluate(self, X: Rows) -> Tensor:
        """Outputs ``(M, N, k)`` on the rows ``X`` that the oracle was given.

        Parameters
        ----------
        X : Tensor, SparseRows or MixedRows of shape (N, d)
        """
        return self.atoms(self.atoms.seen(X)) if self.outputs is None else self.outputs
