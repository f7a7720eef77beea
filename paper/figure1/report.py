"""Curves as pictures, tables and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.figure1 import claims
from paper.figure1.curves import ALGORITHM_NAMES
from paper.figure1.panels import Panel
from paper.ledger import Ledger, Record
from paper.rounded import markdown, spread

#: What the paper drew.
PAPERS = "msd"
COUNTS = (10, 25, 50, 100)
LABELS = {"nonlinear": "nonlinear greedy", "frank-wolfe": "Frank-Wolfe", "away": "away-step", "pairwise": "pairwise"}
COLOURS = {"nonlinear": "#7f7f7f", "frank-wolfe": "#1f77b4", "away": "#2ca02c", "pairwise": "#d62728"}


@dataclass(frozen=True, eq=False)
class Drawn:
    """A panel and its four results.

    Parameters
    ----------
    panel : Panel
    results : dict of str to Record
        By algorithm.
    """

    panel: Panel
    results: dict[str, Record]

    def curves(self, part: str) -> dict[str, NDArray[np.float64]]:
        """Curves ``(seeds, modules)`` of each algorithm."""
        return {name: np.asarray(result[part]) for name, result in self.results.items()}

    @property
    def modules(self) -> int:
        """How many were added."""
        return self.curves("train")["pairwise"].shape[1]

    @property
    def counts(self) -> list[int]:
        """Numbers of modules that the tables show."""
        return [k for k in COUNTS if k <= self.modules] or [self.modules]

    @property
    def rows(self) -> str:
        """How many rows were trained on, in words."""
        rows, available = self.facts("rows"), self.facts("available")
        return f"{rows:,} of {available:,} training rows" if rows < available else f"{rows:,} training rows"

    def facts(self, name: str) -> Any:
        """What all four results say alike."""
        return self.results["pairwise"][name]


def complete(plan: Sequence[Panel], ledger: Ledger, modules: int, seeds: int) -> list[Drawn]:
    """The panels of which all four algorithms are in the ledger."""
    drawn = []
    for panel in plan:
        keys = {name: key_of(panel, name, modules, seeds) for name in ALGORITHM_NAMES}
        if all(key in ledger for key in keys.values()):
            drawn.append(Drawn(panel, {name: ledger[key] for name, key in keys.items()}))
    return drawn


def key_of(panel: Panel, algorithm: str, modules: int, seeds: int) -> Record:
    """The ledger's key of one algorithm on one panel."""
    return {**panel.key, "algorithm": algorithm, "modules": modules, "seeds": seeds}


def write(drawn: Sequence[Drawn], missing: Sequence[str], folder: Path) -> None:
    """The page and both pictures."""
    (folder / "figure1.md").write_text(page(drawn, missing))
    main, more = ([one for one in drawn if one.panel.main is wanted] for wanted in (True, False))
    if main:
        draw(main, folder / "figure1.png", columns=2, heading=stand_ins(drawn))
    if more:
        draw(more, folder / "figure1_more.png", columns=3, heading="Other sets and settings")


def stand_ins(drawn: Sequence[Drawn]) -> str:
    """What the main panels are on, where that is not the paper's set."""
    names = list(dict.fromkeys(one.panel.data for one in drawn if one.panel.main))
    if names == [PAPERS]:
        return f"{PAPERS}, the paper's set"
    found = " and ".join(names)
    return f"{PAPERS}, the paper's set, is not at hand: the largest numeric regression sets that are, {found}"


def page(drawn: Sequence[Drawn], missing: Sequence[str]) -> str:
    """Everything in words and tables."""
    parts = [_INTRODUCTION.format(seeds=len(drawn[0].facts("used")), modules=drawn[0].modules)]
    parts.append(f"Main panels: {stand_ins(drawn)}.")
    if missing:
        parts.append(f"Not at hand here, and so not drawn: {', '.join(missing)}.")
    parts += ["## What the curves say", _claims_table(drawn), *_sentences(drawn), _READING]
    for one in drawn:
        parts += [f"## {one.panel.title}", _facts(one), _errors_table(one)]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# Figure 1: the four greedy algorithms

Training and test MSE against the number of modules added, {modules} modules, {seeds} seeds, exact line search, no early
stopping, B = 4/3 of the farthest target's distance from f0. One round is one oracle call and adds one module, for all
four (an away step calls the oracle too). All four train a module with the same budget: architecture, Adam, steps.
Seeds differ in the modules' initial weights; rows are the same. Panels of modules "trained longer" repeat others with
three times the steps, since the order may depend on how well a module is trained. Written by `python -m paper.figure1`.

![Main panels](figure1.png)

![Other sets and settings](figure1_more.png)

A neuron `B tanh(u'x)` has no bias, so a hull of neurons around f0 = 0 holds odd functions only, 0 at the mean row: it
has no constant but 0. The paper's f0 = 0 and f0 = the mean target are therefore both drawn."""

_READING = """Verdicts are computed from training errors, seed by seed: "shown" where the algorithm leads (or
trails) every other one at all the numbers of modules given, "refuted" where some other one is clearly on the wrong side
at all of them, "in part" where it is shown at some and refuted at none, "mixed" where it is both, else "not shown". A
difference counts when a t test over seeds calls it different from 0 at 5 %; there are many of them, so that a few in a
hundred count by chance. Orders are those of the means."""


