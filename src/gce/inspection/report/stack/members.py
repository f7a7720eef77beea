"""The weight of each member, and the reasons."""

from __future__ import annotations

import numpy as np

from gce._utils.numerals import format_change, format_number, format_slope
from gce._utils.params import counted
from gce.inspection.report.charts import dot, level
from gce.inspection.report.markup import NOTHING, Markup, Section, card, heading, shown, tag
from gce.inspection.report.scales import fitting
from gce.inspection.report.stack.evaluation import StackEvaluation

#: Maximum number of members listed.
_LISTED = 100
#: Columns; those aside are hidden on narrow screens.
_HEADS = (
    ("member", None),
    ("", None),
    ("weight", None),
    ("", "aside"),
    ("increase", None),
    ("loss without", "aside"),
    ("", "aside"),
    ("own loss", "aside"),
    ("alignment", None),
)


def section(evaluation: StackEvaluation) -> Section:
    """The explanation as a table with bars."""
    words = evaluation.explanation.certificate()
    cards = [_table(evaluation)]
    return Section("members", "Members", words[0].upper() + words[1:] + ".", cards)


def _table(evaluation: StackEvaluation) -> Markup:
    explanation = evaluation.explanation
    order = explanation.order[:_LISTED]
    rises = np.nan_to_num(explanation.loss_without - explanation.loss)
    highest, heaviest = max(float(rises.max()), 1e-300), float(explanation.weights.max())
    scale = fitting([explanation.loss], explanation.own_loss, log=True, room=0.0)
    # a loss of 0 is drawn at the left end of the logarithmic axis
    start, own = (np.nan_to_num(scale.share(losses)) for losses in (explanation.loss, explanation.own_loss))
    body = []
    for j in order.tolist():
        used, without = bool(explanation.used[j]), float(explanation.loss_without[j])
        cells = [
            tag("td", level(explanation.weights[j] / heaviest)),
            tag("td", f"{explanation.weights[j]:.4f}" if used else "0"),
            tag("td", level(rises[j] / highest, look="c1"), class_="aside"),
            tag("td", format_change(without, explanation.loss) or NOTHING, title=f"loss without: {shown(without, 6)}"),
            tag("td", format_number(without) or NOTHING, class_="aside"),
            tag("td", dot(float(own[j]), float(start)), class_="aside"),
            tag("td", format_number(float(explanation.own_loss[j])), class_="aside"),
            tag("td", format_slope(float(explanation.alignment[j]), explanation.loss) or NOTHING),
        ]
        body.append(tag("tr", heading(explanation.names[j], "row"), *cells, class_=None if used else "idle"))
    head = tag("tr", *(tag("th", name, scope="col", class_=look) for name, look in _HEADS))
    caption = tag("caption", "Weights of the members and their reasons", class_="unseen")
    inner = tag("table", caption, tag("thead", head), tag("tbody", *body), class_="levels story tall")
    box = tag(
        "div",
        inner,
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Weights of the members and their reasons",
    )
    return card(
        "Weights and their reasons",
        tag("div", box, data_chart="explain"),
        note=_note(evaluation, len(order)),
        wide=True,
    )


def _note(evaluation: StackEvaluation, listed: int) -> str:
    explanation = evaluation.explanation
    note = (
        "Loss without: the loss of the best weights of all the others; the increase is the value of the member here. "
        "Members of weight 0 are not evaluated."
    )
    note = " ".join(filter(None, (note, explanation.alignment_note(), explanation.best_note())))
    if listed < len(explanation.names):
        rest = float(explanation.weights[explanation.order[listed:]].sum())
        more = counted(len(explanation.names) - listed, "more member")
        note += f" Not listed: {more} with total weight {shown(rest, 2)}."
    return note
