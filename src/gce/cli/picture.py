"""The standings as a picture: how wrong, and how long it took."""

from __future__ import annotations

from pathlib import Path

from gce.cli.contest import Entry
from gce.cli.standings import Standings

_OURS, _OTHERS = "#0072B2", "#9AA5B1"
#: Seconds that a log scale begins with.
_LEAST = 1e-3


def draw(path: Path, title: str, standings: Standings) -> None:
    """Draw a bar a model, best on top, to a PNG file."""
    from matplotlib.figure import Figure as Picture

    def standing(entry: Entry) -> list[float]:
        return [entry.figures[figure.key] for figure in standings.shown]

    entries = sorted((entry for entry in standings.entries if entry.figures), key=standing, reverse=True)
    names = [entry.model for entry in entries]
    colours = [_OURS if name == "GCE" else _OTHERS for name in names]
    picture = Picture(figsize=(9.5, 1.0 + 0.36 * len(names)), layout="constrained")
    panels = picture.subplots(1, 3, sharey=True)
    for axes, figure in zip(panels, standings.shown, strict=False):
        found = [entry.figures[figure.key] for entry in entries]
        axes.bar_label(
            axes.barh(names, found, color=colours), [figure(value) for value in found], padding=3, fontsize=8
        )
        axes.set(title=figure.title, xlim=(0, 1.3 * max(found) or 1))
    seconds = [max(entry.fit_seconds, _LEAST) for entry in entries]
    bars = panels[2].barh(names, seconds, color=colours)
    panels[2].bar_label(bars, [f"{value:.2g}" for value in seconds], padding=3, fontsize=8)
    panels[2].set(title="seconds to fit, log scale", xscale="log", xlim=(min(seconds) / 2, 8 * max(seconds)))
    for axes in panels:
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.title.set_fontsize(10)
    picture.suptitle(title, fontsize=9)
    picture.savefig(path, dpi=150)
