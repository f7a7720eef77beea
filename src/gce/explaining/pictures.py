"""Pictures of explanations and of paths to smaller ensembles. matplotlib is imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gce.explaining.numerals import above, signed
from gce.extras import extra
from gce.plotting.style import BLUE, GREY, ORANGE, VERMILION, axes_for, spans_decades, whole_numbers

if TYPE_CHECKING:
    from gce.explaining.explanation import Explanation
    from gce.explaining.pruned import Pruned

#: Members that are drawn; rows from which on letters are small, and characters of a name.
_DRAWN, _MANY, _NAME = 40, 20, 28
#: Left edge and width of each panel, in shares of the picture's width.
_PANELS = {"weight": (0.0, 0.36), "without": (0.40, 0.28), "own": (0.72, 0.28)}
#: Inches of a row, and of what stands above and below all rows.
_ROW, _SMALL_ROW, _FRAME = 0.32, 0.2, 1.3


class ExplanationDisplay:
    """Three panels over the same members: weights, losses without each, and their own losses.

    Members without weight are faint, and what stands in the place of a bar is their alignment: the reason.

    Parameters
    ----------
    explanation : Explanation

    Attributes
    ----------
    ax_ : matplotlib Axes
        Whose place is divided.
    axes_ : dict of matplotlib Axes
        ``weight``, ``without`` and ``own``.
    figure_ : matplotlib Figure
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure, as high as there are members.

        Returns
        -------
        ExplanationDisplay
        """
        drawn = self.explanation.order[:_DRAWN]
        if ax is None:
            row = _ROW if len(drawn) <= _MANY else _SMALL_ROW
            size = (9.5, _FRAME + row * max(len(drawn), 2))
            _, ax = extra("matplotlib.pyplot", "plot").subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_axis_off()
        self._letters = 9 if len(drawn) <= _MANY else 7
        self.axes_ = {name: self._panel(name, len(drawn)) for name in _PANELS}
        self._weights(drawn)
        self._without(drawn)
        self._own(drawn)
        self._title(drawn)
        return self

    def _panel(self, name: str, rows: int) -> Any:
        left, width = _PANELS[name]
        panel = axes_for(self.ax_.inset_axes([left, 0.0, width, 1.0]))
        panel.grid(visible=False, axis="y")
        panel.grid(axis="x", alpha=0.25, lw=0.6)
        panel.set_ylim(rows - 0.4, -0.6)
        panel.tick_params(axis="y", length=0, labelleft=False)
        panel.tick_params(labelsize=self._letters)
        panel.spines["left"].set_visible(name == "weight")
        return panel

    def _weights(self, drawn: Any) -> None:
        told, panel, places = self.explanation, self.axes_["weight"], np.arange(len(drawn))
        weights = told.weights[drawn]
        widest = float(weights.max())
        panel.barh(places, weights, height=0.7, color=BLUE)
        for place, weight, slope in zip(places, weights, told.alignment[drawn], strict=True):
            text = f" {weight:.3f}" if weight > 0 else f" 0   alignment {signed(slope, told.loss)}"
            panel.text(weight, place, text, va="center", fontsize=self._letters, color="black" if weight > 0 else GREY)
        panel.set_xlim(0, 1.25 * widest)
        panel.set_xlabel("weight")
        panel.set_yticks(places, [_cut(told.names[j]) for j in drawn])
        panel.tick_params(axis="y", labelleft=True)
        for label, weight in zip(panel.get_yticklabels(), weights, strict=True):
            label.set_color("black" if weight > 0 else GREY)

    def _without(self, drawn: Any) -> None:
        told, panel, places = self.explanation, self.axes_["without"], np.arange(len(drawn))
        used = told.used[drawn]
        losses = told.loss_without[drawn]
        panel.axvline(told.loss, color=GREY, lw=1)
        panel.hlines(places[used], told.loss, losses[used], color=VERMILION, lw=2)
        panel.plot(losses[used], places[used], "o", color=VERMILION, ms=5)
        panel.set_xlabel("loss without it")
        _few_ticks(panel)

    def _own(self, drawn: Any) -> None:
        told, panel, places = self.explanation, self.axes_["own"], np.arange(len(drawn))
        used = told.used[drawn]
        losses = told.own_loss[drawn]
        panel.axvline(told.loss, color=GREY, lw=1)
        for some, alpha in ((used, 1.0), (~used, 0.4)):
            panel.plot(losses[some], places[some], "D", color=ORANGE, ms=5, alpha=alpha)
        if spans_decades(losses, [told.loss]):
            panel.set_xscale("log")
        panel.set_xlabel("its own loss")
        _few_ticks(panel)

    def _title(self, drawn: Any) -> None:
        told = self.explanation
        used, members = int(told.used.sum()), len(told.names)
        words = f"loss {told.loss:.4g} (grey line), within {above(told.gap)} of the best; {used} of {members} in use"
        if members > len(drawn):
            rest = 1 - float(told.weights[drawn].sum())
            words += f"\n{members - len(drawn)} more members, of weight {max(rest, 0.0):.2g} in all, are not drawn"
        self.ax_.set_title(words, fontsize=10, loc="left")


class PathDisplay:
    """The loss of ever smaller ensembles against their size, the chosen one marked.

    Parameters
    ----------
    pruned : Pruned

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_, mark_ : matplotlib Line2D
    """

    def __init__(self, pruned: Pruned) -> None:
        self.pruned = pruned

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.

        Returns
        -------
        PathDisplay
        """
        path, chosen = self.pruned.path, self.pruned.chosen
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        sizes, losses = [step.size for step in path], [step.loss for step in path]
        self.ax_.axhline(path[0].loss, color=GREY, lw=1, ls="--", label=f"all {path[0].size}: {path[0].loss:.4g}")
        (self.line_,) = self.ax_.plot(sizes, losses, "o-", color=BLUE, ms=4, lw=1.8, label="best weights of that size")
        words = f"chosen, {chosen.size}: {chosen.loss:.4g}"
        ring = {"ms": 12, "mfc": "none", "mec": VERMILION, "mew": 2, "ls": "none"}
        (self.mark_,) = self.ax_.plot([chosen.size], [chosen.loss], "o", label=words, **ring)
        if spans_decades(sizes):
            self.ax_.set_xscale("log")
            _round_ticks(self.ax_.xaxis)
        else:
            whole_numbers(self.ax_.xaxis)
        if spans_decades(losses):
            self.ax_.set_yscale("log")
            _round_ticks(self.ax_.yaxis)
        self.ax_.set(xlabel="members in use", ylabel="loss")
        self.ax_.legend(frameon=False)
        return self


def _cut(name: str) -> str:
    cut = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    # matplotlib reads formulas between dollars
    return cut.replace("$", r"\$")


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
