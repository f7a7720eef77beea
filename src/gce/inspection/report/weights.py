"""What the ensemble is made of: weights by round and member."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gce.inspection.atom_families import atom_families
from gce.inspection.plotting.readings import Shares
from gce.inspection.report.charts import Bar, Line, bar_chart, guide, line_chart
from gce.inspection.report.evaluation import Evaluation
from gce.inspection.report.markup import Markup, Section, card, percent, shown, table
from gce.inspection.report.scales import Scale, counting, fitting

#: Colours there are, and bars along the axis at most.
_COLOURS, _BARS = 8, 120


def section(evaluation: Evaluation) -> Section | None:
    """What the ensemble is made of; nothing to say of a single atom."""
    if len(evaluation.shares.weights) < 2:
        return None
    cards = [*_by_round(evaluation), _gathered(evaluation), _members(evaluation)]
    lead = "Weights are positive and sum to 1; the score of a row is the offset plus the weighted sum of the atoms."
    if len(evaluation.families) > 1:
        lead += " The weight of a family is that of its atoms and of the offset in it."
    if evaluation.external:
        rest = percent(1 - float(evaluation.shares.weights.sum()))
        lead += f" External models, not shown here, have {rest} of the weight."
    return Section("weights", "Weights and atoms", lead, cards)


def _by_round(evaluation: Evaluation) -> list[Markup]:
    """Weights of atoms over the round that made them, each family by itself."""
    families, shares = atom_families(evaluation.model.result_), evaluation.shares
    used = [name for name in families.names if len(families.members_of(name))]
    several = len(used) > 1
    if several:
        # of one round, as of a forest, there is nothing to compare
        used = [name for name in used if len(np.unique(families.born[families.members_of(name)])) > 1]
    cards = []
    for i, name in enumerate(used):
        # the zero function is of no family: it stands first
        own = families.index == families.names.index(name)
        if not several:
            own |= families.index == -1
        part = replace(shares, weights=shares.weights[own], member=shares.member[own], born=families.born[own])
        cards.append(_bars(part, f"weights-{i}" if several else "weights", name if several else ""))
    return cards


def _bars(shares: Shares, name: str, family: str) -> Markup:
    members = np.unique(shares.member)
    several = 1 < len(members) <= _COLOURS
    place = shares.born if shares.by_round else _ranks(shares)
    wide = max(1, -(-int(place.max() + 1) // _BARS))
    first = place // wide * wide
    bars, tallest = [], 0.0
    for left in np.unique(first):
        bottom = 0.0
        for m in members if several else [None]:
            here = first == left if m is None else (first == left) & (shares.member == m)
            weight = float(shares.weights[here].sum())
            if weight > 0:
                where = _where(int(left), wide, shares.by_round)
                who = f"member {m}, " if several else ""
                words = f"{who}{where}: {percent(weight)} of the weight"
                look = f"c{int(m) if m is not None else 0}"
                bars.append(Bar(left - 0.4 * wide, left + 0.4 * wide, bottom, bottom + weight, look, words))
                bottom += weight
        tallest = max(tallest, bottom)
    last = max(float(first.max()), float(first.min()) + 8 * wide)
    x = Scale(float(first.min()) - 0.6 * wide, last + 0.6 * wide, whole=True)
    by = "round that made the atom" if shares.by_round else "atoms, heaviest first"
    zero = " Round 0 is the offset itself." if shares.by_round and (shares.born == 0).any() else ""
    chart = bar_chart(
        bars,
        x,
        fitting([0.0, tallest], zero=True),
        name=name,
        words=f"weight of {len(shares.weights)} atoms by {by}",
        x_label=by,
        y_label="share of the weight",
        legend=[(f"member {m}", f"c{int(m)}") for m in members] if several else (),
    )
    title = "Weight by round" if shares.by_round else "Weight of each atom"
    total = f" They sum to {percent(float(shares.weights.sum()))}." if family else ""
    note = f"The weight of the atoms of each round.{zero}{total}" if shares.by_round else ""
    return card(f"{family}: {title[0].lower()}{title[1:]}" if family else title, chart, note=note)


def _ranks(shares: Shares) -> NDArray[np.int64]:
    """The place of each atom among those of its member, the heaviest first, from 1."""
    rank = np.empty(len(shares.weights), dtype=np.int64)
    for m in np.unique(shares.member):
        own = np.flatnonzero(shares.member == m)
        rank[own[np.argsort(-shares.weights[own], kind="stable")]] = np.arange(1, len(own) + 1)
    return rank


def _where(left: int, wide: int, by_round: bool) -> str:
    what = "round" if by_round else "place"
    return f"{what} {left}" if wide == 1 else f"{what}s {left} to {left + wide - 1}"


def _gathered(evaluation: Evaluation) -> Markup:
    total = np.cumsum(np.sort(evaluation.shares.weights)[::-1]) / max(float(evaluation.shares.weights.sum()), 1e-300)
    most = int(np.searchsorted(total, 0.9)) + 1
    atoms = np.arange(len(total) + 1)
    x, y = counting(atoms), Scale(0.0, 1.04)
    chart = line_chart(
        [Line("weight", atoms, np.concatenate([[0.0], total]), "c0")],
        x,
        y,
        name="gathered",
        words=f"{most} of {len(total)} atoms carry 90 % of the weight",
        x_label="atoms, heaviest first",
        y_label="share of the weight",
        marks=[guide(x, y, [(0, 0.9), (most, 0.9), (most, 0)])],
    )
    return card("Cumulative weight", chart, note=f"{most} of the {len(total)} atoms carry 90 % of the weight.")


def _members(evaluation: Evaluation) -> Markup:
    shares, curves, rows = evaluation.shares, evaluation.curves, []
    # the rounds that several families keep are marked on their curves, and too many for one table
    kept = (
        curves.best if curves is not None and len(curves.families) == 1 else np.empty((0, int(shares.member.max()) + 1))
    )
    for m in np.unique(shares.member):
        own = shares.member == m
        weight = shares.weights[own] / max(float(shares.weights[own].sum()), 1e-300)
        cells = [
            f"{m}",
            shown(int(own.sum())),
            shown(1 / float(np.square(weight).sum()), 3),
            percent(float(weight.max())),
        ]
        if shares.by_round:
            cells.append(percent(float(weight[shares.born[own] == 0].sum())))
        rows.append([*cells, *(shown(int(t)) for t in kept[:, m])])
    head = ["member", "atoms", "effective", "heaviest", *(["offset"] if shares.by_round else [])]
    note = "Effective: 1 / sum of squared weights, the equivalent number of equally weighted atoms."
    if len(kept):
        assert curves is not None
        head.append("kept")
        note += f" Kept: the best {curves.unit} of the member."
    return card("Members", table(head, rows, caption="Members and their atoms"), note=note)
