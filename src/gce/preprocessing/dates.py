"""Columns of dates and durations as seconds, and the wall clocks of time zones."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import short_repr
from gce.preprocessing.values import is_missing

Array = NDArray[np.float64]
Values = NDArray[np.object_]
TimeKind = Literal["date", "duration"]

#: Types of dates and times.
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
#: Those that are a moment; the others are durations.
_MOMENTS = (datetime.date, np.datetime64)
#: Seconds of numpy's units; years and months of durations have no certain length.
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
#: The first and the last moment that Python's calendar has.
_FIRST, _LAST = np.datetime64("0001-01-01"), np.datetime64("9999-12-31T23:59:59.999999")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY = 86_400
_FIXED_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)(?::(\d\d))?")
#: Text in the form of an ISO 8601 date, which may have more numbers than the calendar.
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")
#: Share of the values of a text column that must be dates for an offer, and how many of its values are tried.
_OFFERED_SHARE, _TRIED = 0.95, 1000


class Moments(NamedTuple):
    """A column of dates or durations.

    Parameters
    ----------
    kind : {"date", "duration"}
    seconds : array of shape (n,)
        Seconds since 1970-01-01, in UTC where there is a time zone, else of the wall clock; or of durations. NaN where
        a value is missing.
    zone : str or None
        The time zone.
    """

    kind: TimeKind
    seconds: Array
    zone: str | None = None


def are_among(values: Values) -> bool:
    """Whether Python objects ``(n,)`` have dates, times, durations or periods among them, or missing ones alone."""
    if not any(map(_is_time, set(map(type, values)))):
        return False
    present = {type(value) for value in values if not is_missing(value)}
    # a missing date among numbers or text is a missing number or text
    return not present or any(map(_is_time, present))


def _is_time(kind: type) -> bool:
    return issubclass(kind, DATES) or kind.__name__ == "Period"


def from_series(name: str, series: Any) -> Moments:
    """Read a column of a date type of its library.

    Parameters
    ----------
    name : str
        Name of the column.
    series : narwhals.Series

    Returns
    -------
    Moments
    """
    zone = getattr(series.dtype, "time_zone", None)
    if zone is None:
        values = np.asarray(series.to_numpy())
        return from_numpy(name, values) if values.dtype.kind in "Mm" else from_objects(name, series.to_list())
    _known_zone(name, zone)
    utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return from_numpy(name, np.asarray(utc.to_numpy()))._replace(zone=zone)


def from_numpy(name: str, values: NDArray[Any]) -> Moments:
    """Read an array of datetime64 or timedelta64.

    Parameters
    ----------
    name : str
        Name of the column.
    values : array of shape (n,)

    Returns
    -------
    Moments

    Raises
    ------
    ValueError
        A date is not in the years 1 to 9999, or durations are years or months.
    """
    unit, count = np.datetime_data(values.dtype)
    kind: TimeKind = "date" if values.dtype.kind == "M" else "duration"
    missing = np.isnat(values)
    if missing.all():
        return Moments(kind, np.full(len(values), np.nan))
    if kind == "date":
        _check_years(name, values[~missing], unit)
        if unit not in _PER_SECOND:
            values, unit, count = values.astype("datetime64[s]"), "s", 1
    elif unit in ("Y", "M", "generic"):
        raise ValueError(f"column {name!r} holds durations without a unit of fixed length: convert them to days")
    ticks = values.astype(np.int64)
    ticks[missing] = 0
    if unit in _PER_SECOND:
        # whole seconds are exact, and so the sum does not depend on the unit
        per = _PER_SECOND[unit]
        seconds = (ticks // per * count).astype(np.float64) + ticks % per * float(count) / per
    else:
        seconds = ticks.astype(np.float64) * (_SECONDS[unit] * count)
    seconds[missing] = np.nan
    return Moments(kind, seconds)


def _check_years(name: str, values: NDArray[Any], unit: str) -> None:
    """Raise a ValueError for dates that are not in the years 1 to 9999."""
    # 64 bits of smaller units than microseconds do not reach so far
    if unit in ("ns", "ps", "fs", "as"):
        return
    outside = (values < _FIRST.astype(values.dtype)) | (values > _LAST.astype(values.dtype))
    if outside.any():
        raise ValueError(
            f"column {name!r} holds a date outside of the years 1 to 9999 ({values[outside][0]}): correct it, or make "
            "it a missing value"
        )


def from_objects(name: str, values: Iterable[Any]) -> Moments:
    """Read Python objects that have dates, times or durations among them.

    Parameters
    ----------
    name : str
        Name of the column.
    values : iterable of length n
        The values.

    Returns
    -------
    Moments

    Raises
    ------
    TypeError
        There are other values too, dates and durations, or periods.
    ValueError
        Dates have several time zones, or only some of them have one.
    """
    listed = list(values)
    # numpy has one unit for all values of an array: those of different types are read apart
    by_type: dict[Any, list[int]] = {}
    for i, value in enumerate(listed):
        if not is_missing(value):
            by_type.setdefault(value.dtype if isinstance(value, np.generic) else type(value), []).append(i)
    first: dict[str, Any] = {}
    for rows in by_type.values():
        first.setdefault(_group(listed[rows[0]]), listed[rows[0]])
    if "periods" in first:
        raise TypeError(
            f"column {name!r} holds periods, such as {first['periods']}: convert them to dates with "
            "column.dt.to_timestamp()"
        )
    if len(first) > 1:
        one, other = (f"{group} ({_shown(value)})" for group, value in list(first.items())[:2])
        raise TypeError(
            f"column {name!r} mixes {one} and {other}: convert it to one of them, for instance with "
            "pandas.to_datetime(column, errors='coerce')"
        )
    seconds = np.full(len(listed), np.nan)
    if not first:
        return Moments("date", seconds)
    kind: TimeKind = "date" if "dates" in first else "duration"
    zones = {id(own := getattr(listed[i], "tzinfo", None)): own for rows in by_type.values() for i in rows}
    zone = _one_zone(name, list(zones.values())) if kind == "date" else None
    for rows in by_type.values():
        own = [_without_zone(name, listed[i]) for i in rows]
        seconds[rows] = from_numpy(name, np.array(own, dtype="M8" if kind == "date" else "m8")).seconds
    return Moments(kind, seconds, zone)


def _group(value: Any) -> str:
    if type(value).__name__ == "Period":
        return "periods"
    if isinstance(value, DATES):
        return "dates" if isinstance(value, _MOMENTS) else "durations"
    return "text" if isinstance(value, str) else "other values"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, DATES) else short_repr(value)


def _without_zone(name: str, value: Any) -> Any:
    """A date in UTC, without its time zone; a time of the day as the duration since midnight."""
    if isinstance(value, datetime.time):
        return datetime.timedelta(0, value.hour * 3600 + value.minute * 60 + value.second, value.microsecond)
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return value
    try:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise ValueError(
            f"column {name!r} holds {value}, which is outside of the years 1 to 9999 in UTC: correct it, or make it a "
            "missing value"
        ) from error


def _one_zone(name: str, zones: Sequence[Any]) -> str | None:
    """The time zone that all dates have, None where none has one."""
    names = sorted({str(zone) for zone in zones if zone is not None})
    if len(names) > 1:
        raise ValueError(
            f"column {name!r} mixes the time zones {names[0]} and {names[1]}: convert it to one of them, for instance "
            "with pandas.to_datetime(column, utc=True)"
        )
    if names and None in zones:
        raise ValueError(
            f"column {name!r} mixes dates with the time zone {names[0]} and dates without one: give all of them one, "
            "for instance with pandas.to_datetime(column, utc=True)"
        )
    if names:
        _known_zone(name, names[0])
    return names[0] if names else None


def _known_zone(name: str, zone: str) -> None:
    try:
        zone_of(zone)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error


@lru_cache(maxsize=64)
def zone_of(name: str) -> datetime.tzinfo:
    """A time zone by its name in the IANA database, such as Europe/Bern, or by its offset, such as +02:00.

    Parameters
    ----------
    name : str

    Returns
    -------
    tzinfo

    Raises
    ------
    ValueError
        There is no such time zone.
    """
    if name == "UTC":
        return datetime.UTC
    fixed = _FIXED_OFFSET.fullmatch(name)
    if fixed is not None:
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-offset if fixed[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"the time zone {name!r} is not known here: convert the dates to UTC or to a zone of the IANA database, or "
            "install the package tzdata"
        ) from error


def wall_clock(seconds: Array, zone: datetime.tzinfo) -> Array:
    """Seconds since 1970 as the wall clock of a time zone shows them.

    Parameters
    ----------
    seconds : array of shape (n,)
        In UTC; NaN for missing values.
    zone : tzinfo

    Returns
    -------
    array of shape (n,)
    """
    present = np.flatnonzero(~np.isnan(seconds))
    whole = np.floor(seconds[present]).astype(np.int64)
    days, which = np.unique(whole // _DAY, return_inverse=True)
    # a day that begins and ends at the same offset has no transition: no zone has had two within a day that cancel
    at_start, at_end = (_offsets(days * _DAY + second, zone) for second in (0, _DAY - 1))
    offset, changes = at_start[which], (at_start != at_end)[which]
    moments, place = np.unique(whole[changes], return_inverse=True)
    offset[changes] = _offsets(moments, zone)[place]
    out = seconds.copy()
    out[present] += offset
    return out


def _offsets(moments: NDArray[np.int64], zone: datetime.tzinfo) -> Array:
    """Offsets ``(n,)`` of a zone from UTC in seconds."""
    # within a day of the ends of the calendar there is no transition, and no room for an offset
    low, high = (end.astype("datetime64[D]").astype(int) * _DAY for end in (_FIRST + np.timedelta64(1, "D"), _LAST))
    return np.array([_offset(second, zone) for second in np.clip(moments, low, high).tolist()], dtype=np.float64)


def _offset(second: int, zone: datetime.tzinfo) -> float:
    offset = (_EPOCH + datetime.timedelta(seconds=second)).astimezone(zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def as_text(kind: TimeKind, seconds: float) -> str:
    """Seconds as a reader writes the date or duration: 2026-01-31, 2026-01-31 12:00:00, 1 day, 2:00:00.

    Parameters
    ----------
    kind : {"date", "duration"}
    seconds : float

    Returns
    -------
    str
    """
    whole = int(np.floor(seconds))
    if kind == "duration":
        return str(datetime.timedelta(seconds=whole)) if abs(whole) < _DAY * 10**9 else f"{seconds:.6g} s"
    return str(np.datetime64(whole, "s")).replace("T", " ").removesuffix(" 00:00:00")


def offer_dates(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> str | None:
    """A message about columns of text that are ISO 8601 dates, None if there are none.

    Parameters
    ----------
    names : sequence of str
        Names of the columns of text.
    columns : sequence of arrays of shape (n,)
        Their values, with None for missing ones.

    Returns
    -------
    str or None
    """
    found = [name for name, column in zip(names, columns, strict=True) if are_iso_dates(column)]
    if not found:
        return None
    shown = ", ".join(map(repr, found[:10])) + (f" and {len(found) - 10:,} more columns" if len(found) > 10 else "")
    return (
        f"text that reads as ISO 8601 dates is treated as categories: {shown}. Convert such columns to dates with "
        "pandas.to_datetime(column), in polars with column.str.to_datetime(), on the command line with --dates COLUMN; "
        "write columns of Shards to their files with a type of dates"
    )


def are_iso_dates(column: NDArray[Any]) -> bool:
    """Whether nearly all values ``(n,)`` that are not missing are text in the form of ISO 8601 dates.

    Parameters
    ----------
    column : array of shape (n,)
        Values, with None for missing ones.

    Returns
    -------
    bool
    """
    some = column[:: max(1, len(column) // _TRIED)]
    present = [value for value in some if value is not None and value == value]
    return len(present) > 0 and sum(map(_is_iso_date, present)) >= _OFFERED_SHARE * len(present)


def _is_iso_date(value: Any) -> bool:
    if not isinstance(value, str) or ISO_DATE.fullmatch(value) is None:
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
