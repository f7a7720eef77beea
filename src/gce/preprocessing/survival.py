"""Times until an event, of which some are censored: how they are given, and the cumulative hazard of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.targets import targets_as_array

Array = NDArray[np.float64]

#: Times that a baseline is kept at.
_MOST_TIMES = 1000


def read_survival(y: Any, name: str = "y") -> Array:
    """Events and times as two columns.

    Parameters
    ----------
    y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        Whether the event happened (else the row was censored), and when: scikit-survival's structured array, or two
        columns.
    name : str, default="y"
        Name of the parameter in errors.

    Returns
    -------
    array of shape (n, 2)
        0 or 1, and positive times.

    Raises
    ------
    ValueError
        There are other values, or missing ones.

    Examples
    --------
    >>> import numpy as np
    >>> read_survival(np.array([(True, 3.0), (False, 5.0)], dtype=[("event", bool), ("time", float)])).tolist()
    [[1.0, 3.0], [0.0, 5.0]]
    """
    given = targets_as_array(y, name)
    if given is None:
        raise ValueError(f"{name} is missing: give events and times, as a structured array or as two columns")
    both = np.asarray(given)
    if both.ndim != 2 or both.shape[1] != 2:
        raise ValueError(
            f"{name} must have two columns, whether the event happened and when, or be a structured array of these; "
            f"its shape is {both.shape}"
        )
    if both.dtype.kind in "mM":
        raise ValueError(f"{name} holds dates: give the time from the start of each row, such as days")
    for column, what in enumerate(("whether the event happened (True or False, 1 or 0)", "when")):
        try:
            both[:, column].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {column} of {name}, {what}, holds {both[0, column]!r}: give numbers") from error
    event, time = both.astype(np.float64).T
    if np.isnan(event).any() or np.isnan(time).any():
        raise ValueError(f"{name} has missing values (NaN): drop these rows, or censor them at the last time known")
    wrong = (event != 0) & (event != 1)
    if wrong.any():
        raise ValueError(
            f"the first column of {name} says whether the event happened, True or False (1 or 0), but has "
            f"{event[wrong][0]:g}: give (event, time), in this order"
        )
    wrong = ~((time > 0) & np.isfinite(time))
    if wrong.any():
        raise ValueError(
            f"times must be positive and finite, but {name} has {time[wrong][0]:g}: drop these rows, or give a small "
            "time to events at the very start"
        )
    return np.column_stack([event, time])


def check_events(y: Array) -> None:
    """Raise a ValueError where there is no event among events and times ``(n, 2)``."""
    if not y[:, 0].any():
        raise ValueError(
            f"y has no event in rows of positive weight, only {len(y)} censored times: there is nothing to learn of "
            "when events happen"
        )


def nelson_aalen(y: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Nelson and Aalen's estimate of the cumulative hazard of all rows, at the times of events.

    Parameters
    ----------
    y : array of shape (n, 2)
        Events and times.
    weight : array of shape (n,), optional
        Positive sample weights: a row of weight 2 is two rows. Default: 1.

    Returns
    -------
    times : array of shape (t,)
        Increasing; of more than a thousand, evenly spread ones, the last among them.
    hazard : array of shape (t,)
        The sum over the events so far of their weight / (weight of the rows still at risk); it increases.

    Examples
    --------
    >>> import numpy as np
    >>> times, hazard = nelson_aalen(np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]))
    >>> times.tolist(), hazard.round(3).tolist()
    ([2.0, 4.0], [0.333, 1.333])
    """
    event, time = y[:, 0] > 0, y[:, 1]
    weight = np.ones(len(y)) if weight is None else weight
    times, index = np.unique(time[event], return_inverse=True)
    order = np.argsort(time, kind="stable")
    # sums of whole weights are exact: repeated rows have the same scale to the bit
    at_risk = np.cumsum(weight[order][::-1])[::-1][np.searchsorted(time[order], times)]
    hazard = np.cumsum(np.bincount(index, weight[event]) / at_risk)
    # events of next to no weight beside others are lost in rounding, and a scale must increase
    kept = np.flatnonzero(np.diff(hazard, prepend=0.0))
    times, hazard = times[kept], hazard[kept]
    if len(times) > _MOST_TIMES:
        kept = np.unique(np.linspace(0, len(times) - 1, _MOST_TIMES).round().astype(np.intp))
        times, hazard = times[kept], hazard[kept]
    return times, hazard
