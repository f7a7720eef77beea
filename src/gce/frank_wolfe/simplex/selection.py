"""Ensemble selection (Caruana and others, 2004): greedy, with replacement, optionally bagged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.frank_wolfe.simplex.outputs import Outputs
from gce.frank_wolfe.simplex.solver import Solution, certify_weights
from gce.losses.risk import Risk

Array = NDArray[np.float64]


def greedy_selection(
    risk: Risk, outputs: Outputs, max_iter: int, n_bags: int, bag_fraction: float, rng: np.random.Generator
) -> Solution:
    """Greedy selection: repeatedly add the model that reduces the risk of the average most.

    Parameters
    ----------
    risk : Risk
        Risk of one member.
    outputs : Outputs
        Predictions of the pool, relative to the risk's offset.
    max_iter : int
        Number of models added; the best of the averages on the way is returned.
    n_bags : int
        Number of selections that are averaged; with one, it is made among all models.
    bag_fraction : float
        Share of the models, drawn at random, that each of several selections is made among.
    rng : Generator
        Draws the models of each bag.

    Returns
    -------
    Solution
        With the duality gap of its weights.
    """
    all_models = np.arange(len(outputs))
    bag_size = max(1, round(bag_fraction * len(outputs)))
    total = np.zeros(len(outputs))
    for _ in range(n_bags):
        bag = all_models if n_bags == 1 else np.sort(rng.choice(all_models, bag_size, replace=False))
        total[bag] += _select(risk, outputs.select(bag), max_iter)
    return certify_weights(risk, outputs, total / n_bags)


def _select(risk: Risk, outputs: Outputs, max_iter: int) -> Array:
    """Weights of one selection, ``(P,)``: multiples of one over the number of models added."""
    counts, best, least = np.zeros(len(outputs)), np.zeros(len(outputs)), np.inf
    total = outputs.combine(counts)
    for t in range(1, max_iter + 1):
        values = [float(risk.value(((total + own) / t)[None])) for own in outputs.predictions]
        chosen = int(np.argmin(values))
        counts[chosen] += 1
        total += outputs.predictions[chosen]
        if values[chosen] < least:
            least, best = values[chosen], counts / t
    return best
