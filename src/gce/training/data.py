"""The data of a fit, validated and encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.random import Streams
from gce.distributed import World
from gce.losses import Loss
from gce.preprocessing import Table
from gce.preprocessing.interactions import Interactions
from gce.training.problem import Metric, Problem
from gce.training.targets import Target


@dataclass(frozen=True, eq=False)
class GivenTargets:
    """Targets and base scores as the user gave them, where class weights or base scores changed those of the problem.

    Parameters
    ----------
    y : array of shape (N, k)
        Encoded targets.
    base_score : array of shape (N, k) or None
        Raw scores that are added to those of the model.
    factor : array of shape (N,)
        The sample weights of the problem are those given times this, up to a common factor.
    """

    y: NDArray[np.float64]
    base_score: NDArray[np.float64] | None
    factor: NDArray[np.float64]

    def followed_by(self, others: GivenTargets) -> GivenTargets:
        """These rows and, after them, others."""
        base = self.base_score
        if base is not None and others.base_score is not None:
            base = np.concatenate([base, others.base_score])
        return GivenTargets(np.concatenate([self.y, others.y]), base, np.concatenate([self.factor, others.factor]))

    def take(self, rows: NDArray[np.intp]) -> GivenTargets:
        """Some rows."""
        base = self.base_score
        return GivenTargets(self.y[rows], None if base is None else base[rows], self.factor[rows])


@dataclass(frozen=True, eq=False)
class FitData:
    """Rows, targets and folds of a fit, ready for training.

    Parameters
    ----------
    table : Table
        How columns are encoded.
    target : Target
    loss : Loss
    problem : Problem
    scorer : callable or None
        What early stopping monitors; None: the loss on the rows held out.
    streams : Streams
        Random numbers, one stream per member.
    held_out_total : array of shape (M,)
        Total sample weight of the rows that each member holds out.
    n_samples : int
        Rows of positive weight, those for validation left out.
    signs : tuple of int or None
        Of each encoded column whether predictions rise (1) or fall (-1) with it, or are free (0).
    interactions : str, tuple of tuple of int, or None
        Sets of columns of ``X`` that may interact; None where all may.
    given : GivenTargets or None
        What metrics are computed from, in the order of the problem; None without class weights and base scores.
    divided : Problem or None
        Of rows in files, the problem of all of them, of which only codes are known; ``problem`` has a sample of them,
        and all rows that are held out.
    source : dict
        What identifies rows in files, as JSON values.
    world : World
        The processes that fit these data together.
    base_score : bool
        The rows have base scores, which are part of their targets and weights.
    samples : int or None
        A hash of the training rows of positive weight with their targets; None of rows in files.
    """

    table: Table
    target: Target
    loss: Loss
    problem: Problem
    scorer: Metric | None
    streams: Streams
    held_out_total: NDArray[np.float64]
    n_samples: int
    signs: tuple[int, ...] | None
    interactions: Interactions | None = None
    given: GivenTargets | None = None
    divided: Problem | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    world: World = field(default_factory=World)
    base_score: bool = False
    samples: int | None = None

    @property
    def sampled(self) -> bool:
        """Whether memory has a sample of the training rows, of which the others are in files."""
        return self.n_samples > len(self.problem.y)

    @property
    def metric(self) -> Metric | None:
        """What early stopping monitors; None where no row is held out."""
        if self.scorer is None and self.problem.held_out.any():
            return self.problem.held_out_loss
        return self.scorer
