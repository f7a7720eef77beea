"""Charts as inline SVG: lines, bars and dots over one frame of axes.

A drawing has 1000 by 1000 units and is stretched to the available width; strokes and dots keep their size, and labels
are HTML around it, so that they are as large on a phone as on a wide screen. Colours are variables of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gce.inspection.report.markup import Markup, shown, tag
from gce.inspection.report.scales import UNIT, Array, Scale, dots, path, thinned

#: Characters of tick labels that fit below a chart on a phone.
_CHARACTERS = 36
_SMALL = {"viewBox": "0 0 100 100", "preserveAspectRatio": "none"}


@dataclass(frozen=True)
class Line:
    """A curve ``y`` over ``x``, both ``(T,)``.

    ``look`` are classes of the page's style: a colour (``c0`` to ``c7``), ``faint``, ``dashed``. A line with an empty
    label is not in the legend.
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    look: str


@dataclass(frozen=True)
class Bar:
    """A rectangle in the units of the axes, with a tooltip."""

    left: float
    right: float
    bottom: float
    top: float
    look: str
    words: str


def line_chart(
    lines: Sequence[Line], x: Scale, y: Scale, *, marks: Sequence[str] = (), markers: bool = False, **labels: str
) -> Markup:
    """Curves over a common axis.

    Parameters
    ----------
    lines : sequence of Line
    x, y : Scale
    marks : sequence of Markup
        Drawn below the curves.
    markers : bool
        Whether each point has a dot.
    **labels
        ``name``, by which scripts and tests find the chart; ``words``, its text alternative; ``x_label``, ``y_label``.
    """
    drawn = list(marks)
    for line in lines:
        kept = thinned(len(np.asarray(line.x)))
        across, down = _place(x, y, np.asarray(line.x)[kept], np.asarray(line.y)[kept])
        drawn.append(tag("path", d=path(across, down), class_=f"line {line.look}", data_label=line.label or None))
        if markers:
            drawn.append(tag("path", d=dots(across, down), class_=f"dots large {line.look}"))
    return _framed(drawn, x, y, [(line.label, line.look) for line in lines if line.label], **labels)


def bar_chart(
    bars: Sequence[Bar],
    x: Scale,
    y: Scale,
    *,
    legend: Sequence[tuple[str, str]] = (),
    marks: Sequence[str] = (),
    **labels: str,
) -> Markup:
    """Bars with tooltips, below ``marks``; ``legend`` has labels and looks. See :func:`line_chart`."""
    drawn = []
    for bar in bars:
        (left, right), (bottom, top) = (
            ends.tolist() for ends in _place(x, y, [bar.left, bar.right], [bar.bottom, bar.top])
        )
        box = {"x": f"{left:.1f}", "y": f"{top:.2f}", "width": f"{right - left:.1f}", "height": f"{bottom - top:.2f}"}
        drawn.append(tag("rect", tag("title", bar.words), class_=f"bar {bar.look}", **box))
    return _framed([*drawn, *marks], x, y, legend, **labels)


def scatter_chart(
    across: ArrayLike, up: ArrayLike, x: Scale, y: Scale, *, marks: Sequence[str] = (), **labels: str
) -> Markup:
    """Dots; see :func:`line_chart`."""
    few = " few" if np.size(across) <= 300 else ""
    drawn = tag("path", d=dots(*_place(x, y, across, up)), class_=f"dots{few} c0")
    return _framed([*marks, drawn], x, y, (), **labels)


def guide(x: Scale, y: Scale, points: Sequence[tuple[float, float]], look: str = "guide") -> Markup:
    """A reference line through points in the units of the axes."""
    across, up = np.array(points, dtype=np.float64).T
    return tag("path", d=path(*_place(x, y, across, up)), class_=look)


def ticks_below(x: Scale, values: ArrayLike) -> Markup:
    """Short strokes at given values of the lower axis."""
    places = x.share(values) * UNIT
    return tag("path", d="".join(f"M{p:.1f} {UNIT:.0f}v-45" for p in places.tolist()), class_="rug")


