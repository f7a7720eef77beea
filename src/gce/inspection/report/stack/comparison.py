"""The stack compared with its members and their average, on the given rows."""

from __future__ import annotations

from collections.abc import Sequence

from gce.inspection.report.charts import level
from gce.inspection.report.markup import NOTHING, Section, card, heading, percent, shown, tag
from gce.inspection.report.stack.evaluation import Member, StackEvaluation, figures

#: Maximum number of members listed.
_LISTED = 100
#: Figures where higher is better.
_HIGHER = frozenset({"ROC AUC", "R²"})


def section(evaluation: StackEvaluation) -> Section:
    """Figures of the stack and of each member."""
    order = [evaluation.members[j] for j in evaluation.explanation.order[:_LISTED]]
    rows = {
        "this stack": figures(evaluation, evaluation.loss),
        "equal weights": evaluation.average,
        **{member.name: member.figures for member in order},
    }
    names = list(rows["this stack"])
    first = names[0]
    longest = max(values[first] for values in rows.values()) or 1.0
    head = tag("tr", *(tag("th", name, scope="col") for name in ("", "", *names)))
    body = []
    for i, (name, values) in enumerate(rows.items()):
        cells = [tag("td", written(figure, value)) for figure, value in values.items()]
        bar = tag("td", level(values[first] / longest, look="c0" if i == 0 else "c7"))
        body.append(tag("tr", heading(name, "row"), bar, *cells, class_="ours" if i == 0 else None))
    caption = tag("caption", "Figures of the stack and of its members", class_="unseen")
    inner = tag("table", caption, tag("thead", head), tag("tbody", *body), class_="levels tall")
    box = tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label="Figures of the stack and members")
    note = f"Bars show the {first.lower() if first == 'Error' else first}. Members are in the order of their weights."
    if len(order) < len(evaluation.members):
        note += f" Only the first {len(order)} of {len(evaluation.members):,} are listed."
    cards = [card("On the given rows", tag("div", box, data_chart="comparison"), note=note, wide=True)]
    lead = "The stack, each member alone, and all members with equal weights, on the same rows."
    return Section("comparison", "Comparison with its members", lead, cards)


def best(name: str, members: Sequence[Member]) -> Member:
    """The member with the best value of a figure."""
    sign = -1 if name in _HIGHER else 1
    return min(members, key=lambda member: sign * member.figures[name])


def written(name: str, value: float) -> str:
    """Format a figure."""
    if value != value:
        return NOTHING
    if name in _HIGHER:
        return f"{value:.4f}"
    return percent(value) if name == "Error" else shown(value)
