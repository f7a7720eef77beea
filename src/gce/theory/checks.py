"""Validation of numeric arguments."""

from __future__ import annotations

import math

from gce._utils.params import is_number, short_repr


def positive(**values: float) -> None:
    """Raise an error unless all values are finite and positive."""
    for name, value in values.items():
        if not (is_number(value) and math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {short_repr(value)}")


def not_negative(**values: float) -> None:
    """Raise an error unless all values are finite and nonnegative."""
    for name, value in values.items():
        if not (is_number(value) and math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be nonnegative, got {short_repr(value)}")


def at_least(least: int, **values: int) -> None:
    """Raise an error unless all values are integers of at least ``least``."""
    for name, value in values.items():
        if not is_number(value) or not math.isfinite(value) or value != int(value) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {short_repr(value)}")


def probability(**values: float) -> None:
    """Raise an error unless all values are strictly between 0 and 1."""
    for name, value in values.items():
        if not (is_number(value) and 0 < value < 1):
            raise ValueError(f"{name} must be strictly between 0 and 1, got {short_repr(value)}")
