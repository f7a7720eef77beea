"""Charts as inline SVG: lines, bars, dots.

A drawing is 1000 by 1000 units and is stretched to whatever width there is; strokes and dots keep their size, and
labels are HTML around it, so that a phone shows them as large as a wall does. Colours are the page's variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gce.report.markup import Markup, shown, tag
from gce.report.scales import UNIT, Scale, dots, path, thinned

#: Below a chart, on a phone or in the third of a page.
_CHARACTERS = 36
_SMALL = {"viewBox": "0 0 100 100", "preserveAspectRatio": "none"}


@dataclass(frozen=True)
class Line:
    """One curve.

    Parameters
    ----------
    label : str
        Empty: not in the legend.
    x, y : array-like of shape (T,)
    look : str
        Classes of the page's style: a colour (``c0`` to ``c7``), ``faint``, ``dashed``.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    look: str


@dataclass(frozen=True)
class Bar:
    """One rectangle: from ``left`` to ``right``, from ``bottom`` to ``top``, in the axes' units."""

    left: float
    right: float
    bottom: float
    top: float
    look: str
    words: str


def line_chart(
    lines: Sequence[Line],
    x: Scale,
    y: Scale,
    *,
    name: str,
    words: str,
    x_label: str,
    y_label: str,
    marks: Sequence[str] = (),
    markers: bool = False,
) -> Markup:
    """Curves over a common axis.

    Parameters
    ----------
    lines : sequence of Line
    x, y : Scale
    name : str
        What scripts and tests know the chart by.
    words : str
        What the chart shows, for those who do not see it.
    x_label, y_label : str
    marks : sequence of Markup
        What is drawn below the curves.
    markers : bool
        A dot at each point.
    """
    drawn = []
    for line in lines:
        kept = thinned(len(np.asarray(line.x)))
        across = x.share(np.asarray(line.x)[kept]) * UNIT
        down = UNIT - y.share(np.asarray(line.y)[kept]) * UNIT
        drawn.append(tag("path", d=path(across, down), class_=f"line {line.look}", data_label=line.label or None))
        if markers:
            drawn.append(tag("path", d=dots(across, down), class_=f"dots large {line.look}"))
    legend = [(line.label, line.look) for line in lines if line.label]
    return _framed([*marks, *drawn], x, y, name, words, x_label, y_label, legend)


def bar_chart(
    bars: Sequence[Bar],
    x: Scale,
    y: Scale,
    *,
    name: str,
    words: str,
    x_label: str,
    y_label: str,
    legend: Sequence[tuple[str, str]] = (),
    marks: Sequence[str] = (),
) -> Markup:
    """Rectangles, each with its own words when pointed at; see :func:`line_chart`."""
    drawn = [_rectangle(bar, x, y) for bar in bars]
    return _framed([*drawn, *marks], x, y, name, words, x_label, y_label, legend)


def scatter_chart(
    across: ArrayLike,
    up: ArrayLike,
    x: Scale,
    y: Scale,
    *,
    name: str,
    words: str,
    x_label: str,
    y_label: str,
    marks: Sequence[str] = (),
) -> Markup:
    """Dots; see :func:`line_chart`."""
    d = dots(x.share(across) * UNIT, UNIT - y.share(up) * UNIT)
    few = " few" if np.size(across) <= 300 else ""
    drawn = [*marks, tag("path", d=d, class_=f"dots{few} c0")]
    return _framed(drawn, x, y, name, words, x_label, y_label, ())


def guide(x: Scale, y: Scale, points: Sequence[tuple[float, float]], look: str = "guide") -> Markup:
    """A line of reference through points in the axes' units."""
    across, up = np.array(points, dtype=np.float64).T
    return tag("path", d=path(x.share(across) * UNIT, UNIT - y.share(up) * UNIT), class_=look)


def ticks_below(x: Scale, values: ArrayLike) -> Markup:
    """Short strokes on the lower edge at given values."""
    places = x.share(values) * UNIT
    return tag("path", d="".join(f"M{p:.1f} {UNIT:.0f}v-45" for p in places.tolist()), class_="rug")


