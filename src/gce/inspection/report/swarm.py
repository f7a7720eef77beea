"""A beeswarm: one lane per column, one dot per row, coloured by the value of the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.inspection.report.charts import fitting_ticks
from gce.inspection.report.markup import Markup, heading, tag
from gce.inspection.report.scales import UNIT, Array, Scale, dots, fitting

#: Shades from the lowest to the highest value of a column, and places along a lane in which dots may meet.
SHADES, _PLACES = 7, 120
#: The part of a lane that dots take, and the distance of two that meet, as a part of it.
_HEIGHT, _STEP = 0.84, 0.12


@dataclass(frozen=True)
class Lane:
    """One column.

    Parameters
    ----------
    name : str
    values : array of shape (n,)
        Positions of the dots.
    shade : int array of shape (n,)
        From 0, the lowest value, to ``SHADES - 1``; -1 where values have no order, or are missing.
    """

    name: str
    values: Array
    shade: NDArray[np.intp]


def shades(column: Array) -> NDArray[np.intp]:
    """The shade of each value of a column by its rank, so that outliers do not take all colours; -1 for missing.

    Examples
    --------
    >>> shades(np.array([1.0, 2.0, 1000.0, np.nan])).tolist()
    [0, 3, 6, -1]
    >>> shades(np.array([5.0, 5.0])).tolist()
    [3, 3]
    """
    present = ~np.isnan(column)
    found = np.full(len(column), -1, dtype=np.intp)
    levels, rank, counts = np.unique(column[present], return_inverse=True, return_counts=True)
    if len(levels):
        # the mean rank of equal values
        middle = np.cumsum(counts) - (counts + 1) / 2
        last = max(float(middle[-1] - middle[0]), 1e-300)
        share = (middle - middle[0]) / last if len(levels) > 1 else np.full(1, 0.5)
        found[present] = np.round(share * (SHADES - 1)).astype(np.intp)[rank]
    return found


def beeswarm(lanes: Sequence[Lane], *, name: str, words: str, label: str) -> Markup:
    """Draw lanes over a common axis.

    Parameters
    ----------
    lanes : sequence of Lane
    name : str
        By which scripts and tests find the chart.
    words : str
        Its text alternative.
    label : str
        What the axis shows.
    """
    axis = fitting(*(lane.values for lane in lanes), [0.0])
    rows = [tag("tr", heading(lane.name, "row"), tag("td", _lane(lane, axis))) for lane in lanes]
    ticks = [tag("span", text, style=f"left:{100 * float(axis.share(v)):.2f}%") for v, text in fitting_ticks(axis)]
    foot = tag("tr", tag("td", ""), tag("td", tag("div", *ticks, class_="across"), tag("div", label, class_="label")))
    body = [tag("tbody", *rows), tag("tfoot", foot, aria_hidden="true")]
    inner = tag("table", tag("caption", words, class_="unseen"), *body, class_="swarm")
    box = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=words)
    return tag("div", _key(), box, data_chart=name, data_x=axis.words)


def _lane(lane: Lane, axis: Scale) -> Markup:
    across = axis.share(lane.values) * UNIT
    down = (0.5 + _HEIGHT * _spread(across)) * 100
    zero = float(axis.share(0.0)) * UNIT
    drawn = [tag("path", d=f"M{zero:.1f} 0V100", class_="guide")]
    for shade in range(-1, SHADES):
        here = lane.shade == shade
        if here.any():
            look = "c7" if shade < 0 else f"s{shade}"
            drawn.append(tag("path", d=dots(across[here], down[here]), class_=f"dots few {look}"))
    size = {"viewBox": "0 0 1000 100", "preserveAspectRatio": "none"}
    return tag("svg", *drawn, class_="lane", aria_hidden="true", **size)


def _spread(across: Array) -> Array:
    """How far each dot is from the middle of its lane, within half of it: dots of one place stand side by side."""
    place = np.clip(across / UNIT * _PLACES, 0, _PLACES - 1).astype(np.intp)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], place[order], side="left")
    turn = np.empty(len(across))
    # 0, 1, -1, 2, -2, ...
    count = np.arange(len(across)) - first
    turn[order] = np.where(count % 2, (count + 1) // 2, -(count // 2))
    widest = float(np.abs(turn).max(initial=0.0))
    return turn * min(_STEP, 0.5 / max(widest, 1.0))


def _key() -> Markup:
    """What the colours mean."""
    scale = [tag("i", class_=f"s{shade}") for shade in range(SHADES)]
    return tag(
        "p",
        "low ",
        tag("span", *scale, class_="shades"),
        " high value of the column; grey: no order, or missing",
        class_="key",
    )
