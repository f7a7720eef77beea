"""Numbers as result files and tables have them."""

from __future__ import annotations

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


def spread(values: Iterable[float]) -> str:
    """``mean ± sd`` of some values, four significant digits of the mean and two of the deviation."""
    numbers = np.asarray(list(values), dtype=float)
    mean = f"{numbers.mean():#.4g}".rstrip(".")
    return f"{mean} ± {numbers.std(ddof=1):.2g}" if len(numbers) > 1 else mean


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    lines = [" | ".join(head), "|".join(["---", *["---:"] * (len(head) - 1)]), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" if i != 1 else f"|{line}|" for i, line in enumerate(lines))
