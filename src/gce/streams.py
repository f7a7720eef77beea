"""Random streams: stateless, so that a resumed fit draws what an uninterrupted one would.

The order of rows comes from (seed, round) and is shared by the members; an atom's initial weights come from (seed,
member, oracle call). A member is named by *what it holds out*, not by its place among the splits: the same split
alone, or among others, or with repeated in place of weighted rows, is the same member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.rows import SparseRows

_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class Streams:
    """The random numbers of a fit.

    Parameters
    ----------
    seed : int
    names : tuple of int
        A name for each member, see :func:`name_of_rows`.
    """

    seed: int
    names: tuple[int, ...]

    def at(self, t: int, members: torch.Tensor, calls: torch.Tensor) -> RoundStreams:
        """The streams of round ``t`` for some members, each at its own count of oracle calls."""
        pairs = zip(members.tolist(), calls.tolist(), strict=True)
        return RoundStreams(
            rows=_generator(self.seed, t),
            members=Generators([(self.seed, call, self.names[m]) for m, call in pairs]),
        )


@dataclass(frozen=True)
class RoundStreams:
    """One round's generators: one for the order of rows, and one a member. All on the CPU, whatever the device."""

    rows: torch.Generator
    members: Sequence[torch.Generator]


class Generators(Sequence[torch.Generator]):
    """Generators by their keys, each made when it is asked for: a round may take less time than making them all.

    Parameters
    ----------
    keys : list of tuple of int
    """

    def __init__(self, keys: list[tuple[int, ...]]) -> None:
        self._keys = keys
        self._made: dict[int, torch.Generator] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        place = range(len(self))[place]
        if place not in self._made:
            self._made[place] = _generator(*self._keys[place])
        return self._made[place]


def _generator(*key: int) -> torch.Generator:
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def names_of_rows(X: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A number for what each row of ``X`` holds, ``(n,)``."""
    return scrambled(_sums(X))


def scrambled(names: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look drawn at random, one for each (splitmix64)."""
    z = names + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _odd(columns: int) -> NDArray[np.uint64]:
    drawn = np.random.Generator(np.random.PCG64(0)).integers(1 << 63, size=columns, dtype=np.uint64)
    return np.asarray(drawn) | np.uint64(1)


def name_of_rows(X: NDArray[np.float64] | SparseRows) -> int:
    """A number for the *set* of rows of ``X``: their order and how often they are repeated do not count.

    A zero adds nothing, so that rows have one name whether their zeros are kept or not.
    """
    if isinstance(X, SparseRows):
        odd, kept = _odd(X.shape[1]), X.matrix
        sums = np.append(np.uint64(0), np.cumsum(_mixed(kept.data, odd[kept.indices]), dtype=np.uint64))
        mixed = np.diff(sums[kept.indptr])  # modulo 2^64, as all sums here
    else:
        mixed = _sums(X)
    distinct = np.unique(mixed)
    distinct = (distinct ^ (distinct >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return int(distinct.sum(dtype=np.uint64))


def _sums(X: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Each row's sum, ``(n,)``; some rows at a time, which stay in the processor's cache."""
    odd, sums = _odd(X.shape[1]), np.empty(len(X), np.uint64)
    for first in range(0, len(X), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        sums[rows] = _mixed(X[rows], odd).sum(1, dtype=np.uint64)
    return sums


def _mixed(values: NDArray[np.float64], odd: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
    return (bits ^ (bits >> np.uint64(29))) * odd
