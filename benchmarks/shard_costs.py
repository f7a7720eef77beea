"""What a round of a fit of several processes costs: a model, fitted to measured rounds.

A round of ``n`` rows on ``p`` processes, with ``m`` messages of ``s`` bytes in all, takes

    load x (a + b n / p + b' n' / p + c m k) + m k R + s k / W

``a`` is what a process does in every round, ``b`` what a row costs, ``b'`` what each of the ``n'`` rows beyond those
that fit into the caches of its machine costs besides, and ``c`` what a message costs on one machine. ``load`` is the
number of processes per core where there are more of them than cores: one works after the other. ``R``
is the round trip of the link and ``W`` its bytes per second; a message takes ``k`` round trips, and its bytes are sent
as often: :func:`round_trips`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls


@dataclass(frozen=True)
class Link:
    """A link between machines.

    Parameters
    ----------
    round_trip : float
        Seconds there and back.
    rate : float
        Bytes per second.
    """

    round_trip: float
    rate: float


def round_trips(processes: int) -> int:
    """Round trips of a sum in pairs along the edges of a cube; processes beyond it send to a partner, and wait."""
    return processes.bit_length() - 1 + 2 * (processes.bit_count() > 1)


def measured_trips(own: Mapping[str, Any]) -> float:
    """Round trips of a measured sum of the fewest bytes."""
    return own["seconds"][min(own["seconds"], key=int)] / own["round_trip"]


@dataclass(frozen=True)
class Round:
    """What a round does.

    Parameters
    ----------
    rows : int
        Of all machines.
    machines : int
    processes : int
        Of all machines.
    workers : int
        Threads of all processes that share the rows.
    messages, bytes : float
        Of each process.
    load : float
        Processes per core, 1 where there are fewer of them than cores.
    """

    rows: int
    machines: int
    processes: int
    workers: int
    messages: float
    bytes: float
    load: float = 1.0

    @classmethod
    def of(cls, own: Mapping[str, Any], cores: int) -> Round:
        """The rounds of a fit that was measured on one machine of so many cores, with processes of one thread."""
        size, rounds = own["processes"], own["rounds"]
        load = max(1.0, size / cores)
        return cls(own["rows"], 1, size, size, own["calls"] / rounds, own["bytes"] / rounds, load)

    def terms(self, cached: float) -> list[float]:
        """What the constants of :class:`Costs` are multiplied by."""
        beyond = max(0.0, self.rows - self.machines * cached)
        messages = self.messages * round_trips(self.processes)
        return [self.load * term for term in (1.0, self.rows / self.workers, beyond / self.workers, messages)]


@dataclass(frozen=True)
class Costs:
    """The constants of the model.

    Parameters
    ----------
    each, row, beyond, message : float
        Seconds: of every round, of a row, of a row beyond the caches besides, and of a message on one machine.
    cached : float
        Rows of a machine that fit into its caches.
    """

    each: float
    row: float
    beyond: float
    message: float
    cached: float

    @classmethod
    def fit(cls, entries: Iterable[Mapping[str, Any]], cores: int) -> Costs:
        """The constants with the least squares of relative errors, none below 0."""
        entries = list(entries)
        took = np.array([seconds(own) for own in entries])
        works = [Round.of(own, cores) for own in entries]

        def constants(cached: float) -> tuple[NDArray[np.float64], float]:
            terms = np.array([work.terms(cached) for work in works])
            found, error = nnls(terms / took[:, None], np.ones(len(took)))
            return found, float(error)

        rows = sorted({work.rows for work in works})
        # the error has a kink at each number of rows that was measured, and may have a minimum between any two
        tries = [
            minimize_scalar(lambda cached: constants(cached)[1], bounds=ends, method="bounded", options={"xatol": 1.0})
            for ends in pairwise(rows)
        ]
        cached = float(min(tries, key=lambda one: one.fun).x)
        each, row, beyond, message = constants(cached)[0].tolist()
        return cls(each, row, beyond, message, cached)

    def widened(self, factor: float) -> Costs:
        """The same for tables with so many times the columns."""
        wide = {name: factor * getattr(self, name) for name in ("each", "row", "beyond")}
        return replace(self, **wide, cached=self.cached / factor)

    def own(self, work: Round) -> float:
        """Seconds of a round without a link."""
        constants = (self.each, self.row, self.beyond, self.message)
        return float(np.dot(work.terms(self.cached), constants))

    def on_link(self, work: Round, link: Link) -> tuple[float, float]:
        """Seconds that the messages of a round are on their way, and that its bytes take."""
        trips = round_trips(work.processes)
        return work.messages * trips * link.round_trip, work.bytes * trips / link.rate

    def predicted(self, own: Mapping[str, Any], cores: int) -> float:
        """Seconds of a round of a measured fit, by the model."""
        work = Round.of(own, cores)
        link = sum(self.on_link(work, Link(own["round_trip"], own["rate"]))) if "round_trip" in own else 0.0
        return self.own(work) + link


def seconds(own: Mapping[str, Any]) -> float:
    """Seconds of a measured round."""
    return float(own["in_rounds"] / own["rounds"])


def errors(costs: Costs, entries: Iterable[Mapping[str, Any]], cores: int) -> list[float]:
    """What the model says of measured rounds, relative to what was measured, less 1."""
    return [costs.predicted(own, cores) / seconds(own) - 1 for own in entries]
