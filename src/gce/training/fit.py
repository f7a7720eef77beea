"""A fit, once its data and plan are known: the families are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gce.bases.base import Basis
from gce.bases.context import FitContext
from gce.frank_wolfe.active_set import ActiveSet
from gce.training.callbacks import Callback, CallbackList, FamilyTurn, TimeLimit
from gce.training.data import FitData
from gce.training.family_fit import FamilyFit, Keep, ResumeState
from gce.training.family_weights import (
    FamilyScreening,
)
from gce.training.finish import snapshot
from gce.training.plan import FamilyPlan, FitPlan
from gce.training.progress import Log, ProgressBar, shows_progress_bar
from gce.training.result import FitResult
from gce.training.rounds import FamilyRecord, Round
from gce.training.sklearn_callbacks import FitTask
from gce.training.time_shares import TimeShares
from gce.training.trial import trial_reason

if TYPE_CHECKING:
    from gce.bases.trees.samples import RowSamples
    from gce.bases.trees.stored import StoredRows

Array = NDArray[np.float64]


class RoundStore(Protocol):
    """Where the rounds of a fit are kept while it runs: a checkpoint folder."""

    def begin(self, plan: FitPlan, data: FitData) -> None:
        """Take the store for a fit; that of another fit is refused."""

    def resume(self, family: FamilyPlan, fit: FamilyFit, data: FitData) -> ResumeState:
        """Replay the rounds that the store has of a family."""

    def before_writing(self) -> None:
        """Wait until all who read the store have done so."""


@dataclass(frozen=True, eq=False)
class FittedFamilies:
    """The families of a plan as far as they were fitted.

    Parameters
    ----------
    plan : FitPlan
    fits : dict of FamilyFit
        By the family's name.
    clock : TimeLimit or None
    left_out : dict of str
        Why families were not begun, or not fitted to the end, by their names.
    """

    plan: FitPlan
    fits: dict[str, FamilyFit]
    clock: TimeLimit | None
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def bases(self) -> dict[str, Basis]:
        """The class of models of each family."""
        return {family.name: family.method.basis for family in self.plan.families}

    @property
    def begun(self) -> list[FamilyFit]:
        """The families that have rounds: a fit may end before the last family begins."""
        return [fit for fit in self.fits.values() if fit.rounds]


def run(
    plan: FitPlan,
    data: FitData,
    *,
    previous: FitResult | None = None,
    store: RoundStore | None = None,
    clock: TimeLimit | None = None,
    callbacks: Sequence[Callback] = (),
    task: FitTask,
) -> FittedFamilies:
    """Run every family of a plan.

    Parameters
    ----------
    plan : FitPlan
    data : FitData
    previous : FitResult, optional
        The fit that is continued.
    store : RoundStore, optional
        Where rounds are kept.
    clock : TimeLimit, optional
    callbacks : sequence of callables
        Called with every step of every family.
    task : FitTask
        The fit as scikit-learn's callbacks see it.

    Returns
    -------
    FittedFamilies
    """
    if previous is not None:
        plan = _as_before(plan, data, previous)
    if store is not None:
        store.begin(plan, data)
    fits = _begin_families(plan, data, previous)
    resume = {} if store is None else {p.name: store.resume(p, fits[p.name], data) for p in plan.families}
    if store is not None:
        store.before_writing()
    families, fitted = plan.families, FittedFamilies(plan, fits, clock)
    task.begin(sum(family.max_rounds for family in families))
    with _watching(plan, fitted, data, callbacks, task) as watchers:
        context = FitContext(world=data.world, samples=_row_samples(data))
        shares = TimeShares(families, fits, clock, context)
        shares.measure(data.problem, partial(data.target.calibrate, data.loss))
        left_out = fitted.left_out
        for number, family in enumerate(families):
            fit = fits[family.name]
            before = [other for other in list(fits.values())[:number] if other.rounds]
            family.limit(fit)
            screening = FamilyScreening(fit, before, data.problem, family.method.basis.fit_defaults.screening_rounds)
            limits = None if screening.rejects() else shares.begin(family.name)
            if limits is None:
                left_out[family.name] = screening.reason or "the time limit left no time for it"
                continue
            reason = trial_reason(fit, family, before, data.problem, callbacks=limits, context=context)
            if reason is not None:
                left_out[family.name] = reason
                shares.end(family.name, limits)
                continue
            watchers.begin_family(_turn(family, fits))
            fit.run(
                family.problem,
                shares.method(family.name),
                max_iter=family.max_iter,
                max_calls=family.max_calls,
                scorer=data.scorer,
                callbacks=[*limits, screening, watchers],
                resume=_unless_cut_short(resume.get(family.name), context),
                context=context,
            )
            shares.end(family.name, limits)
            if screening.reason is not None:
                left_out[family.name] = screening.reason
            if fit.divided:
                # large, and of other rows than those that families are weighed on
                fit.best_outputs = None
            if watchers.stopped:
                break
    return fitted


def _row_samples(data: FitData) -> RowSamples | None:
    """All training rows, where memory has a sample of them."""
    divided = data.divided
    if divided is None or not data.sampled:
        return None
    # few fits are divided
    from gce.bases.trees.samples import RowSamples

    risk, stored = divided.risk, cast("StoredRows", divided.X)
    drawn, unit, classes = data.problem.train_rows, float(risk.unit[0]), data.loss.link == "softmax"
    return RowSamples.of(stored, risk.y, risk.weight[0], unit=unit, drawn=drawn, classes=classes)


def _as_before(plan: FitPlan, data: FitData, previous: FitResult) -> FitPlan:
    """The plan without families that "auto" left out under constraints when the fit that is continued began."""
    known = [family.name for family in previous.families]
    constrained = data.signs is not None or data.interactions is not None
    kept = tuple(family for family in plan.families if family.name in known)
    fewer = 1 < len(known) == len(kept) < len(plan.families)
    automatic = all(family.automatic for family in plan.families)
    return replace(plan, families=kept) if constrained and fewer and automatic else plan


def _begin_families(plan: FitPlan, data: FitData, previous: FitResult | None) -> dict[str, FamilyFit]:
    """The fit of each family: of no rounds, or as a previous fit left it."""
    if previous is None:
        return {family.name: family.begin() for family in plan.families}
    members = data.problem.members
    if previous.members != members:
        raise ValueError(f"warm_start continues {previous.members} members, but cv now gives {members}")
    if previous.signs != data.signs:
        raise ValueError(
            f"warm_start continues atoms with monotonic constraints {previous.signs}, which "
            f"monotonic_cst={plan.parameters.get('monotonic_cst')!r} cannot change: set warm_start=False and fit again"
        )
    if previous.interactions != data.interactions:
        raise ValueError(
            f"warm_start continues atoms with interaction constraints {previous.interactions}, which "
            f"interaction_cst={plan.parameters.get('interaction_cst')!r} cannot change: set warm_start=False and fit "
            "again"
        )
    names, known = [family.name for family in plan.families], [family.name for family in previous.families]
    # a family alone may be followed by another one, whose atoms are added to its own
    if len(names) != len(known) or (len(known) > 1 and names != known):
        raise ValueError(
            f"warm_start continues {', '.join(known) if len(known) > 1 else 'one family'}, but "
            f"basis={plan.parameters.get('basis')!r} has {', '.join(names)}: set warm_start=False and fit again"
        )
    records = cast(tuple[FamilyRecord, ...], previous.families)
    return {name: FamilyFit.resumed(record, name) for name, record in zip(names, records, strict=True)}


def _turn(family: FamilyPlan, fits: dict[str, FamilyFit]) -> FamilyTurn:
    others = [fit for name, fit in fits.items() if name != family.name]
    had, took = sum(fit.n_rounds for fit in others), sum(fit.seconds for fit in others)
    return FamilyTurn(family.name if others else None, had, took, family.max_rounds, family.max_calls)


def _unless_cut_short(resume: ResumeState | None, context: FitContext) -> ResumeState | None:
    """Keep rounds, but not one whose atoms the deadline cut short: the next call trains them to the end."""
    if resume is None or resume.keep is None:
        return resume
    keep: Keep = resume.keep

    def keep_whole(record: Round, active: ActiveSet) -> None:
        if not context.cut_short:
            keep(record, active)

    return resume._replace(keep=keep_whole)


@contextmanager
def _watching(
    plan: FitPlan, fitted: FittedFamilies, data: FitData, callbacks: Sequence[Callback], task: FitTask
) -> Iterator[CallbackList]:
    """The callbacks of a fit: the user's, the log, scikit-learn's and the progress bar."""
    with ExitStack() as stack:
        watchers = CallbackList([*callbacks, stack.enter_context(Log())])
        if task.has_callbacks:
            watchers.add(stack.enter_context(task.rounds(lambda: {"_result": snapshot(fitted, data)})))
        if shows_progress_bar(plan.verbose):
            fits = fitted.fits
            left = {family.name: max(0, family.max_rounds - fits[family.name].n_rounds) for family in plan.families}
            bar = stack.enter_context(ProgressBar(left, *([] if fitted.clock is None else [fitted.clock])))
            watchers.on_family_begin(bar.begin_family)
            watchers.add(bar)
        yield watchers
