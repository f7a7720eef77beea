"""The report on a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from gce._utils.numerals import format_bound
from gce._utils.params import counted
from gce.inspection.report import classes, residuals
from gce.inspection.report.markup import seconds, shown
from gce.inspection.report.measures import Measure, interval
from gce.inspection.report.page import check_folder, save
from gce.inspection.report.stack import certificate, comparison, cost, fitted, members
from gce.inspection.report.stack.evaluation import StackEvaluation, evaluate_stack, figures
from gce.training.metrics import undefined

_SECTIONS = (members, comparison, classes, residuals, cost, certificate, fitted)


def write(stack: Any, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
    """Write a report on a fitted stack, and on how it and its members predict the given rows.

    Parameters
    ----------
    stack : estimator
        Fitted.
    path : str or Path
        The HTML file; its folder must exist.
    X : rows of any kind
        Rows that neither the members nor the weights were fitted on.
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
        Samples with zero weight are ignored.
    """
    check_folder(path)
    evaluation = evaluate_stack(stack, X, y, sample_weight)
    found = [part.section(evaluation) for part in _SECTIONS]
    save(
        path,
        type(stack).__name__,
        _subtitle(evaluation),
        _headline(evaluation),
        [section for section in found if section],
    )


def _subtitle(evaluation: StackEvaluation) -> str:
    weighted = ", weighted" if evaluation.weight is not None else ""
    what = f"{len(evaluation.model.classes_)} classes" if evaluation.classifies else "numbers"
    used, members = int(evaluation.explanation.used.sum()), counted(len(evaluation.members), "member")
    return f"Predicts {what} with {used} of {members}; evaluated on {counted(evaluation.rows, 'row')}{weighted}."


def _headline(evaluation: StackEvaluation) -> list[Measure]:
    found, explanation = [], evaluation.explanation
    for name, value in figures(evaluation, evaluation.loss).items():
        if value == value or evaluation.classifies:
            found.append(Measure(name, comparison.written(name, value), _beside(evaluation, name, value), value))
    used, every = (1000 * sum(member.seconds for member in some) for some in (evaluation.used, evaluation.members))
    found.append(Measure("Predict 1,000 rows", seconds(used), f"all members: {seconds(every)}", used))
    proof = f"between the loss of the weights, {shown(explanation.loss)}, and the minimum"
    found.append(Measure("Proven gap", format_bound(explanation.gap), proof, explanation.gap))
    return found


def _beside(evaluation: StackEvaluation, name: str, value: float) -> str:
    """The figure of the best member alone, the interval of an error, or why there is no figure."""
    if value != value:
        return f"not defined: {undefined(evaluation.y, evaluation.model.classes_)}"
    if name == "Error":
        return interval(evaluation, value)
    best = comparison.best(name, evaluation.members)
    return f"best member, {best.name}: {comparison.written(name, best.figures[name])}"
