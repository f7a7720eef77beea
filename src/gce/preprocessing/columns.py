"""One column of the training data: its kind, the codes of its categories, and the numbers that are made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import short_repr
from gce.preprocessing.date_parts import DateParts
from gce.preprocessing.dates import TimeKind, as_text, wall_clock, zone_of
from gce.preprocessing.frames import Kind
from gce.preprocessing.values import Values

Array = NDArray[np.float64]
Category = str | int | float | bool

#: Code of a category that occurs once in the training rows, or not at all.
OTHER = -1
#: Categories of a column that trees split and networks have inputs for, and the least share of the rows of each.
MAX_CATEGORIES, MIN_CATEGORY_SHARE = 254, 1 / 1000
#: Of a column with more categories than the first a frequent one has so many rows: trees single out no others.
MANY_CATEGORIES, MIN_FREQUENT_ROWS = 32, 10.0
#: Numbers beyond it may stand for several integers.
_MAX_INTEGER = 2.0**53
#: Rows that a category must have for a code: a statistic of one row says nothing of other rows.
MIN_CATEGORY_ROWS = 2.0
#: Kinds of columns that are numbers to a model.
NUMERIC: tuple[Kind, ...] = ("number", "date", "duration")
#: Kinds of columns that no values of another kind can stand for.
TIMES: tuple[Kind, ...] = get_args(TimeKind)
_PLURALS: dict[Kind, str] = {"category": "categories"}
_CONVERSIONS: dict[Kind, str] = {"date": "pandas.to_datetime(column)", "duration": "pandas.to_timedelta(column)"}


class Parts(Protocol):
    """Numbers that are made of one column beside its own: calendar parts of dates, components of text."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is, such as "month"; ``p`` of them."""

    def transform(self, column: Any) -> Array:
        """The numbers of a column, ``(n, p)``; NaN where a value is missing.

        Parameters
        ----------
        column : array of shape (n,)
            Encoded numbers of a column of dates, values of a column of text.

        Returns
        -------
        array of shape (n, p)
        """

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""


@dataclass(frozen=True)
class Column:
    """One column of the training data.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean", "category", "date", "duration"}
        Kind of the column.
    categories : tuple
        Categories with a code, which is their index; all others share the code -1. Frequent ones come first. Empty for
        other kinds.
    n_distinct : int or None
        Number of distinct categories in the training rows; None for other kinds, and for old files.
    other_share : float or None
        Share of the training rows whose category has no code.
    n_frequent : int or None
        How many of the categories are frequent: trees split these and networks have inputs for them. None: all.
    time_zone : str or None
        Time zone of a column of dates, whose numbers are seconds of its wall clock.
    parts : Parts or None
        What else is made of the column.
    """

    name: str
    kind: Kind
    categories: tuple[Category, ...] = ()
    n_distinct: int | None = None
    other_share: float | None = None
    n_frequent: int | None = None
    time_zone: str | None = None
    parts: Parts | None = None

    @property
    def frequent(self) -> tuple[Category, ...]:
        """The categories that trees split and networks have inputs for."""
        return self.categories[: self.n_frequent]

    @property
    def is_number(self) -> bool:
        """Whether the column is a number to a model."""
        return self.kind in NUMERIC

    @property
    def holds_text(self) -> bool | None:
        """Whether the values of a column of categories are strings; None where no value is known."""
        if self.parts is not None:
            return True
        return isinstance(self.categories[0], str) if self.categories else None

    @property
    def warning(self) -> str | None:
        """Why nothing is learned from a column of categories: each occurs once; None where something is."""
        if self.n_distinct is None or self.n_distinct < 2 or self.categories or self.parts is not None:
            return None
        return f"{self.n_distinct:,} categories of one row each: ignored"

    def encode(self, kind: Kind, column: Any, zone: str | None = None) -> Array:
        """Encode values as numbers: codes of categories, seconds of the wall clock of dates, NaN for missing ones.

        Parameters
        ----------
        kind : {"number", "boolean", "category", "date", "duration"}
            Kind of the given values.
        column : array of shape (n,)
            The values.
        zone : str, optional
            Time zone of the given dates.

        Returns
        -------
        array of shape (n,)
        """
        if self.n_distinct == 0:
            # nothing was learned from it, whatever it holds now
            return np.full(len(column), np.nan)
        another = kind != self.kind and (kind in TIMES or self.kind in TIMES)
        if self.kind == "category" and not another:
            return self._codes(column)
        if kind == "category" or another:
            return self._missing(kind, column)
        numbers: Array = column.astype(np.float64, copy=False)
        return self._wall_clock(numbers, zone) if self.kind == "date" else numbers

    def _missing(self, kind: Kind, column: Any) -> Array:
        """Values of another kind than in the fit, which must all be missing."""
        first = next((value for value in column.tolist() if value is not None and value == value), None)
        if first is not None:
            now = as_text(kind, first) if kind == "date" or kind == "duration" else short_repr(first)
            how = f", for instance with {_CONVERSIONS[self.kind]}" if self.kind in _CONVERSIONS else ""
            raise ValueError(
                f"column {self.name!r} held {_PLURALS.get(self.kind, f'{self.kind}s')} when the model was fitted and "
                f"holds {now} now: convert it to the same type{how}"
            )
        return np.full(len(column), np.nan)

    def _wall_clock(self, seconds: Array, zone: str | None) -> Array:
        """Dates as the wall clock shows them in the time zone of the fit."""
        if (zone is None) != (self.time_zone is None) and not np.isnan(seconds).all():
            had, has = (given or "no time zone" for given in (self.time_zone, zone))
            raise ValueError(
                f"column {self.name!r} had {had} when the model was fitted and has {has} now: use "
                f"column.dt.tz_localize({self.time_zone!r})"
            )
        return seconds if self.time_zone is None else wall_clock(seconds, zone_of(self.time_zone))

    @cached_property
    def _code_of(self) -> dict[Category | None, float]:
        return {**{category: float(code) for code, category in enumerate(self.categories)}, None: np.nan}

    def _codes(self, column: Array | Values) -> Array:
        values = column.tolist()
        first = next((value for value in values if value is not None and value == value), None)
        if first is not None and self.holds_text not in (None, isinstance(first, str)):
            had = "text" if self.parts is not None else f"categories such as {self.categories[0]!r}"
            raise ValueError(
                f"column {self.name!r} held {had} when the model was fitted and holds {first!r} now: convert it to the "
                "same type"
            )
        code_of = self._code_of
        codes = np.array([code_of.get(value, OTHER) for value in values], dtype=np.float64)
        return codes if column.dtype == object else np.where(np.isnan(column.astype(np.float64)), np.nan, codes)


