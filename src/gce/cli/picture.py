"""The results of a comparison as a picture: metrics and fit times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gce.cli import figures
from gce.cli.comparison import Result
from gce.cli.tasks import Task

_GCE, _PEERS = "#0072B2", "#9AA5B1"
#: Seconds at which the log scale begins.
_MIN_SECONDS = 1e-3


def draw(path: Path, title: str, task: Task, results: Sequence[Result]) -> None:
    """Draw one bar per model, the best on top, to a PNG file."""
    from matplotlib.figure import Figure

    fitted = [result for result in results if result.failed is None]
    # one that the test rows do not define has no value for any model
    metrics = [metric for metric in figures.known(task) if np.isfinite(fitted[0].metrics[metric.key])]
    fitted.sort(key=lambda result: [metric.sign * result.metrics[metric.key] for metric in metrics], reverse=True)
    names = [result.model for result in fitted]
    colours = [_GCE if name == "GCE" else _PEERS for name in names]
    figure = Figure(figsize=(2.3 + 2.4 * (len(metrics) + 1), 1.0 + 0.36 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(metrics) + 1, sharey=True)
    for axes, metric in zip(panels, metrics, strict=False):
        found = [result.metrics[metric.key] for result in fitted]
        axes.bar_label(axes.barh(names, found, color=colours), list(map(metric, found)), padding=3, fontsize=8)
        axes.set(title=metric.title, xlim=(0, 1.3 * max(found) or 1))
    seconds = [max(result.fit_seconds, _MIN_SECONDS) for result in fitted]
    bars = panels[-1].barh(names, seconds, color=colours)
    panels[-1].bar_label(bars, [f"{value:.2g}" for value in seconds], padding=3, fontsize=8)
    panels[-1].set(title="seconds to fit, log scale", xscale="log", xlim=(min(seconds) / 2, 8 * max(seconds)))
    for axes in panels:
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(axis="x", which="both", bottom=False, labelbottom=False)
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.title.set_fontsize(10)
    figure.suptitle(title, fontsize=9)
    figure.savefig(path, dpi=150)
