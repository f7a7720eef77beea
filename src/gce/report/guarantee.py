"""What is guaranteed: scores cannot leave the hull, and what that says about the risk."""

from __future__ import annotations

import numpy as np
import torch

from gce.losses import Logistic
from gce.report.markup import Markup, Section, card, facts, percent, rounded, shown, table
from gce.report.trial import Trial, name_of
from gce.theory.bounds import hoeffding, loss_range
from gce.theory.fitted import check_possible
from gce.theory.notes import assumptions

_DELTA, _LISTED = 0.05, 12


def section(trial: Trial) -> Section:
    """The bound on scores, and on the risk where theory has one."""
    if not np.isfinite(trial.model.bound_).all():
        words = facts([("Scores", "not bounded: a plain network has no hull to keep to")])
        return Section("bound", "The bound", "What can be said before any row is seen.", [card("No guarantee", words)])
    lead = "A convex combination cannot leave the hull of its atoms: this holds for every row, however far it lies."
    return Section("bound", "The bound", lead, [_hull(trial), _risk(trial)])


def _hull(trial: Trial) -> Markup:
    model, scores = trial.model, trial.scores.cpu().numpy()
    rows = []
    for k, (offset, bound) in enumerate(zip(model.offset_[:_LISTED], model.bound_[:_LISTED], strict=True)):
        low, high = float(scores[:, k].min()), float(scores[:, k].max())
        used = max(abs(low - offset), abs(high - offset)) / bound
        hull, here = (_span(*ends) for ends in ((offset - bound, offset + bound), (low, high)))
        rows.append([_name(trial, k), hull, here, percent(float(used))])
    what = ""
    if trial.classifies:
        alone = len(model.bound_) == 1
        what = f"{'The odds of a class are' if alone else 'Probabilities go with'} exp(score / temperature). "
    note = f"{what}Used: how far the farthest score here goes towards the bound."
    if len(model.bound_) > _LISTED:
        note += f" The first {_LISTED} of {len(model.bound_)} outputs."
    body = table(["output", "guaranteed", "on these rows", "used"], rows, caption="Range of scores", class_="words")
    extra = [facts([("Probabilities lie in", _probabilities(trial))])] if isinstance(model.loss_, Logistic) else []
    return card("Where scores can lie", body, *extra, note=note)


def _span(low: float, high: float) -> str:
    return f"{rounded(low, high - low, 3)} to {rounded(high, high - low, 3)}"


def _name(trial: Trial, k: int) -> str:
    if trial.classifies:
        classes = trial.model.classes_
        return str(classes[1] if len(classes) == 2 else classes[k])
    return "prediction" if trial.target.shape[1] == 1 else f"target {k}"


def _probabilities(trial: Trial) -> str:
    model = trial.model
    ends = torch.from_numpy(model.offset_ + np.array([[-1.0], [1.0]]) * model.bound_)
    (_, low), (above, _) = model._probabilities(ends)
    return f"{shown(float(low), 3)} to 1 - {shown(float(above), 3)}"


def _risk(trial: Trial) -> Markup:
    title = "Risk on rows to come"
    if trial.weight is not None:
        return card(title, note="No bound: the inequality counts rows alike, and these have weights.")
    try:
        check_possible(trial.model)
    except ValueError as error:
        return card(title, note=f"No bound: {error}.")
    model = trial.model
    # probabilities are those of scores divided by the temperature: a smaller or larger hull, and a hull
    heat = trial.temperature
    low, high = loss_range(model.loss_, float(model.bound_[0]) / heat, float(model.offset_[0]) / heat)
    risk = trial.mean(trial.costs_of(trial.scores / heat, trial.target))
    margin = hoeffding(trial.rows, high - low, _DELTA)
    numbers = [
        (f"Mean {name_of(model.loss_)} here", shown(risk)),
        ("Hoeffding's margin", shown(margin)),
        (f"Bound, with probability {1 - _DELTA:g}", shown(risk + margin)),
        ("Largest loss there can be", shown(high)),
    ]
    words = [
        "Valid if these rows played no part in fitting, tuning or choosing the model.",
        *assumptions(model, trial.target[:0, 0], trial.target[:, 0]),
        "model.bound_report(X_train, y_train) bounds it from the training rows, which are not in this page.",
    ]
    if risk + margin >= high:
        words.insert(0, "Here it says nothing: no loss is larger. More rows would help.")
    return card(title, facts(numbers), note=" ".join(words))
