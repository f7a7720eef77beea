"""What the statements assume of their numbers, asked for in words."""

from __future__ import annotations

import math


def positive(**values: float) -> None:
    """Every value is finite and above 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {value!r}")


def not_negative(**values: float) -> None:
    """Every value is finite and at least 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a number of at least 0, got {value!r}")


def at_least(least: int, **values: int) -> None:
    """Every value is a whole number of at least ``least``."""
    for name, value in values.items():
        if not math.isfinite(value) or value != int(value) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def probability(**values: float) -> None:
    """Every value lies strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
