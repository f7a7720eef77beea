"""Sets of columns that may interact."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import is_iterable, short_repr
from gce.preprocessing.schema import column_index

#: "pairwise", "no_interactions", or sets that each column is in one of at least, as sorted indices in sorted order.
Interactions = str | tuple[tuple[int, ...], ...]

PAIRWISE, NO_INTERACTIONS = "pairwise", "no_interactions"
_WORD = 64


def read_interactions(given: Any, names: Sequence[str]) -> Interactions:
    """The ``interaction_cst`` parameter in one form.

    Parameters
    ----------
    given : {"pairwise", "no_interactions"} or sequence of collections of str or int
        Sets of columns by name or index; columns in none of them form one more.
    names : sequence of str
        Names of all columns.

    Returns
    -------
    str or tuple of tuple of int

    Examples
    --------
    >>> read_interactions([["b", "a"], {2, 1}], ["a", "b", "c", "d"])
    ((0, 1), (1, 2), (3,))
    """
    if isinstance(given, str):
        return given
    sets = {_columns(one, names) for one in given}
    rest = set(range(len(names))).difference(*sets)
    return tuple(sorted(sets | {tuple(sorted(rest))} if rest else sets))


def _columns(given: Any, names: Sequence[str]) -> tuple[int, ...]:
    """The columns of one set, ascending."""
    unfit = isinstance(given, str | bytes | Mapping) or not isinstance(given, Collection)
    if unfit or not is_iterable(given):
        raise ValueError(
            f"interaction_cst must list sets of columns, such as [[0, 1], [1, 2]], got {short_repr(given)} as a set"
        )
    if len(given) == 0:
        raise ValueError("interaction_cst has an empty set: leave it out, or list the columns that may interact")
    return tuple(sorted({column_index("interaction_cst", item, names) for item in given}))


def restricts(groups: NDArray[np.uint64]) -> bool:
    """Whether some inputs may not interact: no set has all of them.

    Parameters
    ----------
    groups : array of shape (d, W)
        The sets that each input belongs to, one bit each in ``W`` words.
    """
    return not np.bitwise_and.reduce(groups, axis=0).any()


def pack_interactions(interactions: Interactions, columns: int) -> NDArray[np.uint64]:
    """The sets that each column is in, as bits.

    Parameters
    ----------
    interactions : str or tuple of tuple of int
        See :func:`read_interactions`.
    columns : int
        Number of columns.

    Returns
    -------
    array of shape (columns, W)
        Bit ``s % 64`` of word ``s // 64`` is 1 where a column is in set ``s``.
    """
    sets: Collection[Sequence[int]]
    if interactions == PAIRWISE and columns > 1:
        sets = list(combinations(range(columns), 2))
    elif isinstance(interactions, str):
        sets = [(column,) for column in range(columns)]
    else:
        sets = interactions
    column = np.array([column for one in sets for column in one], dtype=np.intp)
    index = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    packed = np.zeros((columns, -(-len(sets) // _WORD)), np.uint64)
    np.bitwise_or.at(packed, (column, index // _WORD), np.left_shift(np.uint64(1), (index % _WORD).astype(np.uint64)))
    return packed
