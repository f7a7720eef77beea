"""Shapley values of any function of rows, against rows of a background: from all coalitions, or from permutations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]

#: Columns up to which all coalitions are evaluated.
MOST_EXACT = 12
#: Numbers of rows that are put together at once.
_NUMBERS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class Part:
    """A term of the function, and how it sees rows.

    Parameters
    ----------
    function : callable
        From rows ``(m, c)`` to outputs ``(m, k)``.
    X : array of shape (n, c)
        The rows that are explained.
    background : array of shape (b, c)
    players : array of shape (c,)
        The user's column that each column is made of: all columns of one are known or unknown together.
    """

    function: Callable[[Array], Array]
    X: Array
    background: Array
    players: NDArray[np.intp]

    def evaluate(self, row: int, other: NDArray[np.intp], known: Masks) -> Array:
        """Outputs ``(m, k)`` of rows that have a row's values where they are known, and of a background row elsewhere.

        Parameters
        ----------
        row : int
        other : array of shape (m,)
            The background's row of each.
        known : array of shape (m, d)
        """
        step, parts = max(1, _NUMBERS_AT_ONCE // max(1, self.X.shape[1])), []
        for first in range(0, len(known), step):
            some = slice(first, first + step)
            hybrid = np.where(known[some][:, self.players], self.X[row], self.background[other[some]])
            parts.append(self.function(hybrid))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class CoalitionGame:
    """The game of the user's columns for the sum of some parts.

    Parameters
    ----------
    parts : sequence of Part
    count : int
        Number of the user's columns, ``d``.
    outputs : int
        Number of outputs, ``k``.
    shares : array of shape (b,)
        Weights of the background's rows, which sum to 1.
    """

    parts: Sequence[Part]
    count: int
    outputs: int
    shares: Array

    @property
    def base(self) -> Array:
        """The mean over the background, ``(k,)``."""
        return self.shares @ sum(part.function(part.background) for part in self.parts)

    def values(self, n_permutations: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Values and their standard errors, ``(n, d, k)`` each.

        Up to :data:`MOST_EXACT` columns all coalitions are evaluated, and values are exact. With more columns they are
        means over permutations, of which each is taken in both directions: the errors of a permutation and of its
        reverse partly cancel. Each row of the background has permutations of its own; their sum is the score of the row
        less that of the background for every permutation, so that values add up as exact ones do.

        Parameters
        ----------
        n_permutations : int
            Pairs of permutations for each row of the background, at least 2.
        rng : numpy.random.Generator

        Returns
        -------
        tuple of arrays of shape (n, d, k)
        """
        n = len(self.parts[0].X)
        found = np.zeros((2, n, self.count, self.outputs))
        if self.count <= MOST_EXACT:
            known, weights = all_coalitions(self.count)
            for i in range(n):
                found[0, i] = np.einsum("js,sk->jk", weights, self._worth(i, known))
            return found[0], found[1]
        for i in range(n):
            found[:, i] = self._sampled(i, n_permutations, rng)
        return found[0], found[1]

    def _evaluate(self, row: int, other: NDArray[np.intp], known: Masks) -> Array:
        return sum((part.evaluate(row, other, known) for part in self.parts), np.zeros((len(known), self.outputs)))

    def _worth(self, row: int, known: Masks) -> Array:
        """The mean over the background for each coalition, ``(s, k)``."""
        total = np.zeros((len(known), self.outputs))
        for b, share in enumerate(self.shares):
            total += share * self._evaluate(row, np.full(len(known), b), known)
        return total

    def _sampled(self, row: int, pairs: int, rng: np.random.Generator) -> Array:
        """Means over permutations and their standard errors, ``(2, d, k)``."""
        mean, variance = np.zeros((2, self.count, self.outputs))
        for b, share in enumerate(self.shares):
            each = np.stack(list(self._pairs(row, b, pairs, rng)))
            mean += share * each.mean(0)
            variance += share**2 * each.var(0, ddof=1) / pairs
        return np.stack([mean, np.sqrt(variance)])

    def _pairs(self, row: int, b: int, pairs: int, rng: np.random.Generator) -> Iterator[Array]:
        """What each column adds, ``(d, k)``: the mean of a permutation and its reverse."""
        for _ in range(pairs):
            order = rng.permutation(self.count)
            ranks = np.empty(self.count, np.intp)
            ranks[order] = np.arange(self.count)
            joined = ranks[None] < np.arange(self.count + 1)[:, None]
            # the reverse has the complements of these coalitions: all but the first and the last are new
            known = np.concatenate([joined, ~joined[1:-1]])
            worth = self._evaluate(row, np.full(len(known), b), known)
            there = worth[: self.count + 1]
            # of the reverse, by how many of `order` are still unknown: all, all but one, ..., none
            back = np.concatenate([there[-1:], worth[self.count + 1 :], there[:1]])
            added = np.empty((self.count, self.outputs))
            added[order] = (np.diff(there, axis=0) - np.diff(back, axis=0)) / 2
            yield added


def all_coalitions(d: int) -> tuple[Masks, Array]:
    """All coalitions ``(2^d, d)`` of columns, and the weights ``(d, 2^d)`` of what they are worth in the values.

    Parameters
    ----------
    d : int
        Number of columns.
    """
    known = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
    size = known.sum(1)
    joins = np.array([factorial(s) * factorial(d - 1 - s) / factorial(d) for s in range(d)])
    inside = joins[np.maximum(size - 1, 0)]
    outside = joins[np.minimum(size, d - 1)]
    return known, np.where(known, inside[:, None], -outside[:, None]).T
