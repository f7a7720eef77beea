"""The repeated splits as a picture: one panel a data set, one dot a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paper.table1_cells import Cell, Place, mean_and_error, repeated

#: Seen as different by readers with any common colour vision; GCE stands out from its peers.
COLOURS = {"gce": "#d55e00", "gce_holdout": "#d55e00", "gce_paper": "#e69f00"}
PEER = "#4c6a8a"


def draw(path: Path, cells: Mapping[Place, Cell], columns: Mapping[str, str], names: Sequence[str]) -> None:
    """Mean test error ± one standard error of each method on each set's random splits; nothing without any."""
    if not names:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = Figure(figsize=(3.4 * across + 0.8, 2.3 * down), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for panel, name in zip(panels.flat, names, strict=False):
        _draw_set(panel, cells, columns, name)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    figure.savefig(path, dpi=150)


def _draw_set(panel: object, cells: Mapping[Place, Cell], columns: Mapping[str, str], name: str) -> None:
    from matplotlib.axes import Axes

    assert isinstance(panel, Axes)
    metric, splits = "error", 0
    for row, method in enumerate(columns):
        own = repeated(cells, name, method)
        if not own:
            continue
        metric, splits = next(iter(own.values())).metric, max(splits, len(own))
        mean, error = mean_and_error([cell.test for cell in own.values() if cell.test is not None])
        colour = COLOURS.get(method, PEER)
        panel.errorbar(mean, row, xerr=error, fmt="o", color=colour, markersize=5, capsize=2.5, elinewidth=1.3)
    panel.set_yticks(range(len(columns)), list(columns.values()))
    panel.set_ylim(len(columns) - 0.5, -0.5)
    panel.set_title(f"{name}, {splits} splits", fontsize=10)
    panel.set_xlabel("test MAE" if metric == "mae" else "test error, %", fontsize=9)
    panel.tick_params(labelsize=8.5)
    panel.grid(axis="x", color="#dddddd", linewidth=0.7)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
