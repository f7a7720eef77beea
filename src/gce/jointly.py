"""Models of a known size whose parts are trained together, behind scikit-learn's contract."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from gce import nongreedy
from gce.base import Array, ConvexModel, Way
from gce.basis.descent import Schedule
from gce.basis.network import Activation, Architecture, Bounded, SingleNeuron, TwoLayer
from gce.basis.neural import FULL_BATCH_ROWS, default_batch
from gce.coefficients import COEFFICIENTS, Absolute, Coefficients
from gce.fitting import Metric, Problem
from gce.hooks import FitTask
from gce.nongreedy import Plan
from gce.parameters import NONE, POSITIVE, Rules, among, at_least, check_parameters, count
from gce.streams import Streams
from gce.surgery import Editable

#: Most epochs where the user gives none: full-batch steps are few an epoch, mini-batches many.
_EPOCHS, _LARGE_EPOCHS = 500, 100


class JointlyTrained(ConvexModel):
    """What the non-greedy ensemble and the plain network share: one training by Adam, the best epoch kept."""

    hidden: int
    activation: Activation
    learning_rate: float
    min_learning_rate: float
    patience: int
    last_epochs: int
    max_epochs: int | None
    batch_size: int | None
    weight_decay: float
    n_iter_no_change: int | None
    time_limit: float | None

    parameter_rules: ClassVar[Rules] = {
        "hidden": count(1),
        "activation": among("relu", "tanh"),
        "learning_rate": POSITIVE,
        "min_learning_rate": POSITIVE,
        "patience": count(0),
        "last_epochs": count(1),
        "max_epochs": count(1) | NONE,
        "batch_size": count(1) | NONE,
        "weight_decay": at_least(0),
        "n_iter_no_change": count(1) | NONE,
        "time_limit": at_least(0) | NONE,
    }

    def _way(self) -> Way:
        check_parameters(self)
        rate, floor = self.learning_rate, self.min_learning_rate
        if not floor < rate:
            raise ValueError(f"0 < min_learning_rate < learning_rate must hold, got {floor!r} and {rate!r}")
        deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        return Way(partial(self._learn, deadline=deadline))

    def _learn(self, problem: Problem, metric: Metric | None, streams: Streams, task: FitTask, deadline: float) -> None:
        # epochs run in compiled loops, where nobody can be called
        task.begin(rounds=0)
        self.ensemble_, self.history_ = nongreedy.train(
            problem, metric, self._plan(problem.train_rows, deadline), streams
        )
        self.n_iter_, self.bound_ = len(self.history_), self.ensemble_.bound.cpu().numpy()

    def _plan(self, rows: int, deadline: float) -> Plan:
        architecture, atoms, coefficients = self._model()
        if (signs := self._signs()) is not None:
            architecture = architecture.monotone(signs.tolist())
        small = rows <= FULL_BATCH_ROWS
        epochs = self.max_epochs or (_EPOCHS if small else _LARGE_EPOCHS)
        schedule = Schedule(
            float(self.learning_rate),
            float(self.min_learning_rate),
            self.patience,
            self.last_epochs,
            epochs,
            decay=float(self.weight_decay),
            watch_patience=math.inf if self.n_iter_no_change is None else self.n_iter_no_change,
        )
        dtype = torch.float64 if self.batch_size is None and small else torch.float32
        batch = self.batch_size or default_batch(rows)
        return Plan(architecture, atoms, coefficients, schedule, batch, dtype, deadline)

    def _model(self) -> tuple[Architecture, int, Coefficients]:
        """One atom's architecture, how many atoms, and what their weights are functions of."""
        raise NotImplementedError


class NonGreedyConvexEnsemble(Editable, JointlyTrained):
    """A convex ensemble of a given number of atoms, trained all at once; see its subclasses."""

    n_atoms: int
    basis: str
    coefficients: str
    output: Bounded

    parameter_rules: ClassVar[Rules] = {
        "n_atoms": count(1),
        "basis": among("neural", "neuron"),
        "coefficients": among(*COEFFICIENTS),
        "output": among("hardtanh", "tanh"),
    }

    def _model(self) -> tuple[Architecture, int, Coefficients]:
        coefficients = COEFFICIENTS[self.coefficients]
        if self.basis == "neuron":
            return SingleNeuron(), self.n_atoms, coefficients
        return TwoLayer(self.hidden, self.activation, self.output), self.n_atoms, coefficients


class NeuralNetwork(JointlyTrained):
    """A plain two-layer network with an l2 penalty, whatever its task: see its subclasses."""

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        """No bound, but what an output of 1 means, ``(k,)``."""
        raise NotImplementedError

    def _model(self) -> tuple[Architecture, int, Coefficients]:
        # one atom has weight (1 + |v|) / (1 + |v|) = 1, wherever v goes
        return TwoLayer(self.hidden, self.activation, "identity"), 1, Absolute()
