"""Numbers as result files and tables have them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def rounded(value: Any, digits: int = 6) -> Any:
    """A number, or numbers in lists and dicts, at so many significant digits."""
    if isinstance(value, dict):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [rounded(part, digits) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{digits}g}")
    return value.item() if isinstance(value, np.generic) else value


def number(value: float, digits: int) -> str:
    """A number at so many significant digits, with an exponent only where it is very large or very small."""
    short = float(f"{value:.{digits}g}")
    if short == 0 or not math.isfinite(short):
        return f"{short:g}"
    if not 1e-4 <= abs(short) < 1e6:
        return f"{short:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(short))))
    return f"{short:.{decimals}f}"


def spread(values: Iterable[float]) -> str:
    """``mean ± sd`` of some values, four significant digits of the mean and two of the deviation."""
    numbers = np.asarray(list(values), dtype=float)
    mean = number(float(numbers.mean()), 4)
    return f"{mean} ± {number(float(numbers.std(ddof=1)), 2)}" if len(numbers) > 1 else mean


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    lines = [" | ".join(head), "|".join(["---", *["---:"] * (len(head) - 1)]), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" if i != 1 else f"|{line}|" for i, line in enumerate(lines))
