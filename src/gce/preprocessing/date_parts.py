"""What the calendar says of a date: its parts, and where it is in the cycles of the year, the week and the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DAY, _WEEK = 86_400, 604_800
#: Days and years of a period of the Gregorian calendar.
_ERA_DAYS, _ERA_YEARS = 146_097, 400
#: Days from 1 March of year -400 to 1970-01-01: so shifted, all dates since year 1 are positive in every time zone.
_SHIFT = 719_468 + _ERA_DAYS
#: Cycles: the calendar's number that turns, and one turn of it.
_CYCLES = {"year": ("quarter of year day", 1461), "week": ("second of week", _WEEK), "day": ("second of day", _DAY)}
#: The numbers that must vary for a part: a weekday says nothing of dates that are all the first of a month.
_NEEDS = {
    "year": ("year",),
    "month": ("month",),
    "day": ("day",),
    "weekday": ("weekday", "day"),
    "day of year": ("day of year", "day"),
    "hour": ("hour",),
    "minute of day": ("minute",),
    "sin of year": ("month",),
    "cos of year": ("month",),
    "sin of week": ("weekday", "day"),
    "cos of week": ("weekday", "day"),
    "sin of day": ("second of day",),
    "cos of day": ("second of day",),
}


def calendar(second: Any) -> dict[str, Any]:
    """The calendar's numbers of dates, by sums, products and quotients of positive integers alone.

    The year begins in March, so that a leap day is its last: month ``m`` of it then begins on day ``(153 m + 2) // 5``,
    and of 400 years the leap days are days 1460, 36524 and 146096 and their multiples (Hinnant, "chrono-Compatible
    Low-Level Date Algorithms").

    Parameters
    ----------
    second : array of int64 of shape (n,), or integers of a graph
        Whole seconds since 1970-01-01 of the wall clock.

    Returns
    -------
    dict of str to integers
        Of the same kind; weekdays are from 0, Monday.
    """
    shifted = second + _SHIFT * _DAY
    date = shifted // _DAY
    clock = shifted - date * _DAY
    era = date // _ERA_DAYS
    of_era = date - era * _ERA_DAYS
    years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - years * 365 - years // 4 + years // 100
    from_march = (of_year * 5 + 2) // 153
    # January and February belong to the next year
    turned = from_march // 10
    year = era * _ERA_YEARS + years + turned
    before = year - 1
    first_of_year = before * 365 + before // 4 - before // 100 + before // 400
    # 1 January of year 1 is 306 days after 1 March of the year before it
    day_of_year = date - 306 - first_of_year + 1
    # 1 March of the year -400 is a Wednesday
    weekday = date + 2 - (date + 2) // 7 * 7
    hour = clock // 3600
    return {
        "year": year - _ERA_YEARS,
        "month": from_march + 3 - turned * 12,
        "day": of_year - (from_march * 153 + 2) // 5 + 1,
        "weekday": weekday,
        "day of year": day_of_year,
        "hour": hour,
        "minute": clock // 60 - hour * 60,
        "minute of day": clock // 60,
        "second of day": clock,
        "second of week": weekday * _DAY + clock,
        "quarter of year day": (day_of_year - 1) * 4,
    }


def cycle(part: str) -> tuple[str, float, float] | None:
    """The number whose sine a part is, the angle of one unit of it, and the angle that is added; None for other parts.

    Parameters
    ----------
    part : str
        Such as "cos of week".

    Returns
    -------
    tuple of (str, float, float) or None
    """
    function, _, name = part.partition(" of ")
    if function not in ("sin", "cos"):
        return None
    number, turn = _CYCLES[name]
    # a cosine is a sine a quarter of a turn later, and the only one of the two that old ONNX runtimes have in float64
    return number, 2 * np.pi / turn, np.pi / 2 if function == "cos" else 0.0


@dataclass(frozen=True)
class DateParts:
    """Calendar parts and cycles of a column of dates.

    Parameters
    ----------
    names : tuple of str
        Those that are made, ``p`` of them.
    """

    names: tuple[str, ...]

    @classmethod
    def fit(cls, seconds: Array) -> DateParts:
        """The parts that vary among training rows.

        Parameters
        ----------
        seconds : array of shape (n,)
            Seconds since 1970-01-01 of the wall clock, NaN for missing values.

        Returns
        -------
        DateParts
        """
        whole = np.floor(seconds[~np.isnan(seconds)]).astype(np.int64)
        varying = {name for name, number in calendar(whole).items() if len(number) and np.ptp(number) > 0}
        return cls(tuple(part for part, needed in _NEEDS.items() if varying.issuperset(needed)))

    def transform(self, column: Array) -> Array:
        """The parts of dates, ``(n, p)``.

        Parameters
        ----------
        column : array of shape (n,)
            Seconds since 1970-01-01 of the wall clock, NaN for missing values.

        Returns
        -------
        array of shape (n, p)
        """
        present = ~np.isnan(column)
        numbers = calendar(np.floor(column[present]).astype(np.int64))
        out = np.full((len(column), len(self.names)), np.nan)
        for j, part in enumerate(self.names):
            turning = cycle(part)
            if turning is None:
                out[present, j] = numbers[part]
            else:
                number, angle, added = turning
                out[present, j] = np.sin(numbers[number] * angle + added)
        return out

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""
        return {"names": list(self.names)}, {}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DateParts:
        """Restore parts from their state.

        Raises
        ------
        ValueError
            There are other parts, or they are in another order.
        """
        names = meta.get("names")
        if arrays or not isinstance(names, list) or names != [part for part in _NEEDS if part in names]:
            raise ValueError("the calendar parts of a column are inconsistent")
        return cls(tuple(names))
