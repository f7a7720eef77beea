"""Calendar parts of dates as operators, by the integer arithmetic of :mod:`gce.preprocessing.date_parts`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gce.io.onnx.graph import Graph
from gce.preprocessing.date_parts import DateParts, calendar, cycle


@dataclass(frozen=True)
class _Integers:
    """Integers of a graph ``(rows, 1)``, which are added and multiplied as arrays are; quotients of positive ones."""

    graph: Graph
    name: str

    def _apply(self, op: str, other: _Integers | int) -> _Integers:
        value = other.name if isinstance(other, _Integers) else np.int64(other)
        return _Integers(self.graph, self.graph(op, self.name, value))

    def __add__(self, other: _Integers | int) -> _Integers:
        return self._apply("Add", other)

    def __sub__(self, other: _Integers | int) -> _Integers:
        return self._apply("Sub", other)

    def __mul__(self, other: _Integers | int) -> _Integers:
        return self._apply("Mul", other)

    def __floordiv__(self, other: _Integers | int) -> _Integers:
        return self._apply("Div", other)


def calendar_parts(graph: Graph, parts: DateParts, seconds: str) -> str:
    """The parts of dates ``(rows, p)`` in float64, NaN for missing values; there is at least one.

    Parameters
    ----------
    graph : Graph
        The graph.
    parts : DateParts
        The parts.
    seconds : str
        Seconds since 1970-01-01 of the wall clock ``(rows, 1)``.

    Returns
    -------
    str
    """
    present = graph("Equal", seconds, seconds)
    whole = graph.cast(graph("Floor", graph("Where", present, seconds, np.float64(0))), np.int64)
    numbers = calendar(_Integers(graph, whole))
    made = []
    for part in parts.names:
        turning = cycle(part)
        if turning is None:
            made.append(graph.cast(numbers[part].name, np.float64))
        else:
            number, angle, added = turning
            turned = graph("Mul", graph.cast(numbers[number].name, np.float64), np.float64(angle))
            made.append(graph("Sin", graph("Add", turned, np.float64(added))))
    together = made[0] if len(made) == 1 else graph("Concat", *made, axis=1)
    return graph("Where", present, together, np.float64(np.nan))
