"""Members: which rows each trains on and which it holds out.

One member is the paper's hold-out; ``K`` members are K-fold cross-fitting, trained at once and averaged: an average of
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

from gce.parameters import count, is_iterable, shown
from gce.rows import Matrix, SparseRows
from gce.streams import name_of_rows

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Folds of ``cv="auto"``: five, but ten where rows are so few that a fifth of them is missed.
AUTO_FOLDS, SMALL_FOLDS, SMALL_ROWS = 5, 10, 2000


@dataclass(frozen=True)
class Rows:
    """The rows of a fit, those of weight 0 left out.

    Parameters
    ----------
    X : array or SparseRows of shape (n, d)
        Coded columns.
    target : array of shape (n, k)
    codes : array of shape (n,) or None
        Classes, to stratify by.
    weight : array of shape (n,)
    kept : array of shape (n,)
        Where the rows stood in the caller's table: an iterable's indices count there.
    groups : array of shape (n,) or None
    given : int
        Rows of the caller's table.
    """

    X: Matrix
    target: Array
    codes: NDArray[np.intp] | None
    weight: Array
    kept: NDArray[np.intp]
    groups: NDArray[Any] | None
    given: int


@dataclass(frozen=True)
class Members:
    """Rows of ``M`` members.

    Parameters
    ----------
    train, held_out : array of shape (M, N)
        Row weights; each member's training weights sum to 1, its held-out ones to 1 or (nothing held out) 0.
    names : tuple of int
        What each member holds out, as a number for its random streams.
    held_out_total : array of shape (M,)
        The sum of each member's held-out weights as they were given: what its rows count beside those of others.
    count : array of shape (M,)
        How many rows each member's training weights stand for: a row of weight 2 counts as two rows. Weights that were
        scaled to sum to less count as their effective number.
    """

    train: Array
    held_out: Array
    names: tuple[int, ...]
    held_out_total: Array
    count: Array


def from_splits(X: Matrix, weight: Array, splits: Iterable[Split]) -> Members:
    """One member a split ``(train, test)`` of the rows of ``X`` with weights ``(n,)``; a row named twice counts so."""
    train, held_out, names, total, count = [], [], [], [], []
    for number, (learn, test) in enumerate(splits):
        own, other = (np.bincount(part, weight[part], len(X)).astype(np.float64) for part in (learn, test))
        if own.sum() == 0:
            raise ValueError(f"split {number} of cv has no training row with a positive sample weight")
        train.append(own / own.sum())
        held_out.append(other / other.sum() if other.any() else other)
        names.append(name_of_rows(X[test]))
        total.append(other.sum())
        count.append(counted(own))
    if not train:
        raise ValueError("cv gave no split: it must yield at least one (train, test) pair")
    return Members(np.stack(train), np.stack(held_out), tuple(names), np.array(total), np.array(count))


def counted(weight: Array) -> float:
    """How many rows weights ``(n,)`` stand for."""
    return float(max(weight.sum(), weight.sum() ** 2 / np.square(weight).sum()))


def with_validation(X: Matrix, weight: Array, X_val: Matrix, weight_val: Array) -> Members:
    """One member that trains on all rows of ``X`` and is watched on rows given for that; they come after ``X``."""
    train = np.concatenate([weight / weight.sum(), np.zeros(len(X_val))])
    held_out = np.concatenate([np.zeros(len(X)), weight_val / weight_val.sum()])
    names, total = (name_of_rows(X_val),), weight_val.sum(keepdims=True)
    return Members(train[None], held_out[None], names, total, np.array([counted(weight)]))


def splits_for(cv: Any, fraction: float | None, rows: Rows, seed: int) -> list[Split]:
    """The splits that ``cv`` asks for.

    Parameters
    ----------
    cv : None, "auto", int, splitter or iterable of (train, test)
        None: one hold-out of ``fraction`` of the rows (nothing held out where that is None).
    fraction : float or None
    rows : Rows
    seed : int
    """
    X, codes, groups = rows.X, rows.codes, rows.groups
    everything = [(np.arange(len(X)), np.arange(0))]
    automatic = isinstance(cv, str) and cv == "auto"
    whole = isinstance(cv, Integral) and not isinstance(cv, bool)
    if is_splitter(cv):
        y = rows.target if codes is None else codes
        table = X.matrix if isinstance(X, SparseRows) else X
        splits = cv.split(table, y if codes is not None or y.shape[1] > 1 else y[:, 0], groups)
        return [(indices(learn, len(X)), indices(test, len(X))) for learn, test in splits]
    if whole:
        count(2).check("cv", cv)
    if groups is not None and (cv is None or automatic or whole):
        return _grouped(cv, fraction, rows, groups, seed)
    if cv is None:
        return _hold_out(fraction, X, codes, seed) if fraction is not None else everything
    if automatic:
        return _auto(X, codes, seed) or everything
    if whole:
        return _folds(int(cv), X, codes, seed)
    given = as_pairs(cv, "None, 'auto', an int, a scikit-learn splitter or an iterable of (train, test)")
    if groups is not None:
        raise ValueError("groups and a list of splits both say what to hold out: give one of them")
    return [(_moved(learn, rows), _moved(test, rows)) for learn, test in given]


def is_splitter(cv: Any) -> bool:
    """Whether something splits rows as scikit-learn's splitters do; text and tensors have a ``split`` of their own."""
    return hasattr(cv, "split") and not isinstance(cv, str | bytes | Tensor)


