"""What is proven about the weights, and how the proof came about."""

from __future__ import annotations

import numpy as np

from gce.explaining.numerals import above
from gce.report.charts import Line, line_chart
from gce.report.markup import Markup, Section, card, counted, facts, seconds, shown
from gce.report.scales import counting, fitting
from gce.report.stack.trial import StackTrial
from gce.report.trial import name_of
from gce.weighting import certified

_PROOF = (
    "The loss is convex in the weights, so that it lies above its tangent: R(f) - R(best) is at most the largest of "
    "<D, f - g> over the members g, and that is the gap. It holds for the rows that weights were found on."
)


def section(trial: StackTrial) -> Section:
    """The loss, the gap, and the rounds in which it closed."""
    cards = [card("Certificate", facts(_facts(trial)), note=_PROOF)]
    if len(trial.model.history_) > 1:
        cards.append(_rounds(trial))
    lead = "No convex combination of these members has a lower loss than this stack's, less the gap."
    return Section("certificate", "What is proven", lead, cards)


def _facts(trial: StackTrial) -> list[tuple[str, str]]:
    told, stack = trial.explanation, trial.model
    best = int(told.own_loss.argmin())
    found = [
        (f"Loss ({name_of(trial.loss)})", shown(told.loss, 6)),
        ("Least loss there can be", f"at least {shown(told.loss - told.gap, 6)}"),
        ("Gap, proven", above(told.gap)),
        ("Relative to the loss", above(told.gap / abs(told.loss)) if told.loss else "loss is 0"),
        (f"Best member alone, {told.names[best]}", shown(float(told.own_loss[best]), 6)),
    ]
    evidence = stack._evidence
    if evidence is None:
        return [*found, ("Found on", "the given rows: the stack holds no answers of its fit")]
    equal = certified(evidence.risk, evidence.outputs, np.full(len(told.names), 1 / len(told.names)))
    rows = counted(len(evidence.risk.y), "row")
    how = "members were fitted before" if evidence.splits is None else f"out of fold, {len(evidence.splits)} folds"
    return [*found, ("Equal weights", shown(equal.loss, 6)), ("Found on", f"{rows}, {how}")]


def _rounds(trial: StackTrial) -> Markup:
    history = trial.model.history_
    rounds, gaps = ([entry[name] for entry in history] for name in ("t", "gap"))
    x, y = counting(rounds), fitting(gaps, log=True)
    taken = seconds(float(history[-1]["seconds"]))
    chart = line_chart(
        [Line("gap", rounds, gaps, "c2")],
        x,
        y,
        name="gap",
        words=f"gap after each of {len(history)} rounds of the solver, from {shown(gaps[0])} to {shown(gaps[-1])}",
        x_label="round of the solver",
        y_label="gap",
        markers=len(history) <= 40,
    )
    return card("How the gap closed", chart, note=f"{counted(len(history), 'round')} in {taken}.")
