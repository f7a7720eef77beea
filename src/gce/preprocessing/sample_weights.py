"""Sample weights: checked, and in a unit in which they can be added and multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from gce._utils.params import is_number, short_repr
from gce.preprocessing.targets import as_floats, targets_as_array

Array = NDArray[np.float64]

#: How many times the smallest weight the largest may be: beyond, products of two weights overflow.
_MAX_RATIO = 1e100
#: Weights are counted, added and squared: larger ones are expressed in a larger unit.
_MAX_WEIGHT = 1e100


def check_sample_weight(given: Any, like: Any) -> Array:
    """Sample weights of a user, one per row of ``like``; all 1 where none are given."""
    given = targets_as_array(given, "sample_weight")
    if given is not None and not is_number(given):
        given = as_floats(given, "sample_weight")
    return rescale_weights(_check_sample_weight(given, like, dtype=np.float64, ensure_non_negative=True))


def check_scored(y: Any, sample_weight: Any) -> tuple[Any, Array | None]:
    """Targets and weights of a user for a score, as a fit reads them; None where there are no weights."""
    y = targets_as_array(y)
    if np.ndim(y) == 0:
        raise ValueError(f"y must have one target per row, got {short_repr(y)}")
    return y, None if sample_weight is None else check_sample_weight(sample_weight, y)


def rescale_weights(weight: Array, what: str = "sample weights") -> Array:
    """Weights ``(n,)`` that can be added and multiplied without overflow: in another unit where they are extreme.

    Below one row in total only proportions matter anyway, and 1e100 rows are as good as infinitely many.
    """
    known = weight[weight > 0]
    if len(known) == 0:
        return weight
    least, most = float(known.min()), float(known.max())
    if least < most / _MAX_RATIO:
        raise ValueError(
            f"{what} range from {least:.3g} to {most:.3g}, and the smallest would have no effect beside the largest: "
            f"give weights within a factor of {_MAX_RATIO:.0e}, and 0 to samples that are to be ignored"
        )
    _, exponent = np.frexp(most)
    if most > _MAX_WEIGHT:
        return weight / np.ldexp(1.0, exponent - 100)
    return weight / np.ldexp(1.0, exponent) if most < 1 / _MAX_WEIGHT else weight


def normalize_equal(weight: Array) -> Array:
    """Weights ``(n,)``, or ones where all are equal and below 1: only proportions matter there, to the last bit."""
    return np.ones_like(weight) if len(weight) and weight.min() == weight.max() < 1 else weight


def effective_count(weight: Array) -> float:
    """Effective number of rows of weights ``(n,)``.

    A row of weight 2 counts as two rows; weights that sum to less than their effective sample size count as that.

    Parameters
    ----------
    weight : array of shape (n,)
        Sample weights.

    Returns
    -------
    float
    """
    return float(max(weight.sum(), weight.sum() ** 2 / np.square(weight).sum()))