def as_pairs(cv: Any, words: str) -> list[tuple[Any, Any]]:
    """Given splits, which must be pairs."""
    listed: list[Any] = list(cv) if is_iterable(cv) and not isinstance(cv, str | Mapping) else [None]
    if not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in listed):
        raise ValueError(f"cv must be {words}, got {shown(cv)}")
    return [(learn, test) for learn, test in listed]


def _grouped(cv: Any, fraction: float | None, rows: Rows, groups: NDArray[Any], seed: int) -> list[Split]:
    """Folds, or one hold-out, that keep groups whole."""
    X, codes = rows.X, rows.codes
    if cv is None:
        if fraction is None:
            raise ValueError("groups are for held-out rows, and validation_fraction=None holds out nothing")
        return list(GroupShuffleSplit(1, test_size=fraction, random_state=seed).split(X, codes, groups))
    several = len(np.unique(groups))
    folds = min(auto_folds(len(X)), several) if isinstance(cv, str) else int(cv)
    if not 2 <= folds <= several:
        raise ValueError(f"cv={cv!r} needs at least 2 groups, and no more folds than groups, got {several} groups")
    kind = GroupKFold if codes is None else StratifiedGroupKFold
    return list(kind(folds, shuffle=True, random_state=seed).split(X, codes, groups))


def _hold_out(fraction: float, X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    if codes is None:
        return list(ShuffleSplit(1, test_size=fraction, random_state=seed).split(X))
    alone, several, fewest = _repeated(codes)
    if len(several) == 0:
        return [(np.arange(len(X)), np.arange(0))]
    classes, size = len(np.unique(codes[several])), math.ceil(fraction * len(several))
    if size >= classes and len(several) - size >= classes:
        kind: Any = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed)
    else:  # so small a part cannot hold a row of each class: a fold of as many as the smallest class allows
        kind = StratifiedKFold(min(max(2, round(1 / fraction)), fewest), shuffle=True, random_state=seed)
    learn, test = next(iter(kind.split(X[several], codes[several])))
    return [(np.sort(np.concatenate([several[learn], alone])) if len(alone) else learn, several[test])]


def _repeated(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Rows whose class has no other row, all other rows, and how many the smallest class among these has."""
    count = np.bincount(codes)[codes]
    alone, several = np.flatnonzero(count == 1), np.flatnonzero(count > 1)
    return alone, several, int(count[several].min()) if len(several) else 0


def _folds(folds: int, X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    kind = KFold if codes is None else StratifiedKFold
    return list(kind(folds, shuffle=True, random_state=seed).split(X, codes))


def auto_folds(rows: int) -> int:
    """How many folds suit so many rows."""
    return SMALL_FOLDS if rows < SMALL_ROWS else AUTO_FOLDS


def _auto(X: Matrix, codes: NDArray[np.intp] | None, seed: int) -> list[Split]:
    """Five folds, or as many as the rows of the smallest class allow; a class of one row is never held out."""
    if codes is None:
        return _folds(min(auto_folds(len(X)), len(X)), X, None, seed) if len(X) > 1 else []
    alone, several, fewest = _repeated(codes)
    if len(several) == 0:
        return []
    folds = _folds(min(auto_folds(len(X)), fewest), X[several], codes[several], seed)
    return [(np.concatenate([several[learn], alone]), several[test]) for learn, test in folds]


def _moved(given: Any, rows: Rows) -> NDArray[np.intp]:
    """Indices (or a mask) into the caller's rows as indices into the rows that are kept."""
    place = np.full(rows.given, -1)
    place[rows.kept] = np.arange(len(rows.kept))
    found = place[indices(given, rows.given)]
    return found[found >= 0]


def indices(given: Any, rows: int) -> NDArray[np.intp]:
    """A part of a split as indices from 0, whether given as these, from the end (negative) or as a mask."""
    part = np.asarray(given)
    if part.dtype == bool and part.shape == (rows,):
        return np.flatnonzero(part)
    if part.size == 0:
        return np.zeros(0, dtype=np.intp)
    if part.ndim != 1 or part.dtype.kind not in "iu" or part.min() < -rows or part.max() >= rows:
        raise ValueError(f"cv must give indices of {rows} rows or masks of that length, got {given!r}")
    return np.where(part < 0, part + rows, part).astype(np.intp)
