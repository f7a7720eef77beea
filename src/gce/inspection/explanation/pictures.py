"""Plots of explanations and of pruning paths. matplotlib is imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gce._utils.numerals import format_bound, format_slope
from gce._utils.optional import import_optional
from gce._utils.text import escape_line
from gce.inspection.explanation.explanation import PLURAL
from gce.inspection.plotting.style import BLUE, GREY, ORANGE, VERMILION, axes_for, spans_decades, whole_numbers

if TYPE_CHECKING:
    from gce.inspection.explanation.explanation import Explanation
    from gce.inspection.explanation.pruning_path import PathStep, PruningPath

#: Maximum number of members drawn, number from which on the font is small, and characters of a name.
_DRAWN, _MANY, _NAME = 40, 20, 28
#: Left edge and width of each panel, as fractions of the figure's width.
_PANELS = {"weight": (0.0, 0.36), "without": (0.40, 0.28), "own": (0.72, 0.28)}
#: Inches of a row, and of the margins above and below all rows.
_ROW, _SMALL_ROW, _FRAME = 0.32, 0.2, 1.3


class ExplanationDisplay:
    """Three panels over the same members: weights, losses without each, and their own losses.

    Without rows there are no losses, and one panel. Members of zero weight are faint, with their alignment instead of
    a bar.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes whose area is divided among the panels.
    axes_ : dict of matplotlib Axes
        ``weight``, and if there are losses ``without`` and ``own``.
    figure_ : matplotlib Figure
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def plot(self, ax: Any = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure, whose height follows from the number of members.

        Returns
        -------
        ExplanationDisplay
        """
        drawn = self.explanation.order[:_DRAWN]
        if ax is None:
            row = _ROW if len(drawn) <= _MANY else _SMALL_ROW
            size = (9.5, _FRAME + row * max(len(drawn), 2))
            _, ax = import_optional("matplotlib.pyplot", "plot").subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_axis_off()
        self._fontsize = 9 if len(drawn) <= _MANY else 7
        panels = _PANELS if self.explanation.on_rows else {"weight": (0.0, 1.0)}
        self.axes_ = {name: self._panel(name, len(drawn), *place) for name, place in panels.items()}
        self._weights(drawn)
        if self.explanation.on_rows:
            self._without(drawn)
            self._own(drawn)
        self._title(drawn)
        return self

    def _panel(self, name: str, rows: int, left: float, width: float) -> Any:
        panel = axes_for(self.ax_.inset_axes([left, 0.0, width, 1.0]))
        panel.grid(visible=False, axis="y")
        panel.grid(axis="x", alpha=0.25, lw=0.6)
        panel.set_ylim(rows - 0.4, -0.6)
        panel.tick_params(axis="y", length=0, labelleft=False)
        panel.tick_params(labelsize=self._fontsize)
        panel.spines["left"].set_visible(name == "weight")
        return panel

    def _weights(self, drawn: Any) -> None:
        explanation, panel, positions = self.explanation, self.axes_["weight"], np.arange(len(drawn))
        weights = explanation.weights[drawn]
        widest = float(weights.max())
        panel.barh(positions, weights, height=0.7, color=BLUE)
        for position, weight, slope in zip(positions, weights, explanation.alignment[drawn], strict=True):
            text = f" {weight:.3f}" if weight > 0 else " 0"
            if weight == 0 and explanation.on_rows:
                text += f"   alignment {format_slope(slope, explanation.loss)}"
            panel.text(
                weight, position, text, va="center", fontsize=self._fontsize, color="black" if weight > 0 else GREY
            )
        panel.set_xlim(0, 1.25 * widest)
        panel.set_xlabel("weight")
        panel.set_yticks(positions, [_cut(explanation.names[j]) for j in drawn])
        panel.tick_params(axis="y", labelleft=True)
        for label, weight in zip(panel.get_yticklabels(), weights, strict=True):
            label.set_color("black" if weight > 0 else GREY)

    def _without(self, drawn: Any) -> None:
        explanation, panel, positions = self.explanation, self.axes_["without"], np.arange(len(drawn))
        used = explanation.used[drawn]
        losses = explanation.loss_without[drawn]
        panel.axvline(explanation.loss, color=GREY, lw=1)
        panel.hlines(positions[used], explanation.loss, losses[used], color=VERMILION, lw=2)
        panel.plot(losses[used], positions[used], "o", color=VERMILION, ms=5)
        panel.set_xlabel(f"loss without the {explanation.unit}")
        _few_ticks(panel)

    def _own(self, drawn: Any) -> None:
        explanation, panel, positions = self.explanation, self.axes_["own"], np.arange(len(drawn))
        used = explanation.used[drawn]
        losses = explanation.own_loss[drawn]
        panel.axvline(explanation.loss, color=GREY, lw=1)
        for some, alpha in ((used, 1.0), (~used, 0.4)):
            panel.plot(losses[some], positions[some], "D", color=ORANGE, ms=5, alpha=alpha)
        if spans_decades(losses, [explanation.loss]):
            panel.set_xscale("log")
        panel.set_xlabel("own loss")
        _few_ticks(panel)

    def _title(self, drawn: Any) -> None:
        explanation = self.explanation
        words = explanation.in_use()
        if explanation.on_rows:
            proof = f"proven within {format_bound(explanation.gap)} of the best weights"
            words = f"loss {explanation.loss:.4g} (grey line), {proof}; {words}"
        hidden = np.setdiff1d(np.arange(len(explanation.names)), [*drawn, *explanation.free])
        if len(hidden):
            more = f"{len(hidden)} more {PLURAL[explanation.unit]}"
            words += f"\n{more}, with total weight {explanation.weights[hidden].sum():.2g}, are not shown"
        self.ax_.set_title(words, fontsize=10, loc="left")


class PruningPathDisplay:
    """The loss of ever smaller ensembles against their size.

    Parameters
    ----------
    path : PruningPath
    size : int, optional
        A size on the path to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The losses.
    mark_ : matplotlib Line2D or None
        The marked size.
    """

    def __init__(self, path: PruningPath, size: int | None = None) -> None:
        self.path = path
        self.size = size

    def plot(self, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.

        Returns
        -------
        PruningPathDisplay
        """
        sizes, losses = self.path.sizes, self.path.losses
        marked = None if self.size is None else self._marked(self.size)
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.ax_.axhline(losses[0], color=GREY, lw=1, ls="--", label=f"all {sizes[0]} in use: {losses[0]:.4g}")
        (self.line_,) = self.ax_.plot(sizes, losses, "o-", color=BLUE, ms=4, lw=1.8, label="optimal weights per size")
        self.mark_ = None
        if marked is not None:
            ring = {"ms": 12, "mfc": "none", "mec": VERMILION, "mew": 2, "ls": "none"}
            label = f"{marked.size} in use: {marked.loss:.4g}"
            (self.mark_,) = self.ax_.plot([marked.size], [marked.loss], "o", label=label, **ring)
        if spans_decades(sizes):
            self.ax_.set_xscale("log")
            _round_ticks(self.ax_.xaxis)
        else:
            whole_numbers(self.ax_.xaxis)
        if spans_decades(losses):
            self.ax_.set_yscale("log")
            _round_ticks(self.ax_.yaxis)
        self.ax_.set(xlabel="number of members", ylabel="loss")
        self.ax_.legend(frameon=False)
        return self

    def _marked(self, size: int) -> PathStep:
        for step in self.path.steps:
            if step.size == size:
                return step
        raise ValueError(f"size={size!r} is not on the path: choose one of {self.path.sizes.tolist()}")


def _cut(name: str) -> str:
    cut = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    # matplotlib draws no lone surrogates, and parses text between dollar signs as a formula
    return escape_line(cut).replace("$", r"\$")


def _few_ticks(panel: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    if panel.get_xscale() == "log":
        _round_ticks(panel.xaxis)
    else:
        panel.xaxis.set_major_locator(MaxNLocator(4))


def _round_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers: 1, 2, 5, 10, ..."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
