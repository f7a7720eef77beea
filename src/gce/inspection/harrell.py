"""Harrell's concordance of risks with times until an event, some of them censored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from gce._utils.devices import as_numpy
from gce.preprocessing.sample_weights import check_sample_weight
from gce.preprocessing.survival import read_survival

Array = NDArray[np.float64]


def concordance_index(y: Any, risk: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """The probability that of two rows the one with the earlier event has the higher risk (Harrell, 1982).

    Pairs are comparable where it is known which event was first: the earlier time is that of an event, or both times
    are the same and only one is an event. Equal risks count half. It takes ``n log(n)^2`` steps, not ``n^2``.

    Parameters
    ----------
    y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        Whether the event happened, and when.
    risk : array-like of shape (n,)
        Higher means earlier.
    sample_weight : array-like of shape (n,), optional
        A pair counts as the product of its weights: a row of weight 2 as two rows.

    Returns
    -------
    float
        From 0 to 1; 0.5 for risks that are all equal, and where no pair is comparable.

    Examples
    --------
    >>> from gce.inspection import concordance_index
    >>> concordance_index([(True, 1.0), (False, 2.0), (True, 3.0)], [3.0, 1.0, 2.0])
    1.0
    """
    event, time = read_survival(y).T
    scores = column_or_1d(np.asarray(as_numpy(risk), dtype=np.float64))
    check_consistent_length(time, scores)
    if not np.isfinite(scores).all():
        raise ValueError(f"risks must be finite, got {scores[~np.isfinite(scores)][0]}")
    weight = check_sample_weight(sample_weight, scores)
    # at the same time events come before censored rows; events at the same time in the order of their risks, so that
    # none of their pairs, which are not comparable, counts as concordant
    order = np.lexsort((scores, 1 - event, time))
    _, rank = np.unique(scores[order], return_inverse=True)
    first = np.where(event > 0, weight, 0.0)[order]
    pairs = _count_pairs(rank, first, weight[order])
    tied_time = time[order], event[order]
    pairs -= [0.0, *(_pairs_within(groups, first) for groups in ((*tied_time, rank), tied_time))]
    concordant, tied, comparable = pairs
    return float((concordant + tied / 2) / comparable) if comparable > 0 else 0.5


def _count_pairs(rank: NDArray[np.intp], first: Array, second: Array) -> Array:
    """The weights of pairs ``i < j`` with ``rank_i > rank_j``, with equal ranks, and of all pairs.

    Merge sort, all blocks of a size at once: every pair is in the left and the right half of exactly one block.
    """
    n, ranks, total = len(rank), int(rank.max()) + 1, np.zeros(3)
    position = np.arange(n)
    size = 1
    while size < n:
        block, right = position // (2 * size), (position // size) % 2 == 1
        key = block * ranks + rank
        order = np.flatnonzero(right)[np.argsort(key[right], kind="stable")]
        keys, sums = key[order], np.append(0.0, np.cumsum(second[order]))
        left = ~right & (first > 0)
        begin, end = block[left] * ranks, (block[left] + 1) * ranks
        at = [sums[np.searchsorted(keys, limit)] for limit in (begin, key[left], key[left] + 1, end)]
        total += [first[left] @ (high - low) for low, high in ((at[0], at[1]), (at[1], at[2]), (at[0], at[3]))]
        size *= 2
    return total


def _pairs_within(groups: tuple[Any, ...], weight: Array) -> float:
    """The weight of pairs of the same group; rows of one group follow each other but for those without weight."""
    kept = weight > 0
    _, group = np.unique(np.column_stack([part[kept] for part in groups]), axis=0, return_inverse=True)
    total = np.bincount(group.ravel(), weight[kept])
    return float(total @ total - weight[kept] @ weight[kept]) / 2


def concordance(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
    """Harrell's concordance of a model's ``predict``, as a scorer: what ``scoring`` takes.

    Parameters
    ----------
    estimator : estimator
        Fitted; its ``predict`` gives risks.
    X : array-like or data frame of shape (n, d)
        Rows.
    y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        Whether the event happened, and when.
    sample_weight : array-like of shape (n,), optional
        See :func:`concordance_index`.

    Returns
    -------
    float
        From 0 to 1, higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from gce import GCESurvival
    >>> from gce.inspection import concordance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 1))
    >>> y = np.column_stack([np.ones(150), rng.exponential(np.exp(-X[:, 0]))])
    >>> model = GCESurvival(basis="tree", max_atoms=5, random_state=0)
    >>> bool(cross_val_score(model, X, y, scoring=concordance, cv=2).mean() > 0.6)
    True
    """
    return concordance_index(y, estimator.predict(X), sample_weight)
