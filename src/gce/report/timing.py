"""Time: what a round took, and how fast predictions are."""

from __future__ import annotations

import time

import numpy as np

from gce.plotting.readings import Course
from gce.report.charts import Line, line_chart
from gce.report.markup import Markup, Section, card, counted, facts, seconds, shown
from gce.report.scales import counting, fitting
from gce.report.trial import Trial, rows_of

#: Rows predicted; times the median beyond which a first round must have done something else.
_ROWS, _COMPILED = 10_000, 20


def section(trial: Trial) -> Section:
    """What the fit took, round by round, and how fast rows are predicted."""
    if trial.course is None:
        return Section("timing", "Timing", "Measured once, for predictions.", [_predictions(trial, [])])
    chart, numbers = _rounds(trial.course)
    cards = [chart, _predictions(trial, numbers)]
    return Section("timing", "Timing", "Measured during the fit, and once for predictions.", cards)


def _rounds(course: Course) -> tuple[Markup, list[tuple[str, str]]]:
    """Seconds of each round, as a card and in figures."""
    each = np.diff(course.seconds, prepend=0.0)
    x, y = counting(course.steps), fitting(each, zero=True)
    one = f"{'an' if course.unit == 'epoch' else 'a'} {course.unit}"
    total = float(course.seconds[-1])
    chart = line_chart(
        [Line("seconds", course.steps, each, "c0")],
        x,
        y,
        name="seconds",
        words=f"seconds {one}: {shown(float(np.median(each)))} in the middle, {seconds(total)} in all",
        x_label=course.unit,
        y_label=f"seconds {one}",
    )
    slow = "The first one compiled the loops." if each[0] > _COMPILED * np.median(each) else ""
    figures = [("Fit", seconds(total)), (f"{one.capitalize()}, median", seconds(float(np.median(each))))]
    return card(f"Time of each {course.unit}", chart, note=slow), figures


def _predictions(trial: Trial, fit: list[tuple[str, str]]) -> Markup:
    """How fast rows are predicted, after figures of the fit."""
    some = trial.some(_ROWS)
    X = rows_of(trial.X, some)
    began = time.perf_counter()
    trial.model.predict(X)
    taken = time.perf_counter() - began
    numbers = facts(
        [
            *fit,
            (f"Predict {counted(len(some), 'row')}", seconds(taken)),
            ("Rows a second", shown(len(some) / taken, 3)),
            ("A row", seconds(taken / len(some))),
        ]
    )
    return card("Predictions", numbers, note="One call, from the table as given, on the machine that made this page.")
