"""Caruana's ensemble selection (2004): to compare with. Greedy, with replacement, and bagged if asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.risk import Risk
from gce.weighting.outputs import Outputs
from gce.weighting.solver import Solution, certified

Array = NDArray[np.float64]


def greedy_selection(
    risk: Risk, outputs: Outputs, rounds: int, bags: int, share: float, rng: np.random.Generator
) -> Solution:
    """Add, round after round, the model whose addition makes the average's risk least.

    Parameters
    ----------
    risk : Risk
        Of one member.
    outputs : Outputs
    rounds : int
        Models that are added; the best of the averages on the way is kept.
    bags : int
        1: choose among all models. More: so many selections, each among ``share`` of the models drawn at random, are
        averaged.
    share : float
    rng : Generator

    Returns
    -------
    Solution
        With the gap at its weights: what the best combination could still bring, at most.
    """
    everyone = np.arange(len(outputs))
    drawn = max(1, round(share * len(outputs)))
    total = np.zeros(len(outputs))
    for _ in range(bags):
        some = everyone if bags == 1 else np.sort(rng.choice(everyone, drawn, replace=False))
        total[some] += _selected(risk, outputs.select(some), rounds)
    return certified(risk, outputs, total / bags)


def _selected(risk: Risk, outputs: Outputs, rounds: int) -> Array:
    """Weights of one selection, ``(P,)``: multiples of one over the number of models added."""
    counts, best, least = np.zeros(len(outputs)), np.zeros(len(outputs)), np.inf
    total = outputs.combine(counts)
    for t in range(1, rounds + 1):
        values = [float(risk.value(((total + answer) / t)[None])) for answer in outputs.answers]
        chosen = int(np.argmin(values))
        counts[chosen] += 1
        total += outputs.answers[chosen]
        if values[chosen] < least:
            least, best = values[chosen], counts / t
    return best
