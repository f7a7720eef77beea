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


def nelson_aalen(y: Array) -> tuple[Array, Array]:
    """Nelson and Aalen's estimate of the cumulative hazard of all rows, at the times of events.

    Parameters
    ----------
    y : array of shape (n, 2)
        Events and times.

    Returns
    -------
    times : array of shape (t,)
        Increasing; of more than a thousand, evenly spread ones, the last among them.
    hazard : array of shape (t,)
        The sum over the events so far of 1 / (rows that were still at risk); it increases.

    Examples
    --------
    >>> import numpy as np
    >>> times, hazard = nelson_aalen(np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]))
    >>> times.tolist(), hazard.round(3).tolist()
    ([2.0, 4.0], [0.333, 1.333])
    """
    event, time = y.T
    times, events = np.unique(time[event > 0], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), times)
    hazard = np.cumsum(events / at_risk)
    if len(times) > _MOST_TIMES:
        kept = np.unique(np.linspace(0, len(times) - 1, _MOST_TIMES).round().astype(np.intp))
        times, hazard = times[kept], hazard[kept]
    return times, hazard
