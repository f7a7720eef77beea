"""Random streams without state, so that a resumed fit draws the same numbers as an uninterrupted one.

The order of rows depends on (seed, round) and is shared by the members; an atom's initial weights depend on (seed,
member, oracle call). A member is identified by a hash of *its held-out rows*, not by its position among the splits: the
same split alone, among others, or with repeated in place of weighted rows is the same member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils.params import SEED
from gce._utils.splitmix import splitmix64


@dataclass(frozen=True)
class Streams:
    """The random streams of a fit.

    Parameters
    ----------
    seed : int
        Seed of the fit.
    names : tuple of int
        A hash that identifies each member, see :func:`gce.preprocessing.row_hashes.hash_row_set`.
    """

    seed: int
    names: tuple[int, ...]

    def at(self, t: int, members: torch.Tensor, calls: torch.Tensor) -> RoundStreams:
        """The streams of round ``t`` for members with indices ``(M,)``, each at its own count of oracle calls.

        Parameters
        ----------
        t : int
            The round, from 1.
        members : Tensor of shape (M,)
            Indices of the members.
        calls : Tensor of shape (M,)
            Oracle calls of each member so far.

        Returns
        -------
        RoundStreams
        """
        pairs = zip(members.tolist(), calls.tolist(), strict=True)
        seeds = tuple((self.seed, call, self.names[m]) for m, call in pairs)
        return RoundStreams((self.seed, t), seeds, tuple(members.tolist()))


@dataclass(frozen=True)
class RoundStreams:
    """The generators of one round: one for the order of rows, one per member. They are on the CPU on any device.

    Parameters
    ----------
    row_seed : tuple of int
        Seed of the generator for the order of rows.
    member_seeds : tuple of tuple of int
        Seeds of the generators of the members.
    numbers : tuple of int
        Which members these are.
    """

    row_seed: tuple[int, ...]
    member_seeds: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...] = ()

    def of(self, place: int) -> RoundStreams:
        """The generators of one of the members alone."""
        return RoundStreams(self.row_seed, self.member_seeds[place : place + 1], self.numbers[place : place + 1])

    # seeded on first use: a round may take less time than seeding them all

    @cached_property
    def rows(self) -> torch.Generator:
        """The generator for the order of rows."""
        return _generator(*self.row_seed)

    @cached_property
    def members(self) -> Generators:
        """The generator of each member."""
        return Generators(list(self.member_seeds))

    def member_keys(self) -> NDArray[np.uint64]:
        """A random number for each member, ``(M,)``, for kernels that draw by hashing."""
        parts = [
            np.array([part % 2**64 for part in column], np.uint64) for column in zip(*self.member_seeds, strict=True)
        ]
        keys = np.zeros(len(self.member_seeds), np.uint64)
        for part in parts:
            keys = splitmix64(keys ^ part)
        return keys


class Generators(Sequence[torch.Generator]):
    """A lazy sequence of generators.

    Parameters
    ----------
    keys : list of tuple of int
        Seeds of the generators.
    """

    def __init__(self, keys: list[tuple[int, ...]]) -> None:
        self._keys = keys
        self._seeded: dict[int, torch.Generator] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        index = range(len(self))[index]
        if index not in self._seeded:
            self._seeded[index] = _generator(*self._keys[index])
        return self._seeded[index]


def _generator(*key: int) -> torch.Generator:
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def draw_seed(random_state: Any) -> int:
    """A seed for the streams of a fit; a RandomState advances by one draw, global state is not used.

    Parameters
    ----------
    random_state : None, int or RandomState
        The ``random_state`` parameter.

    Returns
    -------
    int
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    SEED.check("random_state", random_state)
    return int(random_state)
