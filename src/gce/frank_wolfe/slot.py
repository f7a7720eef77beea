"""What an active set consists of: the atoms of a round, and the state that a later run continues from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gce.bases.base import Atoms
from gce.bases.neural.stored_inputs import StoredInputs
from gce.preprocessing.mixed import Rows


@dataclass(frozen=True)
class Slot:
    """The atoms added in one round.

    Parameters
    ----------
    atoms : Atoms
    position : Tensor of shape (M,)
        Which of ``atoms`` is each member's, -1 for a member that got none.
    step_length : Tensor of shape (A,), optional
        As in :class:`gce.bases.Proposal`.
    """

    atoms: Atoms
    position: Tensor
    step_length: Tensor | None = None

    def outputs(self, X: Rows | StoredInputs, known: Tensor | None = None) -> Tensor:
        """Each member's outputs ``(M, N, k)``, 0 for members without an atom here.

        ``known`` are outputs of the atoms on these rows, ``(A, N, k)``; None: the atoms are evaluated.
        """
        if known is not None:
            out = known
        else:
            out = X.outputs(self.atoms) if isinstance(X, StoredInputs) else self.atoms(self.atoms.seen(X))
        if torch.equal(self.position, torch.arange(len(out), device=out.device)):
            return out
        return torch.where((self.position >= 0)[:, None, None], out[self.position], 0.0)


@dataclass(frozen=True)
class ActiveSetState:
    """The state of an active set beside its atoms and weights.

    Parameters
    ----------
    members : list of int
    cache_bytes : int
        Memory limit of cached outputs.
    cached : int
        Slots that the cache has memory for; 0: outputs are not cached.
    pred : Tensor of shape (M, N, k) or None
        Predictions, where they are updated with the weights instead of summed over a cache.
    """

    members: list[int]
    cache_bytes: int
    cached: int
    pred: Tensor | None
