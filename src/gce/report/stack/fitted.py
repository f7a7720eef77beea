"""What was fitted: the stack, its members, what was set."""

from __future__ import annotations

from typing import Any

from gce.report.fitted import changed_parameters, settings, versions, written
from gce.report.markup import Markup, Section, card, facts, percent, shown, table
from gce.report.stack.trial import StackTrial
from gce.report.trial import name_of

#: Members listed.
_LISTED = 100


def section(trial: StackTrial) -> Section:
    """What was fitted."""
    changed = [row for row in changed_parameters(trial.model) if row[0] != "estimators"]
    cards = [
        card("The stack", facts(_stack(trial))),
        settings(changed),
        card("Made with", facts(versions())),
        _members(trial),
    ]
    return Section("fitted", "What was fitted", "The stack, its members, and what was set by hand.", cards)


def _stack(trial: StackTrial) -> list[tuple[str, str]]:
    stack = trial.model
    task = f"classification, {len(stack.classes_)} classes" if trial.classifies else "regression"
    outputs = trial.target.shape[1]
    found = [
        ("Estimator", type(stack).__name__),
        ("Task", task if trial.classifies or outputs == 1 else f"{task}, {outputs} targets"),
        ("Loss of the weights", name_of(trial.loss)),
    ]
    if trial.classifies:
        found.append(("What is combined", stack.mix))
    if hasattr(stack, "n_features_in_"):
        found.append(("Columns", shown(stack.n_features_in_)))
    return [*found, ("Members", shown(len(trial.members))), ("Members were", _how(stack))]


def _how(stack: Any) -> str:
    if stack.prefit:
        return "fitted before, and used as they were"
    whole, folds = "fitted here on all rows", f"{percent(stack.fold_share)} of each are its models on folds"
    return whole if stack.fold_share == 0 else f"{whole}; {folds}"


def _members(trial: StackTrial) -> Markup:
    given = dict(trial.model.estimators)
    rows = [(member.name, written(given[member.name])) for member in trial.members[:_LISTED]]
    body = table(["member", "model"], rows, caption="Members as they were given", class_="words models tall")
    return card("Members as they were given", body, wide=True)
