"""Shapley values of trees: the kernels of ``native/shapley.cpp`` and ``native/shapley_background.cpp``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.native import INT, array, kernel
from gce.bases.trees.tree_arrays import TreeArrays

Array = NDArray[np.float64]

#: Rows that a thread takes at a time: whole vectors of rows, and enough of them for what is computed once for a tree.
_ROWS = 256
#: Levels of a tree at most: the kernels call themselves for each of them, with frames of 2 KiB on a stack of 8 MiB.
_MOST_LEVELS = 1024
_POINTER = ctypes.c_void_p


class TreeGame:
    """Trees as a game between the user's columns.

    A tree may look at several columns that are made of one of the user's, such as parts of a date: these are one
    player. The values of a row are the same to the bit on any number of threads and whatever the other rows are, and
    against a background from 257 rows on.

    Parameters
    ----------
    trees : TreeArrays
        On the CPU.
    players : array of shape (c,)
        The user's column that each column is made of.
    count : int
        Number of the user's columns, ``d``.

    Raises
    ------
    ValueError
        A tree has more than 1,024 levels of splits.
    """

    def __init__(self, trees: TreeArrays, players: NDArray[np.intp], count: int) -> None:
        _check_levels(trees)
        self._trees, self.count = trees, count
        # a tree of one leaf looks at the first column, to no effect
        self._players = np.append(players, 0).astype(np.int32)
        self._columns = len(players)

    def values(self, X: Array, weights: Array, into: NDArray[np.int64], sums: int) -> Array:
        """Values by the training weight that passed each node ("path-dependent").

        A coalition that lacks the player whom a node asks goes both ways, by the weights of the training rows.

        Parameters
        ----------
        X : array of shape (n, c)
        weights : array of shape (T, v)
            Weights of the trees.
        into : array of shape (T,)
            The sum that each tree belongs to.
        sums : int

        Returns
        -------
        array of shape (sums, n, d, v)
        """
        cover = self._cover()
        result = np.zeros((sums, len(X), self.count, self._trees.outputs))
        given = self._trees.handle, cover, *self._rows(X), self._players, self.count, weights, into, result
        self._run(partial(_values(), *given), len(X))
        return result

    def pairs(self, X: Array, weights: Array, into: NDArray[np.int64], sums: int) -> Array:
        """Interaction values of pairs of different players, each half of theirs, by the training weight.

        Parameters
        ----------
        X, weights, into, sums
            As in :meth:`values`.

        Returns
        -------
        array of shape (sums, n, d, d, v)
            Zero on the diagonal.
        """
        cover = self._cover()
        result = np.zeros((sums, len(X), self.count, self.count, self._trees.outputs))
        given = self._trees.handle, cover, *self._rows(X), self._players, self.count, weights, into, result
        self._run(partial(_pairs(), *given), len(X))
        return result

    def means(self) -> Array:
        """The mean of each tree over the training weight, ``(T, v)``."""
        cover, mean = self._cover(), np.zeros((len(self._trees), self._trees.outputs))
        _means()(self._trees.handle, cover, self._players, mean)
        return mean

    def against(
        self, X: Array, background: Array, shares: Array, weights: Array, into: NDArray[np.int64], sums: int
    ) -> Array:
        """Values against rows of a background ("interventional"), the mean over these.

        A coalition has the row's values for its players, and those of a row of the background for all others.

        Parameters
        ----------
        X, weights, into, sums
            As in :meth:`values`.
        background : array of shape (b, c)
        shares : array of shape (b,)
            Weights of the background's rows, which sum to 1.

        Returns
        -------
        array of shape (sums, n, d, v)
        """
        result = np.zeros((sums, len(X), self.count, self._trees.outputs))
        others, _, _ = self._rows(background)
        rows = *self._rows(X), others, shares, len(others)
        given = self._trees.handle, *rows, self._players, self.count, weights, into, result
        self._run(partial(_against(), *given), len(X))
        return result

    def _cover(self) -> NDArray[np.float32]:
        assert self._trees.cover is not None
        return self._trees.cover.contiguous().numpy()

    def _rows(self, X: Array) -> tuple[Array, int, int]:
        X = np.ascontiguousarray(X, dtype=np.float64) if X.shape[1] else np.zeros((len(X), 1))
        if X.shape[1] < self._columns:
            raise ValueError(f"rows have {X.shape[1]} columns, but there are players for {self._columns}")
        return X, len(X), X.shape[1]

    def _run(self, part: Callable[[int, int], Any], n: int) -> None:
        """Run a kernel on parts of the rows."""
        threads = max(1, min(parallel.threads(), n // _ROWS))
        ends = [0, n]
        if threads > 1:
            parts = min(4 * threads, n // _ROWS)
            ends = [min(n, _ROWS * (-(-n // _ROWS) * i // parts)) for i in range(parts + 1)]
        with parallel.workers(threads) as run:
            run([partial(part, *ends) for ends in pairwise(ends)])


def _check_levels(trees: TreeArrays) -> None:
    """Raise a ValueError where a tree is too deep for the kernels."""
    left, first, size = (own.numpy() for own in (trees.left, trees.first, trees.size))
    # a split adds two nodes: a tree of so many levels has more than twice as many nodes
    large = size > 2 * _MOST_LEVELS
    roots, nodes = first[large], np.zeros(int(large.sum()), dtype=np.int64)
    for _ in range(_MOST_LEVELS + 1):
        below = left[roots + nodes].astype(np.int64)
        inner = below > 0
        roots, nodes = np.tile(roots[inner], 2), np.concatenate([below[inner], below[inner] + 1])
        if len(nodes) == 0:
            return
    raise ValueError(
        f"Shapley values are computed of trees of at most {_MOST_LEVELS:,} levels of splits, and a tree of this model "
        "is deeper: fit again with a smaller max_depth or a larger min_samples_leaf"
    )


@cache
def _values() -> Callable[..., int]:
    return kernel("shapley_values", *_kinds())


@cache
def _pairs() -> Callable[..., int]:
    return kernel("shapley_pairs", *_kinds())


def _kinds() -> tuple[Any, ...]:
    number, small = array(np.float64), array(np.int32)
    rows = array(np.float32), number, INT, INT, small, INT
    return _POINTER, *rows, number, array(np.int64), number, INT, INT


@cache
def _means() -> Callable[..., int]:
    return kernel("shapley_means", _POINTER, array(np.float32), array(np.int32), array(np.float64))


@cache
def _against() -> Callable[..., int]:
    number = array(np.float64)
    rows = number, INT, INT, number, number, INT, array(np.int32), INT
    return kernel("shapley_against", _POINTER, *rows, number, array(np.int64), number, INT, INT)
