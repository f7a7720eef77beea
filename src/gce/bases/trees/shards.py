"""Rows that are divided among processes, as the kernels that grow trees see them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gce.distributed.division import Division

#: Combines int64 numbers of all shards in place: address, count, and 0 for their sums or 1 for the largest of each.
Reduce = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows that are divided among processes: each grows the trees of all rows, from its own rows and everyone's sums.

    Integers are added up, so that trees do not depend on how rows are divided. All processes must have the same bins,
    settings and random numbers.

    Parameters
    ----------
    reduce : Reduce
        Called in the same order by all of them, by one thread each. Without an address: there is one process.
    rows : int
        Training rows of all shards.
    errors : list of BaseException
        What ``reduce`` caught, to be raised once a kernel has returned.
    """

    reduce: Any
    rows: int
    errors: list[BaseException] = field(default_factory=list)

    @classmethod
    def of(cls, division: Division) -> Shards:
        """The shards of a division, whose processes tell each other their numbers.

        Parameters
        ----------
        division : Division

        Returns
        -------
        Shards
        """
        world, errors = division.world, list[BaseException]()
        if world.size == 1:
            return cls(Reduce(), division.rows)

        def reduce(address: Any, count: int, how: int) -> None:
            # after an error the numbers stay as they are: the kernel ends soon, with trees that nobody looks at
            if errors:
                return
            try:
                numbers = np.ctypeslib.as_array(address, (count,))
                if how:
                    world.take_largest(numbers)
                else:
                    world.add_up(numbers)
            except BaseException as error:  # ctypes would only print it
                errors.append(error)

        return cls(Reduce(reduce), division.rows, errors)

    def check(self) -> None:
        """Raise what a process was told, or found out, while the kernel ran."""
        if self.errors:
            raise self.errors.pop()
