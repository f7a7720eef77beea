"""How the fit went: risk, validation and gap, and the error on the given rows after each round."""

from __future__ import annotations

import numpy as np

from gce.inspection.plotting.readings import TrainingCurves, default_error, staged_errors
from gce.inspection.report.charts import Line, ends, line_chart, ticks_below
from gce.inspection.report.evaluation import Evaluation, name_of, rows_of
from gce.inspection.report.markup import Markup, Section, card, shown
from gce.inspection.report.scales import counting, fitting

#: Members whose own curves are drawn; more would be a cloud.
_MEMBERS = 12
#: Numbers (atoms, rows, outputs) that stages may hold at a time.
_STAGED = 5_000_000


def section(evaluation: Evaluation) -> Section | None:
    """How the fit went; nothing to say of an edited model."""
    curves = evaluation.curves
    if curves is None:
        return None
    loss = name_of(evaluation.model.loss_)
    cards = [_curves(curves, loss)]
    if curves.validation is not None and not curves.watches_loss:
        note = f"The negative score {evaluation.model.scoring!r} on held-out rows, which early stopping used."
        cards.append(
            card("Validation score", _lines(curves, {"validation": "negative score"}, "validation"), note=note)
        )
    if curves.gap is not None:
        cards.append(_gap(curves))
    if evaluation.model.result_.has_stages:
        cards.append(_stages(evaluation))
    several = curves.best.shape[1]
    if several == 1:
        return Section(
            "training", "Training", f"The mark on the axis is the best {curves.unit}, which was kept.", cards
        )
    thin = ", thin ones the members" if several <= _MEMBERS else ""
    lead = (
        f"Bold lines are means of {several} members{thin}. Marks on the axis: the {curves.unit}s kept. "
        "Curves of stopped members are constant."
    )
    return Section("training", "Training", lead, cards)


def _curves(curves: TrainingCurves, loss: str) -> Markup:
    shown_here = {"risk": "training"}
    title, note = "Training risk", "Early stopping used another score."
    if curves.validation is None:
        note = "No rows were held out for early stopping."
    elif curves.watches_loss:
        shown_here["validation"] = "held-out rows"
        title = "Training risk and validation"
        note = f"When the loss on held-out rows stops falling, further {curves.unit}s overfit."
    return card(title, _lines(curves, shown_here, "risk", loss), note=note)


def _lines(curves: TrainingCurves, columns: dict[str, str], name: str, unit: str = "") -> Markup:
    looks = {"risk": "c0", "validation": "c1", "gap": "c2"}
    lines, everything = [], []
    members = curves.best.shape[1]
    for column in columns:
        own = curves.members[column]
        if 1 < members <= _MEMBERS:
            lines += [Line("", curves.steps, own[:, m], f"faint {looks[column]}") for m in range(members)]
        everything.append(own if 1 < members <= _MEMBERS else getattr(curves, column))
    for column, label in columns.items():
        lines.append(Line(label, curves.steps, getattr(curves, column), looks[column]))
    x, y = counting(curves.steps), fitting(*everything, log=True)
    words = "; ".join(f"{label} {ends(getattr(curves, column))}" for column, label in columns.items())
    return line_chart(
        lines,
        x,
        y,
        name=name,
        words=f"{words} over {len(curves.steps)} {curves.unit}s",
        x_label=curves.unit,
        y_label=unit or ", ".join(columns.values()),
        marks=[ticks_below(x, curves.best_steps)],
    )


def _gap(curves: TrainingCurves) -> Markup:
    if curves.certified:
        title, note = "Duality gap", "A certificate: the training risk is at most this far above the best in the hull."
    else:
        title = "Gap, a lower estimate"
        note = "Atoms are trained, not optimal: a large value proves that more can be gained, a small one nothing."
    return card(title, _lines(curves, {"gap": "gap"}, "gap"), note=note)


def _stages(evaluation: Evaluation) -> Markup:
    name, error = default_error(evaluation.model)
    sample = evaluation.sample_rows(
        max(1000, _STAGED // (len(evaluation.model.ensemble_) * evaluation.target.shape[1]))
    )
    X = evaluation.X if len(sample) == evaluation.rows else rows_of(evaluation.X, sample)
    errors = staged_errors(evaluation.model, X, evaluation.y[sample], evaluation.weight_of(sample), error)
    if evaluation.classifies:
        name, errors = "error in %", 100 * errors
    x, y = counting([1, len(errors)]), fitting(errors)
    least, last = (shown(float(e), 3 if evaluation.classifies else 4) for e in (errors.min(), errors[-1]))
    best = int(np.argmin(errors)) + 1
    note = f"Minimum after round {best} ({least}), {last} at the end. These rows did not choose the round."
    if len(sample) < evaluation.rows:
        note += f" On {len(sample):,} of the {evaluation.rows:,} rows."
    chart = line_chart(
        [Line(name, np.arange(1, len(errors) + 1), errors, "c0")],
        x,
        y,
        name="staged",
        words=f"{name} on the given rows {ends(errors)} over {len(errors)} rounds",
        x_label="round",
        y_label=name,
    )
    return card("Error on the given rows by round", chart, note=note)
