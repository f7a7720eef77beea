"""Ranks, win rates and critical differences of losses that are better when they are lower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

Array = NDArray[np.float64]


def ranks(losses: Array) -> Array:
    """Ranks (pairs, models) within each row of losses, 1 for the lowest; equal losses share the mean of their ranks,
    and models without a loss (NaN: they failed) share the last ones.
    """
    return rankdata(np.where(np.isnan(losses), np.inf, losses), axis=1)


def set_ranks(losses: Array, sets: Sequence[str]) -> Array:
    """Ranks averaged over the seeds of each set, (sets, models): seeds of one set are no independent samples."""
    within = ranks(losses)
    return np.array([within[[other == name for other in sets]].mean(0) for name in dict.fromkeys(sets)])


@dataclass(frozen=True)
class Wins:
    """How often one model is better than another, equal, and worse."""

    won: int
    tied: int
    lost: int

    @property
    def rate(self) -> float:
        """Share of wins, a tie counting half."""
        return (self.won + self.tied / 2) / (self.won + self.tied + self.lost)


def wins(ours: Array, theirs: Array) -> Wins:
    """Losses of two models on the same pairs; one that failed (NaN) loses to one that did not."""
    one, two = (np.where(np.isnan(losses), np.inf, losses) for losses in (ours, theirs))
    return Wins(int((one < two).sum()), int((one == two).sum()), int((one > two).sum()))


def critical_difference(models: int, sets: int, level: float = 0.05) -> float:
    """Nemenyi's: mean ranks over ``sets`` that differ by more differ at this level, all pairs of models considered."""
    q = studentized_range.ppf(1 - level, models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(models * (models + 1) / (6 * sets)))


def friedman(ranked: Array) -> float:
    """Friedman's p-value that all models are alike, from ranks (sets, models)."""
    return float(friedmanchisquare(*ranked.T).pvalue)


def alike(mean_ranks: Array, difference: float) -> list[tuple[int, int]]:
    """Longest runs of sorted mean ranks within ``difference`` of each other: first and last place of each."""
    runs = []
    for first in range(len(mean_ranks)):
        last = int(np.searchsorted(mean_ranks, mean_ranks[first] + difference, side="right")) - 1
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs
