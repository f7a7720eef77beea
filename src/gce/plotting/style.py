"""How our displays look: clean axes, and colours that the colour-blind can tell apart (Okabe and Ito's)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gce.extras import extra

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#6B6B6B",
)  # fmt: skip
MEMBERS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)


def axes_for(ax: Any) -> Any:
    """The axes given, or new ones."""
    plt = extra("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", which="both", alpha=0.25, lw=0.6)
    ax.set_axisbelow(True)
    return ax


def spans_decades(*values: ArrayLike | None) -> bool:
    """Whether numbers are positive and the largest is more than twenty times the least."""
    every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values if v is not None])
    every = every[np.isfinite(every)]
    return len(every) > 0 and bool(every.min() > 0 and every.max() > 20 * every.min())


def whole_numbers(axis: Any) -> None:
    """Ticks at whole numbers only: there is no round 2.5."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
