"""Folds: which rows a member is fitted on to answer for the others, every row held out exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.validation import _num_samples

from gce.members import Split, as_pairs, indices, is_splitter
from gce.settings import check_count

#: Folds of ``cv=None``.
FOLDS = 5
_WORDS = "None, an int, a splitter or an iterable of (train, test)"


def folds_for(cv: Any, X: Any, y: NDArray[Any], stratify: bool, seed: int, given: Mapping[str, Any]) -> list[Split]:
    """The splits that ``cv`` asks for.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None: five folds.
    X : rows of any kind
    y : array of shape (n,) or (n, k)
    stratify : bool
        ``y`` are classes: folds of a given number hold the same share of each.
    seed : int
        Folds of a given number are shuffled.
    given : mapping
        What else a splitter is told, such as ``groups``: folds of a given number keep these whole.
    """
    if isinstance(cv, str) and cv == "prefit":
        raise ValueError(f"cv must be {_WORDS}, got 'prefit': for fitted members use prefit=True")
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        folds = FOLDS if cv is None else check_count("cv", cv, 2)
        cv = _splitter(stratify, given.get("groups") is not None)(folds, shuffle=True, random_state=seed)
    if is_splitter(cv):
        splits = cv.split(X, y, **given)
    else:
        splits = as_pairs(cv, _WORDS)
        if given.get("groups") is not None:
            raise ValueError("groups and a list of splits both say what to hold out: give one of them")
    rows = _num_samples(X)
    return _partition([(indices(train, rows), indices(test, rows)) for train, test in splits], rows)


def _splitter(stratify: bool, grouped: bool) -> Any:
    if grouped:
        return StratifiedGroupKFold if stratify else GroupKFold
    return StratifiedKFold if stratify else KFold


def _partition(splits: list[Split], rows: int) -> list[Split]:
    """The splits, if they hold out every row exactly once."""
    held_out = np.bincount(np.concatenate([test for _, test in splits]), minlength=rows) if splits else np.zeros(rows)
    if not (held_out == 1).all():
        raise ValueError(
            f"cv must hold out every row exactly once, but holds out {(held_out == 0).sum()} of {rows} rows never and "
            f"{(held_out > 1).sum()} more than once: use a partition such as KFold"
        )
    return splits


def check_weight(splits: list[Split], weight: NDArray[np.float64]) -> None:
    """Refuse folds that leave nothing to learn from: some libraries then answer a constant without a word."""
    for m, (train, test) in enumerate(splits):
        if weight[test].any() and not weight[train].any():
            raise ValueError(
                f"fold {m} has no training row with a positive sample weight: use fewer folds or another cv"
            )
