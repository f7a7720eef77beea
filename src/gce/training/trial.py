"""Whether a family is worth fitting, judged by one member before the others are paid for."""

from __future__ import annotations

from collections.abc import Sequence

from gce.bases.context import FitContext
from gce.training.calibration import HeldOutScores
from gce.training.callbacks import Callback, EarlyStopping
from gce.training.family_fit import FamilyFit
from gce.training.family_weights import FamilyScreening, best_outputs, solve_weights
from gce.training.plan import FamilyPlan
from gce.training.problem import Problem

#: Training rows from which one member holds out enough rows to judge by. Below, all members are screened after some
#: rounds (:class:`gce.training.family_weights.FamilyScreening`): their rounds are short.
TRIAL_ROWS = 2000


def trial_reason(
    begun: FamilyFit,
    family: FamilyPlan,
    before: Sequence[FamilyFit],
    problem: Problem,
    *,
    callbacks: Sequence[Callback],
    context: FitContext,
) -> str | None:
    """Why a family is not worth fitting beside those fitted before it; None if it is.

    The first rounds of its first member are fitted, and its weight is solved on the rows which that member holds out.

    Parameters
    ----------
    begun : FamilyFit
        The family's: one that has rounds has had its trial.
    family : FamilyPlan
    before : sequence of FamilyFit
        Fitted to the end.
    problem : Problem
        Of the whole fit.
    callbacks : sequence of callables
        May end the trial early.
    context : FitContext

    Returns
    -------
    str or None
    """
    rounds = family.method.basis.fit_defaults.screening_rounds
    rows = problem.held_out[0].nonzero().flatten()
    if begun.rounds or rounds == 0 or not before:
        return None
    if problem.members == 1 or problem.train_rows < TRIAL_ROWS or not len(rows):
        return None
    fit = FamilyFit(family.name, problem.members, EarlyStopping(None, 0.0))
    fit.leave_out(range(1, problem.members))
    fit.run(
        family.problem,
        family.method,
        max_iter=rounds,
        max_calls=family.max_calls,
        callbacks=callbacks,
        context=context,
    )
    if not fit.rounds:
        return "no round of it could be run"
    offset, y, weight = problem.offset, problem.y[rows], problem.held_out[0, rows]
    preds = [offset + best_outputs(own, problem)[0, rows] for own in (*before, fit)]
    found = solve_weights(problem.loss, offset, [HeldOutScores(pred, y, weight) for pred in preds])
    return FamilyScreening.reason_of(float(found.weights[-1]), fit.n_rounds)
