"""What each member weighs, and why."""

from __future__ import annotations

import numpy as np

from gce.explaining.numerals import four, rise, signed
from gce.report.charts import dot, level
from gce.report.markup import NOTHING, Markup, Section, card, counted, heading, shown, tag
from gce.report.scales import fitting
from gce.report.stack.trial import StackTrial

#: Members listed.
_LISTED = 100
#: Columns; those aside have no room on a phone.
_HEADS = (
    ("member", None),
    ("", None),
    ("weight", None),
    ("", "aside"),
    ("rise", None),
    ("loss without it", "aside"),
    ("", "aside"),
    ("own loss", "aside"),
    ("alignment", None),
)


def section(trial: StackTrial) -> Section:
    """The explanation as a table with pictures in it."""
    told = trial.explanation
    words = told.certificate()
    cards = [_table(trial)]
    return Section("members", "Members", words[0].upper() + words[1:] + ".", cards)


def _table(trial: StackTrial) -> Markup:
    told = trial.explanation
    order = told.order[:_LISTED]
    rises = np.nan_to_num(told.loss_without - told.loss)
    highest, heaviest = max(float(rises.max()), 1e-300), float(told.weights.max())
    scale = fitting([told.loss], told.own_loss, log=True, room=0.0)
    # a loss of 0 has no place on a logarithmic axis: it stands at the left
    start, own = (np.nan_to_num(scale.share(losses)) for losses in (told.loss, told.own_loss))
    body = []
    for j in order.tolist():
        used, without = bool(told.used[j]), float(told.loss_without[j])
        cells = [
            tag("td", level(told.weights[j] / heaviest)),
            tag("td", f"{told.weights[j]:.4f}" if used else "0"),
            tag("td", level(rises[j] / highest, look="c1"), class_="aside"),
            tag("td", rise(without, told.loss) or NOTHING, title=f"loss without it: {shown(without, 6)}"),
            tag("td", four(without) or NOTHING, class_="aside"),
            tag("td", dot(float(own[j]), float(start)), class_="aside"),
            tag("td", four(float(told.own_loss[j])), class_="aside"),
            tag("td", signed(float(told.alignment[j]), told.loss) or NOTHING),
        ]
        body.append(tag("tr", heading(told.names[j], "row"), *cells, class_=None if used else "idle"))
    head = tag("tr", *(tag("th", name, scope="col", class_=look) for name, look in _HEADS))
    caption = tag("caption", "Members, their weights and why", class_="unseen")
    inner = tag("table", caption, tag("thead", head), tag("tbody", *body), class_="levels story tall")
    box = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label="Members, their weights and why")
    return card("Weights, and why", tag("div", box, data_chart="explain"), note=_note(trial, len(order)), wide=True)


def _note(trial: StackTrial, listed: int) -> str:
    told = trial.explanation
    note = (
        "Loss without it: that of the best weights over all the others; the rise is what the member is worth here. "
        "Alignment: how the loss begins to change when weight moves to the member."
    )
    if not told.used.all():
        note += " Where it would rise, the weight is 0, and the member is never asked."
    if any(rise(loss, told.loss).startswith("-") for loss in told.loss_without):
        note += " A negative rise: these weights are not the best ones."
    if listed < len(told.names):
        rest = float(told.weights[told.order[listed:]].sum())
        note += f" {counted(len(told.names) - listed, 'more member')}, of weight {shown(rest, 2)} in all, not listed."
    return note
