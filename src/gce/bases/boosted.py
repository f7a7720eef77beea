"""Rounds of boosting that a basis runs by itself: where they start from, and what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms
from gce.losses.risk import Risk


@dataclass(frozen=True, eq=False)
class BoostingState:
    """Where boosting continues.

    Parameters
    ----------
    risk : Risk
        Of the ``M`` members that run, on the first ``n`` rows.
    y : Tensor of shape (N, k)
        Targets of all rows.
    held_out : Tensor of shape (M, N)
        Sample weights of the rows that each member holds out.
    bound : Tensor of shape (k,)
    pred : Tensor of shape (M, N, k)
        Predictions on all rows, from the offset.
    zero : Tensor of shape (M,)
        What weight the zero function has left.
    learning_rate : float
        Fraction of the step to the minimum of the quadratic model that is taken.
    members : list of int
        Which members run.
    model : Risk, optional
        What trees are grown for, of all members. Default: ``risk.modelled``.
    """

    risk: Risk
    y: Tensor
    held_out: Tensor
    bound: Tensor
    pred: Tensor
    zero: Tensor
    learning_rate: float
    members: list[int]
    model: Risk | None = None


class BoostedRounds(Protocol):
    """Rounds that were run.

    Attributes
    ----------
    count : int
        How many, ``R``.
    size, limit, gap, risk, validation : Tensor of shape (R, M)
        Of each round and member the step taken and the longest one allowed, the gap before the step, and the risk and
        the loss on rows held out after it.
    """

    count: int
    size: Tensor
    limit: Tensor
    gap: Tensor
    risk: Tensor
    validation: Tensor

    def atoms(self, t: int) -> Atoms:
        """The ``M`` atoms of round ``t``, counted from 0."""

    def pred(self, t: int) -> Tensor:
        """Predictions after round ``t``, ``(M, N, k)``."""


class Booster(Protocol):
    """Runs rounds of boosting from a state on."""

    def at_once(self, members: Sequence[int]) -> int:
        """How many rounds of some members are best run in one call, if none is needed before the next."""

    def run(self, state: BoostingState, keys: NDArray[np.uint64]) -> BoostedRounds:
        """Run rounds of random numbers ``(R, M)``, one for each round and member."""
