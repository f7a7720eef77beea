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


def axes_for(ax: Any) -> Any:
    """The given axes, or new ones."""
    plt = import_optional("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", which="both", alpha=0.25, lw=0.6)
    ax.set_axisbelow(True)
    return ax


def spans_decades(*values: ArrayLike | None) -> bool:
    """Whether all finite values are positive and span a factor of more than 20."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values if v is not None])
    every = every[np.isfinite(every)]
    return len(every) > 0 and bool(every.min() > 0 and every.max() > 20 * every.min())


def whole_numbers(axis: Any) -> None:
    """Integer ticks only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
