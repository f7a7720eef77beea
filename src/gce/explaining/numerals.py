"""How figures are written so that what they are there for can be seen."""

from __future__ import annotations

import math

#: What is less than this share of the loss is not told from 0.
_NOTHING = 1e-6


def above(gap: float) -> str:
    """A bound to two digits, rounded up: rounded down it would claim what is not proven.

    Examples
    --------
    >>> above(1.41e-9), above(0.1), above(1861.0), above(0.0)
    ('1.5e-09', '0.1', '1900', '0')
    """
    if not (gap > 0 and math.isfinite(gap)):
        return f"{gap:g}"
    unit = math.floor(math.log10(gap)) - 1
    bound = float(f"{gap:.2g}")
    return f"{bound:g}" if bound >= gap else f"{float(f'{bound + 10.0**unit:.2g}'):g}"


def four(value: float) -> str:
    """A number to four digits, empty where there is none.

    Examples
    --------
    >>> four(0.1), four(2695.3), four(25334.0), four(12345678.0), four(float("nan"))
    ('0.1000', '2695', '25330', '1.235e+07', '')
    """
    text = "" if math.isnan(value) else f"{value:#.4g}".rstrip(".")
    return f"{float(text):g}" if "e+" in text else text


def rise(loss: float, base: float) -> str:
    """By how many percent a loss is above another one; empty where they are equal, or nothing can be said.

    Examples
    --------
    >>> rise(0.123, 0.12), rise(0.11, 0.12), rise(0.9, 0.1), rise(0.12, 0.12), rise(float("nan"), 0.12), rise(1.0, 0.0)
    ('+2.5 %', '-8.3 %', '+800 %', '', '', '')
    """
    if base == 0 or not abs(loss - base) > _NOTHING * abs(base):
        return ""
    share = 100 * (loss - base) / abs(base)
    return f"{share:+.0f} %" if abs(share) >= 100 else f"{share:+.2g} %"


def signed(slope: float, loss: float) -> str:
    """A slope of the loss with its sign, 0 where it is nothing beside the loss.

    Examples
    --------
    >>> signed(0.0123, 0.5), signed(-3e-9, 0.5), signed(-0.2, 0.5), signed(640.2, 2900), signed(float("nan"), 0.5)
    ('+0.012', '0', '-0.2', '+640', '')
    """
    if math.isnan(slope):
        return ""
    if abs(slope) <= _NOTHING * abs(loss):
        return "0"
    return f"{slope:+.0f}" if 100 <= abs(slope) < 1e6 else f"{slope:+.2g}"
