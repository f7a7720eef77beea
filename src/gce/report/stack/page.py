"""The page about a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from gce.explaining.numerals import above
from gce.report import classes, residuals
from gce.report.markup import counted, seconds, shown
from gce.report.measures import Measure, interval
from gce.report.page import check_folder, save
from gce.report.stack import certificate, cost, fitted, members, standing
from gce.report.stack.trial import StackTrial, figures, tried

_SECTIONS = (members, standing, classes, residuals, cost, certificate, fitted)


def write(stack: Any, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
    """Write a page about a fitted stack and how it and its members do on given rows.

    Parameters
    ----------
    stack : estimator
        Fitted.
    path : str or Path
        The HTML file; its folder must exist.
    X : whatever members take, of n rows
        Rows that neither members nor weights have seen.
    y : array-like of shape (n,) or (n, k)
    sample_weight : array-like of shape (n,), optional
        A row of weight 0 is a row that is not there.
    """
    check_folder(path)
    trial = tried(stack, X, y, sample_weight)
    found = [part.section(trial) for part in _SECTIONS]
    save(path, type(stack).__name__, _subtitle(trial), _headline(trial), [section for section in found if section])


def _subtitle(trial: StackTrial) -> str:
    weighted = ", weighted" if trial.weight is not None else ""
    what = f"{len(trial.model.classes_)} classes" if trial.classifies else "numbers"
    used, members = int(trial.explanation.used.sum()), counted(len(trial.members), "member")
    return f"Predicts {what} with {used} of {members}; tried on {counted(trial.rows, 'row')}{weighted}."


def _headline(trial: StackTrial) -> list[Measure]:
    found, told = [], trial.explanation
    for name, value in figures(trial, trial.loss).items():
        if value == value:
            found.append(Measure(name, standing.written(name, value), _beside(trial, name, value), value))
    taken, every = (1000 * sum(member.seconds for member in some) for some in (trial.asked, trial.members))
    found.append(Measure("Predict 1,000 rows", seconds(taken), f"all members: {seconds(every)}", taken))
    proof = f"between the weights' loss, {shown(told.loss)}, and the least"
    found.append(Measure("Proven gap", above(told.gap), proof, told.gap))
    return found


def _beside(trial: StackTrial, name: str, value: float) -> str:
    """What the best member alone gets, or the interval of an error."""
    if name == "Error":
        return interval(trial, value)
    best = standing.best(name, trial.members)
    return f"best member, {best.name}: {standing.written(name, best.figures[name])}"
