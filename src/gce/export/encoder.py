"""A fit's table as operators: from a user's columns to what networks see."""

from __future__ import annotations

import numpy as np

from gce.export.graph import Graph, inner
from gce.table import Column, Standardizer, Table
from gce.table.schema import OTHER

#: Names of the graph's outputs, which no column may have.
OUTPUTS = ("label", "probabilities", "variable")


def encoded(graph: Graph, table: Table) -> str:
    """What networks see, ``(rows, width)``, of inputs given to the graph here; the inputs where that is nothing."""
    X, own = _coded(graph, table), table.encoder
    parts = []
    if len(own.numbers):
        numbers = X if len(own.numbers) == len(table.columns) else graph("Gather", X, own.numbers, axis=1)
        parts.append(_scaled(graph, own.scaling, numbers))
    if len(own.flagged):
        parts.append(_flags(graph, table, X))
    if len(parts) == 2:
        return graph("Concat", *parts, axis=1)
    return parts[0] if parts else X


def _coded(graph: Graph, table: Table) -> str:
    """The columns as numbers, ``(rows, d)``: categories by codes, NaN for a gap."""
    if all(column.kind != "category" for column in table.columns):
        return graph.input("X", np.float64, len(table.columns))
    names = [column.name for column in table.columns]
    clash = next((name for i, name in enumerate(names) if name in (*names[:i], *OUTPUTS, "") or inner(name)), None)
    if clash is not None:
        raise ValueError(f"the column name {clash!r} is empty, there twice, or one of the graph's own: rename it")
    return graph("Concat", *(_column(graph, column) for column in table.columns), axis=1)


def _column(graph: Graph, column: Column) -> str:
    if column.kind != "category":
        return graph.input(column.name, np.float64, 1)
    if all(isinstance(level, str) for level in column.levels):
        return _code_of_text(graph, column)
    return _code_of_number(graph, column)


def _code_of_text(graph: Graph, column: Column) -> str:
    codes = {"": np.nan, **{str(level): float(code) for code, level in enumerate(column.levels)}}
    known = {"keys_strings": list(codes), "values_floats": list(codes.values()), "default_float": float(OTHER)}
    text = graph.input(column.name, object, 1)
    return graph.cast(graph("LabelEncoder", text, domain="ai.onnx.ml", **known), np.float64)


def _code_of_number(graph: Graph, column: Column) -> str:
    inexact = next((level for level in column.levels if float(level) != level), None)
    if inexact is not None:
        raise ValueError(f"column {column.name!r} has the category {inexact!r}, too long for a float64: make it text")
    number, levels = graph.input(column.name, np.float64, 1), np.array(column.levels, dtype=np.float64)
    hits = graph.cast(graph("Equal", number, levels), np.float64)
    # no hit is the code of all others
    code = graph("Add", graph("MatMul", hits, np.arange(len(levels))[:, None] - float(OTHER)), np.float64(OTHER))
    return graph("Where", _there(graph, number), code, number)


def _flags(graph: Graph, table: Table, X: str) -> str:
    """Which column has which code, or a gap; all 0 for what the fit never saw in a column."""
    own = table.encoder
    column = graph("Gather", X, own.flagged, axis=1)
    gap = graph("And", graph("Not", _there(graph, column)), np.isnan(own.codes))
    hits = graph("Or", graph("Equal", column, own.codes), gap)
    flags = graph("Where", hits, own.on, own.off)
    owners, place = np.unique(own.flagged, return_inverse=True)
    if np.isin(owners, own.numbers).all():
        return flags
    counts = graph("MatMul", graph.cast(hits, np.float64), np.eye(len(owners))[place])
    # a number that is there has no flag of its own
    known = graph("Add", counts, np.isin(owners, own.numbers).astype(np.float64))
    seen = graph("Gather", graph("Greater", known, np.float64(0)), place.astype(np.int64), axis=1)
    return graph("Where", seen, flags, np.float64(0))


def _scaled(graph: Graph, scaling: Standardizer, X: str) -> str:
    """Numbers ``(rows, p)`` in their scale, far ones drawn in; a gap becomes the centre."""
    z = graph("Mul", graph("Sub", X, scaling.mean), 1 / scaling.scale)
    z = graph("Where", _there(graph, z), z, np.float64(0))
    clip = scaling.clip
    if np.isinf(clip):
        return z
    z = graph("Clip", z, np.float64(-1e9 * clip), np.float64(1e9 * clip))
    square = _squared(graph, graph("Div", z, np.float64(clip)))
    root = graph("Sqrt", graph("Sqrt", graph("Add", _squared(graph, square), np.float64(1))))
    return graph("Clip", graph("Div", z, root), np.float64(-clip), np.float64(clip))


def _there(graph: Graph, value: str) -> str:
    """Where numbers are not NaN; old runtimes have no IsNaN in float64."""
    return graph("Equal", value, value)


def _squared(graph: Graph, value: str) -> str:
    return graph("Mul", value, value)
