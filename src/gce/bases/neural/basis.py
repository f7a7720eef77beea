"""Small networks trained by Adam: the paper's basis models."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.params import FLAG, MOST, NONE, POSITIVE, Rules, among, check_parameters, count, within
from gce._utils.random import RoundStreams
from gce.bases.base import Atoms, Basis
from gce.bases.by_member import MemberInputs, member_inputs
from gce.bases.context import FitContext, FitDefaults
from gce.bases.neural import compiled
from gce.bases.neural.descent import Schedule, descend
from gce.bases.neural.monotone import InputLimits
from gce.bases.neural.network import Activation, Architecture, Bounded, Networks, Parameters, TwoLayer, drawn
from gce.bases.neural.stored_inputs import DividedInputs, StoredInputs
from gce.bases.objectives import Linear, Objective
from gce.bases.proposal import Proposal
from gce.preprocessing.mixed import MixedRows
from gce.preprocessing.sparse import Inputs, SparseRows

logger = logging.getLogger(__name__)

#: Up to this many training rows an atom is trained by full-batch steps in float64, so that weighted and repeated rows
#: give the same atom to rounding, which further rounds amplify; beyond it by float32 mini-batches.
FULL_BATCH_ROWS = 4096
_RETRIES = 2

Number = TypeVar("Number", int, float)
Trained = tuple[Parameters, list[float]]
Trainer = Callable[..., Trained]


@dataclass(frozen=True)
class TrainingTask:
    """What is trained: ``models`` networks per member on an objective over rows ``X``, in a random order."""

    architecture: Architecture
    objective: Objective
    X: Inputs | MemberInputs | DividedInputs
    models: int
    order: torch.Generator
    context: FitContext


class TrainedBasis(Basis):
    """A class of networks whose oracle is Adam. Subclasses name the architecture."""

    looks_by_member = True

    learning_rate: float
    min_learning_rate: float
    patience: int
    last_epochs: int
    batch_size: int | None
    restarts: int
    _limits: InputLimits = InputLimits()

    parameter_rules: ClassVar[Rules] = {
        "learning_rate": POSITIVE,
        "min_learning_rate": POSITIVE,
        "patience": count(0, MOST),
        "last_epochs": count(0, MOST),
        "max_epochs": count(1),
        "batch_size": count(1) | NONE,
        "restarts": count(1),
    }

    def monotone(self, signs: Tensor) -> Self:
        other = copy(self)
        other._limits = replace(self._limits, signs=tuple(map(int, signs.tolist())))
        return other

    def restrict_interactions(self, groups: NDArray[np.uint64]) -> Self:
        other = copy(self)
        other._limits = replace(self._limits, groups=groups)
        return other

    def architecture(self, rows: int) -> Architecture:
        """The architecture for a number of training rows."""
        raise NotImplementedError

    def epochs(self, rows: int) -> int:
        """The maximum number of epochs for a number of training rows."""
        raise NotImplementedError

    def start(self, fresh: Parameters, last: Parameters, rows: int) -> Parameters:
        """Initial parameters, given random ones and those of each member's last atom."""
        return fresh

    def dtype(self, rows: int) -> torch.dtype:
        return torch.float64 if self.batch_size is None and rows <= FULL_BATCH_ROWS else torch.float32

    def minimize(
        self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext, last: Atoms | None = None
    ) -> Proposal:
        check_parameters(self)
        if isinstance(X, MixedRows) and X.owner is not None:
            return self._minimize_by_member(objective, X, rng, context, last)
        if isinstance(X, StoredInputs):
            assert isinstance(objective, Linear)
            rows, part = X.draw(objective, rng.row_seed)
            return self._minimize(part, rows, X.division.rows, self._limits, rng, context, last)
        return self._minimize(objective, X[: objective.rows], objective.rows, self._limits, rng, context, last)

    def _minimize_by_member(
        self, objective: Objective, X: MixedRows, rng: RoundStreams, context: FitContext, last: Atoms | None
    ) -> Proposal:
        """Networks of members that look at inputs of their own, trained together."""
        own = member_inputs(X, objective.rows, rng, context)
        index = [X.inputs_of(member) for member in rng.numbers]
        if isinstance(last, Networks):
            last = type(last).cat([last.select(torch.tensor([m])).restricted(at) for m, at in enumerate(index)])
        # constraints are on the table's own columns, which all members look at
        limits = self._limits.of(index[0])
        found = self._minimize(objective, own, objective.rows, limits, rng, context, last).atoms
        each = (found.select(torch.tensor([m])) for m in range(len(index)))
        wide = [atoms.among(at, at, X.widths) for atoms, at in zip(each, index, strict=True)]
        return Proposal(type(wide[0]).cat(wide))

    def _minimize(
        self,
        objective: Objective,
        X: Inputs | MemberInputs | DividedInputs,
        n: int,
        limits: InputLimits,
        rng: RoundStreams,
        context: FitContext,
        last: Atoms | None,
    ) -> Proposal:
        """Train on rows ``X`` for a fit of ``n`` training rows, by which the networks have their sizes."""
        if limits.groups is None:
            return Proposal(self._trained(objective, X, n, limits, rng, context, last)[0])
        # few fits are constrained
        from gce.bases.neural.blocks import best_in_sets

        def train(some: Inputs | MemberInputs | DividedInputs, own: InputLimits) -> tuple[Networks, Tensor]:
            # the last atom may be of another set
            return self._trained(objective, some, n, own, rng, context, None)

        return Proposal(best_in_sets(train, X, limits, rng.rows))

    def _trained(
        self,
        objective: Objective,
        X: Inputs | MemberInputs | DividedInputs,
        n: int,
        limits: InputLimits,
        rng: RoundStreams,
        context: FitContext,
        last: Atoms | None,
    ) -> tuple[Networks, Tensor]:
        """Networks of all inputs of ``X``, and the value of each."""
        models = len(objective.bound) if self.separate else 1
        architecture, dtype = self.architecture(n).monotone(limits.signs), self.dtype(n)
        outputs, width = len(objective.bound) // models, X.width if isinstance(X, MemberInputs) else X.shape[1]
        start = drawn(architecture, width, outputs, rng.members, self.restarts * models, dtype, X.device)
        if isinstance(last, Networks) and last.parameters_[0].shape[1:] == start[0].shape[1:]:
            old = [p.unflatten(0, (-1, models)).repeat_interleave(self.restarts, 0) for p in last.parameters_]
            start = self.start(start, [p.flatten(0, 1) for p in old], n)
        task_objective = objective.cast(dtype)
        if self.restarts > 1:
            tries = torch.arange(len(rng.members), device=X.device).repeat_interleave(self.restarts)
            task_objective = task_objective.select(tries)
            X = X.select(tries) if isinstance(X, MemberInputs) else X
        task = TrainingTask(architecture, task_objective, X, models, rng.rows, context)
        trained = self._train(task, start, self._schedule(n, context), _RETRIES)
        parameters, values = self._best(*trained, models)
        return Networks(architecture.free, parameters, objective.bound, models), values

    def _best(self, parameters: Parameters, values: list[float], models: int) -> tuple[Parameters, Tensor]:
        """The restart with the smallest objective, for each model of each member, and its value."""
        by_try = torch.tensor(values, dtype=torch.float64).nan_to_num(math.inf).view(-1, self.restarts, models)
        member, best = torch.arange(len(by_try))[:, None], by_try.argmin(1)
        apart = [p.unflatten(0, tuple(by_try.shape)) for p in parameters]
        chosen = member, best, torch.arange(models)
        return [p[chosen].flatten(0, 1) for p in apart], by_try[chosen].flatten()

    def _trainer(self, task: TrainingTask) -> Trainer:
        """Compiled loops on the CPU, recorded graphs on a GPU, plain tensor operations for all the rest."""
        if isinstance(task.X, DividedInputs):
            # few fits are divided
            from gce.bases.neural import divided

            return divided.descend
        if task.X.device.type == "cuda":
            from gce.bases.neural.captured import Recorder

            return task.context.cached((self,), "recorder", Recorder).descend
        served = not isinstance(task.X, SparseRows) and compiled.serves(
            task.architecture, task.objective, task.X.device
        )
        return compiled.descend if served else descend

    def _schedule(self, rows: int, context: FitContext) -> Schedule:
        rates = float(self.learning_rate), float(self.min_learning_rate)
        rules = self.patience, self.last_epochs, int(self.epochs(rows))  # numpy's small integers overflow
        return Schedule(*rates, *rules, end=context.deadline, cut_short=context.note_cut_short)

    def _batch(self, n: int) -> int:
        return default_batch(n) if self.batch_size is None else self.batch_size

    def _train(self, task: TrainingTask, start: Parameters, schedule: Schedule, retries: int) -> Trained:
        """Train; a member whose objective became NaN is trained again at a tenth of the rate."""
        train = self._trainer(task)
        if isinstance(task.X, MemberInputs) and train is not compiled.descend:
            return self._train_one_by_one(task, task.X, start, schedule, retries)
        # every try sees the rows in the same order, however long another member's training took
        order = torch.Generator()
        order.set_state(task.order.get_state())
        best, values = train(
            task.architecture, start, task.objective, task.X, schedule, self._batch(len(task.X)), order
        )
        broken = sorted({net // task.models for net, value in enumerate(values) if math.isnan(value)})
        if not broken:
            return best, values
        index = torch.tensor(broken, device=task.X.device)
        by_member, start = ([p.unflatten(0, (-1, task.models)) for p in some] for some in (best, start))
        if retries == 0:
            error = task.objective.error()
            if error is not None:
                raise error
            logger.warning(
                "an oracle's loss turned NaN %d times for member(s) %s: the zero function replaces this round's "
                "atom; lower the basis' learning_rate or look for huge values in X",
                _RETRIES + 1,
                sorted({member // self.restarts for member in broken}),
            )
            for p in by_member:
                p[index] = 0.0
            return best, values
        slower = replace(schedule, rate=schedule.rate / 10, floor=min(schedule.floor, schedule.rate / 10))
        rows = task.X.select(index) if isinstance(task.X, MemberInputs) else task.X
        part = replace(task, objective=task.objective.select(index), X=rows)
        again, better = self._train(part, [p[index].flatten(0, 1) for p in start], slower, retries - 1)
        for p, q in zip(by_member, again, strict=True):
            p[index] = q.unflatten(0, (-1, task.models))
        for place, member in enumerate(broken):
            own = slice(member * task.models, (member + 1) * task.models)
            values[own] = better[place * task.models : (place + 1) * task.models]
        return best, values

    def _train_one_by_one(
        self, task: TrainingTask, X: MemberInputs, start: Parameters, schedule: Schedule, retries: int
    ) -> Trained:
        """Members one after another, where a trainer has the same inputs for all."""
        best: list[Parameters] = []
        values: list[float] = []
        for m, own in enumerate(X.parts):
            order = torch.Generator()
            order.set_state(task.order.get_state())
            part = replace(
                task, objective=task.objective.select(torch.tensor([m], device=X.device)), X=own, order=order
            )
            nets = slice(m * task.models, (m + 1) * task.models)
            found, value = self._train(part, [p[nets] for p in start], schedule, retries)
            best.append(found)
            values += value
        return [torch.cat(parts) for parts in zip(*best, strict=True)], values


class Neural(TrainedBasis):
    """Two-layer networks ``bound * squash(W2 act(W1 x + b1) + b2)``.

    Defaults of None depend on the number of training rows: small data have up to ``FULL_BATCH_ROWS`` (4,096) of them
    (measured in benchmarks/results/atoms.md).

    Parameters
    ----------
    hidden : int or None, default=None
        Hidden units. None: 10, on large data 50.
    activation : {"relu", "tanh"}, default="relu"
    output : {"hardtanh", "tanh"}, default="hardtanh"
        How an output is kept in [-1, 1] before it is scaled by the bound.
    shared : bool, default=True
        All outputs share one hidden layer. Otherwise each output has its own network and simplex weights.
    learning_rate, min_learning_rate : float, default=1e-2, 1e-5
        Adam's first rate, and the floor of its schedule.
    patience : int, default=10
        Epochs without improvement after which the rate is divided by 10.
    last_epochs : int, default=10
        Epochs at the floor.
    max_epochs : int or None, default=None
        Maximum number of epochs per atom. None: 40, on large data 30.
    batch_size : int or None, default=None
        None: all rows, in float64; on large data n/32 rows but between 1,024 and 8,192, in float32. A number:
        mini-batches of that size, in float32.
    gain : float or None, default=None
        Initial size of the first layer, in units of He's. None: 1, on large data 0.5.
    inherit : float or None, default=None
        Fraction in [0, 1] of the hidden layer of a member's last atom that its next atom starts from; the rest, and
        the output layer, are random. None: 0, on large data 0.95.
    restarts : int, default=1
        Networks that are trained for each atom; the one with the smallest objective is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Neural
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> model = GCERegressor(basis=Neural(hidden=5), max_iter=10, random_state=0).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.8)
    True
    """

    inherits = True
    parameter_rules: ClassVar[Rules] = {
        "hidden": count(1, MOST) | NONE,
        "activation": among("relu", "tanh"),
        "output": among("hardtanh", "tanh"),
        "shared": FLAG,
        "max_epochs": count(1) | NONE,
        "gain": within(0, math.inf, "[)") | NONE,
        "inherit": within(0, 1) | NONE,
    }

    def __init__(
        self,
        hidden: int | None = None,
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        shared: bool = True,
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        gain: float | None = None,
        inherit: float | None = None,
        restarts: int = 1,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.output = output
        self.shared = shared
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.gain = gain
        self.inherit = inherit
        self.restarts = restarts

    @property
    def fit_defaults(self) -> FitDefaults:
        return FitDefaults(screening_rounds=20)

    @property
    def separate(self) -> bool:
        return not self.shared

    @property
    def learns_from_stored_inputs(self) -> bool:
        """Its networks can be trained by several processes together, on inputs in files."""
        return not self.separate and self.architecture(0).compiled

    def architecture(self, rows: int) -> TwoLayer:
        check_parameters(self)
        hidden, gain = _by_size(self.hidden, rows, 10, 50), _by_size(self.gain, rows, 1.0, 0.5)
        return TwoLayer(hidden, self.activation, self.output, gain)

    def epochs(self, rows: int) -> int:
        return _by_size(self.max_epochs, rows, 40, 30)

    def start(self, fresh: Parameters, last: Parameters, rows: int) -> Parameters:
        share = _by_size(self.inherit, rows, 0.0, 0.95)
        W1, b1, W2, b2 = fresh
        # features pass on, the output layer does not: it ends where most outputs are clamped, and has no gradient there
        kept = [share * old + math.sqrt(1 - share**2) * new for old, new in zip(last[:2], (W1, b1), strict=True)]
        return [*kept, W2, b2]


def default_batch(rows: int) -> int:
    """The batch size: all rows of small data; of large data a 32nd, but between 1,024 and 8,192 rows."""
    return rows if rows <= FULL_BATCH_ROWS else min(max(1024, rows // 32), 8192)


def _by_size(given: Number | None, rows: int, small: Number, large: Number) -> Number:
    """A given parameter, or its default for a number of training rows."""
    if given is not None:
        return given
    return small if rows <= FULL_BATCH_ROWS else large
