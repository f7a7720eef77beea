"""Prediction time by member, and the time saved by members of zero weight."""

from __future__ import annotations

from gce._utils.params import counted
from gce.inspection.report.charts import level
from gce.inspection.report.markup import Section, card, facts, percent, seconds, shown, table, tag
from gce.inspection.report.stack.evaluation import StackEvaluation

#: Members listed.
_LISTED = 100


def section(evaluation: StackEvaluation) -> Section:
    """Prediction time, measured on the given rows."""
    used = sum(member.seconds for member in evaluation.used)
    every = sum(member.seconds for member in evaluation.members)
    idle = len(evaluation.members) - len(evaluation.used)
    costly = sorted(evaluation.members, key=lambda member: -member.seconds)[:_LISTED]
    rows = [
        [
            member.name,
            level(member.seconds / costly[0].seconds, look="c0" if member.weight > 0 else "c7"),
            seconds(1000 * member.seconds),
            percent(member.seconds / used) if member.weight > 0 else "not used",
        ]
        for member in costly
    ]
    body = table(
        ["member", "", "1,000 rows", "of the stack"], rows, caption="Prediction time by member", class_="levels tall"
    )
    totals = [
        ("1,000 rows, this stack", seconds(1000 * used)),
        ("Rows per second", shown(1 / used, 3)),
        ("1,000 rows, all members", seconds(1000 * every)),
        ("Saved by zero weights", f"{seconds(1000 * (every - used))}, {percent(1 - used / every)}"),
    ]
    words = "All members have positive weight."
    if idle:
        words = (
            f"{counted(idle, 'member')} of zero weight {'is' if idle == 1 else 'are'} not evaluated. "
            "stack.without_unused() returns a smaller copy without them."
        )
    cards = [
        card("Time by member", tag("div", body, data_chart="cost"), note="Slowest first."),
        card("Total", facts(totals), note=words),
    ]
    lead = f"One call per member on the {counted(evaluation.rows, 'given row')}, on the machine that wrote this report."
    return Section("cost", "Prediction time", lead, cards)
