"""Models of a known size whose parts are trained together, behind scikit-learn's contract."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gce import nongreedy
from gce.base import Array, ConvexModel, Way
from gce.basis.descent import Schedule
from gce.basis.network import Activation, Architecture, Bounded, SingleNeuron, TwoLayer
from gce.basis.neural import FULL_BATCH_ROWS, default_batch
from gce.coefficients import COEFFICIENTS, Absolute, Coefficients
from gce.fitting import Metric, Problem
from gce.hooks import FitTask
from gce.losses import Loss
from gce.nongreedy import Plan
from gce.settings import check_count, check_number
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

    def _way(self) -> Way:
        check_count("hidden", self.hidden, 1)
        _among("activation", self.activation, ("relu", "tanh"))
        for name, least in (("patience", 0), ("last_epochs", 1)):
            check_count(name, getattr(self, name), least)
        for name in ("max_epochs", "batch_size", "n_iter_no_change"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1)
        check_number("weight_decay", self.weight_decay, 0)
        rate, floor = (check_number(name, getattr(self, name), 0) for name in ("learning_rate", "min_learning_rate"))
        if not 0 < floor < rate < math.inf:
            raise ValueError(f"0 < min_learning_rate < learning_rate must hold, got {floor!r} and {rate!r}")
        deadline = math.inf
        if self.time_limit is not None:
            deadline = time.monotonic() + check_number("time_limit", self.time_limit, 0)
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

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        basis: str = "neural",
        hidden: int = 10,
        coefficients: str = "absolute",
        loss: str | Loss = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.basis = basis
        self.hidden = hidden
        self.coefficients = coefficients
        self.loss = loss
        self.bound = bound
        self.offset = offset
        self.activation = activation
        self.output = output
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _way(self) -> Way:
        check_count("n_atoms", self.n_atoms, 1)
        _among("basis", self.basis, ("neural", "neuron"))
        _among("coefficients", self.coefficients, COEFFICIENTS)
        _among("output", self.output, ("hardtanh", "tanh"))
        return super()._way()

    def _model(self) -> tuple[Architecture, int, Coefficients]:
        coefficients = COEFFICIENTS[self.coefficients]
        if self.basis == "neuron":
            return SingleNeuron(), self.n_atoms, coefficients
        return TwoLayer(self.hidden, self.activation, self.output), self.n_atoms, coefficients


class NeuralNetwork(JointlyTrained):
    """A plain two-layer network with an l2 penalty, whatever its task: see its subclasses."""

    def __init__(
        self,
        *,
        hidden: int = 1000,
        loss: str | Loss = "auto",
        offset: float | str = "auto",
        activation: Activation = "relu",
        learning_rate: float = 1e-3,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 1e-4,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.offset = offset
        self.activation = activation
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _reach(self, y: Tensor, weight: Array, centre: Tensor) -> Tensor:
        """No bound, but what an output of 1 means, ``(k,)``."""
        raise NotImplementedError

    def _model(self) -> tuple[Architecture, int, Coefficients]:
        # one atom has weight (1 + |v|) / (1 + |v|) = 1, wherever v goes
        return TwoLayer(self.hidden, self.activation, "identity"), 1, Absolute()


def _among(name: str, value: Any, known: Iterable[str]) -> None:
    if value not in tuple(known):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
