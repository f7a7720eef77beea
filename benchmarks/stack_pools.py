"""Simulated members of a pool: what correlated classifiers of varying quality and confidence would answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: Members of one family make some of their mistakes together.
FAMILIES = 8
_FAMILY = 0.7
#: Spread of a member's own mistakes, from the best member to the worst; all share rows that are hard.
_OWN = (0.5, 3.0)
#: How far the true class stands out where nothing disturbs it.
_SIGNAL = 2.5


def _tastes(members: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Each member's own noise, and its confidence: what its noise allows, but some exaggerate and some hesitate."""
    own = rng.permutation(np.geomspace(*_OWN, members))
    # scores of this signal and noise are log-probabilities when multiplied by signal / variance
    return own, np.exp(rng.normal(0.0, 0.4, members)) * _SIGNAL / (1 + _FAMILY**2 + own**2)


def probabilities(members: int, rows: int, classes: int, seed: int = 0) -> tuple[Array, Labels]:
    """Probabilities ``(members, rows, classes)`` and true classes ``(rows,)``."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    own, confidence = _tastes(members, rng)
    common = rng.standard_normal((rows, classes))
    common[np.arange(rows), y] += _SIGNAL
    families = common + _FAMILY * rng.standard_normal((FAMILIES, rows, classes))
    answers = np.empty((members, rows, classes))
    for j, answer in enumerate(answers):
        rng.standard_normal(out=answer)
        answer *= own[j]
        answer += families[j % FAMILIES]
        answer *= confidence[j]
        answer -= answer.max(1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(1, keepdims=True)
    return answers, y


def true_class(members: int, rows: int, seed: int = 0) -> Array:
    """Probabilities of the true class alone, ``(members, rows)``: between two classes, where no others are needed."""
    rng = np.random.default_rng(seed)
    own, confidence = _tastes(members, rng)
    common = _SIGNAL + np.sqrt(2) * rng.standard_normal(rows)
    families = common + np.sqrt(2) * _FAMILY * rng.standard_normal((FAMILIES, rows))
    answers = np.empty((members, rows))
    for j, answer in enumerate(answers):
        rng.standard_normal(out=answer)
        answer *= np.sqrt(2) * own[j]
        answer += families[j % FAMILIES]
        answer *= -confidence[j]
        np.exp(answer, out=answer)
        answer += 1
        np.reciprocal(answer, out=answer)
    return answers


def numbers(members: int, rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Predictions ``(members, rows)`` of a number of variance 1, and what it was, ``(rows,)``."""
    rng = np.random.default_rng(seed)
    own = rng.permutation(np.geomspace(*_OWN, members)) / 2
    y = rng.standard_normal(rows)
    common = y + 0.5 * rng.standard_normal(rows)
    families = common + 0.5 * _FAMILY * rng.standard_normal((FAMILIES, rows))
    answers = np.empty((members, rows))
    for j, answer in enumerate(answers):
        rng.standard_normal(out=answer)
        answer *= own[j]
        answer += families[j % FAMILIES]
        answer *= np.exp(rng.normal(0.0, 0.2)) / (1.25 + (0.5 * _FAMILY) ** 2 + own[j] ** 2)  # shrunk as a fit would
    return answers, y
