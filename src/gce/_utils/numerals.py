"""Formatting of losses, bounds and gradients."""

from __future__ import annotations

import math

#: Changes below this share of the loss are shown as 0.
_NEGLIGIBLE = 1e-6


def format_bound(gap: float) -> str:
    """A bound to two digits, rounded up: rounded down it would claim more than is proven.

    Parameters
    ----------
    gap : float
        The bound.

    Examples
    --------
    >>> format_bound(1.41e-9), format_bound(0.1), format_bound(1861.0), format_bound(0.0)
    ('1.5e-09', '0.1', '1900', '0')
    """
    if not (gap > 0 and math.isfinite(gap)):
        return f"{gap:g}"
    unit = math.floor(math.log10(gap)) - 1
    bound = float(f"{gap:.2g}")
    return f"{bound:g}" if bound >= gap else f"{float(f'{bound + 10.0**unit:.2g}'):g}"


def format_number(value: float) -> str:
    """A number to four significant digits; empty for NaN.

    Parameters
    ----------
    value : float
        The number.

    Examples
    --------
    >>> [format_number(value) for value in (0.1, 2695.3, 25334.0, 12345678.0, float("nan"))]
    ['0.1000', '2695', '25330', '1.235e+07', '']
    """
    text = "" if math.isnan(value) else f"{value:#.4g}".rstrip(".")
    return f"{float(text):g}" if "e+" in text else text


def format_change(loss: float, base: float) -> str:
    """The relative change of a loss in percent; empty where it is negligible or undefined.

    Parameters
    ----------
    loss, base : float
        The loss, and the loss that it is compared with.

    Examples
    --------
    >>> [format_change(loss, 0.12) for loss in (0.123, 0.11, 1.08, 0.12, float("nan"))]
    ['+2.5 %', '-8.3 %', '+800 %', '', '']
    """
    if base == 0 or not abs(loss - base) > _NEGLIGIBLE * abs(base):
        return ""
    share = 100 * (loss - base) / abs(base)
    return f"{share:+.0f} %" if abs(share) >= 100 else f"{share:+.2g} %"


def format_slope(slope: float, loss: float) -> str:
    """A derivative of the loss with its sign; 0 where it is negligible beside the loss, empty for NaN.

    Parameters
    ----------
    slope : float
        The derivative.
    loss : float
        The loss.

    Examples
    --------
    >>> [format_slope(slope, 0.5) for slope in (0.0123, -3e-9, -0.2, 640.2, float("nan"))]
    ['+0.012', '0', '-0.2', '+640', '']
    """
    if math.isnan(slope):
        return ""
    if abs(slope) <= _NEGLIGIBLE * abs(loss):
        return "0"
    return f"{slope:+.0f}" if 100 <= abs(slope) < 1e6 else f"{slope:+.2g}"
