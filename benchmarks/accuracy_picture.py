"""Mean ranks with the critical difference: one line of models a figure, as Demšar (2006) draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from accuracy_ranks import Array, alike, critical_difference

_OURS, _LINE, _TEXT = "#b3261e", "#444444", "#1f1f1f"


def draw(panels: list[tuple[str, list[str], Array]], path: Path) -> None:
    """A panel a title, models and ranks (sets, models), one below the other."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    # a leader a model and half of them on either side
    heights = [2.0 + 0.3 * ((len(models) + 1) // 2) for _, models, _ in panels]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(8.5, sum(heights)), squeeze=False, height_ratios=heights, layout="constrained"
    )
    for ax, (title, models, ranked) in zip(axes[:, 0], panels, strict=True):
        _panel(ax, title, models, ranked)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(ax: Any, title: str, models: list[str], ranked: Array) -> None:
    order = np.argsort(ranked.mean(0), kind="stable")
    means, names = ranked.mean(0)[order], [models[j] for j in order]
    difference = critical_difference(len(models), len(ranked))
    runs = alike(means, difference)
    half = (len(models) + 1) // 2
    first, last = 1.0, float(len(models))
    below = 0.5 + 0.28 * len(runs)  # leaders begin below the bars
    bottom = below + 0.55 * max(half, len(models) - half)
    ax.set_xlim(first - 1.9, last + 1.9)
    ax.set_ylim(bottom + 0.1, -2.3)
    ax.set_axis_off()
    ax.set_title(title, fontsize=11, color=_TEXT)
    ax.plot([first, last], [0, 0], color=_LINE, lw=1.2)
    for tick in range(int(first), int(last) + 1):
        ax.plot([tick, tick], [0, -0.18], color=_LINE, lw=1.2)
        ax.text(tick, -0.3, str(tick), ha="center", va="bottom", fontsize=9, color=_TEXT)
    ax.plot([first, first + difference], [-1.35, -1.35], color=_LINE, lw=2)
    for end in (first, first + difference):
        ax.plot([end, end], [-1.5, -1.2], color=_LINE, lw=1.2)
    words = f"critical difference {difference:.2f} (Nemenyi, 5 %, {len(ranked)} sets)"
    ax.text(first, -1.62, words, ha="left", va="bottom", fontsize=9, color=_TEXT)
    for place, (a, b) in enumerate(runs):
        height = 0.4 + 0.28 * place
        ax.plot([means[a] - 0.04, means[b] + 0.04], [height, height], color=_LINE, lw=3.5, solid_capstyle="round")
    for place, (name, mean) in enumerate(zip(names, means, strict=True)):
        left = place < half
        # the outermost leader is the highest on either side, so that no two cross
        height = below + 0.55 * (place + 0.5 if left else len(models) - place - 0.5)
        colour = _OURS if name == "GCE" else _TEXT
        end = first - 0.25 if left else last + 0.25
        ax.plot([mean, mean, end], [0, height, height], color=colour if name == "GCE" else _LINE, lw=1)
        text = f"{name}  {mean:.2f}" if left else f"{mean:.2f}  {name}"
        weight = "bold" if name == "GCE" else "normal"
        side = "right" if left else "left"
        ax.text(end + (-0.06 if left else 0.06), height, text, ha=side, va="center", color=colour, weight=weight)
