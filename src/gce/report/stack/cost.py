"""What predictions cost: member by member, and what is saved by not asking those without weight."""

from __future__ import annotations

from gce.report.charts import level
from gce.report.markup import Section, card, counted, facts, percent, seconds, shown, table, tag
from gce.report.stack.trial import StackTrial

#: Members listed.
_LISTED = 100


def section(trial: StackTrial) -> Section:
    """Time at predict, measured on the given rows."""
    asked = sum(member.seconds for member in trial.asked)
    every = sum(member.seconds for member in trial.members)
    idle = len(trial.members) - len(trial.asked)
    costly = sorted(trial.members, key=lambda member: -member.seconds)[:_LISTED]
    rows = [
        [
            member.name,
            level(member.seconds / costly[0].seconds, look="c0" if member.weight > 0 else "c7"),
            seconds(1000 * member.seconds),
            percent(member.seconds / asked) if member.weight > 0 else "not asked",
        ]
        for member in costly
    ]
    body = table(
        ["member", "", "1,000 rows", "of the stack"], rows, caption="Prediction time by member", class_="levels tall"
    )
    totals = [
        ("1,000 rows, this stack", seconds(1000 * asked)),
        ("Rows a second", shown(1 / asked, 3)),
        ("1,000 rows, if all members were asked", seconds(1000 * every)),
        ("Saved by members without weight", f"{seconds(1000 * (every - asked))}, {percent(1 - asked / every)}"),
    ]
    words = "Every member has weight: there is nothing to drop."
    if idle:
        words = (
            f"{counted(idle, 'member')} without weight {'is' if idle == 1 else 'are'} never asked. "
            "stack.without_unused() is a copy without them, in memory and in files."
        )
    cards = [
        card("Time by member", tag("div", body, data_chart="cost"), note="The slowest first."),
        card("In all", facts(totals), note=words),
    ]
    lead = f"One call a member on the {counted(trial.rows, 'given row')}, on the machine that made this page."
    return Section("cost", "Prediction cost", lead, cards)
