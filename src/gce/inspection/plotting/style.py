"""The style of the displays: plain axes, and the colour-blind safe palette of Okabe and Ito."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gce._utils.optional import import_optional

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#6B6B6B",
)  # fmt: skip
MEMBERS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)


#: Height between rows of panels and width between columns, as shares of all.
_BETWEEN_ROWS, _BETWEEN_COLUMNS = 0.17, 0.08
#: Losses and gaps below this share of the largest are rounding errors.
_ROUNDING = 1e-9


def axes_for(ax: Any) -> Any:
    """The given axes, or new ones."""
    plt = import_optional("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", which="both", alpha=0.25, lw=0.6)
    ax.set_axisbelow(True)
    return ax


def panels(ax: Any, count: int, room: float = 0.0) -> list[Any]:
    """The given axes, or their area divided among several, two side by side with room for an axis at their right."""
    if count == 1:
        return [ax]
    ax.set_axis_off()
    # a second model is drawn beside the first
    if len(ax.child_axes) == count:
        return list(ax.child_axes)
    rows = -(-count // 2)
    width, height = (1 - _BETWEEN_COLUMNS) / 2 - room, (1 - _BETWEEN_ROWS * (rows - 1)) / rows
    lefts = [(width + room + _BETWEEN_COLUMNS) * (i % 2) for i in range(count)]
    bottoms = [1 - height - (height + _BETWEEN_ROWS) * (i // 2) for i in range(count)]
    return [axes_for(ax.inset_axes((left, bottom, width, height))) for left, bottom in zip(lefts, bottoms, strict=True)]


def new_axes(count: int) -> Any:
    """Axes of a new figure, large enough for some panels."""
    plt = import_optional("matplotlib.pyplot", "plot")
    size = None if count == 1 else (9.5, 1.2 + 2.8 * -(-count // 2))
    return plt.subplots(figsize=size, layout="constrained")[1]


def scale_losses(ax: Any, *values: ArrayLike | None) -> None:
    """A logarithmic scale where positive values span decades; rounding errors beside the others are below it."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values if v is not None])
    every = every[np.isfinite(every)]
    shown = every[every > _ROUNDING * np.abs(every).max(initial=0.0)]
    if not (every >= 0).all() or not spans_decades(shown):
        return
    ax.set_yscale("log")
    if len(shown) < len(every):
        ax.set_ylim(bottom=float(shown.min()) / 1.5)


def spans_decades(*values: ArrayLike | None) -> bool:
    """Whether all finite values are positive and span a factor of more than 20."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values if v is not None])
    every = every[np.isfinite(every)]
    return len(every) > 0 and bool(every.min() > 0 and every.max() > 20 * every.min())


def whole_numbers(axis: Any) -> None:
    """Integer ticks only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
