"""Members of an ensemble: the rows that each trains on, and the rows that it holds out.

One member is the paper's hold-out; ``K`` members are K-fold cross-fitting, trained together and averaged: an average of
convex combinations is a convex combination.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from torch import Tensor

from gce._utils.params import count, is_iterable, short_repr
from gce._utils.warn import warn_user
from gce.preprocessing.row_hashes import hash_row_set
from gce.preprocessing.sample_weights import effective_count
from gce.preprocessing.sparse import Matrix, SparseRows
from gce.preprocessing.targets import targets_as_array

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Folds of ``cv="auto"``: five, but ten below ``SMALL_ROWS`` rows, where a fifth of them would be missed.
AUTO_FOLDS, SMALL_FOLDS, SMALL_ROWS = 5, 10, 2000
#: Rows beyond which ``cv="auto"`` holds out ``LARGE_FRACTION`` of them once, in place of folds.
LARGE_ROWS, LARGE_FRACTION = 200_000, 0.1
#: The same where a time limit leaves less than a second for so many rows: five members would hardly begin.
ROWS_PER_SECOND = 4000
#: Folds of groups are drawn at random unless one has this many times the rows of an even one.
_UNEVEN = 1.5
#: Share of the rows that a member of grouped folds trains on at least: with less, its predictions are worse than what
#: they add to an average over members.
LEAST_TRAINED = 0.25


@dataclass(frozen=True)
class TrainingRows:
    """The training rows of positive weight.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        Encoded columns.
    target : array of shape (n, k)
        Encoded targets.
    codes : array of shape (n,) or None
        Class codes to stratify by; None for regression.
    weight : array of shape (n,)
        Sample weights.
    row_index : array of shape (n,)
        Indices of the rows in the table passed to ``fit``, to which the indices of user-defined splits refer.
    groups : array of shape (n,) or None
        Groups that splits keep together.
    n_given : int
        Number of rows passed to ``fit``.
    """

    X: Matrix
    target: Array
    codes: NDArray[np.intp] | None
    weight: Array
    row_index: NDArray[np.intp]
    groups: NDArray[Any] | None
    n_given: int


@dataclass(frozen=True)
class Members:
    """Training and held-out weights of ``M`` members over ``N`` rows.

    Parameters
    ----------
    train, held_out : array of shape (M, N)
        Sample weights; each member's training weights sum to 1, its held-out weights to 1, or to 0 if it holds out
        nothing.
    names : tuple of int
        A hash of each member's held-out rows, from which its random streams are seeded.
    held_out_total : array of shape (M,)
        Sum of each member's held-out sample weights, by which held-out losses of members are averaged.
    count : array of shape (M,)
        Effective number of training rows of each member, see :func:`gce.preprocessing.sample_weights.effective_count`.
    """

    train: Array
    held_out: Array
    names: tuple[int, ...]
    held_out_total: Array
    count: Array


def from_splits(X: Matrix, weight: Array, splits: Iterable[Split]) -> Members:
    """One member per split.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        The rows.
    weight : array of shape (n,)
        Sample weights.
    splits : iterable of (train, test)
        Arrays of row indices; a row that occurs twice counts twice.

    Returns
    -------
    Members

    Raises
    ------
    ValueError
        There is no split, or one without a training row of positive weight.
    """
    train, held_out, names, total, count = [], [], [], [], []
    for number, (train_index, test) in enumerate(splits):
        learn_weight, test_weight = (
            np.bincount(part, weight[part], len(X)).astype(np.float64) for part in (train_index, test)
        )
        if learn_weight.sum() == 0:
            raise ValueError(f"split {number} of cv has no training row with a positive sample weight")
        train.append(learn_weight / learn_weight.sum())
        held_out.append(test_weight / test_weight.sum() if test_weight.any() else test_weight)
        names.append(hash_row_set(X[test]))
        total.append(test_weight.sum())
        count.append(effective_count(learn_weight))
    if not train:
        raise ValueError("cv has no splits: expected at least one (train, test) pair")
    return Members(np.stack(train), np.stack(held_out), tuple(names), np.array(total), np.array(count))


def from_validation_set(X: Matrix, weight: Array, X_val: Matrix, weight_val: Array) -> Members:
    """One member that trains on all rows and holds out a given validation set, whose rows follow the training rows.

    Parameters
    ----------
    X, X_val : array or SparseRows of shape (n, d) and (m, d)
        Training and validation rows.
    weight, weight_val : array of shape (n,) and (m,)
        Their sample weights.

    Returns
    -------
    Members
        Over ``n + m`` rows.
    """
    train = np.concatenate([weight / weight.sum(), np.zeros(len(X_val))])
    held_out = np.concatenate([np.zeros(len(X)), weight_val / weight_val.sum()])
    names, total = (hash_row_set(X_val),), weight_val.sum(keepdims=True)
    return Members(train[None], held_out[None], names, total, np.array([effective_count(weight)]))


def splits_for(
    cv: Any, fraction: float | None, rows: TrainingRows, seed: int, seconds: float | None = None
) -> list[Split]:
    """The splits of a ``cv`` parameter.

    Parameters
    ----------
    cv : None, "auto", int, splitter or iterable of (train, test)
        None: one hold-out of ``fraction`` of the rows.
    fraction : float or None
        Share of the rows held out where ``cv`` is None; None holds out nothing.
    rows : TrainingRows
        The training rows.
    seed : int
        Seed of the shuffling.
    seconds : float, optional
        The time limit of the fit, which "auto" considers.

    Returns
    -------
    list of (train, test)
        Indices into the training rows.
    """
    X, codes, groups = rows.X, rows.codes, rows.groups
    no_hold_out = [(np.arange(len(X)), np.arange(0))]
    automatic = isinstance(cv, str) and cv == "auto"
    if automatic and (len(X) > LARGE_ROWS or is_hurried(cv, len(X), seconds)):
        cv, fraction, automatic = None, LARGE_FRACTION, False
    is_integer = isinstance(cv, Integral) and not isinstance(cv, bool)
    if is_splitter(cv):
        y = rows.target if codes is None else codes
        table = X.matrix if isinstance(X, SparseRows) else X
        pairs = cv.split(table, y if codes is not None or y.shape[1] > 1 else y[:, 0], groups)
        splits = [(as_indices(train, len(X)), as_indices(test, len(X))) for train, test in pairs]
        if groups is not None:
            warn_of_groups(groups, splits)
        return splits
    if is_integer:
        count(2).check("cv", cv)
    if groups is not None and (cv is None or automatic or is_integer):
        return _grouped(cv, fraction, rows, groups, seed)
    if cv is None:
        return _hold_out(fraction, X, codes, seed) if fraction is not None else no_hold_out
    if automatic:
        return _auto(X, codes, seed) or no_hold_out
    if is_integer:
        return _folds(int(cv), X, codes, seed)
    given = as_pairs(cv, "None, 'auto', an int, a scikit-learn splitter or an iterable of (train, test)")
    if groups is not None:
        raise ValueError("groups and a list of splits both define what is held out: pass one of them")
    return [(_kept_indices(train, rows), _kept_indices(test, rows)) for train, test in given]


def is_splitter(cv: Any) -> bool:
    """Whether ``cv`` is a scikit-learn splitter; text and tensors have another ``split``."""
    return hasattr(cv, "split") and not isinstance(cv, str | bytes | Tensor)


def as_pairs(cv: Any, words: str) -> list[tuple[Any, Any]]:
    """Splits as a list of pairs.

    Parameters
    ----------
    cv : iterable
        The splits.
    words : str
        What ``cv`` may be, for the error message.

    Raises
    ------
    ValueError
        ``cv`` is not an iterable of pairs.
    """
    listed: list[Any] = list(cv) if is_iterable(cv) and not isinstance(cv, str | Mapping) else [None]
    if not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in listed):
        raise ValueError(f"cv must be {words}, got {short_repr(cv)}")
    return [(train, test) for train, test in listed]


def shuffled_folds(folds: int, *, stratified: bool, grouped: bool, seed: int) -> Any:
    """The scikit-learn splitter of a number of folds.

    Parameters
    ----------
    folds : int
        The number of folds.
    stratified : bool
        Whether every fold has the classes in proportion.
    grouped : bool
        Whether rows of a group stay together.
    seed : int
        Seed of the shuffling.

    Returns
    -------
    KFold, StratifiedKFold, GroupKFold or StratifiedGroupKFold
    """
    kinds = {
        (False, False): KFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (True, True): StratifiedGroupKFold,
    }
    return kinds[stratified, grouped](folds, shuffle=True, random_state=seed)


def check_groups(given: Any, rows: int | None = None) -> NDArray[Any]:
    """Groups of rows of a user, as an array ``(n,)``.

    Parameters
    ----------
    given : array-like of shape (n,)
        What a user gave.
    rows : int, optional
        How many there must be.

    Raises
    ------
    ValueError
        There is not one for each row, or they cannot be told apart.
    """
    groups = np.asarray(targets_as_array(given, "groups"))
    if groups.ndim == 2 and groups.shape[1] == 1:
        groups = groups[:, 0]
    if groups.ndim != 1:
        raise ValueError(f"groups must be of shape (n,), one number or text per row, got shape {groups.shape}")
    if rows is not None and len(groups) != rows:
        raise ValueError(f"groups has {len(groups)} entries for {rows} rows: give one per row")
    try:
        np.unique(groups)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"groups cannot be compared, as in {short_repr(list(groups[:3]))}: give one number or text per row"
        ) from error
    return groups


def _grouped(cv: Any, fraction: float | None, rows: TrainingRows, groups: NDArray[Any], seed: int) -> list[Split]:
    """Folds, or one hold-out, that keep groups together."""
    X, codes = rows.X, rows.codes
    if cv is None and fraction is None:
        raise ValueError("groups need held-out rows, and validation_fraction=None holds out nothing")
    if cv is None:
        assert fraction is not None
        splits = [_grouped_hold_out(fraction, groups, seed)]
    else:
        folds = min(auto_folds(len(X)), count_groups(groups)) if isinstance(cv, str) else int(cv)
        splits = grouped_folds(folds, codes, groups, seed)
    kept = [(train, test) for train, test in splits if len(train) >= LEAST_TRAINED * len(X)] or splits
    warn_of_groups(groups, kept)
    return kept


def count_groups(groups: NDArray[Any]) -> int:
    """The number of groups ``(n,)``; one alone is an error, because its rows cannot be held out together."""
    found = len(np.unique(groups))
    if found == 1:
        raise ValueError(
            f"groups has one group only, {short_repr(groups.tolist()[0])}, so that no rows can be held out: leave "
            "groups out, or give rows of other groups as X_val and y_val"
        )
    return found


def grouped_folds(folds: int, y: NDArray[Any] | None, groups: NDArray[Any], seed: int) -> list[Split]:
    """Folds that keep groups together: with as many groups each or, if that is uneven, with as many rows as possible.

    Parameters
    ----------
    folds : int
        The number of folds.
    y : array of shape (n,) or None
        Classes to stratify by; None for regression.
    groups : array of shape (n,)
        The groups.
    seed : int
        Seed of the shuffling.

    Returns
    -------
    list of (train, test)
    """
    if folds > (found := count_groups(groups)):
        raise ValueError(f"{folds} folds need as many groups or more, but groups has {found}: set cv={found} or less")
    splitter = shuffled_folds(folds, stratified=y is not None, grouped=True, seed=seed)
    splits = list(splitter.split(np.zeros(len(groups)), y, groups))
    # stratified folds are filled by their numbers of rows anyway
    if y is None and max(len(test) for _, test in splits) > _UNEVEN * len(groups) / folds:
        number = np.unique(groups, return_inverse=True)[1]
        shuffled = np.random.RandomState(seed).permutation(found)[number]
        splits = list(GroupKFold(folds).split(number, groups=shuffled))
    return splits


def warn_of_groups(groups: NDArray[Any], splits: Sequence[Split]) -> None:
    """Warn of groups ``(n,)`` if one has most rows, or if a member of these splits has few rows to train on.

    Parameters
    ----------
    groups : array of shape (n,)
        The groups.
    splits : sequence of (train, test)
        Splits that keep them together.
    """
    size, rows = np.unique(groups, return_counts=True)[1], len(groups)
    most, least = 1 - LEAST_TRAINED, min((len(train) for train, _ in splits), default=rows)
    if size.max() <= most * rows and least >= LEAST_TRAINED * rows:
        return
    held_out = len(np.unique(np.concatenate([test for _, test in splits])))
    warn_user(
        f"groups are few or unbalanced: the largest of {len(size)} groups has {size.max():,} of {rows:,} rows "
        f"({100 * size.max() / rows:.1f} %). The model has {len(splits)} member{'s' * (len(splits) != 1)}, trained on "
        f"at least {least:,} rows, and {held_out:,} rows are held out. Leave groups out if rows of a group need not "
        "stay together; otherwise give smaller groups",
        UserWarning,
    )


def _grouped_hold_out(fraction: float, groups: NDArray[Any], seed: int) -> Split:
    """A share of the groups or, if these have many more rows, groups that have at most this share of the rows."""
    count_groups(groups)
    train, test = next(GroupShuffleSplit(1, test_size=fraction, random_state=seed).split(groups, groups=groups))
    room = fraction * len(groups)
    if len(test) <= _UNEVEN * room:
        return train, test
    _, number, size = np.unique(groups, return_inverse=True, return_counts=True)
    chosen = []
    for group in np.random.RandomState(seed).permutation(len(size)):
        if size[group] <= room:
            chosen.append(group)
            room -= size[group]
    held_out = np.isin(number, chosen or [size.argmin()])
    return (np.flatnonzero(~held_out), np.flatnonzero(held_out)) if held_out.sum() < len(test) else (train, test)


def _hold_out(fraction: float, X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    if codes is None:
        return list(ShuffleSplit(1, test_size=fraction, random_state=seed).split(X))
    alone, several, fewest = _split_singletons(codes)
    if len(several) == 0:
        return [(np.arange(len(X)), np.arange(0))]
    classes, size = len(np.unique(codes[several])), math.ceil(fraction * len(several))
    if size >= classes and len(several) - size >= classes:
        kind: Any = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed)
    else:  # too few rows to hold out one of each class: a fold of as many as the smallest class allows
        kind = StratifiedKFold(min(max(2, round(1 / fraction)), fewest), shuffle=True, random_state=seed)
    train, test = next(iter(kind.split(X[several], codes[several])))
    return [(np.sort(np.concatenate([several[train], alone])) if len(alone) else train, several[test])]


def _split_singletons(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Rows that are alone in their class, all other rows, and the size of the smallest class among these."""
    count = np.bincount(codes)[codes]
    alone, several = np.flatnonzero(count == 1), np.flatnonzero(count > 1)
    return alone, several, int(count[several].min()) if len(several) else 0


