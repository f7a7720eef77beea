"""The rounds of one family: the loop, early stopping, and the record that is left.

A fit keeps atoms, weights and counters, not data: given the same rows again it continues as if it had never stopped.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gce._utils import parallel
from gce._utils.devices import on_cpu
from gce._utils.memory import cache_budget, release_freed
from gce._utils.random import Streams
from gce.bases.base import Basis
from gce.bases.context import FitContext
from gce.bases.neural.stored_inputs import StoredInputs
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.algorithm import Algorithm
from gce.frank_wolfe.slot import ActiveSetState, Slot
from gce.frank_wolfe.step import HeldOut, Step
from gce.losses.base import NonFiniteError, is_finite, non_finite
from gce.losses.line_search import LineSearch
from gce.training.callbacks import Callback, EarlyStopping, SharedEarlyStopping
from gce.training.problem import Metric, Problem
from gce.training.rounds import FamilyRecord, Round, padded, weight_paths

#: Rounds after which freed memory is given back: pages that are needed again cost time.
_ROUNDS_UNTIL_RELEASE = 32

#: Bytes of outputs that files may have.
_NO_LIMIT = 1 << 62

#: Called with every round and with the active set as the next round will find it.
Keep = Callable[[Round, ActiveSet], None]


@dataclass(frozen=True)
class Method:
    """How a family is fitted.

    Parameters
    ----------
    algorithm : Algorithm
        Which weights move in a round.
    basis : Basis
        The oracle.
    line_search : LineSearch
    streams : Streams
        Random numbers, one stream per member.
    """

    algorithm: Algorithm
    basis: Basis
    line_search: LineSearch
    streams: Streams


class ResumeState(NamedTuple):
    """Where an earlier run of a family stopped, and what stores its next rounds.

    Parameters
    ----------
    active_set : ActiveSetState or None
        The state of the active set after the last round.
    keep : callable or None
        Stores a round.
    """

    active_set: ActiveSetState | None = None
    keep: Keep | None = None


class FamilyFit:
    """The fit of one family in progress.

    Parameters
    ----------
    name : str
    members : int
    stopping : EarlyStopping
    inflated_bound : bool, default=False
        See :class:`gce.training.rounds.FamilyRecord`.

    Attributes
    ----------
    rounds : list of Round
    bound : Tensor of shape (k,) or None
        The hull of the rounds, known once the first one ran.
    divided : bool
        The rows are divided among processes: ``best_outputs`` are those of other rows than families are weighed on.
    """

    def __init__(self, name: str, members: int, stopping: EarlyStopping, inflated_bound: bool = False) -> None:
        self.name, self.members, self.stopping, self.inflated_bound = name, members, stopping, inflated_bound
        self.rounds: list[Round] = []
        self.bound: Tensor | None = None
        self.divided = False
        #: The predictions of the best rounds, or what computes them.
        self._best: Tensor | Callable[[], Tensor] | None = None
        self._finished: set[int] = set()
        self._slots = 0
        self._calls = [0] * members
        self._last_gap = [float("inf")] * members
        self._suboptimality = [float("inf")] * members

    @classmethod
    def resumed(cls, record: FamilyRecord, name: str) -> FamilyFit:
        """A fit under a new name that continues after the last round of a record, with no limits yet."""
        stopping = (SharedEarlyStopping if record.shared_stopping else EarlyStopping)(None, 0.0)
        fit = cls(name, record.members, stopping, record.inflated_bound)
        fit.bound = record.bound
        fit.replay(record.rounds)
        # whoever continues may bring other rows or another pool, for which nothing is proved yet
        fit._suboptimality = [math.inf] * record.members
        return fit

    def leave_out(self, members: Iterable[int]) -> None:
        """Fit no rounds of some members."""
        self._finished.update(members)

    @property
    def record(self) -> FamilyRecord:
        """The rounds so far."""
        best = self.stopping.best_round
        return FamilyRecord(
            self.name,
            self.members,
            tuple(self.rounds),
            tuple(best[m] for m in range(self.members)) if self.rounds else (),
            self.bound,
            self.inflated_bound,
            isinstance(self.stopping, SharedEarlyStopping),
        )

    @property
    def best_outputs(self) -> Tensor | None:
        """Each member's predictions at its best round, measured from the offset, where the last run knows them."""
        if self._best is not None and not isinstance(self._best, Tensor):
            self._best = self._best()
        return self._best

    @best_outputs.setter
    def best_outputs(self, pred: Tensor | None) -> None:
        self._best = pred

    @property
    def n_rounds(self) -> int:
        """How many rounds were run."""
        return len(self.rounds)

    @property
    def seconds(self) -> float:
        """Duration of the rounds."""
        return self.rounds[-1].seconds if self.rounds else 0.0

    def replay(self, rounds: Iterable[Round]) -> None:
        """Continue where an earlier run was after these rounds."""
        for record in rounds:
            self.stopping.note(record.t, record.members, record.columns["risk"], record.columns.get("validation"))
            self._append(record)

    def continues(self, max_iter: int, max_calls: float) -> bool:
        """Whether any member has rounds left within these limits."""
        return self.n_rounds < max_iter and len(self._open(max_calls)) > 0

    def run(
        self,
        problem: Problem,
        method: Method,
        *,
        max_iter: int,
        max_calls: float,
        scorer: Metric | None = None,
        callbacks: Iterable[Callback] = (),
        resume: ResumeState | None = None,
        context: FitContext | None = None,
    ) -> None:
        """Run rounds until every member is done, a limit is reached or a callback returns True.

        Early stopping monitors ``scorer``, by default the loss on the rows held out. Families that are given the same
        ``context`` share what it caches of the rows.
        """
        context = FitContext() if context is None else context
        state, keep = resume or ResumeState()
        bound = problem.bound.cpu()
        # atoms of an earlier run stay within its own hull
        self.bound = bound if self.bound is None else torch.maximum(self.bound, bound)
        if state is None:
            self._best = None
        members = self._open(max_calls)
        if not self.continues(max_iter, max_calls):
            return
        active = self._active_set(problem, method, members, state)
        self.divided = problem.division is not None
        # predictions of rows in files are large, and nobody asks for those of networks
        if self.n_rounds == 0 and not isinstance(active.X, StoredInputs):
            self._best = active.bookmark()
        with parallel.alone_if_few(active.pred):
            method.basis.prepare(active.X, context)
            self._iterate(problem, method, active, max_iter, max_calls, scorer, list(callbacks), keep, context)

    def _iterate(
        self,
        problem: Problem,
        method: Method,
        active: ActiveSet,
        max_iter: int,
        max_calls: float,
        scorer: Metric | None,
        callbacks: list[Callback],
        keep: Keep | None,
        context: FitContext,
    ) -> None:
        before = self.seconds
        monitors = bool(problem.held_out.any())
        # what is kept after a round, and deadlines, need the predictions and the time of each; of rows in files no
        # predictions are kept
        kept = keep is not None and problem.division is None
        run_ahead = scorer is None and not kept and context.deadline == math.inf
        held_out = HeldOut(problem.y, problem.held_out, max_iter if run_ahead else 0)
        steps = method.algorithm.iterate(
            problem.risk, active, method.basis, method.line_search, problem.bound, method.streams, context, held_out
        )
        for step in self._located(steps):
            if scorer is not None:
                step = dataclasses.replace(step, validation=scorer(active.pred, step.members))
            elif monitors and step.validation is None:
                step = dataclasses.replace(step, validation=problem.held_out_loss(active.pred, step.members))
            step = dataclasses.replace(step, seconds=before + step.seconds)
            step, weights, last_gap, position = _fetched(step, active)
            self._check(step, last_gap, problem, active, scored=scorer is not None)
            record = self._round(step, active, weights, last_gap, position)
            self._append(record)
            self._keep_best(step, active)
            going = [m not in self._finished and self._calls[m] < max_calls for m in step.members]
            if any(going) and not all(going):
                active.retire(torch.tensor(going, device=active.X.device))
            if keep is not None:
                keep(record, active)
            if step.t % _ROUNDS_UNTIL_RELEASE == 0:
                release_freed()
            # every callback sees every round, whatever an earlier one returns
            stop = [bool(callback(step)) for callback in callbacks]
            if any(stop) or step.t >= max_iter or not any(going):
                return

    def _located(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The steps; where a value in one of them is infinite or NaN, the error says in which."""
        try:
            yield from steps
        except NonFiniteError as error:
            raise NonFiniteError(f"{self._place(self.n_rounds + 1)}: {error}") from error

    def _place(self, t: int) -> str:
        return f"round {t} of the family {self.name!r}"

    def _check(self, step: Step, last_gap: list[float], problem: Problem, active: ActiveSet, scored: bool) -> None:
        """Refuse a round whose figures, on the CPU, are infinite or NaN; those of a scorer are the user's."""
        # the gap of a round without a call of the oracle is NaN by intent
        gap = torch.tensor(last_gap, dtype=torch.float64)
        figures = {"gap": gap, "step size": step.step_size, "risk": step.risk}
        if step.validation is not None and not scored:
            figures["risk of rows held out"] = step.validation
        for what, values in figures.items():
            if not is_finite(values):
                scores = problem.offset + active.pred
                raise non_finite(what, values, problem.loss, scores, problem.y, self._place(step.t))

    def _open(self, max_calls: float) -> list[int]:
        return [m for m in range(self.members) if m not in self._finished and self._calls[m] < max_calls]

    def _keep_best(self, step: Step, active: ActiveSet) -> None:
        """Keep the predictions of members whose best round this is."""
        better = [i for i, m in enumerate(step.members) if self.stopping.best_round[m] == step.t]
        if self._best is None or not better:
            return
        if len(better) == self.members:
            self._best = active.bookmark()
            return
        kept = self.best_outputs
        assert kept is not None
        members = torch.tensor([step.members[i] for i in better], device=kept.device)
        self._best = kept.index_copy(0, members, active.pred[better])

    def _active_set(
        self, problem: Problem, method: Method, members: list[int], state: ActiveSetState | None
    ) -> ActiveSet:
        """The active set after the last round, for some members."""
        basis = method.basis
        trained = problem.train_rows if problem.division is None else problem.division.rows
        X = basis.seen(problem.X).to(basis.dtype(trained))
        rows, outputs = problem.y.shape
        budget = cache_budget(rows, outputs, len(members), X.device) if not method.algorithm.append_only else 0
        if isinstance(X, StoredInputs):
            # files have room for all; and predictions that are summed up from them are the same after a restart
            budget = _NO_LIMIT
        active = ActiveSet(X, problem.train_rows, self.members, outputs, separate=basis.separate, cache_bytes=budget)
        active.retire(torch.tensor([m in members for m in range(self.members)], device=X.device))
        if state is not None:
            active.restore_state(state)
        for record in self.rounds:
            if record.atoms is not None:
                position = torch.tensor([record.position.get(m, -1) for m in members], device=X.device)
                active.readmit(Slot(record.atoms, position))
        if self.rounds:
            paths = weight_paths(self.rounds, self.members)
            weights = torch.stack([padded(paths[m][-1], len(active.slots)) for m in members])
            counters = [(self._calls[m], self._last_gap[m], self._suboptimality[m]) for m in members]
            # the first slot is the zero function's
            taken = [(slot.atoms, weights[:, s]) for s, slot in enumerate(active.slots) if s > 0]
            active.resume(weights.to(X.device), counters, self.n_rounds, lambda: basis.replay(X, taken))
        return active

    def _round(
        self, step: Step, active: ActiveSet, weights: Tensor, last_gap: list[float], position: list[int]
    ) -> Round:
        """Record a round, and decide who stops; what is known of the active set is on the CPU."""
        finished, gap = self.stopping(step), "gap" if step.certified else "gap_lower"
        used = (weights > 0).any(2).sum(1).double()
        columns = {"risk": step.risk, gap: step.gap, "step_size": step.step_size.mean(1), "n_atoms": used}
        if step.validation is not None:
            columns["validation"] = step.validation
        if step.suboptimality is not None:
            columns["suboptimality"] = step.suboptimality
        # the first slot is the zero function's
        new = active.slots[-1] if len(active.slots) > 1 + self._slots else None
        positions = () if new is None else zip(step.members, position, strict=True)
        return Round(
            t=step.t,
            seconds=step.seconds,
            members=list(step.members),
            columns={name: value.tolist() for name, value in columns.items()},
            weights=weights,
            calls=step.calls.tolist(),
            last_gap=last_gap,
            finished=finished,
            atoms=None if new is None else new.atoms,
            position={m: p for m, p in positions if p >= 0},
        )

    def _append(self, record: Round) -> None:
        self.rounds.append(record)
        self._slots += record.atoms is not None
        for m, calls, last_gap in zip(record.members, record.calls, record.last_gap, strict=True):
            self._calls[m], self._last_gap[m] = calls, last_gap
        for m, proved in zip(record.members, record.columns.get("suboptimality", ()), strict=False):
            self._suboptimality[m] = proved
        self._finished.update(record.finished)


def _fetched(step: Step, active: ActiveSet) -> tuple[Step, Tensor, list[float], list[int]]:
    """A round and what its record needs of the active set, on the CPU: by one transfer from another device.

    Returns
    -------
    Step
    weights : Tensor of shape (M, T, J)
        A copy.
    last_gap : list of float
    position : list of int
        The last slot's.
    """
    names = ["risk", "gap", "step_size", "max_step", "calls"]
    names += [name for name in ("validation", "suboptimality") if getattr(step, name) is not None]
    own = [active.weights, active.last_gap, active.slots[-1].position]
    *values, weights, last_gap, position = on_cpu([*(getattr(step, name) for name in names), *own])
    found: dict[str, Any] = dict(zip(names, values, strict=True))
    step = dataclasses.replace(step, **found)
    return step, weights.clone(), last_gap.tolist(), position.tolist()
