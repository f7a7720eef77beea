"""The certificate of the weights, and how the solver reached it."""

from __future__ import annotations

import numpy as np

from gce._utils.numerals import format_bound
from gce._utils.params import counted
from gce.frank_wolfe.simplex import certify_weights
from gce.inspection.report.charts import Line, line_chart
from gce.inspection.report.evaluation import name_of
from gce.inspection.report.markup import Markup, Section, card, facts, seconds, shown
from gce.inspection.report.scales import counting, fitting
from gce.inspection.report.stack.evaluation import StackEvaluation

_PROOF = (
    "The loss is convex in the weights and so lies above its tangents: R(f) - min R is at most the maximum of "
    "<D, f - g> over the members g, which is the gap. It holds on the rows that the weights were solved on."
)


def section(evaluation: StackEvaluation) -> Section:
    """The loss, the gap, and the solver's iterations."""
    cards = [card("Loss and gap", facts(_facts(evaluation)), note=_PROOF)]
    if len(evaluation.model.history_) > 1:
        cards.append(_iterations(evaluation))
    lead = "No convex combination of these members has a loss lower than this stack's minus the gap."
    return Section("certificate", "Certificate", lead, cards)


def _facts(evaluation: StackEvaluation) -> list[tuple[str, str]]:
    explanation, out_of_fold = evaluation.explanation, evaluation.model.result_.out_of_fold
    best = int(explanation.own_loss.argmin())
    rows = [
        (f"Loss ({name_of(evaluation.loss)})", shown(explanation.loss, 6)),
        ("Minimum over all weights", f"at least {shown(explanation.loss - explanation.gap, 6)}"),
        ("Gap", format_bound(explanation.gap)),
        (
            "Gap, relative to the loss",
            format_bound(explanation.gap / abs(explanation.loss)) if explanation.loss else "loss is 0",
        ),
        (f"Best member alone, {explanation.names[best]}", shown(float(explanation.own_loss[best]), 6)),
    ]
    if out_of_fold is None:
        return [*rows, ("Evaluated on", "the given rows: the stack keeps no predictions of its fit")]
    equal = certify_weights(
        out_of_fold.risk, out_of_fold.outputs, np.full(len(explanation.names), 1 / len(explanation.names))
    )
    count = counted(len(out_of_fold.risk.y), "row")
    how = (
        "with members fitted before" if out_of_fold.splits is None else f"out of fold, {len(out_of_fold.splits)} folds"
    )
    return [*rows, ("Equal weights", shown(equal.loss, 6)), ("Solved on", f"{count}, {how}")]


def _iterations(evaluation: StackEvaluation) -> Markup:
    history = evaluation.model.history_
    iterations, gaps = ([entry[name] for entry in history] for name in ("t", "gap"))
    x, y = counting(iterations), fitting(gaps, log=True)
    elapsed = seconds(float(history[-1]["seconds"]))
    chart = line_chart(
        [Line("gap", iterations, gaps, "c2")],
        x,
        y,
        name="gap",
        words=f"gap after each of {len(history)} iterations of the solver, from {shown(gaps[0])} to {shown(gaps[-1])}",
        x_label="iteration of the solver",
        y_label="gap",
        markers=len(history) <= 40,
    )
    return card("Convergence of the gap", chart, note=f"{counted(len(history), 'iteration')} in {elapsed}.")
