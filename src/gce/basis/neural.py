"""Small networks trained by Adam: the paper's basis models."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gce.basis import compiled
from gce.basis.base import Basis
from gce.basis.captured import Recorder
from gce.basis.descent import Schedule, descend
from gce.basis.network import Activation, Architecture, Networks, Output, Parameters, SingleNeuron, TwoLayer
from gce.objectives import Objective
from gce.streams import RoundStreams

logger = logging.getLogger(__name__)

#: Up to this many training rows an atom is trained by full-batch steps in float64, so that weighted and repeated rows
#: give the same model to rounding; beyond it by float32 mini-batches.
FULL_BATCH_ROWS = 4096
_RETRIES = 2

Trainer = Callable[..., tuple[Parameters, list[bool]]]


class TrainedBasis(Basis):
    """A class of networks whose oracle is Adam. Subclasses name the architecture."""

    learning_rate: float
    min_learning_rate: float
    patience: int
    last_epochs: int
    max_epochs: int
    batch_size: int | None

    def architecture(self) -> Architecture:
        raise NotImplementedError

    def dtype(self, rows: int) -> torch.dtype:
        return torch.float64 if self.batch_size is None and rows <= FULL_BATCH_ROWS else torch.float32

    def minimize(self, objective: Objective, X: Tensor, *, rng: RoundStreams) -> Networks:
        models = len(objective.bound) if self.separate else 1
        dtype = self.dtype(objective.rows)
        cast, rows = objective.cast(dtype), X[: objective.rows].to(dtype)
        best = self._train(cast, rows, rng.members, rng.rows, models, self._schedule(), _RETRIES)
        return Networks(self.architecture(), best, objective.bound, models)

    def _trainer(self, architecture: Architecture, objective: Objective, device: torch.device) -> Trainer:
        """Compiled loops on the CPU, recorded graphs on a GPU, plain tensor operations for all the rest."""
        if device.type == "cuda":
            self._recorder = getattr(self, "_recorder", None) or Recorder()
            return self._recorder.descend
        return compiled.descend if compiled.serves(architecture, objective, device) else descend

    def __getstate__(self) -> dict[str, Any]:
        # a recording belongs to this process and this device
        return {name: value for name, value in super().__getstate__().items() if name != "_recorder"}

    def _schedule(self) -> Schedule:
        return Schedule(self.learning_rate, self.min_learning_rate, self.patience, self.last_epochs, self.max_epochs)

    def _batch(self, n: int) -> int:
        if self.batch_size is not None:
            return self.batch_size
        return n if n <= FULL_BATCH_ROWS else min(max(1024, n // 32), 8192)

    def _train(
        self,
        objective: Objective,
        X: Tensor,
        members: list[torch.Generator],
        order: torch.Generator,
        models: int,
        schedule: Schedule,
        retries: int,
    ) -> Parameters:
        """Train; where an objective turned NaN, train that member again at a tenth of the rate, then give up."""
        architecture, outputs = self.architecture(), len(objective.bound) // models
        nets = [architecture.start(X.shape[1], outputs, stream, X.dtype) for stream in members for _ in range(models)]
        start = [torch.stack(column).to(X.device) for column in zip(*nets, strict=True)]
        best, failed = self._trainer(architecture, objective, X.device)(
            architecture, start, objective, X, schedule, self._batch(len(X)), order
        )
        broken = sorted({net // models for net, bad in enumerate(failed) if bad})
        if not broken:
            return best
        index = torch.tensor(broken, device=X.device)
        by_member = [p.unflatten(0, (-1, models)) for p in best]
        if retries == 0:
            logger.warning(
                "an oracle's loss turned NaN %d times for member(s) %s: the zero function stands in for this round's "
                "atom; lower the basis' learning_rate or look for huge values in X",
                _RETRIES + 1,
                broken,
            )
            for p in by_member:
                p[index] = 0.0
        else:
            slower = replace(schedule, rate=schedule.rate / 10, floor=min(schedule.floor, schedule.rate / 10))
            again = self._train(
                objective.select(index), X, [members[m] for m in broken], order, models, slower, retries - 1
            )
            for p, q in zip(by_member, again, strict=True):
                p[index] = q.unflatten(0, (-1, models))
        return best


class Neural(TrainedBasis):
    """Two-layer networks ``bound * squash(W2 act(W1 x + b1) + b2)``.

    Parameters
    ----------
    hidden : int, default=10
        Hidden units.
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
    max_epochs : int, default=40
        Most epochs an atom is trained for.
    batch_size : int or None, default=None
        None: all rows up to ``FULL_BATCH_ROWS`` (4,096) training rows, in float64; beyond, n/32 rows but between 1,024
        and 8,192, in float32. A number: mini-batches of that size, in float32.
    """

    def __init__(
        self,
        hidden: int = 10,
        activation: Activation = "relu",
        output: Output = "hardtanh",
        shared: bool = True,
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int = 40,
        batch_size: int | None = None,
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

    @property
    def separate(self) -> bool:
        return not self.shared

    def architecture(self) -> TwoLayer:
        if self.hidden < 1:
            raise ValueError(f"Neural needs hidden >= 1, got hidden={self.hidden!r}")
        if self.activation not in ("relu", "tanh"):
            raise ValueError(f"activation must be 'relu' or 'tanh', got {self.activation!r}")
        if self.output not in ("hardtanh", "tanh"):
            raise ValueError(f"output must be 'hardtanh' or 'tanh', got {self.output!r}")
        return TwoLayer(self.hidden, self.activation, self.output)


class Neuron(TrainedBasis):
    """Single neurons ``bound * tanh(u'x)``, one an output: the atoms of the paper's Figure 1.

    Parameters
    ----------
    learning_rate, min_learning_rate, patience, last_epochs, max_epochs, batch_size
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
    ) -> None:
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.patience = patience
        self.last_epochs = last_epochs
        self.max_epochs = max_epochs
        self.batch_size = batch_size

    def architecture(self) -> SingleNeuron:
        return SingleNeuron()