def _folds(folds: int, X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    splitter = shuffled_folds(folds, stratified=codes is not None, grouped=False, seed=seed)
    return list(splitter.split(X, codes))


def is_hurried(cv: Any, rows: int, seconds: float | None) -> bool:
    """Whether a ``cv`` parameter means one hold-out set because of a time limit, and folds without it."""
    automatic = isinstance(cv, str) and cv == "auto"
    short = seconds is not None and rows > max(SMALL_ROWS, ROWS_PER_SECOND * seconds)
    return automatic and short and rows <= LARGE_ROWS


def auto_folds(rows: int) -> int:
    """Number of folds of ``cv="auto"`` for so many rows."""
    return SMALL_FOLDS if rows < SMALL_ROWS else AUTO_FOLDS


def _auto(X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    """Five or ten folds, or as many as the smallest class allows; classes of one row are never held out."""
    if codes is None:
        return _folds(min(auto_folds(len(X)), len(X)), X, None, seed) if len(X) > 1 else []
    alone, several, fewest = _split_singletons(codes)
    if len(several) == 0:
        return []
    folds = _folds(min(auto_folds(len(X)), fewest), X[several], codes[several], seed)
    return [(np.concatenate([several[train], alone]), several[test]) for train, test in folds]


def _kept_indices(given: Any, rows: TrainingRows) -> NDArray[np.intp]:
    """Indices into the training rows, from indices into (or a mask of) the rows passed to ``fit``."""
    position = np.full(rows.n_given, -1)
    position[rows.row_index] = np.arange(len(rows.row_index))
    kept = position[as_indices(given, rows.n_given)]
    return kept[kept >= 0]


def as_indices(given: Any, rows: int) -> NDArray[np.intp]:
    """A part of a split as nonnegative indices, from indices, which may be negative, or a mask of the rows.

    Parameters
    ----------
    given : array-like of int or bool
        Indices or a mask.
    rows : int
        Number of rows.

    Returns
    -------
    array of int
    """
    part = np.asarray(given)
    if part.dtype == bool and part.shape == (rows,):
        return np.flatnonzero(part)
    if part.size == 0:
        return np.zeros(0, dtype=np.intp)
    if part.ndim != 1 or part.dtype.kind not in "iu" or part.min() < -rows or part.max() >= rows:
        raise ValueError(f"cv must yield indices of {rows} rows or masks of that length, got {given!r}")
    return np.where(part < 0, part + rows, part).astype(np.intp)


def training_rows_first(train: NDArray[np.float64]) -> NDArray[np.intp]:
    """A permutation of the rows that puts those with a training weight ``(M, N)`` of any member first.

    Parameters
    ----------
    train : array of shape (M, N)
        Training weights.

    Returns
    -------
    array of shape (N,)
    """
    used = (train > 0).any(0)
    return np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)])
