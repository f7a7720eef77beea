"""Folds: every row is held out exactly once, and predicted by members fitted on the other folds."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from gce._utils.params import check_count
from gce.preprocessing.splits import (
    Split,
    as_indices,
    as_pairs,
    count_groups,
    grouped_folds,
    is_splitter,
    shuffled_folds,
    warn_of_groups,
)

#: Folds of ``cv=None``.
FOLDS = 5
_WORDS = "None, an int, a splitter or an iterable of (train, test)"


def make_folds(
    cv: Any, X: Any, y: NDArray[Any], stratify: bool, seed: int, split_params: Mapping[str, Any]
) -> list[Split]:
    """Split the rows as ``cv`` prescribes.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None is five folds, or as many as there are groups.
    X : rows of any kind
    y : array of shape (n,) or (n, k)
    stratify : bool
        Whether ``y`` holds classes; a number of folds is then stratified.
    seed : int
        For shuffling a number of folds.
    split_params : mapping
        Other parameters of a splitter, such as ``groups``, checked; a number of folds does not split groups.
    """
    groups, rows = split_params.get("groups"), _num_samples(X)
    if isinstance(cv, str) and cv == "prefit":
        raise ValueError(f"cv must be {_WORDS}, got 'prefit': for fitted members use prefit=True")
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        folds = FOLDS if cv is None else check_count("cv", cv, 2)
        if groups is None:
            splits = shuffled_folds(folds, stratified=stratify, grouped=False, seed=seed).split(X, y)
        else:
            folds = min(folds, count_groups(groups)) if cv is None else folds
            splits = grouped_folds(folds, y if stratify else None, groups, seed)
    elif is_splitter(cv):
        splits = cv.split(X, y, **split_params)
    else:
        splits = as_pairs(cv, _WORDS)
        if groups is not None:
            raise ValueError("groups and a list of splits both determine the folds: give only one of them")
    found = _partition([(as_indices(train, rows), as_indices(test, rows)) for train, test in splits], rows)
    if groups is not None:
        warn_of_groups(groups, found)
    return found


def _partition(splits: list[Split], rows: int) -> list[Split]:
    """Return the splits, if they hold out every row exactly once."""
    held_out = np.bincount(np.concatenate([test for _, test in splits]), minlength=rows) if splits else np.zeros(rows)
    if not (held_out == 1).all():
        raise ValueError(
            f"cv must hold out every row exactly once, but holds out {(held_out == 0).sum()} of {rows} rows never and "
            f"{(held_out > 1).sum()} more than once: use a partition such as KFold"
        )
    return splits


def check_fold_weights(splits: list[Split], weight: NDArray[np.float64]) -> None:
    """Refuse folds without training rows of positive weight: some libraries then predict a constant silently."""
    for m, (train, test) in enumerate(splits):
        if weight[test].any() and not weight[train].any():
            raise ValueError(
                f"fold {m} has no training row with a positive sample weight: use fewer folds or another cv"
            )