def sparkline(heights: ArrayLike, words: str) -> Markup:
    """A tiny histogram for a table cell."""
    share = np.asarray(heights, dtype=np.float64)
    share = share / max(share.max(), 1e-300) * 100
    step = 100 / len(share)
    d = "".join(f"M{i * step:.1f} 100v-{h:.1f}h{step * 0.85:.1f}v{h:.1f}z" for i, h in enumerate(share.tolist()) if h)
    return tag("svg", tag("path", d=d), class_="spark", role="img", aria_label=words, **_SMALL)


def level(share: float, spread: tuple[float, float] | None = None, look: str = "c0") -> Markup:
    """A horizontal bar for a table cell, from 0 to ``share`` of its width, with a whisker over ``spread``."""
    drawn = [tag("rect", x=0, y=15, width=f"{100 * max(share, 0):.2f}", height=70, class_=f"bar {look}")]
    if spread is not None:
        low, high = (100 * min(max(end, 0), 1) for end in spread)
        drawn.append(tag("path", d=f"M{low:.2f} 50H{high:.2f}", class_="whisker"))
    return tag("svg", *drawn, class_="level", aria_hidden="true", **_SMALL)


def dot(share: float, start: float, look: str = "c4") -> Markup:
    """A dot for a table cell at ``share`` of its width, and a reference line at ``start``."""
    # dots keep their size: at either end half of one would be cut off
    here, there = (4 + 92 * min(max(place, 0), 1) for place in (share, start))
    line = tag("path", d=f"M{there:.2f} 0V100", class_="guide")
    mark = tag("path", d=f"M{here:.2f} 50h0", class_=f"dots large {look}")
    return tag("svg", line, mark, class_="level", aria_hidden="true", **_SMALL)


def ends(values: ArrayLike) -> str:
    """First and last value of a curve, in words."""
    v = np.asarray(values, dtype=np.float64)
    return f"from {shown(float(v[0]))} to {shown(float(v[-1]))}"


def _place(x: Scale, y: Scale, across: ArrayLike, up: ArrayLike) -> tuple[Array, Array]:
    """Values in drawing units, whose second axis points down."""
    return x.share(across) * UNIT, UNIT - y.share(up) * UNIT


def _framed(
    drawn: Sequence[str],
    x: Scale,
    y: Scale,
    legend: Sequence[tuple[str, str]],
    *,
    name: str,
    words: str,
    x_label: str,
    y_label: str,
) -> Markup:
    below, left = fitting_ticks(x), y.ticks(5)
    grid = "".join(f"M0 {UNIT - UNIT * float(y.share(v)):.1f}H{UNIT:.0f}" for v, _ in left)
    axes = {"role": "img", "aria_label": words, "data_x": x.words, "data_y": y.words}
    size = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none"}
    svg = tag("svg", tag("path", d=grid, class_="grid"), *drawn, **size, **axes)
    up = [tag("span", text, style=f"top:{100 - 100 * float(y.share(v)):.2f}%") for v, text in left]
    across = [tag("span", text, style=f"left:{100 * float(x.share(v)):.2f}%") for v, text in below]
    key = [tag("li", tag("i", class_=look), label) for label, look in legend]
    caption = [tag("span", y_label), *([tag("ul", *key, class_="legend")] if len(key) > 1 else [])]
    width = max((len(text) for _, text in left), default=1)
    plot = [
        tag("div", *up, class_="up", aria_hidden="true"),
        tag("div", svg, class_="drawing"),
        tag("div", *across, class_="across", aria_hidden="true"),
        tag("div", x_label, class_="across-label"),
    ]
    framed = tag("div", *plot, class_="plot", style=f"--left:{width * 0.56 + 0.5:.2f}em")
    return tag("figure", tag("figcaption", *caption), framed, class_="chart", data_chart=name)


def fitting_ticks(x: Scale) -> list[tuple[float, str]]:
    """As many ticks as fit next to each other."""
    found = x.ticks()
    for most in (4, 3, 2):
        if sum(len(text) + 2 for _, text in found) <= _CHARACTERS:
            break
        found = x.ticks(most)
    return found
