"""The record of one round."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Direction:
    """The atoms that a step moves toward and away from.

    Parameters
    ----------
    toward, away : Tensor of shape (M, J)
        Slots of atoms, -1 for none.
    """

    toward: Tensor
    away: Tensor


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The rows that early stopping monitors, for algorithms that compute the loss there with their rounds.

    Parameters
    ----------
    y : Tensor of shape (N, k)
        Targets of all rows.
    weight : Tensor of shape (M, N)
        Sample weights of the rows that each member holds out.
    ahead : int
        Rounds up to this one may be run before the ones before them have been looked at.
    """

    y: Tensor
    weight: Tensor
    ahead: int


@dataclass(frozen=True)
class Step:
    """The result of one round, for each of the members still running.

    Parameters
    ----------
    t : int
        The round, from 1. Callbacks receive the round of the whole fit, counted over all families as in ``history_``.
    members : list of int
        The members that ran.
    risk : Tensor of shape (M,)
        Training risk after the step.
    gap : Tensor of shape (M,)
        ``max_g <D, F - g>`` before the step. If ``certified``, it is the duality gap, which bounds ``R(F) - min R``,
        and NaN for members whose oracle was not called in this round; otherwise it is taken over the atoms so far,
        a lower estimate.
    certified : bool
        The oracle is exact: what it has said are certificates.
    step_size, max_step : Tensor of shape (M, J)
        The step taken and the longest one allowed.
    direction : Direction
        The atoms moved toward and away from.
    calls : Tensor of shape (M,)
        Oracle calls so far.
    seconds : float
        Since the fit began.
    validation : Tensor of shape (M,) or None
        The score that early stopping monitors, lower is better; None without held-out rows.
    family : str or None
        The family of the round; None where a single family is fitted.
    others : int
        Rounds of other families among ``t``.
    suboptimality : Tensor of shape (M,) or None
        If ``certified``, a bound on how far the risk after the step is above the least in the hull: the duality gap at
        the last call of the oracle, less what the risk fell since, or an earlier such bound if that is smaller.

    Examples
    --------
    Callbacks receive one step per round:

    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> rounds = []
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> note = lambda step: rounds.append((step.t, step.members))
    >>> model = GCERegressor(basis="neuron", cv=2, max_iter=2, callbacks=[note], random_state=0).fit(X, X[:, 0])
    >>> rounds
    [(1, [0, 1]), (2, [0, 1])]
    """

    t: int
    members: list[int]
    risk: Tensor
    gap: Tensor
    certified: bool
    step_size: Tensor
    max_step: Tensor
    direction: Direction
    calls: Tensor
    seconds: float = 0.0
    validation: Tensor | None = None
    family: str | None = None
    others: int = 0
    suboptimality: Tensor | None = None

    @property
    def own_t(self) -> int:
        """The round within its family, from 1."""
        return self.t - self.others
