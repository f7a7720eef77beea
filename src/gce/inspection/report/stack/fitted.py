"""The fitted stack: its task, members and parameters."""

from __future__ import annotations

from typing import Any

from gce._utils.params import changed_parameters
from gce.inspection.report.evaluation import name_of
from gce.inspection.report.fitted import settings, versions, written
from gce.inspection.report.markup import Markup, Section, card, facts, percent, shown, table
from gce.inspection.report.stack.evaluation import StackEvaluation

#: Members listed.
_LISTED = 100


def section(evaluation: StackEvaluation) -> Section:
    """The stack, its members and parameters."""
    changed = [row for row in changed_parameters(evaluation.model) if row[0] != "estimators"]
    cards = [
        card("The stack", facts(_stack(evaluation))),
        settings(changed),
        card("Versions", facts(versions())),
        _members(evaluation),
    ]
    return Section(
        "fitted", "Fitted stack", "The stack, its members, and the parameters that differ from their defaults.", cards
    )


def _stack(evaluation: StackEvaluation) -> list[tuple[str, str]]:
    stack = evaluation.model
    task = f"classification, {len(stack.classes_)} classes" if evaluation.classifies else "regression"
    outputs = evaluation.target.shape[1]
    found = [
        ("Estimator", type(stack).__name__),
        ("Task", task if evaluation.classifies or outputs == 1 else f"{task}, {outputs} targets"),
        ("Loss of the weights", name_of(evaluation.loss)),
    ]
    if evaluation.classifies:
        found.append(("Combines", stack.mix))
    columns = getattr(stack, "n_features_in_", None)
    if columns is not None:
        found.append(("Columns", shown(columns)))
    return [*found, ("Members", shown(len(evaluation.members))), ("Members were", _members_fitted(stack))]


def _members_fitted(stack: Any) -> str:
    if stack.prefit:
        return "fitted before and used as they were"
    full = "fitted on all rows"
    return full if stack.fold_weight == 0 else f"{full} and, with weight {percent(stack.fold_weight)}, on folds"


def _members(evaluation: StackEvaluation) -> Markup:
    given = dict(evaluation.model.estimators)
    rows = [(member.name, written(given[member.name])) for member in evaluation.members[:_LISTED]]
    body = table(["member", "model"], rows, caption="Members as given", class_="words models tall")
    return card("Members as given", body, wide=True)
