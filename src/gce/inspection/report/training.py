"""How the fit went: each family by itself, with its risk, validation, gap and error on the given rows by round."""

from __future__ import annotations

import numpy as np

from gce._utils.params import counted
from gce.inspection.plotting.readings import FamilyCurves, TrainingCurves, default_error, staged_errors
from gce.inspection.report.charts import Line, ends, guide, level, line_chart, ticks_below
from gce.inspection.report.evaluation import Array, Evaluation, name_of, rows_of
from gce.inspection.report.markup import (
    NOTHING,
    Markup,
    Section,
    card,
    facts,
    percent,
    seconds,
    shown,
    table,
    tag,
)
from gce.inspection.report.scales import counting, fitting

#: Members whose own curves are drawn; more would be a cloud.
_MEMBERS = 12
#: Numbers (atoms, rows, outputs) that stages may hold at a time.
_STAGED = 5_000_000
#: Colours of families.
_COLOURS = 8
_LOOKS = {"risk": "c0", "validation": "c1"}


def section(evaluation: Evaluation) -> Section | None:
    """How the fit went; nothing to say of an edited model."""
    whole, families = evaluation.curves, evaluation.families
    if whole is None:
        return None
    cards = [_families(evaluation)] if len(families) > 1 else []
    if left_out := evaluation.model.result_.left_out:
        body = table(["family", "reason"], left_out, caption="Families left out", class_="words models")
        cards.append(card("Families left out", body, note="They have no part in predictions.", wide=True))
    cards += [_family(evaluation, family, i) for i, family in enumerate(families)]
    if whole.validation is not None and not whole.watches_loss:
        note = f"The negative score {evaluation.model.scoring!r} on held-out rows, which early stopping used."
        chart = _by_family(families, "validation", "validation", "negative score")
        cards.append(card("Validation score", chart, note=note))
    if whole.gap is not None:
        cards.append(_gap(whole, families))
    if evaluation.model.result_.has_stages and evaluation.plain:
        cards.append(_stages(evaluation))
    return Section("training", "Training", _lead(whole, families), cards)


def _lead(whole: TrainingCurves, families: tuple[FamilyCurves, ...]) -> str:
    several = whole.best.shape[1]
    words = f"The mark on the axis is the best {whole.unit}, which was kept."
    if several > 1:
        thin = ", thin ones the members" if several <= _MEMBERS else ""
        words = (
            f"Bold lines are means of {several} members{thin}. Marks on the axis: the {whole.unit}s kept. "
            "Curves of stopped members are constant."
        )
    if len(families) == 1:
        return words
    return f"{len(families)} families were fitted one after another and weighted on held-out rows. {words}"


# Families, one line each, and one card each.


def _families(evaluation: Evaluation) -> Markup:
    families, whole = evaluation.families, evaluation.curves
    assert whole is not None
    watched = name_of(evaluation.model.loss_) if whole.watches_loss else "negative score"
    rows = []
    for family in families:
        kept = [str(t) for t in np.unique(family.curves.best[0]).tolist()]
        rows.append(
            [
                family.name,
                level(family.weight),
                percent(family.weight),
                shown(family.n_atoms),
                kept[0] if len(kept) == 1 else f"{kept[0]} to {kept[-1]}",
                shown(family.kept_validation) if family.curves.validation is not None else NOTHING,
                seconds(float(family.curves.seconds[-1])),
            ]
        )
    rest = 1 - sum(family.weight for family in families)
    if rest > 1e-9:
        rows.append(["offset alone", level(rest, look="c7"), percent(rest), NOTHING, NOTHING, NOTHING, NOTHING])
    together = shown(float(whole.validation[-1])) if whole.validation is not None else NOTHING
    rows.append(["all together", "", "", shown(len(evaluation.model.ensemble_)), NOTHING, together, NOTHING])
    head = ["family", "", "weight", "atoms", f"{whole.unit}s kept", "held-out", "time"]
    body = table(head, rows, caption="Families and their weights", class_="levels families")
    note = f"Held-out: {watched} on the rows that members held out, by each family alone and by all together."
    note += " Rounds and weights were chosen on these rows, so that these values are a little too good"
    if evaluation.model.result_.round_weights is not None:
        note += ", the last one most: it chose a weight for each round"
    note += '; "What was fitted" has the metrics of the model on these rows.'
    return card("Families and their weights", tag("div", body, data_chart="families"), note=note, wide=True)