def sparkline(heights: ArrayLike, words: str) -> Markup:
    """A tiny histogram."""
    share = np.asarray(heights, dtype=np.float64)
    share = share / max(share.max(), 1e-300) * 100
    step = 100 / len(share)
    d = "".join(f"M{i * step:.1f} 100v-{h:.1f}h{step * 0.85:.1f}v{h:.1f}z" for i, h in enumerate(share.tolist()) if h)
    return tag("svg", tag("path", d=d), class_="spark", role="img", aria_label=words, **_SMALL)


def level(share: float, spread: tuple[float, float] | None = None, look: str = "c0") -> Markup:
    """A horizontal bar for a table's cell, from 0 to ``share`` of its width, with a whisker where there is a spread."""
    rect = tag("rect", x=0, y=15, width=f"{100 * max(share, 0):.2f}", height=70, class_=f"bar {look}")
    parts = [rect]
    if spread is not None:
        low, high = (100 * min(max(end, 0), 1) for end in spread)
        parts.append(tag("path", d=f"M{low:.2f} 50H{high:.2f}", class_="whisker"))
    return tag("svg", *parts, class_="level", aria_hidden="true", **_SMALL)


def dot(share: float, start: float, look: str = "c4") -> Markup:
    """A dot for a table's cell at ``share`` of its width, and a line of reference at ``start``."""
    # dots keep their size: at either end half of one would be cut off
    here, there = (4 + 92 * min(max(place, 0), 1) for place in (share, start))
    drawn = [
        tag("path", d=f"M{there:.2f} 0V100", class_="guide"),
        tag("path", d=f"M{here:.2f} 50h0", class_=f"dots large {look}"),
    ]
    return tag("svg", *drawn, class_="level", aria_hidden="true", **_SMALL)


def _rectangle(bar: Bar, x: Scale, y: Scale) -> Markup:
    left, right = (x.share([bar.left, bar.right]) * UNIT).tolist()
    bottom, top = (UNIT - y.share([bar.bottom, bar.top]) * UNIT).tolist()
    corner = {"x": f"{left:.1f}", "y": f"{top:.2f}", "width": f"{right - left:.1f}", "height": f"{bottom - top:.2f}"}
    return tag("rect", tag("title", bar.words), class_=f"bar {bar.look}", **corner)


def _framed(
    drawn: Sequence[str],
    x: Scale,
    y: Scale,
    name: str,
    words: str,
    x_label: str,
    y_label: str,
    legend: Sequence[tuple[str, str]],
) -> Markup:
    across, up = _beside(x), y.ticks(5)
    lines = "".join(f"M0 {UNIT - UNIT * float(y.share(v)):.1f}H{UNIT:.0f}" for v, _ in up)
    svg = tag(
        "svg",
        tag("path", d=lines, class_="grid"),
        *drawn,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        data_x=x.words,
        data_y=y.words,
    )
    left = [tag("span", text, style=f"top:{100 - 100 * float(y.share(v)):.2f}%") for v, text in up]
    below = [tag("span", text, style=f"left:{100 * float(x.share(v)):.2f}%") for v, text in across]
    width = max((len(text) for _, text in up), default=1)
    key = [tag("li", tag("i", class_=look), label) for label, look in legend]
    caption = [tag("span", y_label), *([tag("ul", *key, class_="legend")] if len(key) > 1 else [])]
    return tag(
        "figure",
        tag("figcaption", *caption),
        tag(
            "div",
            tag("div", *left, class_="up", aria_hidden="true"),
            tag("div", svg, class_="drawing"),
            tag("div", *below, class_="across", aria_hidden="true"),
            tag("div", x_label, class_="across-label"),
            class_="plot",
            style=f"--left:{width * 0.56 + 0.5:.2f}em",
        ),
        class_="chart",
        data_chart=name,
    )


def _beside(x: Scale) -> list[tuple[float, str]]:
    """As many ticks as have room beside each other."""
    found = x.ticks()
    for most in (4, 3, 2):
        if sum(len(text) + 2 for _, text in found) <= _CHARACTERS:
            break
        found = x.ticks(most)
    return found


def ends(values: ArrayLike) -> str:
    """First and last of a curve, in words."""
    v = np.asarray(values, dtype=np.float64)
    return f"from {shown(float(v[0]))} to {shown(float(v[-1]))}"
