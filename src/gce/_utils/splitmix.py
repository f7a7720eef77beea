"""The splitmix64 hash, for arrays as it is and for compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np


def splitmix64(z: Any) -> Any:
    """Hash unsigned 64-bit integers to numbers that look random.

    Parameters
    ----------
    z : numpy.uint64, or array of them
        The integers.

    Returns
    -------
    numpy.uint64, or array of the same shape
    """
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