def _family(evaluation: Evaluation, family: FamilyCurves, i: int) -> Markup:
    """The risk of a family on training and held-out rows."""
    curves, alone = family.curves, len(evaluation.families) == 1
    loss, columns = name_of(evaluation.model.loss_), {"risk": "training"}
    title, notes = "Training risk", []
    if curves.validation is None:
        notes.append("No rows were held out for early stopping.")
    elif curves.watches_loss:
        columns["validation"] = "held-out rows"
        title = "Training risk and validation"
        notes.append(f"When the loss on held-out rows stops falling, further {curves.unit}s overfit." if alone else "")
    else:
        notes.append("Early stopping used another score.")
    if not alone:
        title = f"{family.name}: {percent(family.weight)} of the weight" if family.weight else f"{family.name}: unused"
        size = f"{counted(family.n_atoms, 'atom')}, " if family.n_atoms else ""
        notes.insert(0, f"{size}{counted(len(curves.steps), curves.unit)}.")
    if family.interpolates:
        del columns["risk"]
        notes.append(f"It reproduces its training rows: training risk {shown(float(curves.risk[-1]), 2)}, not drawn.")
    note = " ".join(filter(None, notes))
    name = "risk" if alone else f"risk-{i}"
    if len(curves.steps) == 1:
        return card(title, tag("div", _one_round(family, loss), data_chart=name), note=note)
    whole = None if alone or not curves.watches_loss else _together(evaluation)
    return card(title, _lines(curves, columns, name, loss, whole), note=note)


def _one_round(family: FamilyCurves, loss: str) -> Markup:
    """A family of one round, such as a forest, has no curve."""
    curves = family.curves
    numbers = [(f"Training {loss}", shown(float(curves.risk[0])))]
    if curves.validation is not None and curves.watches_loss:
        numbers.append((f"Held-out {loss}", shown(float(curves.validation[0]))))
    return facts(numbers)


def _together(evaluation: Evaluation) -> float | None:
    """The held-out loss of all families together."""
    whole = evaluation.curves
    return None if whole is None or whole.validation is None else float(whole.validation[-1])


def _lines(curves: TrainingCurves, columns: dict[str, str], name: str, unit: str, whole: float | None) -> Markup:
    lines, everything = [], []
    members = curves.best.shape[1]
    for column in columns:
        own = curves.members[column]
        if 1 < members <= _MEMBERS:
            lines += [Line("", curves.steps, own[:, m], f"faint {_LOOKS[column]}") for m in range(members)]
        everything.append(own if 1 < members <= _MEMBERS else getattr(curves, column))
    for column, label in columns.items():
        lines.append(Line(label, curves.steps, getattr(curves, column), _LOOKS[column]))
    x, y = counting(curves.steps), fitting(*everything, *([] if whole is None else [[whole]]), log=True)
    words = "; ".join(f"{label} {ends(getattr(curves, column))}" for column, label in columns.items())
    if whole is not None:
        lines.append(Line("all families", [x.low, x.high], [whole, whole], "dashed c7"))
        words += f"; held-out rows by all families together {shown(whole)}"
    return line_chart(
        lines,
        x,
        y,
        name=name,
        words=f"{words} over {len(curves.steps)} {curves.unit}s",
        x_label=curves.unit,
        y_label=unit,
        marks=[ticks_below(x, curves.best_steps)],
    )


# What is compared between families: one line each.


