"""All atoms and their weights trained at once: the paper's non-greedy ensemble, and, with one atom, a plain network."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gce.bases.neural.basis import FULL_BATCH_ROWS, default_batch
from gce.bases.neural.captured import LOOK_EVERY, Recording, orders_on
from gce.bases.neural.descent import Descent, Schedule, row_orders
from gce.bases.neural.mixture import Coefficients
from gce.bases.neural.network import Architecture, Networks, Parameters, TwoLayer, drawn
from gce.bases.objectives import Mixture
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses.base import is_finite, non_finite
from gce.preprocessing.mixed import inputs_of
from gce.preprocessing.sparse import Inputs
from gce.training.data import FitData
from gce.training.problem import Metric, Problem
from gce.training.rounds import EpochRecord

logger = logging.getLogger(__name__)

#: Maximum number of epochs where the user gives none: full-batch steps are few per epoch, mini-batches many.
_EPOCHS, _LARGE_EPOCHS = 500, 100
#: Numbers of a hidden layer that are held at a time while held-out rows are evaluated.
_HIDDEN_AT_ONCE = 1 << 25


@dataclass(frozen=True)
class Plan:
    """How an ensemble of a known size is trained.

    Parameters
    ----------
    architecture : TwoLayer or SingleNeuron
    atoms : int
    coefficients : Coefficients
    schedule : Schedule
    batch_size : int
    dtype : torch.dtype
    deadline : float
        On the monotonic clock; training ends with the epoch that passes it (on a GPU epochs are launched ahead, and
        some may follow).
    """

    architecture: Architecture
    atoms: int
    coefficients: Coefficients
    schedule: Schedule
    batch_size: int
    dtype: torch.dtype
    deadline: float = math.inf

    @property
    def bounded(self) -> bool:
        return not isinstance(self.architecture, TwoLayer) or self.architecture.output != "identity"

    @property
    def units(self) -> int:
        """Numbers that one atom has between its layers, a row."""
        return self.architecture.hidden if isinstance(self.architecture, TwoLayer) else 1


def plan_joint_fit(
    model: Any,
    data: FitData,
    *,
    architecture: Architecture,
    atoms: int,
    coefficients: Coefficients,
    deadline: float,
) -> Plan:
    """Decide how networks are trained.

    Parameters
    ----------
    model : estimator
        Its parameters, see :class:`gce.NGCERegressor`, are attributes.
    data : FitData
    architecture : TwoLayer or SingleNeuron
        Of one atom.
    atoms : int
    coefficients : Coefficients
        What their weights are functions of.
    deadline : float
    """
    rate, floor = model.learning_rate, model.min_learning_rate
    if not floor < rate:
        raise ValueError(f"0 < min_learning_rate < learning_rate must hold, got {floor!r} and {rate!r}")
    rows, batch, patience = data.problem.train_rows, model.batch_size, model.n_iter_no_change
    small = rows <= FULL_BATCH_ROWS
    schedule = Schedule(
        float(rate),
        float(floor),
        model.patience,
        model.last_epochs,
        model.max_epochs or (_EPOCHS if small else _LARGE_EPOCHS),
        decay=float(model.weight_decay),
        watch_patience=math.inf if patience is None else patience,
    )
    return Plan(
        architecture if data.signs is None else architecture.monotone(list(data.signs)),
        atoms,
        coefficients,
        schedule,
        batch or default_batch(rows),
        torch.float64 if batch is None and small else torch.float32,
        deadline,
    )


@dataclass(frozen=True)
class HeldOutRows:
    """The rows that members hold out, as a descent's watch: the best epoch is best there.

    Parameters
    ----------
    problem : Problem
    objective : Mixture
    metric : Metric
    rows : Tensor of shape (h,)
        Where the rows stand that any member holds out.
    X : Tensor or SparseRows of shape (h, d)
    at_once : int
        Rows evaluated at a time.
    """

    problem: Problem
    objective: Mixture
    metric: Metric
    rows: Tensor
    X: Inputs
    at_once: int

    @classmethod
    def of(cls, problem: Problem, objective: Mixture, metric: Metric, plan: Plan) -> HeldOutRows:
        """The watch of a problem's held-out rows."""
        rows = problem.held_out.any(0).nonzero().flatten()
        units = len(problem.train) * plan.atoms * plan.units
        at_once = max(1, _HIDDEN_AT_ONCE // units)
        return cls(problem, objective, metric, rows, inputs_of(problem.X)[rows].to(plan.dtype), at_once)

    def __call__(self, forward: Callable[[Inputs], Tensor], theta: Tensor) -> Tensor:
        members, pred = len(theta), self.problem.y.new_zeros(len(theta), *self.problem.y.shape)
        some = [self.objective.combined(forward(X), theta) for X in self.X.split(self.at_once)]
        pred[:, self.rows] = torch.cat(some, 1)
        # scorers refuse NaN, or take it for class 0: a broken network is never the best
        broken = ~pred.isfinite().all(2).all(1)
        value = self.metric(pred.nan_to_num(0.0, 0.0, 0.0), list(range(members))).to(theta.device)
        return value.masked_fill(broken, math.inf)


class EpochLog:
    """The numbers of every epoch, recorded without waiting for the device."""

    def __init__(self, unit: Tensor) -> None:
        self._unit = unit
        self._risks: list[Tensor] = []
        self._watched: list[Tensor] = []
        self._best: list[Tensor] = []
        self._seconds: list[float] = []
        self._began = time.perf_counter()

    def append(self, descent: Descent) -> None:
        """Record an epoch."""
        self._best.append(descent.best_value.clone())
        self._risks.append(descent.value.view(len(self._unit), -1)[:, 0] * self._unit)
        self._watched.append(descent.watched.clone())
        self._seconds.append(time.perf_counter() - self._began)

    @property
    def best_epoch(self) -> tuple[int, ...]:
        """Of each member the epoch that is kept: the first whose value was not improved later."""
        best = torch.stack(self._best)
        return tuple(((best == best[-1]).to(torch.int8).argmax(0) + 1).tolist())

    def history(self, watched: bool) -> list[dict[str, Any]]:
        """One dict per epoch: means over members, whose own values are lists."""
        entries = []
        validations = torch.stack(self._watched).tolist()
        epochs = zip(torch.stack(self._risks).tolist(), validations, self._seconds, strict=True)
        for epoch, (risk, validation, seconds) in enumerate(epochs, 1):
            members = {"risk": risk, **({"validation": validation} if watched else {})}
            means = {name: sum(values) / len(values) for name, values in members.items()}
            entries.append({"epoch": epoch, "validation": None, **means, "seconds": seconds, "members": members})
        return entries


def train(plan: Plan, data: FitData) -> tuple[ConvexEnsemble, EpochRecord]:
    """Train every member's atoms and weights together; each member is kept at its best epoch, all are averaged.

    Parameters
    ----------
    plan : Plan
    data : FitData
        Its metric is minimised on held-out rows; without one the epoch of the least training risk is kept.

    Returns
    -------
    ensemble : ConvexEnsemble
    epochs : EpochRecord
    """
    problem, metric = data.problem, data.metric
    risk, n = problem.risk, problem.train_rows
    members, X = problem.members, inputs_of(problem.X)[:n].to(plan.dtype)
    objective = Mixture(risk, problem.bound, plan.atoms, plan.coefficients).cast(plan.dtype)
    rng = data.streams.at(1, torch.arange(members), torch.zeros(members, dtype=torch.int64))
    start = drawn(plan.architecture, X.shape[1], problem.y.shape[1], rng.members, plan.atoms, plan.dtype, X.device)
    watch = None if metric is None else HeldOutRows.of(problem, objective, metric, plan)
    descent = Descent(plan.architecture, start, objective, X, plan.schedule, plan.batch_size, watch)
    log = EpochLog(objective.unit)
    _run(descent, start, X, plan, rng.rows, log)
    networks, values = descent.result()
    least = descent.best_value
    if not is_finite(least):
        scores = problem.offset + problem.bound
        raise non_finite("risk", least, data.loss, scores, problem.y, "no epoch has a finite risk")
    if any(map(math.isnan, values)):
        logger.warning(
            "training turned NaN or infinite and stopped at its best epoch so far: lower learning_rate, or look for "
            "huge values in X"
        )
    # float32 weights, mapped again in float64, sum to 1 in float64
    weights = plan.coefficients.weights(descent.theta.double())
    epochs = EpochRecord("networks", members, log.history(metric is not None), log.best_epoch)
    return _averaged(networks, weights, problem, plan), epochs


def _run(descent: Descent, start: Parameters, X: Inputs, plan: Plan, rng: torch.Generator, log: EpochLog) -> None:
    n, epochs, device = len(X), plan.schedule.max_epochs, X.device
    stepper: Descent | Recording = descent
    orders, look = row_orders(n, plan.batch_size, epochs, rng), 1
    if isinstance(X, Tensor) and device.type == "cuda":
        stepper, look = Recording(descent, n, device), LOOK_EVERY
        descent.load(start, descent.objective, X)
        orders = orders_on(device, n, plan.batch_size, epochs, rng)
    for epoch, order in enumerate(orders, 1):
        stepper.epoch(order)
        log.append(descent)
        if (epoch % look == 0 and descent.done) or time.monotonic() >= plan.deadline:
            return


def _averaged(networks: Parameters, weights: Tensor, problem: Problem, plan: Plan) -> ConvexEnsemble:
    """One flat ensemble: each member's weights divided by their number."""
    members = len(weights)
    member = torch.arange(members, device=weights.device).repeat_interleave(plan.atoms)
    origin = torch.stack([member, torch.ones_like(member)], 1)
    atoms = Networks(plan.architecture.free, networks, problem.bound)
    # what is not squashed answers in units of the bound, and keeps to none
    reach = problem.bound if plan.bounded else torch.full_like(problem.bound, math.inf)
    return ConvexEnsemble([atoms], (weights / members).flatten(), origin, problem.offset, reach)