def _claims_table(drawn: Sequence[Drawn]) -> str:
    rows = []
    for one in drawn:
        curves, last = one.curves("train"), one.modules - 1
        cells = [_verdict_cell(claim, one) for claim in claims.CLAIMS]
        order = claims.ordering({name: curve[:, last] for name, curve in curves.items()})
        test = claims.ordering({name: curve[:, last] for name, curve in one.curves("test").items()})
        rows.append([one.panel.title, *cells, _chain(order), _chain(test)])
    counts = ", ".join(map(str, drawn[0].counts))
    head = ["panel", *(f"{claim} (at {counts})" for claim in claims.CLAIMS), "training order at the end", "test order"]
    return markdown(head, rows)


def _verdict_cell(claim: str, one: Drawn) -> str:
    found = claims.verdicts(claim, one.curves("train"), one.counts)
    word = claims.in_all(found)
    return f"**{word}**" if len(set(found)) == 1 else f"**{word}** ({', '.join(found)})"


def _chain(order: Sequence[str]) -> str:
    return " < ".join(LABELS[name] for name in order)


def _sentences(drawn: Sequence[Drawn]) -> list[str]:
    """The claims over all panels, at the first and the last number of modules, and who overtakes whom when."""
    lines = []
    for claim in claims.CLAIMS:
        for place in dict.fromkeys((0, len(drawn[0].counts) - 1)):
            found = [claims.verdicts(claim, one.curves("train"), one.counts)[place] for one in drawn]
            main = [word for word, one in zip(found, drawn, strict=True) if one.panel.main]
            count = drawn[0].counts[place]
            lines.append(f"- *{claim}*, at {count} modules: {_tally(found)} (main panels: {_tally(main)}).")
    first = [claims.ahead_from("pairwise", "nonlinear", one.curves("train")) for one in drawn]
    words = [f"{one.panel.title}: {k or 'not at all'}" for one, k in zip(drawn, first, strict=True)]
    lines.append("- Modules from which on pairwise stays below nonlinear greedy in mean training MSE: ")
    return ["\n".join(lines) + "; ".join(words) + "."]


def _tally(found: Sequence[str]) -> str:
    counts = [f"{found.count(word)} {word}" for word in ("shown", "undecided", "refuted") if word in found]
    return f"{', '.join(counts) or 'none'} of {len(found)}"


def _facts(one: Drawn) -> str:
    basis = {name: value for name, value in one.panel.basis.get_params().items() if value is not None}
    kind = type(one.panel.basis).__name__
    settings = ", ".join(f"{name}={value!r}" for name, value in basis.items())
    seconds = ", ".join(f"{LABELS[name]} {result['seconds']:.0f}" for name, result in one.results.items())
    return (
        f"{one.rows}, {one.facts('test_rows'):,} test rows, {one.facts('columns')} columns; variance of the training "
        f"targets {one.facts('mean_squared_deviation'):.4g}. Modules: `{kind}({settings})`. Seconds of wall clock "
        f"for all seeds together: {seconds}."
    )


def _errors_table(one: Drawn) -> str:
    rows = []
    for name in ALGORITHM_NAMES:
        train, test = one.curves("train")[name], one.curves("test")[name]
        used = np.mean(one.results[name]["used"])
        cells = [spread(part[:, k - 1]) for part in (train, test) for k in one.counts]
        rows.append([LABELS[name], *cells, f"{used:.0f}"])
    head = [f"{part}, {k}" for part in ("train", "test") for k in one.counts]
    return markdown(["mean ± sd of MSE", *head, "modules in use"], rows)


def draw(drawn: Sequence[Drawn], path: Path, columns: int, heading: str) -> None:
    """Panels side by side: solid is training, dashed is test, a band is one standard deviation over seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    columns = min(columns, len(drawn))
    lines = -(-len(drawn) // columns)
    size = (4.4 * columns, 3.3 * lines + 0.7)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False)
    for axis, one in zip(axes.flat, drawn, strict=False):
        _panel(axis, one)
    for axis in axes.flat[len(drawn) :]:
        axis.set_axis_off()
    handles = [Line2D([], [], color=COLOURS[name], label=LABELS[name]) for name in ALGORITHM_NAMES]
    handles += [Line2D([], [], color="black", ls=ls, label=label) for ls, label in (("-", "training"), ("--", "test"))]
    figure.legend(handles=handles, loc="lower center", ncols=6, frameon=False)
    figure.suptitle(heading, fontsize=10)
    figure.tight_layout(rect=(0, 0.3 / size[1], 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axis: Any, one: Drawn) -> None:
    modules = np.arange(1, one.modules + 1)
    for part, style in (("train", "-"), ("test", "--")):
        for name, curve in one.curves(part).items():
            mean = curve.mean(0)
            axis.plot(modules, mean, style, color=COLOURS[name], lw=1.3)
            if len(curve) > 1:
                sd = curve.std(0, ddof=1)
                axis.fill_between(modules, mean - sd, mean + sd, color=COLOURS[name], alpha=0.12, lw=0)
    axis.set_title(f"{one.panel.title}\n{one.rows}", fontsize=9)
    axis.set(xlabel="modules added", ylabel="mean squared error", yscale="log", xlim=(0, one.modules))
    _ticks(axis)
    axis.grid(alpha=0.25)


def _ticks(axis: Any) -> None:
    """Plain numbers on the logarithmic axis: 1, 2, 5 and their tenfolds, or more where it spans less."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = axis.get_ylim()
    subs = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 7)
    axis.yaxis.set_major_locator(LogLocator(subs=subs) if high > 3 * low else MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter("{x:g}")
    axis.tick_params(labelsize=8)
