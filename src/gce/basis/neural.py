"""Small networks trained by Adam: the paper's basis models."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor

from gce.basis import compiled
from gce.basis.base import Atoms, Basis, Habit
from gce.basis.captured import Recorder
from gce.basis.descent import Schedule, descend
from gce.basis.network import Activation, Architecture, Bounded, Networks, Parameters, SingleNeuron, TwoLayer, drawn
from gce.objectives import Objective
from gce.parameters import FLAG, NONE, POSITIVE, Rules, among, check_parameters, count, within
from gce.rows import Inputs
from gce.streams import RoundStreams

logger = logging.getLogger(__name__)

#: Up to this many training rows an atom is trained by full-batch steps in float64, so that weighted and repeated rows
#: give the same model to rounding; beyond it by float32 mini-batches.
FULL_BATCH_ROWS = 4096
_RETRIES = 2

Number = TypeVar("Number", int, float)
Trained = tuple[Parameters, list[float]]
Trainer = Callable[..., Trained]


@dataclass(frozen=True)
class Task:
    """What is trained: ``models`` networks a member on an objective over rows ``X``, in an order that is drawn."""

    architecture: Architecture
    objective: Objective
    X: Inputs
    models: int
    order: torch.Generator


class TrainedBasis(Basis):
    """A class of networks whose oracle is Adam. Subclasses name the architecture."""

    learning_rate: float
    min_learning_rate: float
    patience: int
    last_epochs: int
    batch_size: int | None
    restarts: int
    _inputs: tuple[int, ...] = ()

    parameter_rules: ClassVar[Rules] = {
        "learning_rate": POSITIVE,
        "min_learning_rate": POSITIVE,
        "patience": count(0),
        "last_epochs": count(0),
        "max_epochs": count(1),
        "batch_size": count(1) | NONE,
        "restarts": count(1),
    }

    def monotone(self, signs: Tensor) -> Self:
        other = copy(self)
        other._inputs = tuple(map(int, signs.tolist()))
        return other

    def architecture(self, rows: int) -> Architecture:
        """What is trained on so many rows."""
        raise NotImplementedError

    def epochs(self, rows: int) -> int:
        """For how many epochs at most."""
        raise NotImplementedError

    def start(self, fresh: Parameters, last: Parameters, rows: int) -> Parameters:
        """Where training begins, given parameters drawn anew and each member's last ones."""
        return fresh

    def dtype(self, rows: int) -> torch.dtype:
        return torch.float64 if self.batch_size is None and rows <= FULL_BATCH_ROWS else torch.float32

    def hurried(self, end: float) -> None:
        self._end, self.rushed = end, False

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, last: Atoms | None = None) -> Networks:
        check_parameters(self)
        n, models = objective.rows, len(objective.bound) if self.separate else 1
        architecture, dtype = self.architecture(n).monotone(self._inputs), self.dtype(n)
        outputs = len(objective.bound) // models
        start = drawn(architecture, X.shape[1], outputs, rng.members, self.restarts * models, dtype, X.device)
        if isinstance(last, Networks) and last.parameters_[0].shape[1:] == start[0].shape[1:]:
            old = [p.unflatten(0, (-1, models)).repeat_interleave(self.restarts, 0) for p in last.parameters_]
            start = self.start(start, [p.flatten(0, 1) for p in old], n)
        asked = objective.cast(dtype)
        if self.restarts > 1:
            asked = asked.select(torch.arange(len(rng.members), device=X.device).repeat_interleave(self.restarts))
        task = Task(architecture, asked, X[:n], models, rng.rows)
        trained = self._train(task, start, self._schedule(n), _RETRIES)
        return Networks(architecture.free, self._best(*trained, models), objective.bound, models)

    def _best(self, parameters: Parameters, values: list[float], models: int) -> Parameters:
        """Of each member's tries the one with the least objective, model by model."""
        by_try = torch.tensor(values, dtype=torch.float64).nan_to_num(math.inf).view(-1, self.restarts, models)
        member, best = torch.arange(len(by_try))[:, None], by_try.argmin(1)
        apart = [p.unflatten(0, tuple(by_try.shape)) for p in parameters]
        return [p[member, best, torch.arange(models)].flatten(0, 1) for p in apart]

    def _trainer(self, task: Task) -> Trainer:
        """Compiled loops on the CPU, recorded graphs on a GPU, plain tensor operations for all the rest."""
        if task.X.device.type == "cuda":
            self._recorder = getattr(self, "_recorder", None) or Recorder()
            return self._recorder.descend
        served = isinstance(task.X, Tensor) and compiled.serves(task.architecture, task.objective, task.X.device)
        return compiled.descend if served else descend

    def __getstate__(self) -> dict[str, Any]:
        # a recording belongs to this process and this device, the time there is to a fit
        own = ("_recorder", "_end", "rushed")
        return {name: value for name, value in super().__getstate__().items() if name not in own}

    def _schedule(self, rows: int) -> Schedule:
        rates = self.learning_rate, self.min_learning_rate
        end = getattr(self, "_end", math.inf)
        rules = self.patience, self.last_epochs, int(self.epochs(rows))  # numpy's small integers overflow
        return Schedule(*rates, *rules, end=end, cut_short=self._rush)

    def _rush(self) -> None:
        self.rushed = True

    def _batch(self, n: int) -> int:
        return default_batch(n) if self.batch_size is None else self.batch_size

    def _train(self, task: Task, start: Parameters, schedule: Schedule, retries: int) -> Trained:
        """Train; where an objective turned NaN, train that member again at a tenth of the rate, then give up."""
        train = self._trainer(task)
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
            logger.warning(
                "an oracle's loss turned NaN %d times for member(s) %s: the zero function stands in for this round's "
                "atom; lower the basis' learning_rate or look for huge values in X",
                _RETRIES + 1,
                sorted({member // self.restarts for member in broken}),
            )
            for p in by_member:
                p[index] = 0.0
            return best, values
        slower = replace(schedule, rate=schedule.rate / 10, floor=min(schedule.floor, schedule.rate / 10))
        part = replace(task, objective=task.objective.select(index))
        again, better = self._train(part, [p[index].flatten(0, 1) for p in start], slower, retries - 1)
        for p, q in zip(by_member, again, strict=True):
            p[index] = q.unflatten(0, (-1, task.models))
        for place, member in enumerate(broken):
            own = slice(member * task.models, (member + 1) * task.models)
            values[own] = better[place * task.models : (place + 1) * task.models]
        return best, values


class Neural(TrainedBasis):
    """Two-layer networks ``bound * squash(W2 act(W1 x + b1) + b2)``.

    Small data (up to ``FULL_BATCH_ROWS``, 4,096 training rows) and large data are trained differently; where None is
    the default, this is how (measured in benchmarks/results/atoms.md).

    Parameters
    ----------
    hidden : int or None, default=None
        Hidden units. None: 10, on large data 50.
    activation : {"relu", "tanh"}, default="relu"
    output : {"hardtanh", "tanh"}, default="hardtanh"
        How an output is kept in [-1, 1] before it is scaled by the bound.
    shared : bool, default=True
        One hidden layer serves all outputs. Otherwise each output has a network and simplex weights of its own.
    learning_rate, min_learning_rate : float, default=1e-2, 1e-5
        Adam's first rate, and the floor of its schedule.
    patience : int, default=10
        Epochs without progress after which the rate is divided by 10.
    last_epochs : int, default=10
        Epochs at the floor.
    max_epochs : int or None, default=None
        Most epochs an atom is trained for. None: 40, on large data 30.
    batch_size : int or None, default=None
        None: all rows, in float64; on large data n/32 rows but between 1,024 and 8,192, in float32. A number:
        mini-batches of that size, in float32.
    gain : float or None, default=None
        Initial size of the first layer, in units of He's. None: 1, on large data 0.5.
    inherit : float or None, default=None
        How much of the hidden layer of a member's last atom its next atom starts from, in [0, 1]; the rest, and the
        output layer, are drawn anew. None: 0, on large data 0.95.
    restarts : int, default=1
        Networks that are trained for an atom, side by side; the one with the least objective is taken.
    """

    inherits = True
    parameter_rules: ClassVar[Rules] = {
        "hidden": count(1) | NONE,
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
    def habit(self) -> Habit:
        return Habit(trial=20)

    @property
    def separate(self) -> bool:
        return not self.shared

    def architecture(self, rows: int) -> TwoLayer:
        check_parameters(self)
        hidden, gain = _by_size(self.hidden, rows, 10, 50), _by_size(self.gain, rows, 1.0, 0.5)
        return TwoLayer(hidden, self.activation, self.output, gain)

    def epochs(self, rows: int) -> int:
        return _by_size(self.max_epochs, rows, 40, 30)

    def start(self, fresh: Parameters, last: Parameters, rows: int) -> Parameters:
        share = _by_size(self.inherit, rows, 0.0, 0.95)
        W1, b1, W2, b2 = fresh
        # features pass on, the output layer does not: it ends where most outputs are clamped, and has no slope there
        kept = [share * old + math.sqrt(1 - share**2) * new for old, new in zip(last[:2], (W1, b1), strict=True)]
        return [*kept, W2, b2]


def default_batch(rows: int) -> int:
    """All rows of small data; of large data a thirty-second, but between 1,024 and 8,192."""
    return rows if rows <= FULL_BATCH_ROWS else min(max(1024, rows // 32), 8192)


def _by_size(given: Number | None, rows: int, small: Number, large: Number) -> Number:
    """What the user gave, or what suits so many rows."""
    if given is not None:
        return given
    return small if rows <= FULL_BATCH_ROWS else large


class Neuron(TrainedBasis):
    """Single neurons ``bound * tanh(u'x)``, one an output: the atoms of the paper's Figure 1.

    Parameters
    ----------
    learning_rate, min_learning_rate, patience, last_epochs, max_epochs, batch_size, restarts
        As in :class:`Neural`; a neuron has far to go and nothing to overfit with, so it may take longer steps.
    """

    def __init__(
        self,
        learning_rate: float = 5e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int = 200,
        batch_size: int | None = None,
        restarts: int = 1,
    ) -> None:
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.restarts = restarts

    def architecture(self, rows: int) -> SingleNeuron:
        return SingleNeuron()

    def epochs(self, rows: int) -> int:
        return self.max_epochs
