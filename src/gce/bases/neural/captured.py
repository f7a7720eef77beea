"""The GPU oracle: an epoch recorded once as a CUDA graph and replayed for every epoch of every round.

A small network's step is some twenty kernels of a few microseconds each; launched one by one from Python they cost ten
times as much as replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import torch
from torch import Tensor

from gce._utils.clock import StepTimer
from gce.bases.neural.descent import Descent, Schedule, row_orders
from gce.bases.neural.network import Architecture, Parameters
from gce.bases.objectives import Objective

logger = logging.getLogger(__name__)

#: Epochs between two looks at whether all networks are done: each look waits for the device.
LOOK_EVERY = 8


class Recording:
    """A descent's epoch, recorded; where it cannot be recorded its operations are launched one by one.

    Recording changes the networks: load the descent again before they are trained.

    Parameters
    ----------
    descent : Descent
    rows : int
    device : torch.device
    """

    def __init__(self, descent: Descent, rows: int, device: torch.device) -> None:
        self.descent = descent
        self._order = None if descent.full else torch.arange(rows, device=device)
        self._graph = self._record(device)

    def _record(self, device: torch.device) -> torch.cuda.CUDAGraph | None:
        here, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            # libraries set themselves up in their first calls, which cannot be recorded
            self.descent.epoch(self._order)
        here.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(device), torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                self.descent.epoch(self._order)
        except RuntimeError as error:
            # torch does not leave the recording's stream when a recording breaks
            torch.cuda.set_stream(here)
            logger.debug("an epoch cannot be recorded (%s): operations are launched one by one", error)
            return None
        return graph

    def epoch(self, order: Tensor | None) -> None:
        """As :meth:`gce.bases.neural.descent.Descent.epoch`."""
        if self._graph is None:
            self.descent.epoch(order)
            return
        if order is not None:
            assert self._order is not None
            self._order.copy_(order)
        self._graph.replay()


class Recorder:
    """Trains as :func:`gce.bases.neural.descent.descend` does, and keeps the last recording.

    The order of rows is drawn on the device, from a seed that the given stream draws.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._recording: Recording | None = None

    def descend(
        self,
        architecture: Architecture,
        start: Parameters,
        objective: Objective,
        X: Tensor,
        schedule: Schedule,
        batch_size: int,
        rng: torch.Generator,
    ) -> tuple[Parameters, list[float]]:
        kinds = (type(architecture), dict(vars(architecture)), objective.form, start[0].dtype, X.device)
        key = (kinds, [p.shape for p in (*start, objective.theta, X)], schedule, batch_size)
        if key != self._key or self._recording is None:
            self._recording = None  # what it holds is freed before more is taken
            descent = Descent(architecture, start, objective.copy(), X.clone(), schedule, batch_size)
            self._recording, self._key = Recording(descent, len(X), X.device), key
        self._recording.descent.load(start, objective, X)
        pace = StepTimer(schedule.end)
        for epoch, order in enumerate(orders_on(X.device, len(X), batch_size, schedule.max_epochs, rng), 1):
            self._recording.epoch(order)
            if epoch % LOOK_EVERY:
                continue
            if self._recording.descent.done:
                break
            if pace.out_of_time() and epoch < schedule.max_epochs:
                schedule.cut_short()
                break
        return self._recording.descent.result()


def orders_on(
    device: torch.device, n: int, batch_size: int, epochs: int, rng: torch.Generator
) -> Iterator[Tensor | None]:
    """Orders of rows drawn on the device, from a seed that the given stream draws."""
    seed = int(torch.randint(2**62, (), generator=rng))
    return row_orders(n, batch_size, epochs, torch.Generator(device).manual_seed(seed))
