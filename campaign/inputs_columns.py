"""Single columns: valid ones, and odd ones of all the types that frames have."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas as pd

Column = Callable[[Random, np.random.Generator, int], Any]


def plain_column(rng: Random, numbers: np.random.Generator, rows: int, first: bool) -> Any:
    """A column as tables have it: numbers, integers, text, booleans or dates."""
    kind = 0.0 if first else rng.random()
    if kind < 0.5:
        return numbers.normal(size=rows)
    if kind < 0.65:
        return numbers.integers(0, 4, rows)
    if kind < 0.8:
        return [rng.choice("abc") for _ in range(rows)]
    if kind < 0.9:
        return [rng.random() < 0.5 for _ in range(rows)]
    return pd.Series(pd.date_range("2020", periods=rows, freq="D"))


def _sized(power: float) -> Column:
    return lambda rng, numbers, rows: numbers.normal(size=rows) * 10.0**power


def _constant(value: float) -> Column:
    return lambda rng, numbers, rows: np.full(rows, value)


def _some(value: float, share: float = 0.2) -> Column:
    return lambda rng, numbers, rows: np.where(numbers.random(rows) < share, value, numbers.normal(size=rows))


def _typed(dtype: str) -> Column:
    """Small integers as another type of numpy or pandas."""

    def column(rng: Random, numbers: np.random.Generator, rows: int) -> pd.Series:
        return pd.Series(numbers.integers(0, 3, rows)).astype(dtype)

    return column


def _with_missing(dtype: str) -> Column:
    """Small integers as a nullable type, some of them missing."""

    def column(rng: Random, numbers: np.random.Generator, rows: int) -> pd.Series:
        found = pd.Series(numbers.integers(0, 2, rows)).astype(dtype)
        found.iloc[::3] = pd.NA
        return found

    return column


def _dates(**options: Any) -> Column:
    return lambda rng, numbers, rows: pd.Series(pd.date_range("2020", periods=rows, **options))


def _category(rng: Random, numbers: np.random.Generator, rows: int) -> pd.Series:
    """Categories of many types of levels: unused, ordered, mixed, with missing values."""
    levels = rng.choice(
        [
            ["a", "b"], [1, 2], [1.5, float("inf")], [True, False], [(1, 2), (3, 4)], ["a", 1], [b"a", b"b"],
            [pd.Timestamp("2020"), pd.Timestamp("2021")], ["x" * 10_000, "\ud800"], [10**400, 1], ["", " "],
            [pd.Interval(0, 1), pd.Interval(1, 2)], [frozenset(), frozenset([1])],
        ]
    )  # fmt: skip
    values = [rng.choice([*levels, None] if rng.random() < 0.5 else levels) for _ in range(rows)]
    known = [*levels, "never"] if rng.random() < 0.3 else levels
    # built from codes, as pandas would compare levels that have no order
    codes = [-1 if value is None else next(i for i, v in enumerate(levels) if v is value) for value in values]
    dtype = pd.CategoricalDtype(pd.Index(known, dtype=object, tupleize_cols=False), ordered=rng.random() < 0.3)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))


def _only(value: Any) -> Column:
    return lambda rng, numbers, rows: [value] * rows


def _distinct(rng: Random, numbers: np.random.Generator, rows: int) -> list[str]:
    return [f"id {i}" for i in range(rows)]


def _long_text(rng: Random, numbers: np.random.Generator, rows: int) -> list[str]:
    words = ["red", "green", "\u202e", "a" * 10_000, "\ud800", "", "ÄÖ", "1", "\n"]
    return [" ".join(rng.choice(words) for _ in range(rng.randrange(12))) for _ in range(rows)]


def _zones(rng: Random, numbers: np.random.Generator, rows: int) -> list[Any]:
    """Moments in several time zones."""
    return [pd.Timestamp("2020-03-29 02:30", tz=rng.choice(["UTC", "America/New_York", None])) for _ in range(rows)]


def _far_dates(rng: Random, numbers: np.random.Generator, rows: int) -> Any:
    unit = rng.choice(["s", "D", "Y", "ns", "as"])
    return np.array([rng.choice([0, 1, -(2**62), 2**62, -(2**63)]) for _ in range(rows)]).astype(f"datetime64[{unit}]")


def _intervals(rng: Random, numbers: np.random.Generator, rows: int) -> Any:
    return pd.Series(pd.arrays.IntervalArray.from_breaks(np.arange(rows + 1)))


def _periods(rng: Random, numbers: np.random.Generator, rows: int) -> Any:
    return pd.Series(pd.period_range("2020", periods=rows, freq="D"))


COLUMNS: tuple[Column, ...] = (
    _sized(154), _sized(155), _sized(300), _sized(307), _sized(-300), _sized(-310), _sized(-320), _sized(15),
    _constant(0.0), _constant(-0.0), _constant(1e308), _constant(5e-324), _constant(float("nan")), _constant(2.0**62),
    _some(float("nan")), _some(float("inf")), _some(1e308), _some(-1e308), _some(5e-324), _some(1e200, 0.05),
    _some(0.0, 0.95), _only(None), _only(""), _only("a"), _only(10**400), _only(2**63), _only(True), _only(pd.NA),
    _only(pd.NaT), _only(b"a"), _only([1, 2]), _only({"a": 1}), _only(1 + 2j),
    *(_typed(t) for t in ("int8", "uint64", "float16", "float32", "complex128", "bool", "category", "string", "object",
                          "longdouble", "Sparse[float]", "timedelta64[ns]", "datetime64[s]", "str",
                          "int64[pyarrow]", "double[pyarrow]")),
    *(_with_missing(t) for t in ("Int64", "Float64", "UInt8", "boolean", "string", "float32[pyarrow]")),
    _dates(freq="D"), _dates(freq="D", tz="UTC"), _dates(freq="D", tz="Europe/Berlin", unit="us"), _dates(freq="ns"),
    _category, _category, _category, _category, _distinct, _long_text, _zones, _far_dates, _intervals, _periods,
)  # fmt: skip