def _by_family(families: tuple[FamilyCurves, ...], column: str, name: str, label: str) -> Markup:
    """One line per family over its own rounds; the members of a family that is alone are thin lines."""
    drawn = [(i, family) for i, family in enumerate(families) if len(family.curves.steps) > 1 or len(families) == 1]
    alone = len(families) == 1
    colour = {"gap": "c2", "validation": "c1"}[column]
    lines, everything, words = [], [], []
    for i, family in drawn:
        curves, look = family.curves, colour if alone else f"c{i % _COLOURS}"
        values, members = getattr(curves, column), curves.best.shape[1]
        if alone and 1 < members <= _MEMBERS:
            own = curves.members[column]
            lines += [Line("", curves.steps, own[:, m], f"faint {look}") for m in range(members)]
            everything.append(own)
        everything.append(values)
        lines.append(Line(label if alone else family.name, curves.steps, values, look))
        words.append(f"{label if alone else family.name} {ends(values)}")
    unit = families[0].curves.unit
    x = counting(np.concatenate([family.curves.steps for _, family in drawn] or [np.ones(1)]))
    marks = [ticks_below(x, families[0].curves.best_steps)] if alone else []
    return line_chart(
        lines,
        x,
        fitting(*everything, log=True) if everything else fitting([0.0, 1.0]),
        name=name,
        words=f"{label} by {unit}: {'; '.join(words)}",
        x_label=unit if alone else f"{unit} of the family",
        y_label=label,
        marks=marks,
    )


def _gap(whole: TrainingCurves, families: tuple[FamilyCurves, ...]) -> Markup:
    if whole.certified:
        title, label = "Suboptimality", "suboptimality"
        note = "A certificate: after each round, the training risk is at most this far above the least in the hull."
    else:
        title, label = "Gap, a lower estimate", "gap"
        note = "Atoms are trained, not optimal: a large value proves that more can be gained, a small one nothing."
    return card(title, _by_family(families, "gap", "gap", label), note=note)


def _stages(evaluation: Evaluation) -> Markup:
    name, error = default_error(evaluation.model)
    sample = evaluation.sample_rows(
        max(1000, _STAGED // (len(evaluation.model.ensemble_) * evaluation.target.shape[1]))
    )
    X = evaluation.X if len(sample) == evaluation.rows else rows_of(evaluation.X, sample)
    errors = staged_errors(evaluation.model, X, evaluation.y[sample], evaluation.weight_of(sample), error)
    if evaluation.classifies:
        name, errors = "error in %", 100 * errors
    digits = 3 if evaluation.classifies else 4
    if len(evaluation.families) > 1:
        chart, note = _stages_by_family(evaluation.families, errors, name, digits)
    else:
        x, y, best = counting([1, len(errors)]), fitting(errors), int(np.argmin(errors)) + 1
        least, last = (shown(float(e), digits) for e in (errors.min(), errors[-1]))
        note = f"Minimum after round {best} ({least}), {last} at the end. These rows did not choose the round."
        words = f"{name} on the given rows {ends(errors)} over {len(errors)} rounds"
        lines = [Line(name, np.arange(1, len(errors) + 1), errors, "c0")]
        chart = line_chart(lines, x, y, name="staged", words=words, x_label="round", y_label=name)
    if len(sample) < evaluation.rows:
        note += f" On {len(sample):,} of the {evaluation.rows:,} rows."
    return card("Error on the given rows by round", chart, note=note)


def _stages_by_family(families: tuple[FamilyCurves, ...], errors: Array, name: str, digits: int) -> tuple[Markup, str]:
    """The stages of each family by itself; the last error is that of all of them together."""
    parts = np.split(errors[:-1], np.cumsum([len(family.curves.steps) for family in families])[:-1])
    drawn = [(i, family, own) for i, (family, own) in enumerate(zip(families, parts, strict=True)) if len(own) > 1]
    lines = [Line(family.name, np.arange(1, len(own) + 1), own, f"c{i % _COLOURS}") for i, family, own in drawn]
    x = counting(np.concatenate([np.asarray(line.x) for line in lines] or [np.ones(1)]))
    y = fitting(*(line.y for line in lines), errors[-1:])
    words = "; ".join(f"{family.name} {ends(own)}" for _, family, own in drawn)
    chart = line_chart(
        lines,
        x,
        y,
        name="staged",
        words=f"{name} on the given rows by round: {words}; all together {shown(float(errors[-1]), digits)}",
        x_label="round of the family",
        y_label=name,
        marks=[guide(x, y, [(x.low, float(errors[-1])), (x.high, float(errors[-1]))])],
    )
    last = [f"{family.name} {shown(float(own[-1]), digits)}" for family, own in zip(families, parts, strict=True)]
    return chart, f"At the end: {', '.join(last)}; all together {shown(float(errors[-1]), digits)} (dashed)."
