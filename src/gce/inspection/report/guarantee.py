"""Guarantees: the bound on scores, and a bound on the risk."""

from __future__ import annotations

import numpy as np
import torch

from gce.inspection.report.evaluation import Evaluation, name_of
from gce.inspection.report.markup import Markup, Section, card, facts, percent, rounded, shown, table
from gce.losses import Logistic
from gce.theory.bounds import hoeffding, loss_range
from gce.theory.fitted import check_possible
from gce.theory.notes import assumptions
from gce.training.targets import score_names

_DELTA, _LISTED = 0.05, 12


def section(evaluation: Evaluation) -> Section:
    """The bound on scores, and on the risk if theory has one."""
    if not np.isfinite(evaluation.model.bound_).all():
        words = facts([("Scores", "not bounded: a plain network is not a convex combination")])
        return Section("bound", "The bound", "Guarantees for any row.", [card("No guarantee", words)])
    lead = "A convex combination stays in the hull of its atoms: the bound holds for every row, however unusual."
    return Section("bound", "The bound", lead, [_hull(evaluation), _risk(evaluation)])


def _hull(evaluation: Evaluation) -> Markup:
    model, scores = evaluation.model, evaluation.scores.cpu().numpy()
    rows = []
    for k, (offset, bound) in enumerate(zip(model.offset_[:_LISTED], model.bound_[:_LISTED], strict=True)):
        low, high = float(scores[:, k].min()), float(scores[:, k].max())
        used = max(abs(low - offset), abs(high - offset)) / bound
        hull, here = (_span(*ends) for ends in ((offset - bound, offset + bound), (low, high)))
        rows.append([_name(evaluation, k), hull, here, percent(float(used))])
    what = ""
    if evaluation.classifies:
        alone = len(model.bound_) < len(model.classes_)
        what = f"{'Odds are' if alone else 'Probabilities are proportional to'} exp(score / temperature). "
    note = f"{what}Used: the largest distance of a score here from the offset, relative to the bound."
    if len(model.bound_) > _LISTED:
        note += f" The first {_LISTED} of {len(model.bound_)} outputs."
    body = table(["output", "guaranteed", "on these rows", "used"], rows, caption="Range of scores", class_="words")
    extra = [facts([("Probabilities lie in", _probabilities(evaluation))])] if isinstance(model.loss_, Logistic) else []
    return card("Range of scores", body, *extra, note=note)


def _span(low: float, high: float) -> str:
    return f"{rounded(low, high - low, 3)} to {rounded(high, high - low, 3)}"


def _name(evaluation: Evaluation, k: int) -> str:
    if evaluation.classifies:
        model = evaluation.model
        return score_names(model.result_.target, len(model.bound_))[k]
    return "prediction" if evaluation.target.shape[1] == 1 else f"target {k}"


def _probabilities(evaluation: Evaluation) -> str:
    model = evaluation.model
    ends = torch.from_numpy(model.offset_ + np.array([[-1.0], [1.0]]) * model.bound_)
    (_, low), (above, _) = model.probabilities(ends)
    return f"{shown(float(low), 3)} to 1 - {shown(float(above), 3)}"


def _risk(evaluation: Evaluation) -> Markup:
    title = "Risk on new rows"
    if evaluation.weight is not None:
        return card(title, note="No bound: the inequality is for unweighted rows.")
    try:
        check_possible(evaluation.model.result_)
    except ValueError as error:
        return card(title, note=f"No bound: {error}.")
    model = evaluation.model
    # probabilities are those of scores divided by the temperature, which scales the hull
    heat = evaluation.temperature
    low, high = loss_range(model.loss_, float(model.bound_[0]) / heat, float(model.offset_[0]) / heat)
    risk = evaluation.mean(evaluation.losses_of(evaluation.scores / heat, evaluation.target))
    margin = hoeffding(evaluation.rows, high - low, _DELTA)
    numbers = [
        (f"Mean {name_of(model.loss_)} here", shown(risk)),
        ("Hoeffding's margin", shown(margin)),
        (f"Bound, with probability {1 - _DELTA:g}", shown(risk + margin)),
        ("Largest possible loss", shown(high)),
    ]
    words = [
        "Valid if these rows played no part in fitting, tuning or choosing the model.",
        *assumptions(model, evaluation.target[:0, 0], evaluation.target[:, 0]),
        "model.bound_report(X_train, y_train) gives the bound from the training rows.",
    ]
    if risk + margin >= high:
        words.insert(0, "Vacuous here: no loss can be larger. More rows would help.")
    return card(title, facts(numbers), note=" ".join(words))
