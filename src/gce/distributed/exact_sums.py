"""Sums of numbers whose bits do not depend on the order of the rows, nor on who has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.distributed.world import World

Array = NDArray[np.float64]

#: Bits of each of the two integers that a number is made of, where there are no more than 2^30 rows.
_BITS = 32
#: Rows that may be added at once: sums of so many integers of 32 bits are exact in float64.
_MOST_ROWS = 1 << 20
#: Numbers that are sent at once.
_SENT = 1 << 20


class ExactSums:
    """Sums of numbers between -1 and 1 over the rows of each of several cells.

    A number is rounded to ``high 2^-b + low 2^-2b`` with integers ``high`` and ``low``, which differs from it by at
    most ``2^-(2 b + 1)``. Integers are added up, so that only the total is rounded to a float.

    Parameters
    ----------
    cells : int
    columns : int
        Numbers of a row, which are summed separately.
    rows : int
        An upper bound of the number of rows of all processes, by which no sum overflows. ``b`` is 32 up to 2^30 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.distributed import World
    >>> from gce.distributed.exact_sums import ExactSums
    >>> sums = ExactSums(2, 1, rows=3)
    >>> sums.add(np.array([0, 1, 0]), np.array([[0.1], [1.0], [0.2]]))
    >>> sums.total(World()).round(6)
    array([[0.3],
           [1. ]])
    """

    def __init__(self, cells: int, columns: int, rows: int) -> None:
        self._unit = 2.0 ** min(_BITS, 62 - int(rows).bit_length())
        self._parts = np.zeros((cells, columns, 2), np.int64)

    def add(self, cell: NDArray[np.intp], numbers: Array) -> None:
        """Add rows.

        Parameters
        ----------
        cell : array of shape (n,)
            The cell of each row.
        numbers : array of shape (n, columns)
            Between -1 and 1.
        """
        assert len(cell) <= _MOST_ROWS
        found, place = np.unique(cell, return_inverse=True)
        sums = np.empty((numbers.shape[1], 2, len(found)))
        for own, column in zip(sums, numbers.T, strict=True):
            # by powers of two, and to integers: all of it is exact but for the last rounding
            scaled = column * self._unit
            high = np.rint(scaled)
            own[0] = np.bincount(place, high, len(found))
            own[1] = np.bincount(place, np.rint((scaled - high) * self._unit), len(found))
        self._parts[found] += sums.transpose(2, 0, 1).astype(np.int64)

    def total(self, world: World) -> Array:
        """The sums over all processes, ``(cells, columns)``; nothing can be added any more.

        Parameters
        ----------
        world : World
            The processes.

        Returns
        -------
        array of shape (cells, columns)
        """
        flat = self._parts.reshape(-1)
        for first in range(0, len(flat), _SENT):
            world.add_up(flat[first : first + _SENT])
        high, low = self._parts[:, :, 0], self._parts[:, :, 1]
        return np.asarray(high / self._unit + low / self._unit**2)
