"""The GPU oracle: an epoch recorded once as a CUDA graph and replayed for every epoch of every round.

A small network's step is some twenty kernels of a few microseconds each; launched one by one from Python they cost ten
times as much as replayed.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from gce.basis.descent import Descent, Schedule, row_orders
from gce.basis.network import Architecture, Parameters
from gce.objectives import Objective

logger = logging.getLogger(__name__)

#: Epochs between two looks at whether all networks are done: each look waits for the device.
_LOOK_EVERY = 8


class Recorder:
    """Trains as :func:`gce.basis.descent.descend` does, and remembers the last recording.

    The order of rows is drawn on the device, from a seed that the given stream draws.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._descent: Descent | None = None
        self._order: Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

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
        if key != self._key:
            self._record(architecture, start, objective, X, schedule, batch_size)
            self._key = key
        assert self._descent is not None
        self._descent.load(start, objective, X)
        seed = int(torch.randint(2**62, (), generator=rng))
        shuffle = torch.Generator(X.device).manual_seed(seed)
        for epoch, order in enumerate(row_orders(len(X), batch_size, schedule.max_epochs, shuffle), 1):
            self._replay(order)
            if epoch % _LOOK_EVERY == 0 and self._descent.done:
                break
        return self._descent.result()

    def _record(
        self,
        architecture: Architecture,
        start: Parameters,
        objective: Objective,
        X: Tensor,
        schedule: Schedule,
        batch_size: int,
    ) -> None:
        self._graph = self._descent = None  # what they hold is freed before more is taken
        self._descent = Descent(architecture, start, objective.copy(), X.clone(), schedule, batch_size)
        self._order = None if batch_size >= len(X) else torch.arange(len(X), device=X.device)
        here, side = torch.cuda.current_stream(X.device), torch.cuda.Stream(X.device)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            # libraries set themselves up in their first calls, which cannot be recorded
            self._descent.epoch(self._order)
        here.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(X.device), torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                self._descent.epoch(self._order)
        except RuntimeError as error:
            # torch does not leave the recording's stream when a recording breaks
            torch.cuda.set_stream(here)
            logger.info("an epoch cannot be recorded (%s): operations are launched one by one", error)
            return
        self._graph = graph

    def _replay(self, order: Tensor | None) -> None:
        assert self._descent is not None
        if self._graph is None:
            self._descent.epoch(order)
            return
        if order is not None:
            assert self._order is not None
            self._order.copy_(order)
        self._graph.replay()
