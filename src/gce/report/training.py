"""How the fit went: risk, validation and gap, and the error on the given rows after each round."""

from __future__ import annotations

import numpy as np

from gce.plotting.readings import Course, default_error, has_stages, staged_errors
from gce.report.charts import Line, ends, line_chart, ticks_below
from gce.report.markup import Markup, Section, card, shown
from gce.report.scales import counting, fitting
from gce.report.trial import Trial, name_of, rows_of

#: Members whose own curves are drawn; more would be a cloud.
_MEMBERS = 12
#: Numbers (atoms, rows, outputs) that stages may hold at a time.
_STAGED = 5_000_000


def section(trial: Trial) -> Section | None:
    """How the fit went; nothing to say of an edited model."""
    course = trial.course
    if course is None:
        return None
    loss = name_of(trial.model.loss_)
    cards = [_curves(course, loss)]
    if course.validation is not None and not course.watches_loss:
        note = f"What early stopping watched: the score {trial.model.scoring!r} on held-out rows, its sign turned."
        cards.append(
            card("Validation score", _lines(course, {"validation": "negative score"}, "validation"), note=note)
        )
    if course.gap is not None:
        cards.append(_gap(course))
    if has_stages(trial.model):
        cards.append(_stages(trial))
    several = len(course.best)
    if several == 1:
        return Section("training", "Training", f"The stroke on the axis is the {course.unit} that was kept.", cards)
    thin = ", thin ones the members" if several <= _MEMBERS else ""
    lead = (
        f"Bold lines are means of {several} members{thin}. Strokes on the axis: the {course.unit}s kept. "
        "A member that is done stands still."
    )
    return Section("training", "Training", lead, cards)


def _curves(course: Course, loss: str) -> Markup:
    shown_here = {"risk": "training"}
    title, note = "Training risk", "Rows were held out, and another score was watched on them."
    if course.validation is None:
        note = "No rows were held out: nothing here says when to stop."
    elif course.watches_loss:
        shown_here["validation"] = "held-out rows"
        title = "Training risk and validation"
        note = f"Training goes on falling; where held-out rows stop, more {course.unit}s only learn noise."
    return card(title, _lines(course, shown_here, "risk", loss), note=note)


def _lines(course: Course, columns: dict[str, str], name: str, unit: str = "") -> Markup:
    looks = {"risk": "c0", "validation": "c1", "gap": "c2"}
    lines, everything = [], []
    members = len(course.best)
    for column in columns:
        own = course.members[column]
        if 1 < members <= _MEMBERS:
            lines += [Line("", course.steps, own[:, m], f"faint {looks[column]}") for m in range(members)]
        everything.append(own if 1 < members <= _MEMBERS else getattr(course, column))
    for column, label in columns.items():
        lines.append(Line(label, course.steps, getattr(course, column), looks[column]))
    x, y = counting(course.steps), fitting(*everything, log=True)
    words = "; ".join(f"{label} {ends(getattr(course, column))}" for column, label in columns.items())
    return line_chart(
        lines,
        x,
        y,
        name=name,
        words=f"{words} over {len(course.steps)} {course.unit}s",
        x_label=course.unit,
        y_label=unit or ", ".join(columns.values()),
        marks=[ticks_below(x, course.best)],
    )


def _gap(course: Course) -> Markup:
    if course.certified:
        title, note = "Duality gap", "A certificate: the training risk is at most this far above the best in the hull."
    else:
        title = "Gap, a lower estimate"
        note = "Atoms are trained, not optimal: a large value proves there is more to gain, a small one proves nothing."
    return card(title, _lines(course, {"gap": "gap"}, "gap"), note=note)


def _stages(trial: Trial) -> Markup:
    name, error = default_error(trial.model)
    some = trial.some(max(1000, _STAGED // (len(trial.model.ensemble_) * trial.target.shape[1])))
    X = trial.X if len(some) == trial.rows else rows_of(trial.X, some)
    errors = staged_errors(trial.model, X, trial.y[some], trial.weight_of(some), error)
    if trial.classifies:
        name, errors = "error in %", 100 * errors
    x, y = counting([1, len(errors)]), fitting(errors)
    least, last = (shown(float(e), 3 if trial.classifies else 4) for e in (errors.min(), errors[-1]))
    best = int(np.argmin(errors)) + 1
    note = f"Least after round {best} ({least}), {last} at the end. Rounds were chosen without these rows."
    if len(some) < trial.rows:
        note += f" On {len(some):,} of the {trial.rows:,} rows."
    chart = line_chart(
        [Line(name, np.arange(1, len(errors) + 1), errors, "c0")],
        x,
        y,
        name="staged",
        words=f"{name} on the given rows {ends(errors)} over {len(errors)} rounds",
        x_label="round",
        y_label=name,
    )
    return card("Error on the given rows, round by round", chart, note=note)