def learn_dates(name: str, seconds: Any, zone: str | None) -> Column:
    """A column of dates, with the calendar parts that vary among its rows.

    Parameters
    ----------
    name : str
        Name of the column.
    seconds : array of shape (n,)
        Seconds since 1970, see :class:`gce.preprocessing.dates.Moments`.
    zone : str or None
        Time zone.

    Returns
    -------
    Column
    """
    column = Column(name, "date", time_zone=zone)
    return replace(column, parts=DateParts.fit(column.encode("date", seconds, zone)))


@dataclass(frozen=True, eq=False)
class CategoryTotals:
    """What the values of a column weigh.

    Parameters
    ----------
    share : dict of category to float
        The share of each value in the sample weight.
    rows : float
        Effective number of rows.
    n_distinct : int
        Number of distinct values.
    others : float, default=0.0
        Share of the values that are not in ``share``.
    """

    share: dict[Category, float]
    rows: float
    n_distinct: int
    others: float = 0.0


def count_categories(name: str, column: Array | Values, share: Array, rows: float) -> CategoryTotals:
    """Add up the rows of each value of a column, but for missing ones.

    Parameters
    ----------
    name : str
        Name of the column.
    column : array of shape (n,)
        The values.
    share : array of shape (n,)
        Share of each row in the sample weight.
    rows : float
        Effective number of rows.

    Returns
    -------
    CategoryTotals
    """
    if column.dtype != object:
        check_integers(name, column.astype(np.float64, copy=False))
    total: dict[Category, float] = {}
    for value, part in zip(column.tolist(), share.tolist(), strict=True):
        if value is not None and value == value:
            total[value] = total.get(value, 0.0) + part
    return CategoryTotals(total, rows, len(total))


def check_integers(name: str, numbers: Array) -> None:
    """Check that numbers ``(n,)`` can be categories.

    Raises
    ------
    ValueError
        A number stands for several integers.
    """
    if np.abs(np.nan_to_num(numbers)).max(initial=0.0) > _MAX_INTEGER:
        raise ValueError(
            f"column {name!r} holds numbers beyond 2^53, of which float64 cannot tell neighbours apart, and cannot be "
            "categories: convert it to text"
        )


def choose_categories(name: str, counted: CategoryTotals) -> Column:
    """A column of categories: those that occur twice have codes, frequent ones first, both in sorted order.

    Parameters
    ----------
    name : str
        Name of the column.
    counted : CategoryTotals

    Returns
    -------
    Column
    """
    total, rows, slack = counted.share, counted.rows, 1 - 1e-9
    # first those that have enough rows, of which there are few, however many categories there are
    least = max(MIN_CATEGORY_SHARE, MIN_FREQUENT_ROWS / rows if counted.n_distinct > MANY_CATEGORIES else 0.0)
    enough = [value for value, part in total.items() if part >= least * slack]
    frequent = sorted(sorted(enough, key=lambda value: (-round(total[value], 12), value))[:MAX_CATEGORIES])
    known = set(frequent)
    rare = sorted(v for v, part in total.items() if v not in known and part * rows >= MIN_CATEGORY_ROWS * slack)
    known.update(rare)
    others = sum((part for value, part in total.items() if value not in known), counted.others)
    other_share = round(min(float(others), 1.0), 6)
    return Column(name, "category", (*frequent, *rare), counted.n_distinct, other_share, len(frequent))
