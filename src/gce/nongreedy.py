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

from gce.basis.captured import LOOK_EVERY, Recording, orders_on
from gce.basis.descent import Descent, Schedule, row_orders
from gce.basis.network import Architecture, Networks, Parameters, TwoLayer, drawn
from gce.coefficients import Coefficients
from gce.ensemble import ConvexEnsemble
from gce.fitting import Metric, Problem
from gce.objectives import Mixture
from gce.rows import Inputs
from gce.streams import Streams

logger = logging.getLogger(__name__)

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
        return cls(problem, objective, metric, rows, problem.X[rows].to(plan.dtype), at_once)

    def __call__(self, forward: Callable[[Inputs], Tensor], theta: Tensor) -> Tensor:
        members, pred = len(theta), self.problem.y.new_zeros(len(theta), *self.problem.y.shape)
        some = [self.objective.combined(forward(X), theta) for X in self.X.split(self.at_once)]
        pred[:, self.rows] = torch.cat(some, 1)
        # scorers refuse NaN, or take it for class 0: a broken network is never the best
        broken = ~pred.isfinite().all(2).all(1)
        value = self.metric(pred.nan_to_num(0.0, 0.0, 0.0), list(range(members))).to(theta.device)
        return value.masked_fill(broken, math.inf)


class Course:
    """What a training leaves behind, epoch by epoch, without waiting for the device."""

    def __init__(self, unit: Tensor) -> None:
        self._unit = unit
        self._risks: list[Tensor] = []
        self._watched: list[Tensor] = []
        self._seconds: list[float] = []
        self._began = time.perf_counter()

    def note(self, descent: Descent) -> None:
        """Take down an epoch."""
        self._risks.append(descent.value.view(len(self._unit), -1)[:, 0] * self._unit)
        self._watched.append(descent.watched.clone())
        self._seconds.append(time.perf_counter() - self._began)

    def history(self, watched: bool) -> list[dict[str, Any]]:
        """One dict an epoch: means over members, whose own values are lists."""
        entries = []
        validations = torch.stack(self._watched).tolist()
        epochs = zip(torch.stack(self._risks).tolist(), validations, self._seconds, strict=True)
        for epoch, (risk, validation, seconds) in enumerate(epochs, 1):
            members = {"risk": risk, **({"validation": validation} if watched else {})}
            means = {name: sum(values) / len(values) for name, values in members.items()}
            entries.append({"epoch": epoch, "validation": None, **means, "seconds": seconds, "members": members})
        return entries


def train(
    problem: Problem, metric: Metric | None, plan: Plan, streams: Streams
) -> tuple[ConvexEnsemble, list[dict[str, Any]]]:
    """Train every member's atoms and weights together; the best epoch of each is kept, all are averaged.

    Parameters
    ----------
    problem : Problem
    metric : Metric or None
        What to make small on held-out rows; None keeps the epoch of the least training risk.
    plan : Plan
    streams : Streams

    Returns
    -------
    ensemble : ConvexEnsemble
    history : list of dict
        One an epoch.
    """
    risk, n = problem.risk, problem.train_rows
    members, X = len(risk.weight), problem.X[:n].to(plan.dtype)
    objective = Mixture(risk, problem.bound, plan.atoms, plan.coefficients).cast(plan.dtype)
    rng = streams.at(1, torch.arange(members), torch.zeros(members, dtype=torch.int64))
    start = drawn(plan.architecture, X.shape[1], problem.y.shape[1], rng.members, plan.atoms, plan.dtype, X.device)
    watch = None if metric is None else HeldOutRows.of(problem, objective, metric, plan)
    descent = Descent(plan.architecture, start, objective, X, plan.schedule, plan.batch_size, watch)
    course = Course(objective.unit)
    _run(descent, start, X, plan, rng.rows, course)
    networks, values = descent.result()
    if any(map(math.isnan, values)):
        logger.warning(
            "training turned NaN or infinite and stopped at its best epoch so far: lower learning_rate, or look for "
            "huge values in X"
        )
    weights = plan.coefficients.weights(descent.theta.double())
    # float32 weights, mapped again in float64, sum to 1 in float64
    return _averaged(networks, weights, problem, plan), course.history(metric is not None)


def _run(descent: Descent, start: Parameters, X: Inputs, plan: Plan, rng: torch.Generator, course: Course) -> None:
    n, epochs, device = len(X), plan.schedule.max_epochs, X.device
    stepper: Descent | Recording = descent
    orders, look = row_orders(n, plan.batch_size, epochs, rng), 1
    if isinstance(X, Tensor) and device.type == "cuda":
        stepper, look = Recording(descent, n, device), LOOK_EVERY
        descent.load(start, descent.objective, X)
        orders = orders_on(device, n, plan.batch_size, epochs, rng)
    for epoch, order in enumerate(orders, 1):
        stepper.epoch(order)
        course.note(descent)
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
